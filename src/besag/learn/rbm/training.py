"""Learning a machine by stochastic steps along the likelihood's gradient, whose free part chains estimate, 003.

    gradient of log p by W   =   E_data[v p(h | v)^T] - E_chains[v p(h | v)^T],     by b and c likewise
    velocity := momentum velocity + rate (gradient - weight_decay W);   W += velocity

    pcd                      persistent chains, k sweeps an update (Younes; Tieleman 2008)
    contrastive_divergence   chains that begin at the batch, k sweeps (Hinton 2002)

An epoch is a permutation of the rows, cut into batches. Permutations depend on the seed and the number of the epoch,
draws on the seed and the number of the update, so that a fit that goes on is the fit that never stopped.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from besag.arrays import AnyArray, IntArray, freeze
from besag.errors import ModelError, NumericalError
from besag.infer.iterate import Clock
from besag.kernels.compile import compiled
from besag.learn.losses.base import OBJECTIVES
from besag.learn.losses.contrastive import ContrastiveDivergenceOptions, PCDOptions
from besag.learn.optimisers.schedules import scale_step
from besag.learn.rbm.kernels.layers import make_updates
from besag.learn.rbm.machine import Machine

AT_ONCE = 0.05  # seconds of updates between two looks at the clock
PARTS = ("weights", "visible", "hidden")


@dataclass(frozen=True, slots=True)
class UpdateOptions:
    """How to move: everything but the data. n_chains: of persistent ones, 0 where they begin at the data."""

    k: int
    n_chains: int
    batch_size: int
    learning_rate: float
    schedule: str
    decay: float
    momentum: float
    weight_decay: float
    max_epochs: int
    seed: int


def read_objective(text: Any, batch_size: int) -> tuple[int, int]:
    """k and the number of persistent chains of an objective by name."""
    options = OBJECTIVES.read(text, n_chains=batch_size)
    if isinstance(options, PCDOptions):
        return options.k, options.n_chains
    if isinstance(options, ContrastiveDivergenceOptions):
        return options.k, batch_size if options.persistent else 0
    raise ModelError(f"objective must be pcd or contrastive_divergence, with options in the text, got {text!r}")


def first_machine(units: AnyArray, offsets: IntArray, is_binary: bool, n_hidden: int, seed: int) -> Machine:
    """Small random weights, and visible biases that alone fit the shares of the states in the data."""
    share = units.mean(axis=0, dtype=np.float64)
    n = len(units)
    ones = np.log(share * n + 0.5)  # half a row is added to each state, so that biases are finite
    base = ones - np.log((1.0 - share) * n + 0.5) if is_binary else ones - np.log(n)
    weights = 0.01 * np.random.default_rng([seed, 0]).standard_normal((units.shape[1], n_hidden))
    return Machine(weights.astype(np.float32), base, np.zeros(n_hidden), base, offsets, is_binary)


class Trainer:
    """A machine on its way: its arrays are changed in place.

    velocities: of the parts, (0, 0) of weights without momentum. chains (C, H): hidden units. n_updates: so far.
    """

    def __init__(self, machine: Machine, options: UpdateOptions) -> None:
        self.options, self.base = options, machine.base
        self.offsets, self.is_binary = machine.offsets, machine.is_binary
        self.parts = {name: np.array(getattr(machine, name)) for name in PARTS}
        moving = options.momentum > 0
        self.velocities = {
            name: np.zeros_like(part if moving or part.ndim == 1 else part[:, :0]) for name, part in self.parts.items()
        }
        self.counts, self.last_rate = np.zeros(1, np.int64), math.nan
        odds = np.random.default_rng([options.seed, 1]).random((options.n_chains, machine.n_hidden))
        self.chains = (odds < 0.5).astype(np.float32)

    def going_on(self, options: UpdateOptions) -> Trainer:
        """The training under these options from here on; velocities and chains of another size begin anew."""
        if options == self.options:
            return self
        other = Trainer(self.machine, options)
        for name, array in other.kept().items():
            found = self.kept()[name]
            if found.shape == array.shape:
                array[...] = found
        return other

    @property
    def n_updates(self) -> int:
        """How many were made."""
        return int(self.counts[0])

    @property
    def machine(self) -> Machine:
        """As it is now."""
        parts = {name: part.copy() for name, part in self.parts.items()}
        return Machine(**parts, base=self.base, offsets=self.offsets, is_binary=self.is_binary)

    @property
    def rate(self) -> float:
        """The learning rate of the last update."""
        return float(self.last_rate)

    def n_batches(self, n: int) -> int:
        """Of an epoch of n rows."""
        return -(-n // self.options.batch_size)

    def one_epoch(self, units: AnyArray, clock: Clock) -> None:
        """An epoch of these rows, which need not be as many as before, at the full learning rate."""
        rates = np.full(self.n_batches(len(units)), self.options.learning_rate, np.float32)
        self._epoch(units, self.n_updates, 0, rates, clock)

    def epoch(self, units: AnyArray, clock: Clock) -> bool:
        """The updates that are left of this epoch; False where the time ended before."""
        number, done = divmod(self.n_updates, n := self.n_batches(len(units)))
        return self._epoch(units, number, done, self._rates(number, n), clock)

    def _epoch(self, units: AnyArray, number: int, done: int, rates: AnyArray, clock: Clock) -> bool:
        options, n = self.options, self.n_batches(len(units))
        order = np.random.default_rng([options.seed, 2, number]).permutation(len(units))
        call, slab = self._call(freeze(units), freeze(order), freeze(rates)), 1
        while done < n:
            stop = min(done + slab, n)
            began = time.perf_counter()
            call(done, stop)
            self._check_finite()
            slab = max(1, int(slab * min(2.0, AT_ONCE / max(time.perf_counter() - began, 1e-9))))
            done, self.last_rate = stop, float(rates[stop - 1])
            if clock.left <= 0:
                return done == n
        return True

    def _rates(self, epoch: int, n: int) -> AnyArray:
        """(n,): the learning rate at each batch of an epoch."""
        o = self.options
        passed = (epoch + t / n for t in range(n))
        rates = [scale_step(o.schedule, o.learning_rate, o.decay, p, max(o.max_epochs, 1)) for p in passed]
        return np.array(rates, np.float32)

    def _call(self, units: AnyArray, order: IntArray, rates: AnyArray) -> Any:
        """The kernel with all but the batches filled in."""
        o, kernel = self.options, compiled(make_updates)
        size = min(o.batch_size, len(units))
        n_chains, n_hidden = o.n_chains or size, self.parts["hidden"].shape[0]
        chains = self.chains if o.n_chains else np.zeros((size, n_hidden), np.float32)
        stack = np.zeros((size + n_chains, units.shape[1]), np.float32)
        means = np.zeros((size + n_chains, n_hidden), np.float32)
        parts, velocities = tuple(self.parts.values()), tuple(self.velocities.values())
        gradients = tuple(np.zeros_like(part) for part in parts)
        shares = freeze(np.array([o.momentum, o.weight_decay], np.float32))

        def call(first: int, last: int) -> None:
            kernel(
                units, order, first, last, o.batch_size, self.offsets, self.is_binary, rates, shares, o.k,
                o.n_chains > 0, o.seed, self.counts, chains, stack, means, *parts, gradients, velocities,
            )  # fmt: skip

        return call

    def _check_finite(self) -> None:
        """NumericalError where steps were so long that the numbers have left all bounds."""
        if not all(np.isfinite(self.parts[name]).all() for name in PARTS):
            raise NumericalError(
                f"the parameters are not finite any more after {self.n_updates} updates: take a learning_rate below "
                f"{self.options.learning_rate:g}"
            )

    def kept(self) -> dict[str, AnyArray]:
        """What a checkpoint keeps, by name."""
        more = {f"velocity.{name}": array for name, array in self.velocities.items()}
        return {**self.parts, **more, "chains": self.chains, "counts": self.counts}

    def restore(self, kept: dict[str, Any]) -> None:
        """Goes on from there; ModelError where that is of a machine of other size or of other chains."""
        for name, array in self.kept().items():
            found = np.asarray(kept.get(name, np.zeros(0)))
            if found.shape != array.shape or found.dtype != array.dtype:
                raise ModelError(
                    f"the checkpoint is of another fit: its {name} has shape {found.shape}, expected {array.shape}"
                )
            array[...] = found
