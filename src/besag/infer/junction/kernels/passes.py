"""The passes of message passing on a tree of cliques, in one of three semirings; tables of cliques are never stored.

With T_c = product of all operands of clique c (factors, messages of children, evidence), s its separator, r its
residual:

    m_c(s) = sum over r of T_c(s, r)                                                       upwards
    b_k(s') = sum over C_p minus s' of T_p d_p,      d_k = b_k / m_k for each child k of p    downwards

d of a root is 1 / Z of its component, so that every T_c d_c is a belief that sums to one, as do its marginals b. T is
computed again in each pass: its operands are small and stay in the cache, which costs less than writing T to memory and
reading it back, and the memory needed is that of the messages.

Scale. A message is divided by the power of two that brings its largest entry to [1/2, 1), in the log domains by a whole
number, so that sums of many scales are exact.

Range of SUM. If operand i of a clique spans a ratio of e^a_i (largest to smallest entry that is not zero) and sum a_i
<= RANGE, no entry of T can be lost; `upward` stops at the first clique where this does not hold. Downwards nothing is
checked: what underflows there is a probability below 1e-300.

`store` holds all operands, flat, messages first; bases (O,) says where each begins.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from besag.arrays import Array, BoolArray, IntArray
from besag.infer.junction.kernels.maps import MESSAGE, VARIABLE
from besag.infer.junction.kernels.tiles import Join, add_rows, product, project, scale_rows, total
from besag.kernels.compile import at, gathering, inlined
from besag.kernels.semiring import SUM, zero_of

RANGE = 690.0  # nats; the smallest normal number is e^-708


class Reads(NamedTuple):
    """What the downward pass reads: outputs, and marginals of variables that are read off separators."""

    needed: BoolArray  # (C,) whether the belief of a clique is needed
    wanted: BoolArray  # (O,) outputs
    rooms: IntArray  # (O + 1,) where outputs begin, one after the other
    offsets: IntArray  # (C + 1,) of what follows, by child of the separator
    before: IntArray
    states: IntArray
    after: IntArray
    target: IntArray


@inlined
def normalise(semiring: int, x: Array, start: int, n: int) -> tuple[float, float]:
    """Take a scale out of x; returns it, in powers of two (SUM) or as it is, and the span of x in nats."""
    zero = zero_of(semiring)
    highest, lowest = zero, math.inf
    for i in range(start, start + n):
        highest = max(highest, x[i])
        if x[i] > zero:
            lowest = min(lowest, x[i])
    if highest == zero:
        return 0.0, 0.0
    if semiring == SUM:
        _, exponent = math.frexp(highest)
        factor = math.ldexp(1.0, -exponent)
        for i in range(start, start + n):
            x[i] *= factor
        return float(exponent), math.log(highest) - math.log(lowest)
    # Rounded towards 0: a tiny negative number minus -1 would lose all of its digits.
    taken = float(math.floor(highest) if highest >= 0.0 else math.ceil(highest))
    for i in range(start, start + n):
        x[i] -= taken
    return taken, highest - lowest


@gathering
def too_narrow(join: Join, c: int, spans: Array, message_spans: Array) -> bool:
    """Whether the operands of a clique span more than SUM can hold."""
    span, first = 0.0, join.table_offsets[c]
    for o in range(first, first + join.n_operands[c]):
        span += message_spans[join.numbers[o]] if join.kinds[o] == MESSAGE else spans[o]
    return span > RANGE


@gathering
def climb(
    semiring: int,
    join: Join,
    c: int,
    first_tile: int,
    last_tile: int,
    bases: IntArray,
    store: Array,
    tile: Array,
    out: Array,
    start: int,
) -> None:
    """out[start:] (+)= the contribution of some tiles of clique c to its message."""
    n_tiles, n_rows, width = join.shape[c, 1], join.shape[c, 2], join.shape[c, 3]
    for t in range(first_tile, last_tile):
        product(semiring, join, c, t, store, bases, -1, tile)
        add_rows(semiring, n_rows, width, tile, out, start + t // n_tiles * width)


@gathering
def upward(
    semiring: int,
    join: Join,
    cliques: IntArray,
    bases: IntArray,
    spans: Array,
    store: Array,
    message_spans: Array,
    scales: Array,
    tile: Array,
) -> bool:
    """Messages of some cliques, children before parents, to their parents; True if the range was too narrow.

    Messages begin at 0 in store. spans (O,): of factors and evidence. message_spans, scales (C,): of messages.
    """
    for c in cliques:
        if semiring == SUM and too_narrow(join, c, spans, message_spans):
            return True
        start, stop = join.message_offsets[c], join.message_offsets[c + 1]
        for i in range(start, stop):
            store[i] = zero_of(semiring)
        climb(semiring, join, c, 0, join.shape[c, 0] * join.shape[c, 1], bases, store, tile, store, start)
        scales[c], message_spans[c] = normalise(semiring, store, start, stop - start)
    return False


@inlined
def divide(semiring: int, n: int, belief: Array, low: int, scale: float, store: Array, start: int) -> None:
    """store = belief / (store times its scale), 0 where both are 0."""
    factor = math.ldexp(1.0, -int(scale)) if semiring == SUM else 0.0
    for i in range(n):
        message = store[start + i]
        if semiring == SUM:
            store[start + i] = factor * (belief[low + i] / message) if message > 0.0 else 0.0
        else:
            store[start + i] = belief[low + i] - message - scale if message > -math.inf else -math.inf


@gathering
def sink(
    semiring: int,
    join: Join,
    reads: Reads,
    c: int,
    first_tile: int,
    last_tile: int,
    bases: IntArray,
    moves: IntArray,
    store: Array,
    tile: Array,
    sums: Array,
    beliefs: Array,
) -> None:
    """beliefs (+)= the contribution of some tiles of clique c to its outputs, which lie side by side at reads.rooms."""
    n_tiles, n_rows, width = join.shape[c, 1], join.shape[c, 2], join.shape[c, 3]
    first, last = join.table_offsets[c], join.table_offsets[c + 1]
    for t in range(first_tile, last_tile):
        product(semiring, join, c, t, store, bases, -1, tile)
        scale_rows(semiring, n_rows, width, store, join.message_offsets[c] + t // n_tiles * width, tile)
        for o in range(first, last):
            if reads.wanted[o]:
                room = reads.rooms[o] - reads.rooms[first] + moves[o]
                project(semiring, join, o, t, tile, beliefs, room, sums)


@gathering
def settle(
    semiring: int,
    join: Join,
    reads: Reads,
    c: int,
    beliefs: Array,
    store: Array,
    scales: Array,
    out_bases: IntArray,
    marginals: Array,
    cells: Array,
) -> None:
    """Derive from the outputs of clique c the d of its children, and marginals as probabilities."""
    first = join.table_offsets[c]
    for o in range(first, join.table_offsets[c + 1]):
        if not reads.wanted[o]:
            continue
        room, size = reads.rooms[o] - reads.rooms[first], reads.rooms[o + 1] - reads.rooms[o]
        if join.kinds[o] == MESSAGE:
            k = join.numbers[o]
            for i in range(reads.offsets[k], reads.offsets[k + 1]):
                read(semiring, reads, i, beliefs, room, marginals)
            divide(semiring, size, beliefs, room, scales[k], store, join.message_offsets[k])
        elif join.kinds[o] == VARIABLE:
            write(semiring, size, beliefs, room, marginals, out_bases[o])
        else:
            write(semiring, size, beliefs, room, cells, out_bases[o])


@inlined
def write(semiring: int, n: int, beliefs: Array, start: int, out: Array, target: int) -> None:
    """out = beliefs, as probabilities."""
    for i in range(n):
        out[at(target + i)] = beliefs[at(start + i)]
    if semiring != SUM:
        exponentiate(n, out, target)


@inlined
def exponentiate(n: int, x: Array, start: int) -> None:
    """Log-probabilities as probabilities, normalised since large logarithms lose digits; zeros if all are zero."""
    high, whole = -math.inf, 0.0
    for i in range(n):
        high = max(high, x[at(start + i)])
    for i in range(n):
        x[at(start + i)] = math.exp(x[at(start + i)] - high) if high > -math.inf else 0.0
        whole += x[at(start + i)]
    for i in range(n):
        x[at(start + i)] = x[at(start + i)] / whole if whole > 0.0 else 0.0


@gathering
def downward(
    semiring: int,
    join: Join,
    reads: Reads,
    cliques: IntArray,
    bases: IntArray,
    moves: IntArray,
    out_bases: IntArray,
    store: Array,
    scales: Array,
    beliefs: Array,
    marginals: Array,
    cells: Array,
    tile: Array,
    sums: Array,
) -> None:
    """Beliefs of some cliques, the last one first, and what is read off them; messages in store are replaced by d.

    moves (O,): what fixed variables add to bases. marginals: of free variables; cells: of factors, flat, both at
    out_bases (O,). beliefs: work space for the outputs of a clique.
    """
    for i in range(len(cliques) - 1, -1, -1):
        c = cliques[i]
        if not reads.needed[c]:
            continue
        for k in range(reads.rooms[join.table_offsets[c + 1]] - reads.rooms[join.table_offsets[c]]):
            beliefs[k] = zero_of(semiring)
        n_tiles = join.shape[c, 0] * join.shape[c, 1]
        sink(semiring, join, reads, c, 0, n_tiles, bases, moves, store, tile, sums, beliefs)
        settle(semiring, join, reads, c, beliefs, store, scales, out_bases, marginals, cells)


@inlined
def read(semiring: int, reads: Reads, i: int, beliefs: Array, start: int, marginals: Array) -> None:
    """The marginal of a variable from the belief of a separator: sums over the states before and after it."""
    n, after, target = reads.states[i], reads.after[i], reads.target[i]
    for k in range(n):
        value = zero_of(semiring)
        for before in range(reads.before[i]):
            value = total(semiring, after, beliefs, start + (before * n + k) * after, 1, value)
        marginals[target + k] = value
    if semiring != SUM:
        exponentiate(n, marginals, target)
