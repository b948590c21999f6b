"""Messages in a forest of cliques, up to the roots and down again; tables are laid out as in `tables`.

    up      belief_c = tables of c times messages of its children;   message_c = belief_c, summed over the variables
            that its parent lacks, divided by its largest entry, whose log is scale_c
    down    belief_c times (belief_parent, summed over the variables that c lacks) / (message_c exp(scale_c))

Those of `besag.infer.junction.kernels.passes` make the tables of cliques anew, tile by tile, from a plan of index maps
that serves many questions. A forest here is calibrated once and then taken apart, so its tables are stored, the beliefs
being what is reduced next, and no maps are made.

A parent takes the messages of its children when its turn comes, so that cliques on different branches can be done side
by side. Each kernel does the cliques at start to stop of a list in which children come before parents.

Shapes: C cliques, T tables. separators: scopes shared with the parent; links: children of clique c are
children[first[c]:first[c + 1]]; placed: the same for the tables assigned to c; scales (C,); extra (C,): the log of what
was taken out of a belief whose entries became too small; lows (C,): ln of the least positive entry of a message.

Range. Linear numbers end at 1e-308, and a strict pass must not lose an entry that a later message may raise again. If
the least entries of all tables and messages of a clique, multiplied, stay above e^-SAFE, nothing can be lost. Otherwise
the product is formed a second time from ones and zeros, and an entry that should be positive but is 0, or nearly so,
ends the pass with the scale NaN; so does a message whose entries are too far apart for a quotient.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from besag.arrays import Array, IntArray
from besag.infer.join_graph.kernels.tables import (
    Scopes,
    Scratch,
    Walk,
    multiply,
    quotient,
    scratch_of,
    sum_out,
    walk_of,
)
from besag.kernels.compile import at, inlined

FAINT = 1e-150  # a belief whose largest entry is below this is rescaled
TINY = 1e-250  # numbers below this count as 0, so that no quotient overflows
SAFE = 500.0  # nats
LOST = 1e-290  # entries of a product below this may have lost some digits, or all

Lists = tuple[IntArray, IntArray]  # first, members


@inlined
def fill(values: Array, start: int, stop: int, number: float) -> None:
    """values[start:stop] = number."""
    for i in range(start, stop):
        values[at(i)] = number


@inlined
def highest(values: Array, start: int, stop: int) -> float:
    """The largest of values[start:stop]."""
    top = values[start]
    for i in range(start + 1, stop):
        top = max(top, values[at(i)])
    return top  # type: ignore[no-any-return]


@inlined
def put_product(
    log: int,
    cards: IntArray,
    scopes: Scopes,
    c: int,
    placed: Lists,
    tables: Scopes,
    values: Array,
    scratch: Scratch,
    beliefs: Array,
) -> None:
    """beliefs of c = the product of its tables."""
    fill(beliefs, scopes[2][c], scopes[2][c + 1], 0.0 if log else 1.0)
    for j in range(placed[0][c], placed[0][c + 1]):
        t = placed[1][j]
        walk = walk_of(
            cards, scopes[1], scopes[0][c], scopes[0][c + 1], tables[1], tables[0][t], tables[0][t + 1], scratch
        )
        multiply(log, walk, scratch, beliefs, scopes[2][c], values, tables[2][t])


@inlined
def put_faint_product(
    cards: IntArray,
    scopes: Scopes,
    c: int,
    placed: Lists,
    tables: Scopes,
    values: Array,
    scratch: Scratch,
    beliefs: Array,
) -> float:
    """beliefs of c = the product of its tables over its largest entry, by way of logarithms; returns that entry's log.

    Returns 0 if the product has no positive entry.
    """
    start, stop = scopes[2][c], scopes[2][c + 1]
    logs = np.zeros(stop - start, np.float64)
    for j in range(placed[0][c], placed[0][c + 1]):
        t = placed[1][j]
        own = np.empty(tables[2][t + 1] - tables[2][t], np.float64)
        for i in range(len(own)):
            x = values[tables[2][t] + i]
            own[i] = math.log(x) if x > 0.0 else -math.inf
        walk = walk_of(
            cards, scopes[1], scopes[0][c], scopes[0][c + 1], tables[1], tables[0][t], tables[0][t + 1], scratch
        )
        multiply(1, walk, scratch, logs, 0, own, 0)
    top = highest(logs, 0, len(logs))
    if top == -math.inf:
        return 0.0
    for i in range(len(logs)):
        beliefs[start + i] = math.exp(logs[i] - top)
    return top


@inlined
def rescale(log: int, values: Array, start: int, stop: int) -> float:
    """Divide by the largest entry, in place; returns its log, -inf if all entries are zero."""
    top = highest(values, start, stop)
    if log:
        if top > -math.inf:
            for i in range(start, stop):
                values[at(i)] -= top
        return top
    if top <= 0.0:
        return -math.inf
    for i in range(start, stop):
        values[at(i)] /= top
    return math.log(top)


@inlined
def low_of(values: Array, start: int, stop: int) -> float:
    """ln of the least positive entry relative to the largest."""
    high, low = 0.0, math.inf
    for i in range(start, stop):
        x = values[at(i)]
        high = max(high, x)
        low = min(low, x if x > 0.0 else math.inf)
    return math.log(low / high) if high > 0.0 and low > 0.0 else 0.0


@inlined
def multiply_signs(walk: Walk, scratch: Scratch, signs: Array, values: Array, start: int, stop: int) -> None:
    """signs times 1 where values[start:stop] are positive, times 0 elsewhere."""
    own = np.empty(stop - start, np.float64)
    for i in range(stop - start):
        own[i] = 1.0 if values[start + i] > 0.0 else 0.0
    multiply(0, walk, scratch, signs, 0, own, 0)


@inlined
def loses(
    cards: IntArray,
    scopes: Scopes,
    c: int,
    separators: Scopes,
    links: Lists,
    messages: Array,
    placed: Lists,
    tables: Scopes,
    values: Array,
    scratch: Scratch,
    beliefs: Array,
) -> bool:
    """Whether an entry of the belief of c should be positive but is 0, or nearly so."""
    start, own, begin, end = scopes[2][c], scopes[1], scopes[0][c], scopes[0][c + 1]
    signs = np.ones(scopes[2][c + 1] - start, np.float64)
    for j in range(placed[0][c], placed[0][c + 1]):
        t = placed[1][j]
        walk = walk_of(cards, own, begin, end, tables[1], tables[0][t], tables[0][t + 1], scratch)
        multiply_signs(walk, scratch, signs, values, tables[2][t], tables[2][t + 1])
    for j in range(links[0][c], links[0][c + 1]):
        d = links[1][j]
        walk = walk_of(cards, own, begin, end, separators[1], separators[0][d], separators[0][d + 1], scratch)
        multiply_signs(walk, scratch, signs, messages, separators[2][d], separators[2][d + 1])
    lost = False
    for i in range(len(signs)):
        lost = lost or (signs[i] > 0.0 and beliefs[start + i] < LOST)
    return lost


def make_up(log: int) -> Callable[..., None]:
    """Kernel: products and messages to the parents.

    It ends with scale -inf at a product without a positive entry and, if strict, with NaN if linear numbers fall short.
    """

    def up(
        cards: IntArray,
        scopes: Scopes,
        separators: Scopes,
        links: Lists,
        placed: Lists,
        tables: Scopes,
        values: Array,
        cliques: IntArray,
        start: int,
        stop: int,
        strict: bool,
        beliefs: Array,
        messages: Array,
        scales: Array,
        extra: Array,
        lows: Array,
    ) -> None:
        scratch = scratch_of()
        for i in range(start, stop):
            c = cliques[i]
            low, high, least = scopes[2][c], scopes[2][c + 1], 0.0
            put_product(log, cards, scopes, c, placed, tables, values, scratch, beliefs)
            if not log and placed[0][c] < placed[0][c + 1] and highest(beliefs, low, high) <= FAINT:
                extra[c] = put_faint_product(cards, scopes, c, placed, tables, values, scratch, beliefs)
            own, begin, end = scopes[1], scopes[0][c], scopes[0][c + 1]
            for j in range(links[0][c], links[0][c + 1]):
                d = links[1][j]
                walk = walk_of(cards, own, begin, end, separators[1], separators[0][d], separators[0][d + 1], scratch)
                multiply(log, walk, scratch, beliefs, low, messages, separators[2][d])
                least += lows[d]
            if strict and not log:
                for j in range(placed[0][c], placed[0][c + 1]):
                    least += low_of(values, tables[2][placed[1][j]], tables[2][placed[1][j] + 1])
                if least < -SAFE and loses(
                    cards, scopes, c, separators, links, messages, placed, tables, values, scratch, beliefs
                ):
                    scales[c] = math.nan
                    return
            if not log and 0.0 < highest(beliefs, low, high) <= FAINT:
                extra[c] += rescale(0, beliefs, low, high)
            first, size = separators[2][c], separators[2][c + 1] - separators[2][c]
            walk = walk_of(cards, own, begin, end, separators[1], separators[0][c], separators[0][c + 1], scratch)
            sum_out(log, walk, scratch, beliefs, low, size, messages, first)
            scales[c] = rescale(log, messages, first, first + size)
            if scales[c] == -math.inf:
                return
            if strict and not log:
                lows[c] = low_of(messages, first, first + size)
                if lows[c] < -SAFE:
                    scales[c] = math.nan
                    return

    return up


def make_down(log: int) -> Callable[..., None]:
    """Kernel: messages from the parents, which turn beliefs into marginals."""

    def down(
        cards: IntArray,
        scopes: Scopes,
        separators: Scopes,
        parents: IntArray,
        cliques: IntArray,
        start: int,
        stop: int,
        messages: Array,
        scales: Array,
        beliefs: Array,
    ) -> None:
        scratch = scratch_of()
        for i in range(stop - 1, start - 1, -1):
            c = cliques[i]
            p, first, size = parents[c], separators[2][c], separators[2][c + 1] - separators[2][c]
            shared, begin, end = separators[1], separators[0][c], separators[0][c + 1]
            change = np.full(size, 0.0 if log else 1.0)
            if p >= 0:
                walk = walk_of(cards, scopes[1], scopes[0][p], scopes[0][p + 1], shared, begin, end, scratch)
                sum_out(log, walk, scratch, beliefs, scopes[2][p], size, change, 0)
                for j in range(size):
                    change[j] = quotient(log, TINY, change[j], messages[at(first + j)])
            by = -scales[c] if log else math.exp(-scales[c])
            for j in range(size):
                change[j] = change[j] + by if log else change[j] * by
            walk = walk_of(cards, scopes[1], scopes[0][c], scopes[0][c + 1], shared, begin, end, scratch)
            multiply(log, walk, scratch, beliefs, scopes[2][c], change, 0)

    return down
