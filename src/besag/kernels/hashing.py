"""A table from hashes to numbers: C places, a power of two and more than half of them free; and the hashes of names.

A hash h belongs at place h mod C, or at the next free one; numbers (C,) int32 is -1 at free places, keys (C,) int64 the
hash of the others. When thousands of names are looked up at once, the processor fetches many places at a time, while a
dict waits for each.

The hash of a name is that of Fowler, Noll and Vo (FNV-1a) over the bytes of its text, h := (h xor byte) PRIME, cut to
62 bits and folded at the end. The low 62 bits of a product are the same whether integers wrap or grow, and LLVM, which
is told that they never overflow, cannot optimise the cut away.
"""

from __future__ import annotations

from collections.abc import Callable

from besag.arrays import AnyArray, IntArray
from besag.kernels.compile import inlined

BITS_62 = 2**62 - 1
BASIS = 0xCBF29CE484222325 & BITS_62
PRIME = 0x100000001B3


@inlined
def place_of(key: int, keys: IntArray, numbers: AnyArray) -> int:
    """The place of a hash, or where it belongs."""
    place = key & (len(keys) - 1)
    while numbers[place] >= 0 and keys[place] != key:
        place = (place + 1) & (len(keys) - 1)
    return place


def make_hashed() -> Callable[..., int]:
    """Kernel: hashes (n,) of n names, whose bytes are `text`, int8, each with a zero after it; returns how many zeros.

    If these are more than n, some are within names, and the hashes are meaningless.
    """

    def hashed(text: AnyArray, hashes: IntArray) -> int:
        n, h = 0, BASIS
        for i in range(len(text)):
            byte = int(text[i]) & 255  # int64: with unsigned words, numba would compute in floating point
            if byte != 0:
                h = ((h ^ byte) * PRIME) & BITS_62
                continue
            if n < len(hashes):
                hashes[n] = h ^ (h >> 31)
            n, h = n + 1, BASIS
        return n

    return hashed


def make_find() -> Callable[..., None]:
    """Kernel: found (n,) = the numbers of hashes (n,), -1 where there is none."""

    def find(hashes: IntArray, keys: IntArray, numbers: AnyArray, found: AnyArray) -> None:
        for i in range(len(hashes)):
            found[i] = numbers[place_of(hashes[i], keys, numbers)]

    return find


def make_add() -> Callable[..., int]:
    """Kernel: as find, but hashes without a number get the next ones from n on; returns the number after them.

    first[0], first[1], ... are the places at which new hashes first occurred.
    """

    def add(hashes: IntArray, n: int, keys: IntArray, numbers: AnyArray, found: AnyArray, first: IntArray) -> int:
        begin = n
        for i in range(len(hashes)):
            place = place_of(hashes[i], keys, numbers)
            if numbers[place] < 0:
                keys[place], numbers[place] = hashes[i], n
                first[n - begin] = i
                n += 1
            found[i] = numbers[place]
        return n

    return add
