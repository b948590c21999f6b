"""log Z of a machine: exact where one layer is small, else by annealed importance sampling (Neal 2001).

Exact: Z is a sum over the states of one layer, in which the other one is summed out in closed form. Where the hidden
layer has at most EXACT units, or binary visible ones are so few, all of them are gone through.

Annealed: C chains go from independent visible units, whose biases fit the data and whose Z_0 is known, through a
hidden layer of growing strength to the machine (Salakhutdinov and Murray 2008). The mean of their weights is unbiased
for Z / Z_0; its logarithm has the standard error s / (mean sqrt(C)), and an interval from Student's t.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from besag.arrays import Array, freeze
from besag.errors import CapabilityError, TooLargeError
from besag.infer.iterate import Clock
from besag.kernels.compile import compiled
from besag.kernels.threads import run_chunks
from besag.learn.rbm.kernels.partition import make_anneal, make_enumerate
from besag.learn.rbm.machine import Machine
from besag.query.estimate import Estimate
from besag.registry import is_whole

EXACT = 25  # units of a layer whose states are gone through when nobody says how
MOST_EXACT = 34  # ... and when somebody does: minutes
LOW = 8  # bits whose log-odds are tabulated
CHUNK = 64  # blocks at a time
N_CHAINS, N_TEMPERATURES = 200, 2000
AT_ONCE = 50  # temperatures between two looks at the clock


class LogPartition(Estimate):
    """log Z, which says how it was found.

    method: "exact" or "ais". low, high: the ends of its confidence interval, which are the value where it is exact.
    """

    method: str
    low: float
    high: float
    confidence: float

    @classmethod
    def exact(cls, value: float) -> Self:
        """Known to rounding."""
        made = cls(value)
        made.method, made.low, made.high, made.confidence = "exact", value, value, 1.0
        return made

    @classmethod
    def sampled(cls, value: float, standard_error: float, half: float, confidence: float) -> Self:
        """half: what of the mean of weights, relative to it, is on either side in the interval."""
        made = cls(value, standard_error, "estimate")
        made.method, made.confidence = "ais", confidence
        made.low = value + math.log1p(-half) if half < 1.0 else -math.inf
        made.high = value + math.log1p(half)
        return made

    def __getnewargs__(self) -> tuple[float, float | None, str]:  # type: ignore[override]
        return float(self), self.standard_error, self.bound


def log_partition(
    machine: Machine,
    method: str,
    n_chains: int,
    n_temperatures: int,
    confidence: float,
    rng: np.random.Generator,
    clock: Clock,
    n_threads: int | None,
) -> LogPartition:
    """By `method`: "auto", "exact" or "ais"."""
    n = smaller_layer(machine)
    if method == "exact" and n > MOST_EXACT:
        raise TooLargeError(
            f"the smaller layer has {n} units, and 2^{n} states are too many to go through (at most {MOST_EXACT} "
            'units); take method="ais"'
        )
    if method == "exact" or (method == "auto" and n <= EXACT):
        return LogPartition.exact(enumerated(machine, n_threads))
    logs = annealed(machine, n_chains, n_temperatures, rng, clock)
    return from_weights(logs, confidence)


def check_annealing(method: object, n_chains: object, n_temperatures: object, confidence: object) -> None:
    """CapabilityError where an option is none."""
    if method not in ("auto", "exact", "ais"):
        raise CapabilityError(f'method must be "auto", "exact" or "ais", got {method!r}')
    for name, value, least in (("n_chains", n_chains, 2), ("n_temperatures", n_temperatures, 1)):
        if not is_whole(value) or value < least:  # type: ignore[operator]
            raise CapabilityError(f"{name} must be a whole number of at least {least}, got {value!r}")
    if not isinstance(confidence, (float, np.floating)) or not 0 < confidence < 1:
        raise CapabilityError(f"confidence must be a number between 0 and 1, got {confidence!r}")


def smaller_layer(machine: Machine) -> int:
    """The number of binary units that enumeration goes through."""
    return min(machine.n_hidden, machine.n_visible) if machine.is_binary else machine.n_hidden


def enumerated(machine: Machine, n_threads: int | None = None) -> float:
    """log Z, exactly."""
    weights, visible, hidden = (
        np.asarray(part, np.float64) for part in (machine.weights.T, machine.visible, machine.hidden)
    )
    if machine.is_binary and machine.n_visible < machine.n_hidden:  # the roles of the layers change
        weights, visible, hidden = weights.T, hidden, visible
    offsets = np.arange(len(visible) + 1) if machine.is_binary else machine.offsets
    n_low = min(LOW, len(hidden))
    bits = _bits(n_low)
    low, low_scores = np.ascontiguousarray((bits @ weights[:n_low]).T), bits @ hidden[:n_low]
    found = np.empty(1 << (len(hidden) - n_low))
    given: list[Any] = [freeze(array) for array in (weights, hidden, low, low_scores, visible, offsets)]
    kernel = compiled(make_enumerate)

    def task(chunk: int) -> None:
        kernel(*given, machine.is_binary, n_low, chunk * CHUNK, min((chunk + 1) * CHUNK, len(found)), found)

    run_chunks(task, -(-len(found) // CHUNK), n_threads)
    return float(np.logaddexp.reduce(found))


def _bits(n: int) -> Array:
    """(2^n, n): bit j of each number."""
    return ((np.arange(1 << n)[:, None] >> np.arange(n)) & 1).astype(np.float64)


def annealed(machine: Machine, n_chains: int, n_temperatures: int, rng: np.random.Generator, clock: Clock) -> Array:
    """(C,): estimates of log Z, each unbiased for Z; CapabilityError where the time does not allow them."""
    betas = freeze(np.linspace(0.0, 1.0, n_temperatures + 1))
    chains, logs = machine.starts(n_chains, rng), np.zeros(n_chains)
    odds = np.empty((n_chains, machine.n_hidden), np.float32)
    kernel, key = compiled(make_anneal), int(rng.integers(2**62))
    for first in range(0, n_temperatures, AT_ONCE):
        last = min(first + AT_ONCE, n_temperatures)
        kernel(
            machine.weights, machine.visible, machine.hidden, machine.base, machine.offsets, machine.is_binary,
            betas, first, last, key, chains, odds, logs,
        )  # fmt: skip
        if clock.left <= 0 and last < n_temperatures:
            raise CapabilityError(
                f"time_limit allows {last} of {n_temperatures} temperatures; take fewer, or more time"
            )
    return np.asarray(logs + _independent(machine))


def _independent(machine: Machine) -> float:
    """log Z_0, of the visible units by their base biases and of H hidden ones without any."""
    base = np.asarray(machine.base, np.float64)
    if machine.is_binary:
        return float(np.logaddexp(0.0, base).sum()) + machine.n_hidden * math.log(2.0)
    groups = np.logaddexp.reduceat(base, machine.offsets[:-1])
    return float(groups.sum()) + machine.n_hidden * math.log(2.0)


def from_weights(logs: Array, confidence: float) -> LogPartition:
    """The estimate of chains (C,), with its interval."""
    from scipy.stats import t

    top = logs.max()
    w = np.exp(logs - top)
    error = float(w.std(ddof=1) / w.mean() / math.sqrt(len(w)))
    half = float(t.ppf(0.5 + confidence / 2.0, len(w) - 1)) * error
    return LogPartition.sampled(float(top + np.log(w.mean())), error, half, confidence)
