"""Attributes of sequences as arrays: what conditional random fields on chains learn from.

A sequence is a list of items, one for each token. An item is read as python-crfsuite reads it:

    ["a", "b"]              attributes a and b, of weight 1 each; likewise tuples, sets, and the letters of a text
    {"a": 0.5, "b": True}   attributes a and b, of weight 0.5 and 1; a weight of 0 is an attribute too
    {"a": "x"}              attribute a:x, of weight 1
    {"a": ["x", "y"]}       attributes a:x and a:y
    {"a": {"x": 2}}         attribute a:x, of weight 2; to any depth

A sequence may also be an array (T, D) of numbers or a scipy sparse one: its attributes are the columns "0".."D-1", and
zeros are left out. T tokens of N sequences become rows of a sparse matrix:

    indptr (T + 1,) int64    indices (nnz,) int32    values (nnz,) float64, None where all are 1    lengths (N,) int64

A row keeps its attributes in the order given: one that is given twice is stored twice, and its weights add up.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from besag.arrays import Array, IntArray, Rebuilt, freeze, offsets_of
from besag.data.numbering import Numbering, plain
from besag.errors import ModelError

# Names -> numbers, -1 for those to leave out; TypeError if one is not a text.
Numbered: TypeAlias = Callable[[Iterable[str]], NDArray[np.int32]]

BLOCK = 1 << 13  # names that are numbered at a time
_CONTAINERS, _NUMBERS = {list, tuple, set, frozenset, str}, {float, int, bool}


@dataclass(frozen=True, slots=True, eq=False)
class Features(Rebuilt):
    """Attributes of all tokens: the arrays of the module's docstring."""

    indptr: IntArray
    indices: NDArray[np.int32]
    values: Array | None
    lengths: IntArray
    offsets: IntArray = field(init=False)  # (N + 1,): where sequences begin

    def __post_init__(self) -> None:
        object.__setattr__(self, "offsets", offsets_of(self.lengths))
        for name in ("indptr", "indices", "values", "lengths", "offsets"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, freeze(given))


@dataclass(frozen=True, slots=True, eq=False)
class Attributes:
    """The attributes seen in training, numbered in order of appearance; columns: D if sequences are arrays.

    In an array every token has all columns as attributes, in a sparse one those that are not 0.

    >>> attributes, features = Attributes.fit([[["a", "b"], {"a": 2}], [["c"]]])
    >>> attributes.names, features.indptr.tolist(), features.indices.tolist(), features.values.tolist()
    (['a', 'b', 'c'], [0, 2, 3, 4], [0, 1, 0, 2], [1.0, 1.0, 2.0, 1.0])
    >>> attributes.transform([[["b", "new"], ["new"]]]).indptr.tolist()
    [0, 1, 1]
    """

    numbering: Numbering  # empty if sequences are arrays
    columns: int | None = None
    is_sparse: bool = True

    @property
    def names(self) -> list[str]:
        """The attributes in the order of their numbers."""
        return list(self.numbering) if self.columns is None else [str(column) for column in range(self.columns)]

    def __len__(self) -> int:
        return len(self.numbering) if self.columns is None else self.columns

    @classmethod
    def fit(cls, sequences: Iterable[Any]) -> tuple[Attributes, Features]:
        """All attributes of the sequences, which may be a generator, and the sequences as arrays."""
        growing = GrowingAttributes()
        features = growing.add(sequences)
        return growing.done(), features

    def transform(self, sequences: Iterable[Any]) -> Features:
        """Sequences as arrays; attributes not seen in training are left out."""
        rows = _GrowingArrays(self.numbering.find)
        for n, sequence in enumerate(iterate_sequences(sequences)):
            rows.add(n, sequence, _matrix(sequence), self.columns, "training")
        return rows.features()


class GrowingAttributes:
    """Attributes numbered in order of appearance, while sequences are added in parts."""

    def __init__(self) -> None:
        self._numbering = Numbering()
        self._columns: int | None = None
        self._is_sparse = True
        self._n = 0

    def add(self, sequences: Iterable[Any]) -> Features:
        """Add sequences; returns them as arrays."""
        rows = _GrowingArrays(self._numbering.add, self._n)
        for sequence in iterate_sequences(sequences):
            matrix = _matrix(sequence)
            if self._n == 0:
                self._columns = None if matrix is None else int(matrix.shape[1])
            self._is_sparse &= not isinstance(matrix, np.ndarray)
            rows.add(self._n, sequence, matrix, self._columns, "sequence 0")
            self._n += 1
        return rows.features()

    def done(self) -> Attributes:
        """All attributes seen so far."""
        return Attributes(self._numbering, self._columns, self._is_sparse)


