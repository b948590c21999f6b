"""The passes of message passing on a tree of cliques, in one of three semirings; tables of cliques are never stored.

With T_c = product of all operands of clique c (factors, messages of children, evidence), s its separator, r its
residual:

    m_c(s) = sum over r of T_c(s, r)                                                       upwards
    b_k(s') = sum over C_p minus s' of T_p d_p,      d_k = b_k / m_k for each child k of p    downwards

d of a root is 1 / Z of its component, so that every T_c d_c is a belief that sums to one, and so are its marginals b.
T is made anew in each pass: its operands are small and stay in the cache, which costs less than to write it to memory
and read it again, and the memory needed is that of the messages.

Scale. A message is divided by the power of two that brings its largest entry to [1/2, 1), in the log domains by a whole
number, so that sums of many scales are exact.

Range of SUM. If the operands of a clique span a ratio of e^a_i each (largest to smallest entry that is not zero) and
sum a_i <= RANGE, no entry of T can be lost; `upward` reports the first clique where this does not hold. Downwards
nothing is checked: what underflows there is a probability below 1e-300.

`store` holds all operands, flat, messages first; bases (O,) says where each begins.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from besag.arrays import Array, BoolArray, IntArray
from besag.kernels.compile import at, gathering, inlined
from besag.kernels.join_maps import MESSAGE, VARIABLE
from besag.kernels.semiring import MAX, SUM, one_of, zero_of

SHORTEST_RUN = 8  # below this single loads are faster than loops over runs
RANGE = 690.0  # nats; the smallest normal number is e^-708


class Reads(NamedTuple):
    """What the downward pass leaves: outputs, and marginals of variables that are read off separators."""

    needed: BoolArray  # (C,) whether the belief of a clique is needed
    wanted: BoolArray  # (O,) outputs
    rooms: IntArray  # (O + 1,) where outputs begin, one after the other
    offsets: IntArray  # (C + 1,) of what follows, by child of the separator
    before: IntArray
    states: IntArray
    after: IntArray
    target: IntArray


class Join(NamedTuple):
    """A tree of cliques, as the kernels see it."""

    shape: IntArray  # (C, 4) states of outer separator, outer residual, inner residual, inner separator
    parent: IntArray  # (C,)
    message_offsets: IntArray  # (C + 1,)
    table_offsets: IntArray  # (C + 1,)
    n_operands: IntArray  # (C,)
    kinds: IntArray  # (O,)
    numbers: IntArray  # (O,)
    outer_offsets: IntArray
    outer: IntArray
    inner_offsets: IntArray
    inner: IntArray  # int32
    place_offsets: IntArray
    place: IntArray  # int32
    step_offsets: IntArray
    step: IntArray  # int32
    runs: IntArray  # (O,) entries in a row of tile and table: contiguous in both, or minus those at one place


@gathering
def gather(n: int, x: Array, base: int, index: IntArray, start: int, y: Array) -> None:
    """y_i = x[base + index_i]."""
    for i in range(n):
        y[i] = x[at(base + index[at(start + i)])]


@gathering
def gather_product(
    semiring: int, n: int, x: Array, base: int, start: int, base2: int, start2: int, index: IntArray, y: Array
) -> None:
    """y = one operand times another."""
    for i in range(n):
        a, b = x[at(base + index[at(start + i)])], x[at(base2 + index[at(start2 + i)])]
        y[i] = a * b if semiring == SUM else a + b


@gathering
def multiply_gather(semiring: int, n: int, x: Array, base: int, index: IntArray, start: int, y: Array) -> None:
    """y = y times an operand."""
    for i in range(n):
        if semiring == SUM:
            y[i] *= x[at(base + index[at(start + i)])]
        else:
            y[i] += x[at(base + index[at(start + i)])]


@inlined
def set_run(n: int, run: int, x: Array, here: int, y: Array, start: int) -> None:
    """y = n entries of an operand, contiguous (run > 0) or all the same."""
    if run > 0:
        for i in range(n):
            y[at(start + i)] = x[at(here + i)]
    else:
        value = x[here]
        for i in range(n):
            y[at(start + i)] = value


@inlined
def multiply_run(semiring: int, n: int, run: int, x: Array, here: int, y: Array, start: int) -> None:
    """y = y times n entries of an operand, contiguous (run > 0) or all the same."""
    if run > 0:
        for i in range(n):
            if semiring == SUM:
                y[at(start + i)] *= x[at(here + i)]
            else:
                y[at(start + i)] += x[at(here + i)]
    else:
        value = x[here]
        for i in range(n):
            if semiring == SUM:
                y[at(start + i)] *= value
            else:
                y[at(start + i)] += value


@gathering
def multiply_runs(
    semiring: int, n: int, run: int, x: Array, base: int, index: IntArray, start: int, started: bool, y: Array
) -> None:
    """y = an operand in runs, or y times it where it has been started."""
    length = abs(run)
    for i in range(0, n, length):
        here = base + index[start + i]
        if started:
            multiply_run(semiring, length, run, x, here, y, i)
        else:
            set_run(length, run, x, here, y, i)


@gathering
def product(
    semiring: int, join: Join, c: int, t: int, store: Array, bases: IntArray, left_out: int, tile: Array
) -> None:
    """tile = the product of all operands of clique c but one, at tile t."""
    n = join.shape[c, 2] * join.shape[c, 3]
    first = join.table_offsets[c]
    held, held_base, held_start, started = False, 0, 0, False
    for o in range(first, first + join.n_operands[c]):
        if o == left_out:
            continue
        base, start, run = bases[o] + join.outer[join.outer_offsets[o] + t], join.inner_offsets[o], join.runs[o]
        if abs(run) >= SHORTEST_RUN:
            multiply_runs(semiring, n, run, store, base, join.inner, start, started, tile)
            started = True
        elif not held:
            held, held_base, held_start = True, base, start
        elif started:
            multiply_gather(semiring, n, store, base, join.inner, start, tile)
        else:
            gather_product(semiring, n, store, held_base, held_start, base, start, join.inner, tile)
            started, held_start = True, -1
    if held and held_start >= 0:
        if started:
            multiply_gather(semiring, n, store, held_base, join.inner, held_start, tile)
        else:
            gather(n, store, held_base, join.inner, held_start, tile)
    elif not started:
        for i in range(n):
            tile[i] = one_of(semiring)


@inlined
def add_rows(semiring: int, n_rows: int, width: int, tile: Array, store: Array, start: int) -> None:
    """store[start + j] (+)= sum over rows r of tile[r, j]."""
    if semiring == SUM and width >= 8:
        for r in range(n_rows):
            for j in range(width):
                store[at(start + j)] += tile[at(r * width + j)]
    elif semiring == MAX and width >= 8:
        for r in range(n_rows):
            for j in range(width):
                store[at(start + j)] = max(store[at(start + j)], tile[at(r * width + j)])
    else:
        for j in range(width):
            store[start + j] = total(semiring, n_rows, tile, j, width, store[start + j])


@inlined
def total(semiring: int, n: int, x: Array, start: int, stride: int, value: float) -> float:
    """value (+) sum of x[start + i stride]."""
    if semiring == SUM:
        for i in range(n):
            value += x[at(start + i * stride)]
        return value
    highest = max(value, highest_of(n, x, start, stride))
    if semiring == MAX or highest == -math.inf:
        return highest
    value = math.exp(value - highest)
    for i in range(n):
        value += math.exp(x[at(start + i * stride)] - highest)
    return highest + math.log(value)


@inlined
def highest_of(n: int, x: Array, start: int, stride: int) -> float:
    """The largest of x[start + i stride]; four at a time, so that no comparison waits for the one before."""
    a, b, c, d = -math.inf, -math.inf, -math.inf, -math.inf
    whole = n - n % 4
    for i in range(0, whole, 4):
        a = max(a, x[at(start + i * stride)])
        b = max(b, x[at(start + (i + 1) * stride)])
        c = max(c, x[at(start + (i + 2) * stride)])
        d = max(d, x[at(start + (i + 3) * stride)])
    for i in range(whole, n):
        a = max(a, x[at(start + i * stride)])
    return max(a, b, c, d)


@inlined
def normalise(semiring: int, x: Array, start: int, n: int) -> tuple[float, float]:
    """Takes a scale out of x; the scale, in powers of two (SUM) or as it is, and the span of x in nats."""
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
        return float(exponent), math.log(highest / lowest)
    taken = float(math.floor(highest))
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
    """out[start:] (+)= what some tiles of clique c add to its message."""
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
    """Messages of some cliques, children before parents, to their parents; True where the range was too narrow.

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


