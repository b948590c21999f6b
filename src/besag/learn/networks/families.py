"""Counting families, a child and its parents, in rows of codes.

    N_f[x_1, .., x_n] = sum over rows of weight * [the columns of scope f have the states x_1, .., x_n]

A row counts for a family where none of its cells there is missing. One pass over the columns of a family: their memory
is read once, a byte a cell, and nothing of the size of the rows is made. Threads share out families, so that sums do
not depend on their number. Without weights the numbers are whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.data.tables.code_table import missing_code
from besag.infer.memory import default_memory_limit, refuse
from besag.kernels.compile import compiled, worth_compiling
from besag.kernels.threads import run_chunks
from besag.learn.networks.kernels.count import WAYS, make_count

INTERPRETED = 2400  # cells that numpy counts in the time of an entry in plain Python
ROWS = 1 << 16  # at a time, where cells have to be packed first
SPREAD = 4096  # entries up to which states that follow each other are counted in tables of their own
COLUMNS = 4  # that the kernel takes


def count_families(
    codes: Sequence[AnyArray],
    cardinalities: IntArray,
    scopes: Sequence[Sequence[int]],
    weights: Array | None = None,
    n_threads: int | None = None,
    memory_limit: int | None = None,
) -> list[AnyArray]:
    """A table for each scope, axes in its order: int64, or float64 with weights.

    >>> import numpy as np
    >>> rows = [np.array([0, 1, 1], np.uint8), np.array([2, 0, 2], np.uint8)]
    >>> count_families(rows, np.array([2, 3]), [(0, 1)])[0].tolist()
    [[0, 0, 1], [1, 0, 1]]
    """
    shapes = [tuple(int(cardinalities[v]) for v in scope) for scope in scopes]
    entries = sum(math.prod(shape) for shape in shapes)
    limit = default_memory_limit() if memory_limit is None else memory_limit
    refuse(f"tables of {entries} counts", 16 * entries, limit, "take fewer parents, or fewer states")
    largest = [bool(len(column)) and int(column.max()) == missing_code(column) for column in codes]
    n_rows = len(codes[0]) if codes else 0
    if n_rows == 0:
        return [np.zeros(shape, np.int64 if weights is None else np.float64) for shape in shapes]
    compile = worth_compiling(n_rows * sum(map(len, scopes)) / INTERPRETED)
    count = _count_compiled if compile else _count_numpy
    tables: list[AnyArray] = [np.zeros(0)] * len(scopes)

    def one(f: int) -> None:
        columns = [codes[v] for v in scopes[f]]
        may_miss = any(largest[v] for v in scopes[f])
        tables[f] = count(columns, shapes[f], weights, may_miss).reshape(shapes[f])

    run_chunks(one, len(scopes), n_threads if compile else 1)
    return tables


def _count_numpy(columns: list[AnyArray], shape: tuple[int, ...], weights: Array | None, may_miss: bool) -> AnyArray:
    size = math.prod(shape)
    counts = np.zeros(size, np.int64 if weights is None else np.float64)
    step = max(ROWS, size)
    for start in range(0, len(columns[0]), step):
        parts = [column[start : start + step] for column in columns]
        index = _packed(parts, shape)
        own = None if weights is None else weights[start : start + step]
        if may_miss:
            known = index >= 0
            index, own = index[known], None if own is None else own[known]
        counts += np.bincount(index, own, minlength=size)
    return counts


def _packed(columns: Sequence[AnyArray], shape: Sequence[int]) -> IntArray:
    """The number (N,) of the joint state, the last column fastest; -1 where a cell is missing."""
    index = np.zeros(len(columns[0]), np.int64)
    unknown = np.zeros(len(index), np.bool_)
    for column, size in zip(columns, shape, strict=True):
        index *= size
        index += column
        unknown |= column == missing_code(column)
    return np.where(unknown, -1, index)


def _count_compiled(columns: list[AnyArray], shape: tuple[int, ...], weights: Array | None, may_miss: bool) -> AnyArray:
    size = math.prod(shape)
    is_weighted = weights is not None
    kernel = compiled(make_count, int(is_weighted), int(may_miss))
    way = size if size <= SPREAD and not is_weighted and not may_miss else 0
    counts = np.zeros(max(size, WAYS * way), np.float64 if is_weighted else np.int64)
    alike = len(columns) <= COLUMNS and len({column.dtype for column in columns}) == 1
    step = max(1, len(columns[0])) if alike else ROWS
    for start in range(0, len(columns[0]), step):
        parts = [column[start : start + step] for column in columns]
        taken, sizes = (parts, list(shape)) if alike else _fitted(parts, shape)
        own = np.zeros(0) if weights is None else weights[start : start + step]
        strides = np.zeros(COLUMNS, np.int64)
        strides[: len(sizes)] = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
        taken += [taken[0]] * (COLUMNS - len(taken))
        kernel(*taken, strides, own, missing_code(taken[0]), way, counts)
    return counts.reshape(WAYS, size).sum(axis=0) if way else counts


def _fitted(columns: Sequence[AnyArray], shape: Sequence[int]) -> tuple[list[AnyArray], list[int]]:
    """Columns of one type, and not too many: the first of them packed into one."""
    surplus = max(1, len(columns) - COLUMNS + 1)
    first = _packed(columns[:surplus], shape[:surplus])
    taken = [first.astype(np.uint32)]  # -1 becomes the largest
    for column in columns[surplus:]:
        wide = column.astype(np.uint32)
        wide[column == missing_code(column)] = np.iinfo(np.uint32).max
        taken.append(wide)
    return taken, [math.prod(shape[:surplus]), *shape[surplus:]]
