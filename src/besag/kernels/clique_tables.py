"""Products and sums of dense tables whose scopes are nested.

A small table on some of the axes of a large one is read through the offset of its entry. The axes of the large table
are cut in two, so that the offset is a sum of two short lists whatever the scopes are:

    large index = h L + l,      small index = high[h] + low[l],      h < H, l < L

Shapes: large (H L,), high (H,), low (L,). Kernels do the rows [start, stop) of H, so that threads can share a table.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from besag.arrays import Array, IntArray


def make_offsets() -> Callable[..., None]:
    """Kernel: offsets (prod K,) = sum over axes of digit times stride, for every setting of the axes, row-major."""

    def fill(cardinalities: IntArray, strides: IntArray, offsets: IntArray) -> None:
        size = 1
        offsets[0] = 0
        for a in range(len(cardinalities) - 1, -1, -1):
            for k in range(1, cardinalities[a]):
                for i in range(size):
                    offsets[k * size + i] = offsets[i] + k * strides[a]
            size *= cardinalities[a]

    return fill


def make_multiply() -> Callable[..., None]:
    """Kernel: large *= small."""

    def multiply(large: Array, small: Array, high: IntArray, low: IntArray, start: int, stop: int) -> None:
        n = len(low)
        for h in range(start, stop):
            offset, row = high[h], h * n
            for i in range(n):
                large[row + i] *= small[offset + low[i]]

    return multiply


def make_add() -> Callable[..., None]:
    """Kernel: large += small, the product of tables in logarithms."""

    def add(large: Array, small: Array, high: IntArray, low: IntArray, start: int, stop: int) -> None:
        n = len(low)
        for h in range(start, stop):
            offset, row = high[h], h * n
            for i in range(n):
                large[row + i] += small[offset + low[i]]

    return add


def make_sum() -> Callable[..., None]:
    """Kernel: total += the large table, summed over the axes that the small one has not."""

    def total_up(total: Array, large: Array, high: IntArray, low: IntArray, start: int, stop: int) -> None:
        n = len(low)
        for h in range(start, stop):
            offset, row = high[h], h * n
            for i in range(n):
                total[offset + low[i]] += large[row + i]

    return total_up


def make_log_sum() -> Callable[..., None]:
    """Kernel: top = the largest of the large table over the other axes, total = sum of exp(large - top)."""

    def log_sum(top: Array, total: Array, large: Array, high: IntArray, low: IntArray) -> None:
        n = len(low)
        for h in range(len(high)):
            for i in range(n):
                at = high[h] + low[i]
                top[at] = max(top[at], large[h * n + i])
        for h in range(len(high)):
            for i in range(n):
                at, value = high[h] + low[i], large[h * n + i]
                if value > -math.inf:
                    total[at] += math.exp(value - top[at])

    return log_sum


def make_entropy() -> Callable[..., float]:
    """Kernel: - sum p log p of linear numbers [start, stop); zeros count nothing."""

    def entropy(values: Array, start: int, stop: int) -> float:
        total = 0.0
        for i in range(start, stop):
            if values[i] > 0.0:
                total -= values[i] * math.log(values[i])
        return total

    return entropy