@gathering
def project(semiring: int, join: Join, o: int, t: int, tile: Array, out: Array, base: int, sums: Array) -> None:
    """out (+)= the sum of the tile onto the scope of output o."""
    first, places = join.place_offsets[o], join.place_offsets[o + 1] - join.place_offsets[o]
    low, steps = join.step_offsets[o], join.step_offsets[o + 1] - join.step_offsets[o]
    base += join.outer[join.outer_offsets[o] + t]
    inner, run = join.inner_offsets[o], join.runs[o]
    if semiring == SUM and run >= SHORTEST_RUN:
        for j in range(0, places, run):
            p = join.place[first + j]
            target = base + join.inner[inner + p]
            for k in range(steps):
                add_run(run, tile, p + join.step[low + k], out, target)
    elif semiring == SUM and run <= -SHORTEST_RUN:
        for j in range(places):
            p = join.place[first + j]
            value = 0.0
            for k in range(0, steps, -run):
                value += total(SUM, -run, tile, p + join.step[low + k], 1, 0.0)
            out[base + join.inner[inner + p]] += value
    elif semiring == SUM and places >= 8:
        add_steps(places, steps, tile, join.place, first, join.step, low, sums)
        for j in range(places):
            out[at(base + join.inner[at(inner + join.place[at(first + j)])])] += sums[j]
    else:
        for j in range(places):
            p = join.place[first + j]
            target = base + join.inner[inner + p]
            out[target] = total_steps(semiring, steps, tile, p, join.step, low, out[target])


