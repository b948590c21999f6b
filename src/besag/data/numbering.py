"""Names numbered as they come, and found again by their hashes.

A dict says the same, three times as slowly where names are many: see `besag.kernels.numbering`. Two names of the same
hash would be taken for one; Python hashes text to 64 bits, so that among a million names the odds are 1 in 10^7.
Hashes differ from process to process and are never stored.

Looking at the types of all names takes a fifth of the time of reading them: only names that are not there yet are
looked at, and a TypeError says that one is not a text.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from besag.arrays import IntArray, frozen
from besag.kernels.compile import kernel_of, worth_compiling
from besag.kernels.numbering import make_add, make_find

LEAST_PLACES = 64
BLOCK = 1 << 14  # names that are added at a time


class Numbering:
    """The names, and a table of their hashes.

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
        """Their numbers, -1 for names that are not there."""
        given = names if isinstance(names, list) else list(names)
        hashes = _hashed(given)
        found = np.empty(len(hashes), np.int32)
        find = kernel_of(make_find, compile=worth_compiling(len(hashes)))
        find(frozen(hashes), frozen(self._keys), frozen(self._numbers), found)
        _texts(map(given.__getitem__, np.flatnonzero(found < 0).tolist()))
        return found

    def add(self, names: Iterable[str]) -> NDArray[np.int32]:
        """Their numbers; names that are not there get the next ones."""
        given = names if isinstance(names, list) else list(names)
        hashes = _hashed(given)
        found = np.empty(len(hashes), np.int32)
        for start in range(0, len(hashes), BLOCK):  # room is made for names that may be new, most are not
            found[start : start + BLOCK] = self._added(given, hashes, start)
        return found

    def _added(self, given: list[str], hashes: IntArray, start: int) -> NDArray[np.int32]:
        """The numbers of a block of names."""
        block = hashes[start : start + BLOCK]
        if 2 * (len(self) + len(block)) > len(self._keys):
            self._make_room(len(self) + len(block))
        found, first = self._add(block, len(self))
        if len(first):
            try:
                self.names.extend(_texts(map(given.__getitem__, (first + start).tolist())))
            except TypeError:
                self._make_room(len(self))  # which are the names that were there before
                raise
            self._hashes.frombytes(block[first].tobytes())
        return found

    def _add(self, hashes: IntArray, n: int) -> tuple[NDArray[np.int32], IntArray]:
        found, first = np.empty(len(hashes), np.int32), np.empty(len(hashes), np.int64)
        add = kernel_of(make_add, compile=worth_compiling(len(hashes)))
        end = add(frozen(hashes), n, self._keys, self._numbers, found, first)
        return found, first[: end - n]

    def _make_room(self, n: int) -> None:
        """For n names."""
        self._keys, self._numbers = _places(1 << (4 * n).bit_length())
        self._add(np.array(self._hashes, np.int64), 0)


def _places(n: int) -> tuple[IntArray, NDArray[np.int32]]:
    return np.zeros(n, np.int64), np.full(n, -1, np.int32)


def _texts(names: Iterable[object]) -> list[str]:
    """Names that are str, as such and of no type derived from it."""
    given = list(names)
    if set(map(type, given)) <= {str}:
        return given  # type: ignore[return-value]
    for name in given:
        if not isinstance(name, str):
            raise TypeError(f"expected a text, got {name!r}")
    return [str(name) for name in given]


def _hashed(names: Iterable[str]) -> IntArray:
    return np.fromiter(map(hash, names), np.int64)
