"""Messages that are kept: when evidence changes, only what depends on it is computed again.

Every edge of the tree has two messages over its separator,

    up(c)    = sum over C_c - s_c of T_c                                     to the parent
    down(c)  = sum over C_p - s_c of T_p down(p) / up(c),    p the parent    from it

where T is the product of all operands, as in `passes`; the division is done by leaving the operand out, since what is
zero now may be positive under the next evidence. The marginal of a variable is read off up(c) down(c) of a separator
that holds it, or off the belief T_c down(c) of its clique. All messages have a largest entry of one; what is taken out
of up(c) is its scale, and log Z is the sum of all scales.

Messages are made from the tiles that `passes` uses; only the order, by demand instead of a full pass, is its own.

Which messages are current. `clock[NOW]` counts changes of evidence, `when[c, BELOW]` those at or below clique c. So
up(c) is current if BELOW is what it was at its last check (UP_SEEN), and down(c) if NOW - BELOW, the changes outside,
is (DOWN_SEEN). Any other message is checked: it is computed again if the evidence of its clique (TOUCHED) or a message
that it depends on (UP_MADE, DOWN_MADE) has changed since its last check (UP_CHECKED, DOWN_CHECKED). If it comes out as
before it counts as unchanged, and what depends on it is kept: evidence that separates stops a change from spreading.

Shapes: V variables, C cliques, O small tables, D states that are left of the free variables.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from besag.arrays import Array, IntArray
from besag.infer.junction.kernels.maps import MESSAGE, VARIABLE
from besag.infer.junction.kernels.passes import RANGE
from besag.infer.junction.kernels.tiles import Join, add_rows, product, project, scale_rows, total
from besag.kernels.compile import gathering, inlined
from besag.kernels.semiring import SUM, zero_of

BELOW, TOUCHED, UP_SEEN, UP_CHECKED, UP_MADE, DOWN_SEEN, DOWN_CHECKED, DOWN_MADE, IMPOSSIBLE = range(9)
N_STAMPS = 9
NOW, N_MADE, N_IMPOSSIBLE = range(3)
TREE_OPERAND, TREE_ROOT = range(2)
IN_SEPARATOR, CLIQUE, OUTPUT, STATES_BEFORE, STATES_AFTER = range(5)
EVERYTHING, NOTHING = -2, -1  # what may be asked for instead of a variable


class Places(NamedTuple):
    """Where things are."""

    bases: IntArray  # (O,) where tables begin in store
    tree: IntArray  # (C, 2) the small table of up(c) at the parent; the root above c
    readings: IntArray  # (V, 5) 1 if the variable is in a separator; the separator's child, or the clique; the small
    # table that is the output of the clique; entries of the separator's axes before and after the variable
    digit_offsets: IntArray  # (V + 1,)


class Held(NamedTuple):
    """What is kept between questions, and work space."""

    store: Array  # up, at message_offsets, then evidence, then tables
    down: Array  # at message_offsets
    spans: Array  # (O,) of tables and evidence
    up_spans: Array  # (C,)
    down_spans: Array  # (C,)
    scales: Array  # (C,) logarithms of what was taken out of up
    when: IntArray  # (C, N_STAMPS)
    clock: IntArray  # (3,) changes of evidence; messages made; components whose Z is zero
    marginals: Array  # (D,)
    tile: Array
    sums: Array
    fresh: Array  # a message in the making
    stack: IntArray  # (3 C,)
    path: IntArray  # (C,)


@gathering
def touch(join: Join, changed: IntArray, n_changed: int, held: Held) -> None:
    """Record that the evidence of some cliques has changed."""
    for i in range(n_changed):
        held.clock[NOW] += 1
        c = changed[i]
        held.when[c, TOUCHED] = held.clock[NOW]
        while c >= 0:
            held.when[c, BELOW] += 1
            c = join.parent[c]


@inlined
def up_is_right(held: Held, c: int) -> bool:
    """Whether up(c) needs no check."""
    return bool(held.when[c, UP_SEEN] == held.when[c, BELOW])


@inlined
def down_is_right(held: Held, c: int) -> bool:
    """Whether down(c) needs no check."""
    return bool(held.when[c, DOWN_SEEN] == held.clock[NOW] - held.when[c, BELOW])


@gathering
def push_children(join: Join, c: int, but: int, held: Held, n: int) -> int:
    """Put on the stack those children of c, but one, whose messages need a check."""
    first = join.table_offsets[c]
    for o in range(first, first + join.n_operands[c]):
        k = join.numbers[o]
        if join.kinds[o] == MESSAGE and k != but and not up_is_right(held, k):
            held.stack[n] = k
            n += 1
    return n


@gathering
def way_to(join: Join, places: Places, asked: int, held: Held) -> tuple[int, int]:
    """The cliques that the marginal of one variable needs, on the stack (up) and the path (down); how many of each."""
    c, n, n_path = places.readings[asked, CLIQUE], 0, 0
    if places.readings[asked, IN_SEPARATOR] == 0:
        n = push_children(join, c, -1, held, n)
    else:
        held.stack[n] = c
        n += 1
    while join.parent[c] >= 0 and not down_is_right(held, c):
        held.path[n_path] = c
        n_path += 1
        n = push_children(join, join.parent[c], c, held, n)
        c = join.parent[c]
    return n, n_path


@gathering
def way_to_all(join: Join, asked: int, held: Held) -> tuple[int, int]:
    """The same for log Z, which needs all roots, or for everything."""
    n, n_path = 0, 0
    for c in range(len(join.parent)):
        if join.parent[c] < 0:
            held.stack[n] = c
            n += 1
        elif asked == EVERYTHING:
            held.path[n_path] = c
            n_path += 1
    return n, n_path


@gathering
def made_since(join: Join, c: int, but: int, held: Held, then: int) -> bool:
    """Whether evidence at c, or a message to it from any child but one, has changed since `then`."""
    if held.when[c, TOUCHED] > then:
        return True
    first = join.table_offsets[c]
    for o in range(first, first + join.n_operands[c]):
        k = join.numbers[o]
        if join.kinds[o] == MESSAGE and k != but and held.when[k, UP_MADE] > then:
            return True
    return False


@gathering
def too_wide(semiring: int, join: Join, c: int, left_out: int, span: float, held: Held) -> bool:
    """Whether the operands of c, but one, and another of this span together exceed the range of SUM."""
    first = join.table_offsets[c]
    for o in range(first, first + join.n_operands[c]):
        if o != left_out:
            span += held.up_spans[join.numbers[o]] if join.kinds[o] == MESSAGE else held.spans[o]
    return semiring == SUM and span > RANGE


@inlined
def settle(semiring: int, n: int, x: Array) -> tuple[float, float]:
    """Divide x by its largest entry; returns the logarithm of that, and the span of x."""
    zero = zero_of(semiring)
    highest, lowest = zero, math.inf
    for i in range(n):
        highest = max(highest, x[i])
        if x[i] > zero:
            lowest = min(lowest, x[i])
    if highest == zero:
        return 0.0, 0.0
    if semiring != SUM:
        for i in range(n):
            x[i] -= highest
        return highest, highest - lowest
    for i in range(n):
        x[i] /= highest
    return math.log(highest), math.log(highest / lowest)


@inlined
def put(n: int, x: Array, y: Array, start: int) -> bool:
    """y[start:] = x; returns whether that changed anything."""
    differs = False
    for i in range(n):
        differs = differs or y[start + i] != x[i]
    if differs:
        for i in range(n):
            y[start + i] = x[i]
    return differs


@gathering
def make_up(semiring: int, join: Join, places: Places, c: int, held: Held) -> bool:
    """Compute up(c); returns whether it has changed."""
    n_tiles, n_rows, width = join.shape[c, 1], join.shape[c, 2], join.shape[c, 3]
    size = join.shape[c, 0] * width
    for i in range(size):
        held.fresh[i] = zero_of(semiring)
    for s in range(join.shape[c, 0]):
        for r in range(n_tiles):
            product(semiring, join, c, s * n_tiles + r, held.store, places.bases, -1, held.tile)
            add_rows(semiring, n_rows, width, held.tile, held.fresh, s * width)
    held.scales[c], held.up_spans[c] = settle(semiring, size, held.fresh)
    held.clock[N_MADE] += 1
    return put(size, held.fresh, held.store, join.message_offsets[c])


@gathering
def make_down(semiring: int, join: Join, places: Places, c: int, held: Held) -> bool:
    """Compute down(c); returns whether it has changed."""
    p, o = join.parent[c], places.tree[c, TREE_OPERAND]
    size = join.message_offsets[c + 1] - join.message_offsets[c]
    for i in range(size):
        held.fresh[i] = zero_of(semiring)
    for t in range(join.shape[p, 0] * join.shape[p, 1]):
        weigh(semiring, join, places, p, t, o, held)
        project(semiring, join, o, t, held.tile, held.fresh, 0, held.sums)
    _, held.down_spans[c] = settle(semiring, size, held.fresh)
    held.clock[N_MADE] += 1
    return put(size, held.fresh, held.down, join.message_offsets[c])


@gathering
def weigh(semiring: int, join: Join, places: Places, c: int, t: int, left_out: int, held: Held) -> None:
    """tile = the operands of c, but one, and down(c)."""
    product(semiring, join, c, t, held.store, places.bases, left_out, held.tile)
    if join.parent[c] >= 0:
        n_rows, width = join.shape[c, 2], join.shape[c, 3]
        start = join.message_offsets[c] + t // join.shape[c, 1] * width
        scale_rows(semiring, n_rows, width, held.down, start, held.tile)


@gathering
def rise(semiring: int, join: Join, places: Places, n: int, held: Held) -> bool:
    """Bring up(c) up to date for the n cliques on the stack; True if the range was too narrow."""
    while n > 0:
        c = held.stack[n - 1]
        if up_is_right(held, c):
            n -= 1
            continue
        above = push_children(join, c, -1, held, n)
        if above > n:
            n = above
            continue
        if made_since(join, c, -1, held, held.when[c, UP_CHECKED]):
            if too_wide(semiring, join, c, -1, 0.0, held):
                return True
            if make_up(semiring, join, places, c, held):
                held.when[c, UP_MADE] = held.clock[NOW]
        held.when[c, UP_CHECKED] = held.clock[NOW]
        held.when[c, UP_SEEN] = held.when[c, BELOW]
        n -= 1
    return False


@gathering
def fall(semiring: int, join: Join, places: Places, n_path: int, held: Held) -> bool:
    """Bring down(c) up to date along the path, from its end; True if the range was too narrow."""
    for i in range(n_path - 1, -1, -1):
        c = held.path[i]
        if down_is_right(held, c):
            continue
        p, then = join.parent[c], held.when[c, DOWN_CHECKED]
        from_above = join.parent[p] >= 0
        if made_since(join, p, c, held, then) or (from_above and held.when[p, DOWN_MADE] > then):
            span = held.down_spans[p] if from_above else 0.0
            if too_wide(semiring, join, p, places.tree[c, TREE_OPERAND], span, held):
                return True
            if make_down(semiring, join, places, c, held):
                held.when[c, DOWN_MADE] = held.clock[NOW]
        held.when[c, DOWN_CHECKED] = held.clock[NOW]
        held.when[c, DOWN_SEEN] = held.clock[NOW] - held.when[c, BELOW]
    return False


@gathering
def read_separator(semiring: int, join: Join, places: Places, v: int, held: Held) -> bool:
    """The marginal of v as sums of up(c) down(c); True if the range was too narrow."""
    c, before, after = places.readings[v, CLIQUE], places.readings[v, STATES_BEFORE], places.readings[v, STATES_AFTER]
    if semiring == SUM and held.up_spans[c] + held.down_spans[c] > RANGE:
        return True
    start, first = join.message_offsets[c], places.digit_offsets[v]
    for i in range(join.message_offsets[c + 1] - start):
        up, down = held.store[start + i], held.down[start + i]
        held.fresh[i] = up * down if semiring == SUM else up + down
    n = places.digit_offsets[v + 1] - first
    for k in range(n):
        value = zero_of(semiring)
        for i in range(before):
            value = total(semiring, after, held.fresh, (i * n + k) * after, 1, value)
        held.marginals[first + k] = value
    return False


@gathering
def read_clique(semiring: int, join: Join, places: Places, c: int, first: int, last: int, held: Held) -> bool:
    """Sums of T_c down(c) for some outputs; True if the range was too narrow."""
    if first == last:
        return False
    if too_wide(semiring, join, c, -1, held.down_spans[c] if join.parent[c] >= 0 else 0.0, held):
        return True
    for t in range(join.shape[c, 0] * join.shape[c, 1]):
        weigh(semiring, join, places, c, t, -1, held)
        for o in range(first, last):
            if join.kinds[o] == VARIABLE:
                base = places.digit_offsets[join.numbers[o]]
                project(semiring, join, o, t, held.tile, held.marginals, base, held.sums)
    return False


@inlined
def share_out(semiring: int, start: int, stop: int, x: Array) -> bool:
    """Normalise x[start:stop] to probabilities; False if it is all zero, and left so."""
    high, z = -math.inf, 0.0
    for i in range(start, stop):
        high = max(high, x[i])
    for i in range(start, stop):
        if semiring != SUM:
            x[i] = math.exp(x[i] - high) if high > -math.inf else 0.0
        z += x[i]
    for i in range(start, stop):
        x[i] = x[i] / z if z > 0.0 else 0.0
    return z > 0.0


@inlined
def mark(held: Held, root: int, impossible: bool) -> None:
    """Record whether a component has Z = 0."""
    held.clock[N_IMPOSSIBLE] += int(impossible) - held.when[root, IMPOSSIBLE]
    held.when[root, IMPOSSIBLE] = int(impossible)


@gathering
def read_off(semiring: int, join: Join, places: Places, asked: int, held: Held) -> bool:
    """Put what was asked for into marginals, not yet normalised; True if the range was too narrow."""
    v, last = (asked, asked + 1) if asked >= 0 else (0, len(places.readings))
    for i in range(places.digit_offsets[v], places.digit_offsets[last]):
        held.marginals[i] = zero_of(semiring)
    for u in range(v, last):
        if places.readings[u, IN_SEPARATOR] == 1 and read_separator(semiring, join, places, u, held):
            return True
    for c in range(places.readings[v, CLIQUE] if asked >= 0 else 0, len(join.parent)):
        first, stop = join.table_offsets[c] + join.n_operands[c], join.table_offsets[c + 1]
        if asked >= 0:
            first = places.readings[v, OUTPUT]
            stop = first + 1 - places.readings[v, IN_SEPARATOR]
        if read_clique(semiring, join, places, c, first, stop, held):
            return True
        if asked >= 0:
            break
    return False


def make_ask(semiring: int) -> Callable[..., bool]:
    """Kernel: take in changed evidence at some cliques, and answer for a variable, for NOTHING (log Z) or EVERYTHING.

    marginals has the answer, clock whether there is one. True if the range was too narrow: then nothing is valid.
    """

    def ask(join: Join, places: Places, changed: IntArray, n_changed: int, asked: int, held: Held) -> bool:
        touch(join, changed, n_changed, held)
        n, n_path = way_to(join, places, asked, held) if asked >= 0 else way_to_all(join, asked, held)
        own_root = places.tree[places.readings[asked, CLIQUE], TREE_ROOT] if asked >= 0 else -1
        for i in range(n_changed):
            root = places.tree[changed[i], TREE_ROOT]
            if asked >= 0 and root != own_root:
                held.stack[n] = root
                n += 1
        if rise(semiring, join, places, n, held) or fall(semiring, join, places, n_path, held):
            return True
        for i in range(n_changed):
            root = places.tree[changed[i], TREE_ROOT]
            if root != own_root:
                mark(held, root, held.store[join.message_offsets[root]] == zero_of(semiring))
        if asked == NOTHING:
            return False
        if read_off(semiring, join, places, asked, held):
            return True
        v, last = (asked, asked + 1) if asked >= 0 else (0, len(places.readings))
        for u in range(v, last):
            possible = share_out(semiring, places.digit_offsets[u], places.digit_offsets[u + 1], held.marginals)
            if asked >= 0:
                mark(held, own_root, not possible)
        return False

    return ask
