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

RANGE = 690.0  # nats; the smallest normal number is e^-708


class Reads(NamedTuple):
    """What the downward pass leaves: outputs, and marginals of variables that are read off separators."""

    needed: BoolArray  # (C,) whether the belief of a clique is needed
    wanted: BoolArray  # (O,) outputs
    offsets: IntArray  # (C + 1,) of what follows, by child of the separator
    before: IntArray
    count: IntArray
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


@gathering
def product(
    semiring: int, join: Join, c: int, t: int, store: Array, bases: IntArray, left_out: int, tile: Array
) -> None:
    """tile = the product of all operands of clique c but one, at tile t."""
    n = join.shape[c, 2] * join.shape[c, 3]
    first = join.table_offsets[c]
    last = first + join.n_operands[c]
    held = -1
    started = False
    for o in range(first, last):
        if o == left_out:
            continue
        base, start = bases[o] + join.outer[join.outer_offsets[o] + t], join.inner_offsets[o]
        if started:
            multiply_gather(semiring, n, store, base, join.inner, start, tile)
        elif held >= 0:
            base2, start2 = bases[held] + join.outer[join.outer_offsets[held] + t], join.inner_offsets[held]
            gather_product(semiring, n, store, base2, start2, base, start, join.inner, tile)
            started = True
        else:
            held = o
    if not started:
        if held >= 0:
            base, start = bases[held] + join.outer[join.outer_offsets[held] + t], join.inner_offsets[held]
            gather(n, store, base, join.inner, start, tile)
        else:
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
    highest = value
    for i in range(n):
        highest = max(highest, x[at(start + i * stride)])
    if semiring == MAX or highest == -math.inf:
        return highest
    value = math.exp(value - highest)
    for i in range(n):
        value += math.exp(x[at(start + i * stride)] - highest)
    return highest + math.log(value)


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
def upward(
    semiring: int,
    join: Join,
    first_clique: int,
    last_clique: int,
    bases: IntArray,
    table_spans: Array,
    store: Array,
    message_spans: Array,
    scales: Array,
    tile: Array,
) -> bool:
    """Messages of some cliques to their parents; True where the range was too narrow.

    Messages begin at 0 in store. table_spans (O,): of factors and evidence. message_spans, scales (C,): of messages.
    """
    for c in range(first_clique, last_clique):
        n_tiles, n_rows, width = join.shape[c, 1], join.shape[c, 2], join.shape[c, 3]
        start = join.message_offsets[c]
        span = 0.0
        first = join.table_offsets[c]
        for o in range(first, first + join.n_operands[c]):
            if join.kinds[o] == MESSAGE:
                span += message_spans[join.numbers[o]]
            else:
                span += table_spans[o]
        if semiring == SUM and span > RANGE:
            return True
        size = join.shape[c, 0] * width
        for i in range(start, start + size):
            store[i] = zero_of(semiring)
        for s in range(join.shape[c, 0]):
            for r in range(n_tiles):
                product(semiring, join, c, s * n_tiles + r, store, bases, -1, tile)
                add_rows(semiring, n_rows, width, tile, store, start + s * width)
        scales[c], message_spans[c] = normalise(semiring, store, start, size)
    return False


@gathering
def project(semiring: int, join: Join, o: int, t: int, tile: Array, out: Array, base: int, sums: Array) -> None:
    """out (+)= the sum of the tile onto the scope of output o."""
    first, places = join.place_offsets[o], join.place_offsets[o + 1] - join.place_offsets[o]
    low, steps = join.step_offsets[o], join.step_offsets[o + 1] - join.step_offsets[o]
    base += join.outer[join.outer_offsets[o] + t]
    inner = join.inner_offsets[o]
    if semiring == SUM and places >= 8:
        add_steps(places, steps, tile, join.place, first, join.step, low, sums)
        for j in range(places):
            out[at(base + join.inner[at(inner + join.place[at(first + j)])])] += sums[j]
        return
    for j in range(places):
        p = join.place[first + j]
        target = base + join.inner[inner + p]
        out[target] = total_steps(semiring, steps, tile, p, join.step, low, out[target])


