"""Counting the joint states of four columns of codes; unused ones have stride 0.

    counts[sum_i strides[i] codes_i[n]] += weight_n        for the rows n in which no cell is missing

A block of indices is computed first, which is vector arithmetic, and then counted in four tables in turn, so that a
state that comes twice in a row does not wait for its own last count.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from besag.arrays import AnyArray, IntArray
from besag.kernels.compile import at

BLOCK = 2048
WAYS = 4


def make_count(is_weighted: int, may_miss: int) -> Callable[..., None]:
    """count(a, b, c, d, strides (4,), weights, missing, way, counts): tables that begin `way` entries apart, or one."""

    def count(
        a: AnyArray,
        b: AnyArray,
        c: AnyArray,
        d: AnyArray,
        strides: IntArray,
        weights: AnyArray,
        missing: int,
        way: int,
        counts: AnyArray,
    ) -> None:
        index = np.empty(BLOCK, np.int32)
        one, two, three, four = np.int32(strides[0]), np.int32(strides[1]), np.int32(strides[2]), np.int32(strides[3])
        for first in range(0, len(a), BLOCK):
            n = min(BLOCK, len(a) - first)
            for i in range(n):
                row = at(first + i)
                index[i] = np.int32(a[row]) * one + np.int32(b[row]) * two
                index[i] += np.int32(c[row]) * three + np.int32(d[row]) * four
            if may_miss:
                for i in range(n):
                    row = at(first + i)
                    if a[row] == missing or b[row] == missing or c[row] == missing or d[row] == missing:
                        index[i] = -1
            if is_weighted or may_miss:
                for i in range(n):
                    if index[i] >= 0:
                        if is_weighted:
                            counts[at(index[i])] += weights[at(first + i)]
                        else:
                            counts[at(index[i])] += 1
            else:
                whole = n - n % WAYS
                for i in range(0, whole, WAYS):
                    counts[at(index[i])] += 1
                    counts[at(index[i + 1] + way)] += 1
                    counts[at(index[i + 2] + 2 * way)] += 1
                    counts[at(index[i + 3] + 3 * way)] += 1
                for i in range(whole, n):
                    counts[at(index[i])] += 1

    return count
