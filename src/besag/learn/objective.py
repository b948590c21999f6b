"""What learning minimises: a loss summed over instances, and a penalty that is added once.

    value(theta) = sum_n L_n(theta) + R(theta)

An Objective knows the loss of a Batch, in two parts, because energies are linear in theta:

    sum_n L_n(theta) = <theta, statistics> + rest(theta)

The statistics of the data, (P,), are summed once. `Total` is the sum over a Dataset, shard by shard on several threads,
with the penalty: the function that optimisers see. Shards depend on the data and never on the number of threads, and
are added up in their order, so that neither do the answers.

    full        value and gradient of all data
    sampled     N / |batch| times the loss of a mini-batch, plus the penalty: an unbiased estimate of the same

A state is what an objective wants to know at its next call: None at first, then what the call on the same shard with
the least value so far has returned, or the last call where there are no values. So the trials of a line search begin
alike: with messages of a step too far, values on the way back would not be those of the way there. A state that is a
Mapping of names to arrays, numbers and texts also goes from each mini-batch to the next one, and into checkpoints:
chains of all instances, say, of which a batch moves its own, `batch.numbers`. It is replaced, never changed, because a
step that is broken off has not been taken.

An objective may have a gradient and no value, `has_value` False: it gives None. Optimisers that compare values, and
held-out data, then refuse; others go on for as long as they are told, and histories have no column of values. Or it may
have kinks, `is_smooth` False: optimisers that trust gradients to be continuous refuse. One that is a sum of maxima of
linear functions may know its dual: its `ascent` goes up there, for `frank_wolfe`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from besag.arrays import AnyArray, Array, IntArray, dot, norm
from besag.errors import CapabilityError, ModelError
from besag.kernels.threads import available_threads, run_chunks
from besag.learn.penalty import Penalty

State: TypeAlias = Any  # what an objective carries from one call to the next: messages, chains; None at first
Product: TypeAlias = Callable[[Array], Array]
Given = TypeVar("Given")
Found = TypeVar("Found")
TOGETHER = 4  # shards that are evaluated together at least
HESSIANS = ("covariance", "differences")
RANK = 1e-9  # of the largest eigenvalue of a Hessian: below it a direction counts as one in which nothing changes


class DualPoint(NamedTuple):
    """A point of the dual: the theta (P,) that belongs to it, sum_n w_n c_n, and what is kept of each block by name."""

    theta: Array
    loss: float
    blocks: Mapping[str, AnyArray]


class DualAscent(Protocol):
    """The way up in the dual of a loss, see `besag.learn.losses.block_ascent`; points are never changed.

    size: how many instances a call takes.
    """

    @property
    def size(self) -> int: ...
    def begin(self) -> DualPoint:
        """The point of theta = 0."""

    def climb(self, point: DualPoint, instances: IntArray) -> DualPoint:
        """After a step of each of some instances."""

    def settle(self, point: DualPoint, gained: float) -> DualPoint:
        """After steps that take no inference; gained: what D has in an epoch."""

    def bound(self, point: DualPoint) -> float:
        """D, the value of the dual."""


class Objective(Protocol):
    """A loss, summed over the instances of a batch: <theta, statistics> + rest(theta).

    surrogate: the name of what stands in for the likelihood, None where nothing does.
    """

    surrogate: str | None
    has_value: bool
    is_smooth: bool

    @property
    def is_exact(self) -> bool:
        """Whether all inference so far was."""

    @property
    def resolution(self) -> float:
        """The part of moments that inference leaves open; 0 where it is exact."""

    def follow(self, progress: float) -> None:
        """Tells how small the gradient of all data is beside the first one: inference may be as rough as that."""

    def statistics(self, batch: Any) -> Array:
        """(P,): what the loss is linear in."""

    def warn_of(self, batches: Sequence[Any]) -> None:
        """Warns, after `statistics` of all batches, of data that say less than they seem to."""

    def add(
        self, theta: Array, batches: Sequence[Any], states: Sequence[State], gradient: Array, n_threads: int | None
    ) -> tuple[Sequence[float | None], Sequence[State]]:
        """The rest of each of some batches, and what the next call on the same ones should begin with.

        Its gradient is added to `gradient` (P,), batch by batch.
        """

    def hessian_vector(self, theta: Array, batch: Any) -> Product:
        """The product of the Hessian at theta with a vector (P,)."""


class Function(Protocol):
    """What an optimiser sees: loss and penalty of all data as a function of theta; l1 is left to the optimiser.

    penalty: its l2 is in `value_and_grad`, its l1 is not. n: the number of instances. has_value: else values are None,
    and only optimisers that ask for `has_value` may have the function. noise: a norm of gradients below which inference
    cannot tell them from 0.
    """

    penalty: Penalty
    n: int
    has_value: bool
    is_smooth: bool
    noise: float

    def value_and_grad(self, theta: Array) -> tuple[Any, Array]:
        """Loss plus l2, and the gradient."""

    def hessian_vector(self, theta: Array) -> Product:
        """Products with the Hessian of loss plus l2 at theta."""

    def sampled(self, theta: Array, instances: IntArray, state: State = None) -> tuple[Any, Array, State]:
        """Loss plus l2, and the gradient, estimated from some instances; the state for the next mini-batch."""

    def ascent(self) -> DualAscent:
        """The way up in the dual; CapabilityError where none is known."""


class Instances(Protocol):
    """What an objective is summed over: instances in shards, and some of them by number."""

    def __len__(self) -> int: ...
    def shards(self) -> Sequence[Any]:
        """Batches of all instances."""

    def batch(self, instances: IntArray) -> Any:
        """A batch of some instances."""


def thread_count(given: Any) -> int | None:
    """How many threads; None, also given as scikit-learn's -1, is all cores. ModelError for anything else."""
    if given is None or given == -1:
        return None
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool) and given >= 1:
        return int(given)
    raise ModelError(f"threads must be a whole number of at least 1, or None for all cores, got {given!r}")


