"""Log-potentials in the linear domain, the largest entry of each table or vector being one.

    values    exp(log-potential - largest of its table), in [0, 1]; hard zeros are 0
    largest   the logarithms that were taken out; 0 for a table without a positive entry

Three forms: `to_linear` (numpy, whole tables, float64), `make_weights` (vectors into the dtype of messages, and whether
it can hold them), `make_linear` (tables to the power 1 / rho).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.kernels.compile import at, inlined
from besag.kernels.exponential import exp_below
from besag.kernels.factors import Factors


class Linear(NamedTuple):
    """All tables of a problem."""

    values: Array  # (L,)
    largest: Array  # (T,)
    spans: Array  # (T,) largest minus smallest logarithm of the positive entries


def to_linear(factors: Factors) -> Linear:
    """The tables of factors, in the linear domain."""
    logs, starts = factors.log_potentials, factors.table_offsets[:-1]
    largest = np.maximum.reduceat(logs, starts)
    smallest = np.minimum.reduceat(logs, starts)
    if smallest.min(initial=0.0) == -np.inf:
        largest[largest == -np.inf] = 0.0
        smallest = np.minimum.reduceat(np.where(logs == -np.inf, np.inf, logs), starts)
        smallest[smallest == np.inf] = 0.0
    with np.errstate(under="ignore"):
        values = np.exp(logs - np.repeat(largest, np.diff(factors.table_offsets)))
    return Linear(values, largest, largest - smallest)


@inlined
def find_spread(logs: Array, start: int, stop: int) -> tuple[float, float]:
    """The largest log-weight, and the least that is finite."""
    high, low = -math.inf, math.inf
    for i in range(start, stop):
        high = max(high, logs[at(i)])
        low = min(low, logs[at(i)] if logs[at(i)] > -math.inf else math.inf)
    return high, low


@inlined
def exponentials(single: int, logs: Array, start: int, stop: int, high: float, out: AnyArray) -> None:
    """exp(logs - high); in single precision by vector arithmetic, accurate to 1e-10 over the range of weights."""
    for i in range(start, stop):
        if single == 1:
            out[at(i)] = exp_below(logs[at(i)] - high)
        else:
            out[at(i)] = math.exp(logs[at(i)] - high) if logs[at(i)] > -math.inf else 0.0


def make_weights(single: int) -> Callable[..., bool]:
    """Kernel: weights of vectors at [offsets[t], offsets[t + 1]). single: out is float32.

    The largest log-weight of vector t goes to shifts[t]. If two finite log-weights of one vector lie more than `widest`
    apart, weights cannot hold both, and the answer is False.
    """

    def weights(logs: Array, offsets: IntArray, widest: float, shifts: Array, out: AnyArray) -> bool:
        fine = True
        for t in range(len(offsets) - 1):
            start, stop = offsets[t], offsets[t + 1]
            high, low = find_spread(logs, start, stop)
            if high == -math.inf:
                shifts[t] = 0.0
                for i in range(start, stop):
                    out[i] = 0.0
            else:
                shifts[t] = high
                fine = fine and high - low <= widest
                exponentials(single, logs, start, stop, high, out)
        return fine

    return weights


def make_linear() -> Callable[..., None]:
    """Kernel: exp(log-potential / rho) of tables first to last, each over its largest entry, of logarithm highs[t].

    logs (T,): where a table begins in the log-potentials; weights (T + 1,): where it begins in the output.
    """

    def fill(
        log_potentials: Array,
        logs: IntArray,
        weights: IntArray,
        rho: Array,
        first: int,
        last: int,
        highs: Array,
        linear: Array,
    ) -> None:
        for t in range(first, last):
            start, to, n, share = logs[t], weights[t], weights[t + 1] - weights[t], rho[t]
            high = -math.inf
            for i in range(n):
                high = max(high, log_potentials[at(start + i)])
            high = 0.0 if high == -math.inf else high
            highs[t] = high / share
            for i in range(n):
                linear[at(to + i)] = math.exp((log_potentials[at(start + i)] - high) / share)

    return fill
