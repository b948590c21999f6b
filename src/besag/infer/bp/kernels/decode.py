"""A labelling from min-sum messages: variables in turn take their best state given those that came before.

A factor all of whose other variables have a label says what its table says; one with none says what its message says;
in between it says the best of what its table and the messages of its free variables leave, given the labels. With
messages that have converged on a forest, and variables from the roots outwards, this is a labelling of least energy,
ties included.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from besag.arrays import AnyArray, Array, IntArray
from besag.infer.bp.kernels.general import MessageNumbers
from besag.infer.bp.kernels.links import MessageLinks
from besag.kernels.compile import inlined
from besag.kernels.factors import TABLE
from besag.model.structured.kernels.rules import level


@inlined
def best_given(
    offsets: IntArray,
    variables: IntArray,
    first: int,
    last: int,
    own: int,
    tables: AnyArray,
    start: int,
    gathered: AnyArray,
    codes: IntArray,
    digits: IntArray,
    best: Array,
) -> None:
    """What a factor on the links first to last says of each state along one of them, given the labels there are."""
    n_left = 1
    for e in range(first, last + 1):
        free = codes[variables[e]] < 0
        digits[e - first] = 0 if free else codes[variables[e]]
        n_left *= offsets[e + 1] - offsets[e] if free else 1
    for i in range(offsets[own + 1] - offsets[own]):
        best[i] = -math.inf
    for _ in range(n_left):
        entry, sent = 0, 0.0
        for e in range(first, last + 1):
            digit = digits[e - first]
            entry = entry * (offsets[e + 1] - offsets[e]) + digit
            if e != own and codes[variables[e]] < 0:
                sent += gathered[offsets[e] + digit]
        best[digits[own - first]] = max(best[digits[own - first]], tables[start + entry] + sent)
        for e in range(first, last + 1):
            if codes[variables[e]] < 0:
                digits[e - first] += 1
                if digits[e - first] < offsets[e + 1] - offsets[e]:
                    break
                digits[e - first] = 0


@inlined
def add_row(kind: int, axis: int, n: int, tables: AnyArray, start: int, other: int, room: Array) -> None:
    """What a structured factor says of each state of an axis, given the other one."""
    for i in range(n):
        room[i] += tables[start + (level(kind, i, other) if axis == 0 else level(kind, other, i))]


def make_decode() -> Callable[..., None]:
    """Codes (V,) from messages in the domain of MAX; codes are -1 before. digits (arity,), room and best (K,)."""

    def decode(
        links: MessageLinks,
        numbers: MessageNumbers,
        messages: AnyArray,
        gathered: AnyArray,
        order: IntArray,
        codes: IntArray,
        digits: IntArray,
        room: Array,
        best: Array,
    ) -> None:
        offsets, variables = links.message_offsets, links.variables
        for v in order:
            base, n = numbers.state_offsets[v], numbers.state_offsets[v + 1] - numbers.state_offsets[v]
            for i in range(n):
                room[i] = numbers.base[base + i]
            for m in range(links.first[v], links.first[v + 1]):
                own = links.links_of_variable[m]
                g = links.factor_of_link[own]
                first, last = links.link_offsets[g], links.link_offsets[g + 1] - 1
                labelled = 0
                for e in range(first, last + 1):
                    labelled += 1 if codes[variables[e]] >= 0 else 0
                if labelled == 0:
                    for i in range(n):
                        room[i] += messages[offsets[own] + i]
                elif numbers.kinds[g] != TABLE:
                    other = codes[variables[first + last - own]]
                    add_row(numbers.kinds[g], own - first, n, numbers.tables, numbers.starts[g], other, room)
                else:
                    tables, start = numbers.tables, numbers.starts[g]
                    best_given(offsets, variables, first, last, own, tables, start, gathered, codes, digits, best)
                    for i in range(n):
                        room[i] += best[i]
            chosen = 0
            for i in range(1, n):
                if room[i] > room[chosen]:
                    chosen = i
            codes[v] = chosen

    return decode