@gathering
def add_steps(
    places: int, steps: int, tile: Array, place: IntArray, first: int, step: IntArray, low: int, sums: Array
) -> None:
    """sums_j = sum over steps l of tile[place_j + step_l]."""
    for j in range(places):
        sums[j] = 0.0
    for l in range(steps):
        here = step[low + l]
        for j in range(places):
            sums[j] += tile[at(here + place[at(first + j)])]


@gathering
def total_steps(semiring: int, steps: int, tile: Array, place: int, step: IntArray, low: int, value: float) -> float:
    """value (+) the sum over steps l of tile[place + step_l]."""
    if semiring == SUM:
        for l in range(steps):
            value += tile[at(place + step[at(low + l)])]
        return value
    highest = value
    for l in range(steps):
        highest = max(highest, tile[place + step[low + l]])
    if highest == -math.inf:
        return highest
    value = math.exp(value - highest)
    for l in range(steps):
        value += math.exp(tile[place + step[low + l]] - highest)
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
def downward(
    semiring: int,
    join: Join,
    reads: Reads,
    bases: IntArray,
    out_bases: IntArray,
    store: Array,
    scales: Array,
    beliefs: Array,
    marginals: Array,
    cells: Array,
    tile: Array,
    sums: Array,
) -> None:
    """Beliefs and what is read off them; messages in store are replaced by d, those of roots have been.

    beliefs: work space for the separators of all children of a clique. marginals: of free variables, zeros of the
    semiring to begin with; cells: of factors, flat, alike.
    """
    for c in range(len(join.parent) - 1, -1, -1):
        if not reads.needed[c]:
            continue
        n_tiles, n_rows, width = join.shape[c, 1], join.shape[c, 2], join.shape[c, 3]
        start = join.message_offsets[c]
        first, last = join.table_offsets[c], join.table_offsets[c + 1]
        room = 0
        for o in range(first, last):
            if reads.wanted[o] and join.kinds[o] == MESSAGE:
                room += join.message_offsets[join.numbers[o] + 1] - join.message_offsets[join.numbers[o]]
        for i in range(room):
            beliefs[i] = zero_of(semiring)
        for s in range(join.shape[c, 0]):
            for r in range(n_tiles):
                t = s * n_tiles + r
                product(semiring, join, c, t, store, bases, -1, tile)
                scale_rows(semiring, n_rows, width, store, start + s * width, tile)
                room = 0
                for o in range(first, last):
                    if not reads.wanted[o]:
                        continue
                    if join.kinds[o] == MESSAGE:
                        project(semiring, join, o, t, tile, beliefs, room, sums)
                        room += join.message_offsets[join.numbers[o] + 1] - join.message_offsets[join.numbers[o]]
                    elif join.kinds[o] == VARIABLE:
                        project(semiring, join, o, t, tile, marginals, out_bases[o], sums)
                    else:
                        project(semiring, join, o, t, tile, cells, out_bases[o], sums)
        room = 0
        for o in range(first, last):
            if reads.wanted[o] and join.kinds[o] == MESSAGE:
                k = join.numbers[o]
                size = join.message_offsets[k + 1] - join.message_offsets[k]
                divide(semiring, size, beliefs, room, scales[k], store, join.message_offsets[k])
                for i in range(reads.offsets[k], reads.offsets[k + 1]):
                    read(semiring, reads, i, beliefs, room, marginals)
                room += size


@inlined
def read(semiring: int, reads: Reads, i: int, beliefs: Array, start: int, marginals: Array) -> None:
    """The marginal of a variable from the belief of a separator: sums over the states before and after it."""
    n, after, target = reads.count[i], reads.after[i], reads.target[i]
    for before in range(reads.before[i]):
        for k in range(n):
            low = start + (before * n + k) * after
            marginals[target + k] = total(semiring, after, beliefs, low, 1, marginals[target + k])