def _each(function: Callable[[Given], Found], items: Sequence[Given], n_threads: int | None) -> list[Found]:
    """What a function makes of each of some items, on several threads."""
    found: dict[int, Found] = {}

    def one(i: int) -> None:
        found[i] = function(items[i])

    run_chunks(one, len(items), n_threads)
    return [found[i] for i in range(len(items))]


def add_each(
    evaluate: Callable[[Any, State], tuple[float | None, Array, State]],
    batches: Sequence[Any],
    states: Sequence[State],
    gradient: Array,
    n_threads: int | None,
) -> tuple[list[float | None], list[State]]:
    """`Objective.add` by way of the value, gradient and next state of each batch, on several threads.

    One thread alone holds one gradient at a time.
    """
    given, values, following = list(zip(batches, states, strict=True)), list[float | None](), list[State]()
    found = map(evaluate, batches, states) if n_threads == 1 else _each(lambda own: evaluate(*own), given, n_threads)
    for value, slope, state in found:
        gradient += slope
        values.append(value)
        following.append(state)
    return values, following


class Total:
    """Loss and penalty of a dataset as a function of theta: a `Function`.

    curvature (P,): how much the loss bends at first, see `besag.learn.curvature`; None where statistics say it.
    """

    def __init__(
        self,
        objective: Objective,
        dataset: Instances,
        penalty: Penalty,
        *,
        n_threads: int | None = None,
        curvature: Array | None = None,
    ) -> None:
        self.curvature = curvature
        self.objective, self.dataset, self.penalty = objective, dataset, penalty
        self.n_threads = thread_count(n_threads)
        self.n, self.has_value, self.is_smooth = len(dataset), objective.has_value, objective.is_smooth
        self.shards = dataset.shards()
        self.states: list[State] = [None] * len(self.shards)
        self.least = math.inf
        self.statistics = self._statistics()
        self.noise = objective.resolution * norm(self.statistics)
        self.evaluations, self.first_norm, self.progress = 0, math.inf, 0.0

    def _statistics(self) -> Array:
        parts = (
            own
            for some in self._groups()
            for own in _each(self.objective.statistics, self.shards[some], self.n_threads)
        )
        total = next(parts)
        for own in parts:
            total += own
        return total

    def _groups(self) -> Iterator[slice]:
        """Shards that are evaluated together, of which gradients are held: two a thread to even out work, or a few."""
        n_threads = available_threads() if self.n_threads is None else self.n_threads
        width = max(2 * n_threads, TOGETHER)
        return (slice(start, start + width) for start in range(0, len(self.shards), width))

    def value_and_grad(self, theta: Array) -> tuple[Any, Array]:
        """Loss plus l2, None where the objective has no value, and the gradient."""
        if np.shape(theta) != self.statistics.shape:
            raise ModelError(f"theta must have shape {self.statistics.shape}, got {np.shape(theta)}")
        value, gradient = self.penalty.smooth(theta)
        value += dot(self.statistics, theta)
        gradient += self.statistics
        self.objective.follow(self.progress)
        following = list[State]()
        for some in self._groups():
            rest, states = self.objective.add(theta, self.shards[some], self.states[some], gradient, self.n_threads)
            following += states
            for own in rest:
                value += 0.0 if own is None else own
        if not self.has_value or value <= self.least:
            self.states, self.least = following, value
        self.evaluations += 1
        self._measure(norm(self.penalty.pseudo_gradient(theta, gradient)))
        return value if self.has_value else None, gradient

    def _measure(self, grad_norm: float) -> None:
        """Notes how far the gradient has come; the first evaluation knows nothing, and is as exact as the last one."""
        if self.evaluations == 1:
            self.first_norm, self.progress = grad_norm, 1.0
        elif self.first_norm > 0 and math.isfinite(grad_norm):
            self.progress = min(self.progress, grad_norm / self.first_norm)

    def value(self, theta: Array) -> float:
        """Loss plus penalty, l1 too."""
        return float(self.value_and_grad(theta)[0] + self.penalty.absolute(theta))

    def hessian_vector(self, theta: Array) -> Product:
        """Products with the Hessian of loss plus l2 at theta."""
        products = [self.objective.hessian_vector(theta, shard) for shard in self.shards]
        curved = self.penalty.hessian_vector(theta)

        def product(vector: Array) -> Array:
            total = curved(vector)
            for own in products:
                total += own(vector)
            return np.asarray(total)

        return product

    def diagonal(self, theta: Array) -> Array:
        """(P,): the metric in which L-BFGS begins: the curvature, or |statistics|^(1/3) + max(1, l2).

        Curvature grows with how often a feature is seen, and shrinks as its labels are learnt. The power was measured:
        without it, and with 1/2 or 1, L-BFGS takes more iterations on chunking, and no fewer on letters. Statistics of
        dense inputs say nothing, because signs cancel out: by them pictures with features of many scales took 1,000
        iterations, by the identity 300, by their curvature 32.
        """
        if self.curvature is not None:
            return self.curvature + np.maximum(1.0, 2.0 * self.penalty.l2)
        return np.cbrt(np.abs(self.statistics)) + np.maximum(1.0, self.penalty.l2)

    def sampled(self, theta: Array, instances: IntArray, state: State = None) -> tuple[Any, Array, State]:
        """Loss plus l2, and the gradient, estimated from some instances; the state for the next mini-batch."""
        batch = self.dataset.batch(instances)
        slope = self.objective.statistics(batch)
        value, gradient = self.penalty.smooth(theta)
        scale, linear = self.n / len(instances), dot(slope, theta)
        (rest,), (following,) = self.objective.add(theta, [batch], [state], slope, n_threads=1)
        kept = following if isinstance(following, Mapping) else None
        return None if rest is None else value + scale * (rest + linear), gradient + scale * slope, kept

    def ascent(self) -> DualAscent:
        """The way up in the dual of the objective."""
        make = getattr(self.objective, "ascent", None)
        if make is None:
            raise CapabilityError("optimizer 'frank_wolfe' goes up in the dual of max_margin; others take lbfgs")
        found: DualAscent = make(self.dataset, self.penalty.l2)
        return found

    @property
    def hessian_by(self) -> str:
        """How `hessian` goes about it: "covariance", exactly, or "differences" of gradients, right to about 1e-8."""
        exactly = getattr(self.objective, "has_covariance", None)
        return "covariance" if exactly is not None and all(map(exactly, self.shards)) else "differences"

    def hessian(self, theta: Array, by: str | None = None) -> Array:
        """(P, P): covariance of the statistics, 002 (21), and curvature of the penalty; by: see `hessian_by`."""
        by = self.hessian_by if by is None else by
        if by not in HESSIANS:
            raise ModelError(f"by must be one of {HESSIANS}, got {by!r}")
        units = np.eye(len(self.statistics))
        if by == "differences":
            columns = np.array([product(unit) for product in [self.hessian_vector(theta)] for unit in units])
        else:
            covariance = getattr(self.objective, "covariance", None)
            if covariance is None:
                raise CapabilityError('this objective has no covariance; by="differences" needs gradients only')
            curved = self.penalty.hessian_vector(theta)
            columns = np.array([curved(unit) for unit in units]) + sum(covariance(theta, own) for own in self.shards)
        return np.asarray(columns + columns.T) / 2

    def standard_errors(self, theta: Array) -> Array:
        """(P,): of theta at an optimum, on the identifiable subspace: of directions in which the value changes.

        The square roots of the diagonal of the inverse Hessian there: the error of theta's projection onto it. That is
        so for likelihood; CapabilityError for what stands in for it.
        """
        if self.objective.surrogate is not None:
            name = self.objective.surrogate
            raise CapabilityError(f"standard errors are read off the Hessian of a likelihood, this one is of {name!r}")
        values, vectors = np.linalg.eigh(self.hessian(theta))
        kept = values > RANK * max(float(values[-1]), 1.0)
        variances = (vectors[:, kept] ** 2 / values[kept]).sum(axis=1)
        return np.asarray(np.sqrt(variances))
