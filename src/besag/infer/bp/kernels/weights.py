"""Log-potentials as weights, the largest of each vector or table being one, in the type of the messages.

What is taken out of vector t, the largest log-weight, goes to shifts[t]. Where two finite log-weights of one vector lie
more than `widest` apart, weights cannot hold both, and the answer is False.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from besag.arrays import AnyArray, Array, BoolArray, IntArray
from besag.kernels.compile import at, inlined
from besag.kernels.exponential import exp_below


@inlined
def spread_of(logs: Array, start: int, stop: int) -> tuple[float, float]:
    """The largest log-weight, and the least that is finite."""
    high, low = -math.inf, math.inf
    for i in range(start, stop):
        high = max(high, logs[at(i)])
        low = min(low, logs[at(i)] if logs[at(i)] > -math.inf else math.inf)
    return high, low


@inlined
def exponentials(single: int, logs: Array, start: int, stop: int, high: float, out: AnyArray) -> None:
    """exp(logs - high); in single precision by vector arithmetic, which is right to 1e-10 as far as weights reach."""
    for i in range(start, stop):
        if single == 1:
            out[at(i)] = exp_below(logs[at(i)] - high)
        else:
            out[at(i)] = math.exp(logs[at(i)] - high) if logs[at(i)] > -math.inf else 0.0


def make_weights(single: int) -> Callable[..., bool]:
    """Vectors at [offsets[t], offsets[t + 1]); those that are `kept` are copied as they are. single: out is float32."""

    def weights(logs: Array, offsets: IntArray, kept: BoolArray, widest: float, shifts: Array, out: AnyArray) -> bool:
        fine = True
        for t in range(len(offsets) - 1):
            start, stop = offsets[t], offsets[t + 1]
            high, low = spread_of(logs, start, stop)
            if kept[t] or high == -math.inf:
                shifts[t] = 0.0
                fine = fine and (not kept[t] or abs(high) <= widest)
                for i in range(start, stop):
                    out[i] = logs[i] if kept[t] else 0.0
            else:
                shifts[t] = high
                fine = fine and high - low <= widest
                exponentials(single, logs, start, stop, high, out)
        return fine

    return weights
