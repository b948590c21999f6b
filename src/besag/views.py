"""Large index arrays without memory of their own: parts of others wherever that is what they are.

A model of a million variables has many arrays that count its factors, or hold the same scopes one after the other.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import numpy as np

from besag.arrays import AnyArray, IntArray, concatenate, freeze

BLOCK = 1 << 16  # numbers that are compared at a time
MOST_HELD = 8  # times its length that a part may keep alive

_held: weakref.WeakValueDictionary[str, IntArray] = weakref.WeakValueDictionary()  # "longest": what others lie in


def count_up(n: int) -> IntArray:
    """0, 1, .., n - 1, read-only: a part of the longest such array that somebody holds, or a new one."""
    longest = _held.get("longest")
    if longest is None or not n <= len(longest) <= MOST_HELD * n:
        made = np.arange(n)
        made.flags.writeable = False
        if longest is None or n > len(longest):
            _held["longest"] = made
        longest = made
    return longest[:n]


def counts_up(index: AnyArray) -> bool:
    """Whether the numbers are some first one, the next, and so on."""
    n = len(index)
    if n == 0 or int(index[-1]) - int(index[0]) != n - 1:
        return n == 0
    first, blocks = int(index[0]), range(0, n, BLOCK)
    return all((index[i : i + BLOCK] == np.arange(first + i, first + min(i + BLOCK, n))).all() for i in blocks)


def take(array: AnyArray, index: AnyArray) -> AnyArray:
    """array[index], read-only; no copy where the index counts up."""
    if len(index) and counts_up(index):
        return freeze(array[int(index[0]) : int(index[-1]) + 1])
    return freeze(array[index])


def join_views(parts: Sequence[AnyArray]) -> AnyArray:
    """Whole numbers one after the other, flat and read-only; no copy where they lie so already and nobody writes."""
    owner = parts[0].base if parts else None
    if not isinstance(owner, np.ndarray) or owner.dtype != np.int64 or not owner.flags.c_contiguous:
        return freeze(concatenate(parts, np.int64))
    first = end = _address(parts[0])
    for part in parts:
        if part.base is not owner or part.flags.writeable or not part.flags.c_contiguous or _address(part) != end:
            return freeze(concatenate(parts, np.int64))
        end += part.nbytes
    start = first - _address(owner)
    return freeze(owner.reshape(-1)[start // 8 : (start + end - first) // 8])


def _address(array: AnyArray) -> int:
    return int(array.__array_interface__["data"][0])
