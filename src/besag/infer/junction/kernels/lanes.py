"""Many rows on one small tree of cliques: LANES rows go through every table operation together, row index innermost.

The passes are those of `passes` in the SUM domain, written again because every loop has an index more: messages,
evidence and tiles are (., lanes), tables of factors are shared by all rows. So no variable may be fixed: what rows
observe is evidence on soft variables. If the range is too narrow for a block, the kernel says so, and the rows are done
one at a time instead. Marginals of variables are a row's own; those of factors are only ever added up over rows, with
weights.

Shapes: R rows, D states of soft variables, C cliques, O small tables, M entries of factors; `rows` has the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from besag.arrays import Array, BoolArray, IntArray
from besag.infer.junction.kernels.maps import FACTOR, MESSAGE
from besag.infer.junction.kernels.passes import RANGE, Reads
from besag.infer.junction.kernels.rows import LN2, RowNumbers
from besag.infer.junction.kernels.tiles import Join
from besag.kernels.compile import at, inlined

LANES = 8
MOST_LANE_MESSAGES = 2**16  # entries of messages: a block of rows stays in the cache


class LaneOutputs(NamedTuple):
    """Where answers go; a variable or factor of small table o begins at bases[o]."""

    bases: IntArray  # (O,)
    moves: IntArray  # (O,) what variables with one state left add to the entry of a factor
    weights: Array  # (R,) of rows
    marginals: Array  # (R, D)
    cells: Array  # (M,) sums over rows of weights times marginals of factors


class LaneWork(NamedTuple):
    """Room for one block of rows; store holds messages, then evidence."""

    store: Array  # (., lanes)
    tile: Array  # (., lanes)
    beliefs: Array  # (., lanes)
    message_spans: Array  # (C, lanes)
    scales: Array  # (C, lanes)
    highest: Array  # (3, lanes)


@inlined
def set_all(lanes: int, x: Array, start: int, n: int, value: float) -> None:
    """x = value."""
    for i in range(n):
        for r in range(lanes):
            x[at(start + i), r] = value


@inlined
def times_factor(
    lanes: int, n: int, values: Array, base: int, index: IntArray, start: int, started: bool, tile: Array
) -> None:
    """tile = a factor, or tile times it."""
    for i in range(n):
        value = values[at(base + index[at(start + i)])]
        for r in range(lanes):
            tile[i, r] = value * tile[i, r] if started else value


@inlined
def times_lanes(
    lanes: int, n: int, store: Array, base: int, index: IntArray, start: int, started: bool, tile: Array
) -> None:
    """tile = a message or evidence, or tile times it."""
    for i in range(n):
        here = base + index[at(start + i)]
        for r in range(lanes):
            tile[i, r] = store[at(here), r] * tile[i, r] if started else store[at(here), r]


@inlined
def add_lanes(lanes: int, x: Array, here: int, y: Array, there: int) -> None:
    """y += x, one vector."""
    for r in range(lanes):
        y[at(there), r] += x[at(here), r]


@inlined
def lane_product(lanes: int, join: Join, c: int, t: int, values: Array, bases: IntArray, work: LaneWork) -> None:
    """tile = the product of all operands of clique c, at tile t."""
    n, first = join.shape[c, 2] * join.shape[c, 3], join.table_offsets[c]
    for o in range(first, first + join.n_operands[c]):
        base, start = bases[o] + join.outer[join.outer_offsets[o] + t], join.inner_offsets[o]
        if join.kinds[o] == FACTOR:
            times_factor(lanes, n, values, base, join.inner, start, o > first, work.tile)
        else:
            times_lanes(lanes, n, work.store, base, join.inner, start, o > first, work.tile)
    if join.n_operands[c] == 0:
        set_all(lanes, work.tile, 0, n, 1.0)


@inlined
def lane_normalise(lanes: int, join: Join, c: int, work: LaneWork) -> None:
    """Take a power of two out of the message of clique c in each lane, and set its scale and span."""
    start, stop = join.message_offsets[c], join.message_offsets[c + 1]
    for r in range(lanes):
        work.highest[0, r], work.highest[1, r] = 0.0, math.inf
    for i in range(start, stop):
        for r in range(lanes):
            value = work.store[i, r]
            work.highest[0, r] = max(work.highest[0, r], value)
            work.highest[1, r] = min(work.highest[1, r], value if value > 0.0 else math.inf)
    for r in range(lanes):
        work.highest[2, r], work.scales[c, r], work.message_spans[c, r] = 1.0, 0.0, 0.0
        if work.highest[0, r] > 0.0:
            _, exponent = math.frexp(work.highest[0, r])
            work.highest[2, r], work.scales[c, r] = math.ldexp(1.0, -exponent), float(exponent)
            work.message_spans[c, r] = math.log(work.highest[0, r] / work.highest[1, r])
    for i in range(start, stop):
        for r in range(lanes):
            work.store[i, r] *= work.highest[2, r]


@inlined
def lane_narrow(
    lanes: int,
    join: Join,
    rows: RowNumbers,
    c: int,
    first_row: int,
    last_row: int,
    evidence_of: IntArray,
    work: LaneWork,
) -> bool:
    """Whether the operands of clique c span more than SUM can hold, in some lane."""
    first = join.table_offsets[c]
    for r in range(lanes):
        b, span = min(first_row + r, last_row - 1), 0.0
        for o in range(first, first + join.n_operands[c]):
            if join.kinds[o] == MESSAGE:
                span += work.message_spans[join.numbers[o], r]
            elif join.kinds[o] == FACTOR:
                span += rows.spans[o]
            else:
                span += rows.soft_spans[b, evidence_of[o]]
        if span > RANGE:
            return True
    return False


def make_lanes(lanes: int) -> Callable[..., bool]:
    """Kernel for rows first..last: log_z (R, 1) and the outputs; True if the range was too narrow.

    values: tables of factors, whose bases count from 0; evidence_of (O,): column of soft_spans, -1 where there is none;
    down: whether outputs are wanted.
    """

    def propagate(
        join: Join,
        reads: Reads,
        rows: RowNumbers,
        values: Array,
        evidence_of: IntArray,
        out: LaneOutputs,
        work: LaneWork,
        first: int,
        last: int,
        down: bool,
        log_z: Array,
    ) -> bool:
        n_cliques = len(join.parent)
        for b in range(first, last, lanes):
            for i in range(rows.soft.shape[1]):
                for r in range(lanes):  # lanes beyond the end repeat the last row
                    work.store[rows.soft_start + i, r] = rows.soft[min(b + r, last - 1), i]
            for c in range(n_cliques):
                if lane_narrow(lanes, join, rows, c, b, last, evidence_of, work):
                    return True
                start, n_tiles, width = join.message_offsets[c], join.shape[c, 1], join.shape[c, 3]
                set_all(lanes, work.store, start, join.message_offsets[c + 1] - start, 0.0)
                for t in range(join.shape[c, 0] * n_tiles):
                    lane_product(lanes, join, c, t, values, rows.bases, work)
                    for i in range(join.shape[c, 2]):
                        for j in range(width):
                            add_lanes(lanes, work.tile, i * width + j, work.store, start + t // n_tiles * width + j)
                lane_normalise(lanes, join, c, work)
            for r in range(min(lanes, last - b)):
                scale, z = 0.0, rows.constants[b + r, 0]
                for c in range(n_cliques):
                    scale += work.scales[c, r]
                    if join.parent[c] < 0:
                        message = work.store[join.message_offsets[c], r]
                        z += math.log(message) if message > 0.0 else -math.inf
                log_z[b + r, 0] = z + scale * LN2
            if down:
                lane_downward(lanes, join, reads, values, rows.bases, out, work, b, last, log_z)
        return False

    return propagate


@inlined
def lane_downward(
    lanes: int,
    join: Join,
    reads: Reads,
    values: Array,
    bases: IntArray,
    out: LaneOutputs,
    work: LaneWork,
    b: int,
    last: int,
    log_z: Array,
) -> None:
    """Beliefs of a block of rows, and what is read off them."""
    for c in range(len(join.parent) - 1, -1, -1):
        start = join.message_offsets[c]
        if join.parent[c] < 0:
            for r in range(lanes):
                possible = log_z[min(b + r, last - 1), 0] > -math.inf
                scale = math.ldexp(1.0, -int(work.scales[c, r]))
                work.store[start, r] = scale / work.store[start, r] if possible else 0.0
        if not reads.needed[c]:
            continue
        first, end = join.table_offsets[c], join.table_offsets[c + 1]
        n_tiles, width = join.shape[c, 1], join.shape[c, 3]
        set_all(lanes, work.beliefs, 0, reads.rooms[end] - reads.rooms[first], 0.0)
        for t in range(join.shape[c, 0] * n_tiles):
            lane_product(lanes, join, c, t, values, bases, work)
            here = start + t // n_tiles * width
            for i in range(join.shape[c, 2]):
                for j in range(width):
                    for r in range(lanes):
                        work.tile[at(i * width + j), r] *= work.store[at(here + j), r]
            for o in range(first, end):
                if reads.wanted[o]:
                    room = reads.rooms[o] - reads.rooms[first] + out.moves[o] + join.outer[join.outer_offsets[o] + t]
                    index = join.inner_offsets[o]
                    for i in range(join.shape[c, 2] * width):
                        add_lanes(lanes, work.tile, i, work.beliefs, room + join.inner[index + i])
        for o in range(first, end):
            if not reads.wanted[o]:
                continue
            room, size = reads.rooms[o] - reads.rooms[first], reads.rooms[o + 1] - reads.rooms[o]
            if join.kinds[o] == MESSAGE:
                k = join.numbers[o]
                for i in range(reads.offsets[k], reads.offsets[k + 1]):
                    lane_read(lanes, reads, i, work.beliefs, room, b, last, out.marginals)
                for r in range(lanes):
                    work.highest[0, r] = math.ldexp(1.0, -int(work.scales[k, r]))
                for i in range(size):
                    for r in range(lanes):
                        message = work.store[join.message_offsets[k] + i, r]
                        ratio = work.beliefs[room + i, r] * work.highest[0, r] / message if message > 0.0 else 0.0
                        work.store[join.message_offsets[k] + i, r] = ratio
            elif join.kinds[o] == FACTOR:
                for i in range(size):
                    total = 0.0
                    for r in range(min(lanes, last - b)):
                        total += out.weights[b + r] * work.beliefs[room + i, r]
                    out.cells[out.bases[o] + i] += total
            else:
                for i in range(size):
                    for r in range(min(lanes, last - b)):
                        out.marginals[b + r, out.bases[o] + i] = work.beliefs[room + i, r]


@inlined
def lane_read(
    lanes: int, reads: Reads, i: int, beliefs: Array, start: int, b: int, last: int, marginals: Array
) -> None:
    """The marginal of a variable from the beliefs of a separator."""
    n, after, target = reads.states[i], reads.after[i], reads.target[i]
    for k in range(n):
        for r in range(min(lanes, last - b)):
            value = 0.0
            for before in range(reads.before[i]):
                for j in range(after):
                    value += beliefs[start + (before * n + k) * after + j, r]
            marginals[b + r, target + k] = value


def lanes_serve(fixed: BoolArray, n_rows: int, n_messages: int) -> bool:
    """Whether a batch is worth it: many rows, no variable fixed, and blocks that stay small."""
    return n_rows >= LANES and not fixed.any() and n_messages <= MOST_LANE_MESSAGES
