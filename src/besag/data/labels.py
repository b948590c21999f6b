"""Labels of sequences as codes (T,) int64 into the sorted classes, -1 for unknown labels."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from besag.arrays import IntArray
from besag.data.attributes import has_order, iterate_sequences, show_value
from besag.errors import ModelError
from besag.graph.evidence import is_missing
from besag.text import did_you_mean, shorten

_UNSEEN = -2
_PLAIN = {str, int, type(None)}


@dataclass(frozen=True, slots=True)
class Labels:
    """The classes, sorted, in the user's own type: texts alphabetically, integers by value.

    A label is unknown if it is None or NaN, or -1 in an array of integers.

    >>> labels, codes = Labels.fit([["N", "V"], ["D", None]])
    >>> labels.classes, codes.tolist()
    (('D', 'N', 'V'), [1, 2, 0, -1])
    """

    classes: tuple[Any, ...]

    @classmethod
    def fit(cls, sequences: Iterable[Any], lengths: IntArray | None = None) -> tuple[Labels, IntArray]:
        """The classes and the codes (T,) of sequences of labels; lengths (N,) are those of the attributes."""
        growing = GrowingLabels()
        codes = growing.add(sequences, lengths)
        labels, code_of_number = growing.done()
        return labels, code_of_number[codes]

    def transform(self, sequences: Iterable[Any], lengths: IntArray | None = None) -> IntArray:
        """The codes (T,) of labels, which must have been seen in training."""
        find, codes, unseen = self.lookup().get, array("q"), repeat(_UNSEEN)
        for n, labels in sequences_of_labels(sequences, lengths):
            found = array("q", map(find, labels, unseen))
            while _UNSEEN in found:
                position = found.index(_UNSEEN)
                if not is_missing(labels[position]):
                    raise self._not_seen(n, position, labels[position])
                found[position] = -1
            codes.extend(found)
        return np.array(codes, np.int64)

    def lookup(self) -> dict[Any, int]:
        """{label: code}, -1 for None."""
        return {label: code for code, label in enumerate(self.classes)} | {None: -1}

    def _not_seen(self, n: int, position: int, label: object) -> ModelError:
        known = [str(one) for one in self.classes]
        hint = did_you_mean(str(label), known)
        return ModelError(
            f"sequence {n}, position {position}: the label {label!r} was not seen in training; "
            f"{hint + ' It' if hint else 'it'} has {shorten(known)}; None stands for an unknown label"
        )


class GrowingLabels:
    """Labels numbered in order of appearance, while sequences are added in parts."""

    def __init__(self) -> None:
        self._numbers: defaultdict[Hashable, int] = defaultdict()
        self._numbers.default_factory = self._numbers.__len__
        self._n = 0

    def add(self, sequences: Iterable[Any], lengths: IntArray | None = None) -> IntArray:
        """Add labels; returns their numbers (T,), in the order in which labels first appear."""
        codes = array("q")
        for n, labels in sequences_of_labels(sequences, lengths, self._n):
            if not labels:
                raise ModelError(f"sequence {n} is empty: leave it out of X and y")
            try:
                codes.extend(map(self._numbers.__getitem__, labels))
            except TypeError as error:
                raise ModelError(f"sequence {n}: a label must be a text or an integer: {error}") from None
            self._n = n + 1
        return np.array(codes, np.int64)

    def done(self) -> tuple[Labels, IntArray]:
        """The classes, and the code of each number, -1 for unknown labels."""
        known = [label for label in self._numbers if not is_missing(label)]
        if not known:
            raise ModelError("no label is known: expected at least one that is not None (or -1, in integer arrays)")
        made = Labels(_sorted(known))
        code_of = made.lookup()
        return made, np.array([code_of.get(label, -1) for label in self._numbers], np.int64)


def sequences_of_labels(
    sequences: Iterable[Any], lengths: IntArray | None, first: int = 0
) -> Iterator[tuple[int, list[Any]]]:
    """The number and the labels of each sequence, None for unknown ones; as many labels as tokens."""
    n, expected = first - 1, None if lengths is None else lengths.tolist()
    for n, labels in enumerate(iterate_sequences(sequences), first):
        if not has_order(labels):
            raise ModelError(f"sequence {n} of y: expected a list of labels, got {show_value(labels)}")
        listed = _plain(n, labels)
        if expected is not None and n - first < len(expected) and len(listed) != expected[n - first]:
            raise ModelError(f"sequence {n}: X has {expected[n - first]} items, and y has {len(listed)} labels")
        yield n, listed
    if expected is not None and n + 1 - first != len(expected):
        raise ModelError(f"X has {first + len(expected)} sequences, and y has {n + 1}")


def _plain(n: int, labels: Any) -> list[Any]:
    """The labels of sequence n as Python's own str and int; None where an array of integers has -1."""
    is_array = isinstance(labels, np.ndarray)
    given: list[Any] = labels.tolist() if is_array else list(labels)
    if is_array and labels.dtype.kind == "i":
        given = [None if label == -1 else label for label in given]
    if set(map(type, given)) <= _PLAIN:
        return given
    listed = [label.item() if isinstance(label, np.generic) else label for label in given]
    try:
        hash(tuple(listed))
    except TypeError as error:
        raise ModelError(f"sequence {n}: expected labels, each a str or an int: {error}") from None
    return listed


def _sorted(labels: list[Any]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(labels))
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels})
        raise ModelError(f"labels must be of one type, got {' and '.join(kinds)}: make all of them str") from None
