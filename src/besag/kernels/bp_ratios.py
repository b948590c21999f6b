"""Synchronous belief propagation on tables of two binary variables that rule nothing out: a message is one number.

    SUM   r = m(1) / m(0)        MAX   r = m(1) - m(0), of logarithms

That is half of what `bp_binary` has to move, and moving is all that takes time:

    gather   r_{v->f} = b_v (x) prod of r_{f'->v} over f' != f
    send     r_{f->v} = (T(0, 1) (+) T(1, 1) (x) r_{u->f}) / (T(0, 0) (+) T(1, 0) (x) r_{u->f}),        and so for u

    base (V,)    messages, gathered (E,)    tables (T, 2, 2)

Links 2 g and 2 g + 1 are those of factor g. A ratio of SUM beyond WIDEST is reported by `gather`, before any message
is sent: the caller goes on with pairs of numbers. What a message changes by is measured on pairs of which the larger
is one, as in `bp_binary`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from besag.arrays import AnyArray, IntArray
from besag.kernels.compile import at, inlined
from besag.kernels.semiring import SUM, plus, times

WIDEST = {np.dtype(np.float32): 1e30, np.dtype(np.float64): 1e250}


class Ratios(NamedTuple):
    """See the module."""

    base: AnyArray
    messages: AnyArray
    gathered: AnyArray


def of_pairs(pairs: AnyArray, semiring: int) -> AnyArray:
    """(2 n,) -> (n,); inf where the first of two weights is zero."""
    if semiring != SUM:
        return np.asarray(pairs[1::2] - pairs[::2])
    with np.errstate(divide="ignore"):
        return np.asarray(pairs[1::2] / pairs[::2])


def write_pairs(ratios: AnyArray, semiring: int, pairs: AnyArray) -> None:
    """(n,) -> (2 n,), the larger of two being one."""
    if semiring == SUM:
        with np.errstate(divide="ignore"):
            np.minimum(1.0 / ratios, 1.0, out=pairs[::2])
        np.minimum(ratios, 1.0, out=pairs[1::2])
    else:
        np.minimum(-ratios, 0.0, out=pairs[::2])
        np.minimum(ratios, 0.0, out=pairs[1::2])


@inlined
def within(semiring: int, r: float, least: float, widest: float) -> bool:
    """Whether a ratio is one that the tables can still be added to."""
    return semiring != SUM or least < r < widest


@inlined
def change_of(semiring: int, r: float, old: float, one: float) -> float:
    """The larger change of the two numbers of a message."""
    if semiring == SUM:
        return max(abs(min(r, one) - min(old, one)), abs(min(one / r, one) - min(one / old, one)))
    none = one - one
    return max(abs(min(r, none) - min(old, none)), abs(max(r, none) - max(old, none)))


def make_gather(semiring: int) -> Callable[..., bool]:
    """Messages to factors along the links of variables [start, stop); False where one is beyond WIDEST."""

    def gather(
        base: AnyArray,
        first: IntArray,
        links: IntArray,
        messages: AnyArray,
        limit: float,
        start: int,
        stop: int,
        gathered: AnyArray,
    ) -> bool:
        fine, least, widest = True, messages.dtype.type(1.0 / limit), messages.dtype.type(limit)
        for v in range(start, stop):
            low, high = first[at(v)], first[at(v + 1)]
            x = base[at(v)]
            if high - low == 4:  # the inside of a grid: two products serve all four
                e, f, g, h = links[at(low)], links[at(low + 1)], links[at(low + 2)], links[at(low + 3)]
                to_e, to_f, to_g, to_h = messages[at(e)], messages[at(f)], messages[at(g)], messages[at(h)]
                ahead, behind = times(semiring, x, times(semiring, to_e, to_f)), times(semiring, to_g, to_h)
                behind = times(semiring, x, behind)
                to_e, to_f = times(semiring, to_f, behind), times(semiring, to_e, behind)
                to_g, to_h = times(semiring, to_h, ahead), times(semiring, to_g, ahead)
                gathered[at(e)], gathered[at(f)], gathered[at(g)], gathered[at(h)] = to_e, to_f, to_g, to_h
                fine = fine and within(semiring, ahead, least, widest) and within(semiring, behind, least, widest)
                fine = fine and within(semiring, to_e, least, widest) and within(semiring, to_f, least, widest)
                fine = fine and within(semiring, to_g, least, widest) and within(semiring, to_h, least, widest)
                continue
            for m in range(low, high):
                e = links[at(m)]
                gathered[at(e)] = x
                x = times(semiring, x, messages[at(e)])
                fine = fine and within(semiring, x, least, widest)
            x = messages.dtype.type(1.0 if semiring == SUM else 0.0)
            for m in range(low + 1, high + 1):
                e = links[at(low + high - m)]
                whole = times(semiring, gathered[at(e)], x)
                gathered[at(e)] = whole
                x = times(semiring, x, messages[at(e)])
                fine = fine and within(semiring, whole, least, widest) and within(semiring, x, least, widest)
        return fine

    return gather


@inlined
def ratio_of(semiring: int, high: float, low: float) -> float:
    """high over low."""
    return high / low if semiring == SUM else high - low


@inlined
def passed(semiring: int, a: float, b: float, r: float) -> float:
    """What a row (a, b) of a table passes on of a message (1, r)."""
    return plus(semiring, a, times(semiring, b, r))  # type: ignore[no-any-return]


def make_send(semiring: int, own: int) -> Callable[..., float]:
    """Messages to variables from factors [start, stop); the largest change. own: factor g has the table g."""

    def send(
        tables: AnyArray, table_of_factor: IntArray, gathered: AnyArray, start: int, stop: int, messages: AnyArray
    ) -> float:
        flat, one = tables.reshape(-1), messages.dtype.type(1.0)
        worst = messages.dtype.type(0.0)
        for g in range(start, stop):
            t, e = 4 * (g if own == 1 else table_of_factor[at(g)]), 2 * g
            a, b, c, d = flat[at(t)], flat[at(t + 1)], flat[at(t + 2)], flat[at(t + 3)]
            from_x, from_y = gathered[at(e)], gathered[at(e + 1)]
            to_x = ratio_of(semiring, passed(semiring, c, d, from_y), passed(semiring, a, b, from_y))
            to_y = ratio_of(semiring, passed(semiring, b, d, from_x), passed(semiring, a, c, from_x))
            worst = max(worst, change_of(semiring, to_x, messages[at(e)], one))
            worst = max(worst, change_of(semiring, to_y, messages[at(e + 1)], one))
            messages[at(e)], messages[at(e + 1)] = to_x, to_y
        return float(worst)

    return send