class _GrowingArrays:
    """The arrays while they grow: flat C arrays, never lists of Python numbers."""

    __slots__ = ("_counts", "_first", "_indices", "_lengths", "_names", "_numbered", "_values")

    def __init__(self, numbered: Numbered, first: int = 0) -> None:
        self._numbered, self._first = numbered, first  # the number of the first sequence
        self._names = list[str]()  # the newest, not numbered yet: it is faster for many at a time
        self._indices, self._counts, self._lengths = array("i"), array("q"), array("q")
        self._values = array("d")  # empty until some weight is not 1

    def add(self, n: int, sequence: Any, matrix: Any, columns: int | None, example: str) -> None:
        """Add sequence n, which must have as many columns as its example, or be a list of items if that one is."""
        got = None if matrix is None else int(matrix.shape[1])
        if got != columns:
            raise ModelError(f"sequence {n} is {_kind(got)}: expected {_kind(columns)}, as in {example}")
        if matrix is not None:
            self._add_matrix(n, matrix)
            return
        items = _listed(n, sequence)
        self._lengths.append(len(items))
        if set(map(type, items)) <= _CONTAINERS:
            self._name(chain.from_iterable(items), map(len, items))
        else:
            names, weights, counts = _read(n, items)
            self._name(names, counts)
            self._weigh(weights)

    def _name(self, names: Iterable[str], counts: Iterable[int]) -> None:
        self._counts.extend(counts)
        self._names.extend(names)
        if len(self._names) >= BLOCK:
            self._number()

    def _number(self) -> None:
        try:
            numbers = self._numbered(self._names)
        except TypeError:
            numbers = self._numbered([self._text(entry, name) for entry, name in enumerate(self._names)])
        self._indices.frombytes(numbers.tobytes())
        self._names.clear()

    def _text(self, entry: int, name: Any) -> str:
        """One of the names that are not numbered yet, as text."""
        try:
            return _text(name)
        except (TypeError, ValueError) as error:
            token = int(np.searchsorted(np.cumsum(self._counts), len(self._indices) + entry, side="right"))
            ends = np.cumsum(self._lengths)
            n = int(np.searchsorted(ends, token, side="right"))
            position = token - int(ends[n]) + self._lengths[n]
            raise ModelError(f"sequence {self._first + n}, position {position}: {error}") from None

    def _add_matrix(self, n: int, matrix: Any) -> None:
        if isinstance(matrix, np.ndarray):
            rows, columns = np.nonzero(matrix)
            counts, weights = np.bincount(rows, minlength=len(matrix)), matrix[rows, columns]
        else:
            if not matrix.data.all():  # explicitly stored zeros
                matrix = matrix.copy()
                matrix.eliminate_zeros()
            counts, columns, weights = np.diff(matrix.indptr), matrix.indices, matrix.data
        self._lengths.append(len(counts))
        self._counts.frombytes(counts.astype(np.int64).tobytes())
        self._indices.frombytes(columns.astype(np.int32).tobytes())
        weights = weights.astype(np.float64)
        _check_finite(n, weights, counts, lambda entry: str(columns[entry]))
        self._weigh(weights)

    def _weigh(self, weights: Array) -> None:
        """Set the weights of the newest indices."""
        if (weights != 1.0).any():
            self._pad(len(self._indices) + len(self._names) - len(weights))
            self._values.frombytes(weights.tobytes())

    def _pad(self, n: int) -> None:
        """Extend the values to n, with 1 for those that were not given."""
        self._values.extend(array("d", [1.0]) * (n - len(self._values)))

    def features(self) -> Features:
        """The arrays, without the entries to be left out."""
        self._number()
        indptr = offsets_of(np.frombuffer(self._counts, np.int64))
        indices = np.frombuffer(self._indices, np.int32)
        values = None
        if self._values:
            self._pad(len(self._indices))
            values = np.frombuffer(self._values, np.float64)
        known = indices >= 0
        if not known.all():
            indptr = offsets_of(known)[indptr]
            indices, values = indices[known], None if values is None else values[known]
        return Features(indptr, indices, values, np.frombuffer(self._lengths, np.int64))


def iterate_sequences(sequences: Iterable[Any]) -> Iterator[Any]:
    """The sequences one by one; those of pandas as arrays."""
    if isinstance(sequences, (str, bytes, Mapping)) or not hasattr(sequences, "__iter__"):
        raise ModelError(f"expected a list of sequences, got {type(sequences).__name__}")
    return (one.to_numpy() if hasattr(one, "to_numpy") else one for one in sequences)  # rows, not columns


