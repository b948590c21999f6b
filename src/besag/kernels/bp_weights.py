"""Log-potentials as weights, the largest of each vector or table being one, in the type of the messages.

What is taken out of vector t, the largest log-weight, goes to shifts[t]. Where two finite log-weights of one vector lie
more than `widest` apart, weights cannot hold both, and the answer is False.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from besag.arrays import AnyArray, Array, BoolArray, IntArray


def make_weights() -> Callable[..., bool]:
    """Vectors at [offsets[t], offsets[t + 1]); those that are `kept` are copied as they are."""

    def weights(logs: Array, offsets: IntArray, kept: BoolArray, widest: float, shifts: Array, out: AnyArray) -> bool:
        fine = True
        for t in range(len(offsets) - 1):
            high, low = -math.inf, math.inf
            for i in range(offsets[t], offsets[t + 1]):
                high = max(high, logs[i])
                if logs[i] > -math.inf:
                    low = min(low, logs[i])
            if high == -math.inf or kept[t]:
                shifts[t] = 0.0
                fine = fine and (not kept[t] or abs(high) <= widest)
            else:
                shifts[t] = high
                fine = fine and high - low <= widest
            for i in range(offsets[t], offsets[t + 1]):
                out[i] = logs[i] if kept[t] else (math.exp(logs[i] - high) if logs[i] > -math.inf else 0.0)
        return fine

    return weights
