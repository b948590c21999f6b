"""Synchronous belief propagation where all factors are tables on two binary variables: `pairs` in scalars.

With two states a message is two numbers, which stay in registers: half the time of the loops over states. Arrays are
flat: message e stands at 2 e, the table t at 4 t. The inside of a grid, a variable with four factors, has a way of its
own: two products of two messages serve all four.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from besag.arrays import AnyArray, IntArray
from besag.infer.bp.kernels.pairs import FEW, SMALL
from besag.kernels.compile import at, inlined
from besag.kernels.semiring import SUM, one_of, plus, times


@inlined
def keep(semiring: int, x: float, y: float, e: int, gathered: AnyArray) -> bool:
    """Write a message to a factor; False where it has lost its range."""
    if semiring == SUM:
        largest = max(x, y)
        if largest < SMALL:
            if not largest > 0.0:
                return False
            x /= largest
            y /= largest
    gathered[at(e)] = x
    gathered[at(e + 1)] = y
    return True


@inlined
def gather_four(
    semiring: int, x: float, y: float, low: int, links: IntArray, messages: AnyArray, gathered: AnyArray
) -> bool:
    """What a variable of base (x, y) sends along four links."""
    e, f, g, h = 2 * links[at(low)], 2 * links[at(low + 1)], 2 * links[at(low + 2)], 2 * links[at(low + 3)]
    e0, e1, f0, f1 = messages[at(e)], messages[at(e + 1)], messages[at(f)], messages[at(f + 1)]
    g0, g1, h0, h1 = messages[at(g)], messages[at(g + 1)], messages[at(h)], messages[at(h + 1)]
    first0, first1 = times(semiring, x, times(semiring, e0, f0)), times(semiring, y, times(semiring, e1, f1))
    last0, last1 = times(semiring, x, times(semiring, g0, h0)), times(semiring, y, times(semiring, g1, h1))
    to_e = keep(semiring, times(semiring, f0, last0), times(semiring, f1, last1), e, gathered)
    to_f = keep(semiring, times(semiring, e0, last0), times(semiring, e1, last1), f, gathered)
    to_g = keep(semiring, times(semiring, h0, first0), times(semiring, h1, first1), g, gathered)
    to_h = keep(semiring, times(semiring, g0, first0), times(semiring, g1, first1), h, gathered)
    return to_e and to_f and to_g and to_h


@inlined
def gather_range(
    semiring: int,
    base: AnyArray,
    first: IntArray,
    links: IntArray,
    messages: AnyArray,
    start: int,
    stop: int,
    gathered: AnyArray,
) -> bool:
    """Messages to factors along the links of variables [start, stop); False where one has lost its range."""
    fine, one = True, messages.dtype.type(one_of(semiring))
    for v in range(start, stop):
        low, high = first[at(v)], first[at(v + 1)]
        x, y = base[at(2 * v)], base[at(2 * v + 1)]
        if high - low == 4:
            fine = gather_four(semiring, x, y, low, links, messages, gathered) and fine
            continue
        for m in range(low, high):
            e = 2 * links[at(m)]
            gathered[at(e)], gathered[at(e + 1)] = x, y
            x, y = times(semiring, x, messages[at(e)]), times(semiring, y, messages[at(e + 1)])
            if semiring == SUM and high - low > FEW and max(x, y) > 0.0:
                largest = max(x, y)
                x, y = x / largest, y / largest
        x, y = one, one
        for m in range(low + 1, high + 1):
            e = 2 * links[at(low + high - m)]
            before = times(semiring, gathered[at(e)], x), times(semiring, gathered[at(e + 1)], y)
            fine = keep(semiring, before[0], before[1], e, gathered) and fine
            x, y = times(semiring, x, messages[at(e)]), times(semiring, y, messages[at(e + 1)])
            if semiring == SUM and high - low > FEW and max(x, y) > 0.0:
                largest = max(x, y)
                x, y = x / largest, y / largest
    return fine


@inlined
def renew(semiring: int, damped: int, damping: float, x: float, y: float, e: int, messages: AnyArray) -> float:
    """Write a message to a variable, scaled so that the larger number is one; how much it changed."""
    largest, none = max(x, y), messages.dtype.type(0.0)
    if semiring == SUM:
        if not largest > 0.0:
            return messages.dtype.type(math.inf)  # type: ignore[no-any-return]
        scale = messages.dtype.type(1.0) / largest
        x, y = x * scale, y * scale
    else:
        x, y = x - largest, y - largest
    old_x, old_y = messages[at(e)], messages[at(e + 1)]
    # -inf that stays -inf has not changed
    change_x = abs(x - old_x) if semiring == SUM or x != old_x else none
    change_y = abs(y - old_y) if semiring == SUM or y != old_y else none
    if damped == 1:
        x = (1.0 - damping) * x + damping * old_x if semiring == SUM or x != old_x else old_x
        y = (1.0 - damping) * y + damping * old_y if semiring == SUM or y != old_y else old_y
    messages[at(e)] = x
    messages[at(e + 1)] = y
    return max(change_x, change_y)  # type: ignore[no-any-return]


@inlined
def send_range(
    semiring: int,
    damped: int,
    tables: AnyArray,
    table_of_factor: IntArray,
    gathered: AnyArray,
    damping: float,
    start: int,
    stop: int,
    messages: AnyArray,
) -> float:
    """Messages to variables from factors [start, stop); the largest change, inf where one has lost its range."""
    worst = messages.dtype.type(0.0)
    for factor in range(start, stop):
        t, e = 4 * table_of_factor[at(factor)], 4 * factor
        a, b, c, d = tables[at(t)], tables[at(t + 1)], tables[at(t + 2)], tables[at(t + 3)]
        x0, x1, y0, y1 = gathered[at(e)], gathered[at(e + 1)], gathered[at(e + 2)], gathered[at(e + 3)]
        to_x0 = plus(semiring, times(semiring, a, y0), times(semiring, b, y1))
        to_x1 = plus(semiring, times(semiring, c, y0), times(semiring, d, y1))
        to_y0 = plus(semiring, times(semiring, a, x0), times(semiring, c, x1))
        to_y1 = plus(semiring, times(semiring, b, x0), times(semiring, d, x1))
        worst = max(worst, renew(semiring, damped, damping, to_x0, to_x1, e, messages))
        worst = max(worst, renew(semiring, damped, damping, to_y0, to_y1, e + 2, messages))
    return float(worst)


def make_gather(semiring: int) -> Callable[..., bool]:
    """`gather_range` on arrays base (V, 2) and messages, gathered (E, 2)."""

    def gather(
        base: AnyArray,
        first: IntArray,
        links: IntArray,
        messages: AnyArray,
        start: int,
        stop: int,
        gathered: AnyArray,
    ) -> bool:
        return gather_range(
            semiring, base.reshape(-1), first, links, messages.reshape(-1), start, stop, gathered.reshape(-1)
        )

    return gather


def make_send(semiring: int, damped: int) -> Callable[..., float]:
    """`send_range` on arrays tables (T, 2, 2) and messages, gathered (E, 2)."""

    def send(
        tables: AnyArray,
        table_of_factor: IntArray,
        gathered: AnyArray,
        damping: float,
        start: int,
        stop: int,
        messages: AnyArray,
    ) -> float:
        return send_range(
            semiring,
            damped,
            tables.reshape(-1),
            table_of_factor,
            gathered.reshape(-1),
            damping,
            start,
            stop,
            messages.reshape(-1),
        )

    return send