def _matrix(sequence: Any) -> Any:
    """The sequence if it is an array of numbers (T, D) or a sparse one, which becomes CSR; else None."""
    if isinstance(sequence, np.ndarray):
        return sequence if sequence.ndim == 2 and sequence.dtype.kind in "fiub" else None
    if not hasattr(sequence, "tocsr"):
        return None
    if sequence.ndim != 2:
        raise ModelError(f"a sequence that is a sparse array must have shape (T, D), got {sequence.shape}")
    return sequence.tocsr()


def _kind(columns: int | None) -> str:
    return "a list of items" if columns is None else f"an array of {columns} columns"


def has_order(given: Any) -> bool:
    """Whether something has elements in a definite order."""
    unordered = isinstance(given, (set, frozenset, Mapping)) or getattr(given, "ndim", 1) == 0
    return hasattr(given, "__iter__") and not unordered


def _listed(n: int, sequence: Any) -> Sequence[Any]:
    """The items of a sequence."""
    if isinstance(sequence, (list, tuple)):
        return sequence
    if not has_order(sequence) or isinstance(sequence, (str, bytes)):
        raise ModelError(
            f"sequence {n}: expected a list with one item for each token, got {type(sequence).__name__}; "
            "a single sequence is given as [sequence]"
        )
    return list(sequence)


def _read(n: int, items: Sequence[Any]) -> tuple[list[str], Array, list[int]]:
    """Names and weights of all attributes of sequence n, and how many each item has."""
    names: list[str] = []
    weights: list[float] = []
    counts = []
    for position, item in enumerate(items):
        before = len(names)
        try:
            _flatten(item, "", names, weights)
        except (TypeError, ValueError, OverflowError) as error:
            raise ModelError(f"sequence {n}, position {position}: {error}") from None
        counts.append(len(names) - before)
    read = np.array(weights, np.float64)
    _check_finite(n, read, counts, names.__getitem__)
    return names, read, counts


def _flatten(item: Any, prefix: str, names: list[str], weights: list[float]) -> None:
    """Add the attributes of an item, or of a list or dict inside it; their names begin with the prefix."""
    if not isinstance(item, Mapping):
        if not hasattr(item, "__iter__"):
            raise TypeError(f"expected a list of attributes or a dict {{attribute: weight}}, got {show_value(item)}")
        for one in item:
            names.append(prefix + _text(one))
            weights.append(1.0)
        return
    for key, value in item.items():
        name = prefix + (key if type(key) is str else _text(key))
        if type(value) is str:
            names.append(f"{name}:{value}")
            weights.append(1.0)
        elif type(value) in _NUMBERS:
            names.append(name)
            weights.append(float(value))
        else:
            _flatten_value(value, name, names, weights)


def _flatten_value(value: Any, name: str, names: list[str], weights: list[float]) -> None:
    """Add the attributes of a value that is not simply a str or a number."""
    if isinstance(value, (str, bytes)):
        value = [value]
    if isinstance(value, (list, tuple, set, frozenset, Mapping)):
        _flatten(value, f"{name}:", names, weights)
    else:
        names.append(name)
        weights.append(_weight(name, value))


def _text(name: Any) -> str:
    """An attribute as str; bytes are UTF-8."""
    if isinstance(name, str):
        return plain(name)
    if isinstance(name, bytes):
        return name.decode()
    raise TypeError(f"expected the name of an attribute, a str, got {show_value(name)}")


def _weight(name: str, value: Any) -> float:
    """Anything that converts to a C double: numpy's numbers, Decimal, Fraction; but not "1", which float accepts."""
    try:
        read: array[float] = array("d", [value])
    except TypeError:
        raise TypeError(
            f"attribute {name!r}: expected a number, a str, or a list or dict of attributes, got {show_value(value)}"
        ) from None
    return read[0]


def show_value(value: object) -> str:
    """A value and its type, for a message."""
    return f"{str(value)[:40]!r} of type {type(value).__name__}"


def _check_finite(n: int, weights: Array, counts: Any, name: Callable[[int], str]) -> None:
    finite = np.isfinite(weights)
    if not finite.all():
        entry = int(np.argmin(finite))
        position = int(np.searchsorted(np.cumsum(counts), entry, side="right"))
        raise ModelError(
            f"sequence {n}, position {position}: the weight of attribute {name(entry)!r} must be finite, "
            f"got {weights[entry]}; leave the attribute out where its value is not known"
        )
