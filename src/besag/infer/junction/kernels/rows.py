"""Kernels over rows of evidence on a tree of cliques: propagate, decode, draw.

A row brings the codes of fixed variables, which move the bases of factors; weights on the states of soft variables; and
a constant, the logarithm of what no clique holds. A row is bound, messages go up, and the answers are computed from
them; a row whose Z is zero gets zeros.

Shapes: R rows, V variables, O small tables, C cliques, G groups (instances of a union) of roots.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from besag.arrays import Array, IntArray
from besag.infer.junction.kernels.passes import Reads, divide, downward, upward
from besag.infer.junction.kernels.tiles import Join, product
from besag.kernels.compile import gathering
from besag.kernels.random import stream, uniform
from besag.kernels.semiring import MAX, SUM, one_of, zero_of

LN2 = math.log(2.0)


class RowNumbers(NamedTuple):
    """The numbers of all rows, and where they go."""

    codes: IntArray  # (R, V) of fixed variables
    fixed_offsets: IntArray  # (O + 1,)
    fixed_variables: IntArray
    fixed_strides: IntArray
    bases: IntArray  # (O,) where tables begin in store, fixed variables at code 0
    spans: Array  # (O,) of factors
    soft: Array  # (R, D) weights of the D states of soft variables, in the domain of the semiring
    soft_start: int  # where they begin in store
    soft_tables: IntArray  # (E,) the small table of each soft variable
    soft_spans: Array  # (R, E)
    constants: Array  # (R, G) logarithms
    groups: IntArray  # (C,) group of a clique
    cliques: IntArray  # (C,) all of them, children before parents


class RowWork(NamedTuple):
    """Work space for one row at a time."""

    store: Array  # messages, evidence, tables
    bases: IntArray  # (O,)
    moves: IntArray  # (O,)
    spans: Array  # (O,)
    message_spans: Array  # (C,)
    scales: Array  # (C,)
    tile: Array
    sums: Array
    beliefs: Array


class CliqueWalk(NamedTuple):
    """Axes of cliques, to turn entries into states."""

    axis_offsets: IntArray  # (C + 1,)
    axes: IntArray
    splits: IntArray  # (C, 3)
    counts: IntArray  # (V,)


@gathering
def bind(join: Join, rows: RowNumbers, b: int, work: RowWork) -> None:
    """Set the bases and weights of row b."""
    for o in range(len(rows.bases)):
        moved = 0
        for i in range(rows.fixed_offsets[o], rows.fixed_offsets[o + 1]):
            moved += rows.fixed_strides[i] * rows.codes[b, rows.fixed_variables[i]]
        work.bases[o], work.moves[o] = rows.bases[o] + moved, moved
        work.spans[o] = rows.spans[o]
    for i in range(rows.soft.shape[1]):
        work.store[rows.soft_start + i] = rows.soft[b, i]
    for i in range(len(rows.soft_tables)):
        work.spans[rows.soft_tables[i]] = rows.soft_spans[b, i]


@gathering
def rise(semiring: int, join: Join, rows: RowNumbers, b: int, work: RowWork, log_z: Array) -> bool:
    """Bind row b, send all messages up, log Z of its groups to log_z[b]; True if the range was too narrow."""
    bind(join, rows, b, work)
    if upward(
        semiring,
        join,
        rows.cliques,
        work.bases,
        work.spans,
        work.store,
        work.message_spans,
        work.scales,
        work.tile,
    ):
        return True
    total_up(semiring, join, rows, b, work, log_z)
    return False


@gathering
def total_up(semiring: int, join: Join, rows: RowNumbers, b: int, work: RowWork, log_z: Array) -> None:
    """log Z of the groups of row b, in log_z[b]."""
    n = len(join.parent)
    for g in range(log_z.shape[1]):
        log_z[b, g] = 0.0
    for c in range(n):
        log_z[b, rows.groups[c]] += work.scales[c]
    for g in range(log_z.shape[1]):
        log_z[b, g] = log_z[b, g] * (LN2 if semiring == SUM else 1.0) + rows.constants[b, g]
    for c in range(n):
        if join.parent[c] < 0:
            z = work.store[join.message_offsets[c]]
            if semiring == SUM:
                z = math.log(z) if z > 0.0 else -math.inf
            log_z[b, rows.groups[c]] += z


@gathering
def turn(semiring: int, join: Join, rows: RowNumbers, b: int, work: RowWork, log_z: Array) -> None:
    """d of the roots: 1 / Z, or 0 for a group without a labelling."""
    for c in range(len(join.parent)):
        if join.parent[c] < 0:
            work.beliefs[0] = one_of(semiring)
            if log_z[b, rows.groups[c]] == -math.inf:
                work.beliefs[0] = zero_of(semiring)
            divide(semiring, 1, work.beliefs, 0, work.scales[c], work.store, join.message_offsets[c])


def make_propagate(semiring: int) -> Callable[..., bool]:
    """Kernel for rows first..last: log_z (R, G); True if the range was too narrow.

    marginals (R, D) gets those of free variables, cells (R, .) those of factors, at out_bases (O,); both may be empty,
    and reads.needed says which beliefs to make.
    """

    def propagate(
        join: Join,
        reads: Reads,
        rows: RowNumbers,
        work: RowWork,
        first: int,
        last: int,
        out_bases: IntArray,
        log_z: Array,
        marginals: Array,
        cells: Array,
    ) -> bool:
        for b in range(first, last):
            if rise(semiring, join, rows, b, work, log_z):
                return True
            if len(marginals) == 0:
                continue
            turn(semiring, join, rows, b, work, log_z)
            downward(
                semiring,
                join,
                reads,
                rows.cliques,
                work.bases,
                work.moves,
                out_bases,
                work.store,
                work.scales,
                work.beliefs,
                marginals[b],
                cells[b],
                work.tile,
                work.sums,
            )
        return False

    return propagate


@gathering
def separator_index(join: Join, walk: CliqueWalk, c: int, digits: IntArray) -> tuple[int, int]:
    """The entry of a separator at the digits of its variables, (outer, inner)."""
    first, last = walk.axis_offsets[c], walk.axis_offsets[c + 1]
    outer, inner = 0, 0
    for a in range(first, first + walk.splits[c, 0]):
        outer = outer * walk.counts[walk.axes[a]] + digits[walk.axes[a]]
    for a in range(first + walk.splits[c, 2], last):
        inner = inner * walk.counts[walk.axes[a]] + digits[walk.axes[a]]
    return outer, inner


@gathering
def set_residual(walk: CliqueWalk, c: int, r: int, digits: IntArray) -> None:
    """The digits of the residual at its entry r."""
    first = walk.axis_offsets[c]
    for a in range(first + walk.splits[c, 2] - 1, first + walk.splits[c, 0] - 1, -1):
        n = walk.counts[walk.axes[a]]
        digits[walk.axes[a]] = r % n
        r //= n


@gathering
def fill_row(semiring: int, join: Join, walk: CliqueWalk, c: int, digits: IntArray, work: RowWork, row: Array) -> int:
    """row = T_c(s, .) at the digits of the separator; returns its length."""
    s, j = separator_index(join, walk, c, digits)
    n_tiles, n_rows, width = join.shape[c, 1], join.shape[c, 2], join.shape[c, 3]
    first = join.table_offsets[c]
    for ro in range(n_tiles):
        t = s * n_tiles + ro
        if width == 1:  # a tile is a stretch of the row
            product(semiring, join, c, t, work.store, work.bases, -1, work.tile)
            for ri in range(n_rows):
                row[ro * n_rows + ri] = work.tile[ri]
            continue
        for ri in range(n_rows):
            row[ro * n_rows + ri] = one_of(semiring)
        for o in range(first, first + join.n_operands[c]):
            base = work.bases[o] + join.outer[join.outer_offsets[o] + t]
            inner = join.inner_offsets[o] + j
            for ri in range(n_rows):
                value = work.store[base + join.inner[inner + ri * width]]
                if semiring == SUM:
                    row[ro * n_rows + ri] *= value
                else:
                    row[ro * n_rows + ri] += value
    return int(n_tiles * n_rows)


@gathering
def best_of(n: int, row: Array) -> int:
    """The largest entry, the first of equal ones."""
    best = 0
    for r in range(1, n):
        if row[r] > row[best]:
            best = r
    return best


@gathering
def draw_of(semiring: int, n: int, row: Array, u: float) -> int:
    """An entry in proportion to its weight; u is uniform on [0, 1)."""
    highest = zero_of(semiring)
    for r in range(n):
        highest = max(highest, row[r])
    total = 0.0
    for r in range(n):
        row[r] = row[r] if semiring == SUM else (math.exp(row[r] - highest) if highest > -math.inf else 0.0)
        total += row[r]
    left, chosen = u * total, 0
    for r in range(n):
        if row[r] > 0.0:
            chosen = r
            left -= row[r]
            if left < 0.0:
                break
    return chosen


@gathering
def accumulate(semiring: int, n: int, row: Array) -> None:
    """Weights become their sums up to each of them."""
    highest = zero_of(semiring)
    for r in range(n):
        highest = max(highest, row[r])
    total = 0.0
    for r in range(n):
        total += row[r] if semiring == SUM else (math.exp(row[r] - highest) if highest > -math.inf else 0.0)
        row[r] = total


@gathering
def place_of(n: int, sums: Array, u: float) -> int:
    """An entry in proportion to its weight, by sums of weights; u is uniform on [0, 1)."""
    x = min(u * sums[n - 1], sums[n - 1] * (1.0 - 2.0**-53))
    low, high = 0, n - 1
    while low < high:
        middle = (low + high) // 2
        if sums[middle] > x:
            high = middle
        else:
            low = middle + 1
    return low


def make_decode(rising: int) -> Callable[..., None]:
    """Kernel: a heaviest labelling of rows first..last; log_weight (R, G), digits (R, V). row: the longest residual.

    rising: whether messages are still to be sent.
    """

    def decode(
        join: Join,
        walk: CliqueWalk,
        rows: RowNumbers,
        work: RowWork,
        first: int,
        last: int,
        log_weight: Array,
        digits: IntArray,
        row: Array,
    ) -> None:
        for b in range(first, last):
            if rising:
                rise(MAX, join, rows, b, work, log_weight)
            for c in range(len(join.parent) - 1, -1, -1):
                n = fill_row(MAX, join, walk, c, digits[b], work, row)
                set_residual(walk, c, best_of(n, row), digits[b])

    return decode


def make_draw(semiring: int, rising: int) -> Callable[..., bool]:
    """Kernel: digits (R, n, V) of n samples for rows first..last; True if the range was too narrow.

    rising: whether messages are still to be sent.
    """

    def draw(
        join: Join,
        walk: CliqueWalk,
        rows: RowNumbers,
        work: RowWork,
        first: int,
        last: int,
        key: int,
        log_z: Array,
        digits: IntArray,
        row: Array,
    ) -> bool:
        for b in range(first, last):
            if rising and rise(semiring, join, rows, b, work, log_z):
                return True
            for c in range(len(join.parent) - 1, -1, -1):
                if join.parent[c] < 0:  # one table for all draws
                    n = fill_row(semiring, join, walk, c, digits[b, 0], work, row)
                    accumulate(semiring, n, row)
                    for i in range(digits.shape[1]):
                        u = uniform(stream(key, b, i), c)
                        set_residual(walk, c, place_of(n, row, u), digits[b, i])
            for i in range(digits.shape[1]):
                state = stream(key, b, i)
                for c in range(len(join.parent) - 1, -1, -1):
                    if join.parent[c] >= 0:
                        n = fill_row(semiring, join, walk, c, digits[b, i], work, row)
                        set_residual(walk, c, draw_of(semiring, n, row, uniform(state, c)), digits[b, i])
        return False

    return draw
