"""Array types, axis letters and semirings: the words that all other modules share.

Axis letters, used in every docstring:

    N instances (parts of a disjoint union)    B rows of evidence           V variables
    F factors                                  E edges of the factor graph  K states of one variable
    S states of all variables, sum of K        P parameters                 D inputs of a factor
    Q basis elements of a template             T tables, shared or not      L entries of all tables
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import fields
from enum import IntEnum
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
AnyArray: TypeAlias = NDArray[Any]
Arrays = TypeVar("Arrays", bound=Iterable[NDArray[Any]])


LARGEST = 1e300  # of an energy or a log-weight: sums of millions of them are still numbers


class Semiring(IntEnum):
    """A commutative semiring (plus, times) and the domain its numbers live in, 002 (40).

    SUM      (+, x) on weights, rescaled: fast, needs a bounded range
    MAX      (max, +) on log-potentials: min-sum on energies, the sign turned
    LOG_SUM  (log-add-exp, +) on log-potentials: SUM for any range
    """

    SUM = 0
    MAX = 1
    LOG_SUM = 2


class Kind(IntEnum):
    """What a factor stores: a table, or a few numbers of which its table is a formula (`besag.model.structured`).

    Kernels read kind + EXTENTS extent, where the extent is one whole number that the rules of the kind need.
    """

    TABLE = 0
    POTTS = 1
    SCALED = 2
    BILINEAR = 7
    TRUNCATED_LINEAR = 10
    TRUNCATED_QUADRATIC = 11
    DISPLACEMENT = 12
    CHAINED = 20
    NOISY = 30


EXTENTS = 256  # kinds are below


class Rebuilt:
    """A dataclass that is pickled by its arguments and made anew from them, its arrays read-only as before."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.init}  # type: ignore[arg-type]
        return _rebuild, (type(self), kept)


def _rebuild(cls: type[Any], arguments: dict[str, Any]) -> Any:
    for value in arguments.values():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    return cls(**arguments)


def freeze(array: AnyArray) -> AnyArray:
    """The array, C-contiguous and read-only; a copy only where it has to be."""
    flags = array.flags
    if not flags.c_contiguous:
        array = np.ascontiguousarray(array)
        flags = array.flags
    if flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def seal(arrays: Arrays) -> Arrays:
    """The arrays, which are new and contiguous and nobody else's, read-only from now on."""
    for array in arrays:
        array.flags.writeable = False
    return arrays


def secure(array: AnyArray) -> AnyArray:
    """The array, C-contiguous and read-only; a copy where its giver could still write to it."""
    return freeze(array.copy() if array.flags.writeable else array)


def concatenate(parts: Sequence[AnyArray], dtype: type[np.generic]) -> AnyArray:
    """The parts one after the other, flat; empty where there are none."""
    return np.concatenate([part.reshape(-1) for part in parts], dtype=dtype) if parts else np.zeros(0, dtype)


def repeat(values: Sequence[int], counts: Sequence[int]) -> IntArray:
    """Each whole number as many times as its count says."""
    return np.repeat(np.array(values, np.int64), np.array(counts, np.int64))


def invert(permutation: AnyArray) -> IntArray:
    """The permutation that undoes this one."""
    undone = np.empty(len(permutation), np.int64)
    undone[permutation] = np.arange(len(permutation))
    return undone


def distinct_rows(rows: IntArray) -> tuple[IntArray, IntArray]:
    """The first of each set of equal rows of (N, V), and for each row which set it is of, (N,).

    Rows are compared as bytes: numpy's `unique` takes seconds for one row of 200,000 columns.
    """
    if len(rows) == 1 or rows.shape[1] == 0:
        return np.zeros(1, np.int64), np.zeros(len(rows), np.int64)
    keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return first, which.reshape(-1)


def offsets_of(sizes: AnyArray) -> IntArray:
    """(n,) sizes -> (n + 1,) offsets that start at zero."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def index_type(n: int) -> type[np.int32 | np.int64]:
    """The shortest integers that count to n: half the memory is half the time to read it."""
    return np.int32 if n < 2**31 else np.int64


def dot(one: Array, other: Array) -> float:
    """one'other. Not by BLAS: its threads go on spinning after so little work, on the cores that the kernels need."""
    return float(np.einsum("i,i->", one, other))


def norm(vector: Array) -> float:
    """||vector||; inf where squares are too large for a number."""
    with np.errstate(over="ignore", invalid="ignore"):
        squared = dot(vector, vector)
    return math.sqrt(squared) if squared >= 0 else math.nan