@inlined
def add_run(n: int, x: Array, here: int, y: Array, start: int) -> None:
    """y += n entries of x."""
    for i in range(n):
        y[at(start + i)] += x[at(here + i)]


@gathering
def add_steps(
    places: int, steps: int, tile: Array, place: IntArray, first: int, step: IntArray, low: int, sums: Array
) -> None:
    """sums_j = sum over steps l of tile[place_j + step_l]."""
    for j in range(places):
        sums[j] = 0.0
    for k in range(steps):
        here = step[low + k]
        for j in range(places):
            sums[j] += tile[at(here + place[at(first + j)])]


@gathering
def total_steps(semiring: int, steps: int, tile: Array, place: int, step: IntArray, low: int, value: float) -> float:
    """value (+) the sum over steps l of tile[place + step_l]."""
    if semiring == SUM:
        for k in range(steps):
            value += tile[at(place + step[at(low + k)])]
        return value
    highest = value
    for k in range(steps):
        highest = max(highest, tile[place + step[low + k]])
    if highest == -math.inf:
        return highest
    value = math.exp(value - highest)
    for k in range(steps):
        value += math.exp(tile[place + step[low + k]] - highest)
    return highest + math.log(value)


@inlined
def scale_rows(semiring: int, n_rows: int, width: int, store: Array, start: int, tile: Array) -> None:
    """tile[r, j] (x)= store[start + j]."""
    for r in range(n_rows):
        for j in range(width):
            if semiring == SUM:
                tile[at(r * width + j)] *= store[at(start + j)]
            else:
                tile[at(r * width + j)] += store[at(start + j)]


@inlined
def divide(semiring: int, n: int, belief: Array, low: int, scale: float, store: Array, start: int) -> None:
    """store = belief / store with its scale, 0 where both are."""
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
    """beliefs (+)= what some tiles of clique c add to its outputs, which lie one after the other at reads.rooms."""
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
    """What follows from the outputs of clique c: d of its children, and marginals, as probabilities."""
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
        value = beliefs[at(start + i)]
        out[at(target + i)] = value if semiring == SUM else math.exp(value)


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
    out_bases (O,). beliefs: room for the outputs of a clique.
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
        marginals[target + k] = value if semiring == SUM else math.exp(value)
