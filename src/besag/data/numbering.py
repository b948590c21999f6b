"""Names numbered in order of appearance, and looked up by their hashes.

A dict gives the same answers, five times as slowly if there are many names: see `besag.kernels.hashing`. Two names with
the same hash would count as one; it has 62 bits, so that among a million names the odds are 1 in 10^7.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from besag.arrays import IntArray, freeze
from besag.kernels.compile import kernel_of, worth_compiling
from besag.kernels.hashing import make_add, make_find, make_hashed

LEAST_PLACES = 64
BLOCK = 1 << 14  # names that are added at a time
WITHIN = b"\xc0\x80"  # stands for a zero byte in a name; valid UTF-8 never has it


class Numbering:
    """The names, and a table of their hashes. A name that is no text is a TypeError, and changes nothing.

    >>> numbering = Numbering(["b", "a"])
    >>> numbering.find(["a", "new", "b"]).tolist(), numbering.add(["new", "a", "new"]).tolist(), numbering.names
    ([1, -1, 0], [2, 1, 2], ['b', 'a', 'new'])
    """

    __slots__ = ("_hashes", "_keys", "_numbers", "names")

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names: list[str] = []
        self._hashes = array("q")  # of the names
        self._keys, self._numbers = _places(LEAST_PLACES)
        self.add(names)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __reduce__(self) -> tuple[type[Numbering], tuple[list[str]]]:
        return Numbering, (self.names,)

    def find(self, names: Iterable[str]) -> NDArray[np.int32]:
        """The numbers of names, -1 for unknown ones."""
        hashes = hash_names(_listed(names))
        found = np.empty(len(hashes), np.int32)
        find = kernel_of(make_find, compile=worth_compiling(len(hashes)))
        find(freeze(hashes), freeze(self._keys), freeze(self._numbers), found)
        return found

    def add(self, names: Iterable[str]) -> NDArray[np.int32]:
        """The numbers of names, of which new ones get the next numbers."""
        given = _listed(names)
        hashes = hash_names(given)
        found = np.empty(len(hashes), np.int32)
        for start in range(0, len(hashes), BLOCK):  # there must be room as if all were new, though most are not
            found[start : start + BLOCK] = self._added(given, hashes, start)
        return found

    def _added(self, given: list[str], hashes: IntArray, start: int) -> NDArray[np.int32]:
        """The numbers of a block of names."""
        block = hashes[start : start + BLOCK]
        if 2 * (len(self) + len(block)) > len(self._keys):
            self._make_room(len(self) + len(block))
        found, first = self._add(block, len(self))
        if len(first):
            new = list(map(given.__getitem__, (first + start).tolist()))
            self.names.extend(new if set(map(type, new)) <= {str} else map(plain, new))
            self._hashes.frombytes(block[first].tobytes())
        return found

    def _add(self, hashes: IntArray, n: int) -> tuple[NDArray[np.int32], IntArray]:
        found, first = np.empty(len(hashes), np.int32), np.empty(len(hashes), np.int64)
        add = kernel_of(make_add, compile=worth_compiling(len(hashes)))
        end = add(freeze(hashes), n, self._keys, self._numbers, found, first)
        return found, first[: end - n]

    def _make_room(self, n: int) -> None:
        """Make room for n names."""
        self._keys, self._numbers = _places(1 << (4 * n).bit_length())
        self._add(np.array(self._hashes, np.int64), 0)


def _places(n: int) -> tuple[IntArray, NDArray[np.int32]]:
    return np.zeros(n, np.int64), np.full(n, -1, np.int32)


def _listed(names: Iterable[str]) -> list[str]:
    return names if isinstance(names, list) else list(names)


def plain(name: str) -> str:
    """The text itself if a name's type is derived from str: str() of an enumeration's member gives another text."""
    return str.__str__(name)


def hash_names(names: list[str]) -> IntArray:
    """(n,): the hashes of names, the same in every process; TypeError if one is no text.

    Names are joined and hashed in one call, in half the time of hashing each by itself.
    """
    hashes = np.empty(len(names), np.int64)
    if names and _hash("\0".join(names).encode("utf-8", "surrogatepass"), hashes) != len(names):
        _hash(b"\0".join(name.encode("utf-8", "surrogatepass").replace(b"\0", WITHIN) for name in names), hashes)
    return hashes


def _hash(text: bytes, hashes: IntArray) -> int:
    """How many names the text has, between zeros."""
    kernel = kernel_of(make_hashed, compile=worth_compiling(len(text)))
    return kernel(np.frombuffer(text + b"\0", np.int8), hashes)
