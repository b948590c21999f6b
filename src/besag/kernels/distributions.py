"""Checks whether vectors are distributions, in one pass over contiguous numbers.

    values (R, S)    offsets (V + 1,): vector v of a row is values[r, offsets[v]:offsets[v + 1]]

A distribution sums to one, and its negative entries to zero, both up to a tolerance; it has no NaN. Whether a vector of
zeros is right or wrong only the caller knows: they are counted.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from besag.arrays import Array, IntArray
from besag.kernels.compile import at, compiled, entry_of, worth_compiling

_entries: dict[tuple[int, ...], Callable[..., tuple[int, int]]] = {}  # machine code, by the types of arrays


def make_look() -> Callable[..., tuple[int, int]]:
    """Kernel: the first vector, r V + v, that is neither a distribution nor zero, or -1; the zero ones before it."""

    def look(values: Array, offsets: IntArray, tolerance: float) -> tuple[int, int]:
        n, n_zero = len(offsets) - 1, 0
        for r in range(len(values)):
            for v in range(n):
                total, size = 0.0, 0.0
                for i in range(offsets[at(v)], offsets[at(v + 1)]):
                    total += values[at(r), at(i)]
                    size += abs(values[at(r), at(i)])
                if not (abs(total - 1.0) <= tolerance and size - total <= 2.0 * tolerance):
                    if size != 0.0:
                        return r * n + v, n_zero
                    n_zero += 1
        return -1, n_zero

    return look


def look_through(values: Array, offsets: IntArray, tolerance: float) -> tuple[int, int]:
    """As `make_look`; by numpy if numba is not loaded."""
    if not worth_compiling(0.0):
        return _by_numpy(values, offsets, tolerance)
    kind = (values.dtype.num, values.flags.num, offsets.dtype.num, offsets.flags.num)
    entry = _entries.get(kind)
    if entry is not None:
        return entry(values, offsets, tolerance)
    kernel = compiled(make_look)
    found = kernel(values, offsets, tolerance)
    _entries[kind] = entry_of(kernel, values, offsets, tolerance)
    return found


def _by_numpy(values: Array, offsets: IntArray, tolerance: float) -> tuple[int, int]:
    totals = np.add.reduceat(values, offsets[:-1], axis=1)
    sizes = np.add.reduceat(np.abs(values), offsets[:-1], axis=1)
    zero, positive = sizes == 0.0, sizes - totals <= 2.0 * tolerance
    wrong = np.flatnonzero(~(zero | positive & (np.abs(totals - 1.0) <= tolerance)))
    first = int(wrong[0]) if len(wrong) else -1
    return first, int(np.count_nonzero(zero.reshape(-1)[: first if first >= 0 else None]))
