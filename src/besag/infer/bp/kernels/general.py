"""Belief propagation for factors of any arity, variables of any cardinality, and all three semirings.

    q_{v->f}(y_v) = base_v(y_v) (x) prod_{f' != f} m_{f'->v}(y_v)                                      002 (34), (42)
    m_{f->v}(y_v) = (+) over y_{S_f minus v} of T_f(y_{S_f}) (x) prod_{u != v} q_{u->f}(y_u)           002 (35), (43)

    base (S,)    messages, gathered (M,): along the links, see `links`    tables (L',) in the domain of the semiring

A table is read row by row, a row being all states of its last variable at one state of the others: what the others
send is one number for the row, so that the inner loops are a sum of products and a scaled addition. Messages are
scaled so that the largest entry is one. In SUM a vector of zeros has lost its range, since every state has support
(`besag.infer.prepared`); in the log domains it belongs to a part of a union that has no labelling, and stays as it is.
There messages that grow without end, from step to step, stop at a floor: -inf would rule out states that have support.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from besag.arrays import AnyArray, IntArray
from besag.infer.bp.kernels.links import MessageLinks
from besag.kernels.compile import inlined
from besag.kernels.factors import TABLE
from besag.kernels.semiring import SUM, one_of, plus, times, zero_of
from besag.model.structured.kernels.rules import send_structured

FLOOR, SINGLE_FLOOR = -1e303, -1e33  # log messages; tables reach to 1e300 and 1e30, and sums of some of both are finite


class MessageNumbers(NamedTuple):
    """A row of a problem in the domain of a semiring.

    Kernels take the arrays out of it first: a tuple that is handed to an inlined helper counts references each time.
    """

    base: AnyArray  # (S,)
    state_offsets: IntArray  # (V + 1,)
    tables: AnyArray  # (L',) levels in the place of the numbers of structured factors
    starts: IntArray  # (G,): where the table of each linked factor begins
    kinds: IntArray  # (G,)


@inlined
def lift(semiring: int, x: AnyArray, start: int, n: int) -> bool:
    """Scale x so that its largest entry is one, in the log domains above the floor; False where all are zero."""
    high = x[start]
    for i in range(1, n):
        high = max(high, x[start + i])
    if high == zero_of(semiring):
        return False
    floor = SINGLE_FLOOR if x.itemsize == 4 else FLOOR
    for i in range(n):
        if semiring == SUM:
            x[start + i] = x[start + i] / high
        elif x[start + i] > -math.inf:
            x[start + i] = max(x[start + i] - high, floor)
    return True


@inlined
def gather_variable(
    semiring: int,
    first: IntArray,
    links_of_variable: IntArray,
    offsets: IntArray,
    base: AnyArray,
    start: int,
    messages: AnyArray,
    v: int,
    gathered: AnyArray,
    room: AnyArray,
) -> bool:
    """q along all links of a variable whose base begins at start; False where one has lost its range. room (K,)."""
    low, high = first[v], first[v + 1]
    fine = True
    if low == high:
        return fine
    n = offsets[links_of_variable[low] + 1] - offsets[links_of_variable[low]]
    for i in range(n):
        room[i] = base[start + i]
    for m in range(low, high):
        e = offsets[links_of_variable[m]]
        for i in range(n):
            gathered[e + i] = room[i]
            room[i] = times(semiring, room[i], messages[e + i])
        if m < high - 1:
            fine = lift(semiring, room, 0, n) and fine
    for i in range(n):
        room[i] = one_of(semiring)
    for m in range(low + 1, high + 1):
        e = offsets[links_of_variable[low + high - m]]
        for i in range(n):
            gathered[e + i] = times(semiring, gathered[e + i], room[i])
            room[i] = times(semiring, room[i], messages[e + i])
        if m < high:
            fine = lift(semiring, room, 0, n) and fine
        fine = lift(semiring, gathered, e, n) and fine
    return fine


@inlined
def send_table(
    semiring: int,
    offsets: IntArray,
    first: int,
    last: int,
    tables: AnyArray,
    entry: int,
    gathered: AnyArray,
    new: AnyArray,
    digits: IntArray,
) -> None:
    """The messages along the links first to last of a factor whose table begins at entry. digits (arity,)."""
    zero, one = zero_of(semiring), one_of(semiring)
    n_rows = 1
    for e in range(first, last + 1):
        digits[e - first] = 0
        if e < last:
            n_rows *= offsets[e + 1] - offsets[e]
        for i in range(offsets[e], offsets[e + 1]):
            new[i] = zero
    inner, n = offsets[last], offsets[last + 1] - offsets[last]
    for _ in range(n_rows):
        outer = one
        for e in range(first, last):
            outer = times(semiring, outer, gathered[offsets[e] + digits[e - first]])
        total = zero
        for j in range(n):
            value = tables[entry + j]
            total = plus(semiring, total, times(semiring, value, gathered[inner + j]))
            new[inner + j] = plus(semiring, new[inner + j], times(semiring, value, outer))
        for e in range(first, last):
            others = total
            for other in range(first, last):
                if other != e:
                    others = times(semiring, others, gathered[offsets[other] + digits[other - first]])
            at = offsets[e] + digits[e - first]
            new[at] = plus(semiring, new[at], others)
        entry += n
        a = last - first - 1
        while a >= 0:
            digits[a] += 1
            if digits[a] < offsets[first + a + 1] - offsets[first + a]:
                break
            digits[a] = 0
            a -= 1


@inlined
def send_factor(
    semiring: int,
    offsets: IntArray,
    first: int,
    last: int,
    kind: int,
    tables: AnyArray,
    entry: int,
    gathered: AnyArray,
    new: AnyArray,
    digits: IntArray,
) -> bool:
    """The messages of a factor along its links, first to last, scaled; False where one has lost its range."""
    if kind == TABLE:
        send_table(semiring, offsets, first, last, tables, entry, gathered, new, digits)
    else:
        n = offsets[last] - offsets[first]
        for side in range(2):
            source, target = offsets[last - side], offsets[first + side]
            send_structured(semiring, kind, side, n, tables, entry, gathered, source, new, target)
    fine = True
    for e in range(first, last + 1):
        fine = lift(semiring, new, offsets[e], offsets[e + 1] - offsets[e]) and fine
    return fine


@inlined
def change_of(new: AnyArray, old: AnyArray, low: int, high: int) -> float:
    """The largest difference of two messages."""
    worst = 0.0
    for i in range(low, high):
        if new[i] != old[i]:
            worst = max(worst, abs(new[i] - old[i]))
    return worst


@inlined
def damp(new: AnyArray, low: int, high: int, damping: float, messages: AnyArray) -> None:
    """A new message in the place of the old one, or the mean of both, `damping` the weight of the old one."""
    for i in range(low, high):
        if damping == 0.0 or new[i] == messages[i]:
            messages[i] = new[i]
        else:
            messages[i] = (1.0 - damping) * new[i] + damping * messages[i]


def make_gather(semiring: int) -> Callable[..., bool]:
    """q of variables [start, stop); False where one has lost its range."""

    def gather(
        links: MessageLinks,
        numbers: MessageNumbers,
        messages: AnyArray,
        start: int,
        stop: int,
        gathered: AnyArray,
        room: AnyArray,
    ) -> bool:
        fine = True
        first, of_variable, offsets = links.first, links.links_of_variable, links.message_offsets
        base, states = numbers.base, numbers.state_offsets
        for v in range(start, stop):
            one = gather_variable(semiring, first, of_variable, offsets, base, states[v], messages, v, gathered, room)
            fine = one and fine
        return fine or semiring != SUM

    return gather


def make_send(semiring: int) -> Callable[..., float]:
    """m of factors [start, stop); the largest change, inf where one has lost its range. new (M,) is room."""

    def send(
        links: MessageLinks,
        numbers: MessageNumbers,
        gathered: AnyArray,
        damping: float,
        start: int,
        stop: int,
        messages: AnyArray,
        new: AnyArray,
        digits: IntArray,
    ) -> float:
        worst = 0.0
        link_offsets, offsets = links.link_offsets, links.message_offsets
        tables, starts, kinds = numbers.tables, numbers.starts, numbers.kinds
        for g in range(start, stop):
            first, last = link_offsets[g], link_offsets[g + 1] - 1
            fine = send_factor(semiring, offsets, first, last, kinds[g], tables, starts[g], gathered, new, digits)
            if semiring == SUM and not fine:
                worst = math.inf
            low, high = offsets[first], offsets[last + 1]
            worst = max(worst, change_of(new, messages, low, high))
            damp(new, low, high, damping, messages)
        return worst

    return send
