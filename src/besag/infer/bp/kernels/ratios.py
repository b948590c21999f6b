"""Synchronous belief propagation on tables of two binary variables that rule nothing out: a message is one number.

    SUM   r = m(1) / m(0)        MAX   r = m(1) - m(0), of logarithms

That is half of what `binary` has to move, and moving is all that takes time:

    gather   r_{v->f} = b_v (x) prod of r_{f'->v} over f' != f
    send     r_{f->v} = (T(0, 1) (+) T(1, 1) (x) r_{u->f}) / (T(0, 0) (+) T(1, 0) (x) r_{u->f}),        and so for u

    base (V,)    messages, gathered (E,)    tables (T, 2, 2)

Links 2 g and 2 g + 1 are those of factor g. `gather` tells how far ratios reach, before any message is sent: beyond
WIDEST the caller goes on with pairs of numbers. What a message changes by is measured on pairs of which the larger is
one, as in `binary`. `send` works on BLOCK factors at a time, so that its loops have nothing but vector arithmetic in
them: a largest change for each place in a block, not one for all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from besag.arrays import AnyArray, IntArray
from besag.kernels.compile import at, inlined
from besag.kernels.semiring import SUM, plus, times

BLOCK = 256
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


def narrow(ratios: AnyArray, semiring: int) -> bool:
    """Whether all ratios are numbers that can be multiplied, in SUM within WIDEST."""
    if semiring != SUM:
        return bool(np.isfinite(ratios).all())
    limit = WIDEST[ratios.dtype]
    return bool(ratios.min(initial=1.0) > 1.0 / limit and ratios.max(initial=1.0) < limit)


@inlined
def lower(a: float, b: float) -> float:
    """The lower of two numbers; a where b is NaN."""
    return b if b < a else a


@inlined
def higher(a: float, b: float) -> float:
    """The higher of two numbers; a where b is NaN."""
    return b if b > a else a


def make_gather(semiring: int) -> Callable[..., tuple[float, float]]:
    """Messages to factors along the links of variables [start, stop); the least and the largest of them.

    Products on the way to them count too: from messages that are `narrow` nothing is NaN before something was 0 or inf,
    and what was once the least or the largest is not forgotten.
    """

    def gather(
        base: AnyArray,
        first: IntArray,
        links: IntArray,
        messages: AnyArray,
        start: int,
        stop: int,
        gathered: AnyArray,
    ) -> tuple[float, float]:
        one = messages.dtype.type(1.0 if semiring == SUM else 0.0)
        least, largest = one, one
        for v in range(start, stop):
            low, high = first[at(v)], first[at(v + 1)]
            x = base[at(v)]
            if high - low == 4:  # the inside of a grid: two products serve all four
                e, f, g, h = links[at(low)], links[at(low + 1)], links[at(low + 2)], links[at(low + 3)]
                from_e, from_f, from_g, from_h = messages[at(e)], messages[at(f)], messages[at(g)], messages[at(h)]
                ahead = times(semiring, x, times(semiring, from_e, from_f))
                behind = times(semiring, x, times(semiring, from_g, from_h))
                to_e, to_f = times(semiring, from_f, behind), times(semiring, from_e, behind)
                to_g, to_h = times(semiring, from_h, ahead), times(semiring, from_g, ahead)
                gathered[at(e)], gathered[at(f)], gathered[at(g)], gathered[at(h)] = to_e, to_f, to_g, to_h
                to_low, to_high = lower(lower(to_e, to_f), lower(to_g, to_h)), higher(to_e, to_f)
                to_high = higher(to_high, higher(to_g, to_h))
                least = lower(least, lower(to_low, lower(ahead, behind)))
                largest = higher(largest, higher(to_high, higher(ahead, behind)))
                continue
            for m in range(low, high):
                e = links[at(m)]
                gathered[at(e)] = x
                x = times(semiring, x, messages[at(e)])
                least, largest = lower(least, x), higher(largest, x)
            x = one
            for m in range(low + 1, high + 1):
                e = links[at(low + high - m)]
                whole = times(semiring, gathered[at(e)], x)
                gathered[at(e)] = whole
                x = times(semiring, x, messages[at(e)])
                least, largest = lower(least, lower(whole, x)), higher(largest, higher(whole, x))
        return float(least), float(largest)

    return gather


@inlined
def pass_ratio(semiring: int, a: float, b: float, c: float, d: float, r: float) -> float:
    """The ratio that a table ((a, b), (c, d)) makes of the ratio r of its second variable."""
    high, low = plus(semiring, c, times(semiring, d, r)), plus(semiring, a, times(semiring, b, r))
    return high / low if semiring == SUM else high - low


@inlined
def change_of(semiring: int, r: float, old: float, one: float) -> float:
    """The larger change of the two numbers of a message; one is that of the semiring."""
    if semiring == SUM:
        second, first = lower(r, one) - lower(old, one), lower(one / r, one) - lower(one / old, one)
    else:
        second, first = lower(r, one) - lower(old, one), higher(r, one) - higher(old, one)
    return higher(abs(second), abs(first))


@inlined
def entry_of_pair(semiring: int, ratio: float, state: int) -> float:
    """What a ratio says of a state: of two numbers of which the larger is one."""
    if semiring == SUM:
        return lower(ratio if state == 1 else 1.0 / ratio, 1.0)
    return lower(ratio if state == 1 else -ratio, 0.0)


def make_pairs(semiring: int) -> Callable[..., None]:
    """Ratios (n,) as pairs (2 n,) of which the larger is one."""

    def write_pairs(ratios: AnyArray, pairs: AnyArray) -> None:
        for e in range(len(ratios)):
            pairs[at(2 * e)] = entry_of_pair(semiring, ratios[e], 0)
            pairs[at(2 * e + 1)] = entry_of_pair(semiring, ratios[e], 1)

    return write_pairs


def make_send(semiring: int, own: int) -> Callable[..., float]:
    """Messages to variables from factors [start, stop); the largest change. own: factor g has the table g."""

    def send(
        tables: AnyArray, table_of_factor: IntArray, gathered: AnyArray, start: int, stop: int, messages: AnyArray
    ) -> float:
        flat, one = tables.reshape(-1), messages.dtype.type(1.0 if semiring == SUM else 0.0)
        sent, changes = np.empty(2 * BLOCK, messages.dtype), np.zeros(2 * BLOCK, messages.dtype)
        for begin in range(start, stop, BLOCK):
            n = min(BLOCK, stop - begin)
            for i in range(n):
                g = begin + i
                t = 4 * (g if own == 1 else table_of_factor[at(g)])
                a, b, c, d = flat[at(t)], flat[at(t + 1)], flat[at(t + 2)], flat[at(t + 3)]
                sent[at(2 * i)] = pass_ratio(semiring, a, b, c, d, gathered[at(2 * g + 1)])
                sent[at(2 * i + 1)] = pass_ratio(semiring, a, c, b, d, gathered[at(2 * g)])
            for i in range(2 * n):
                r, e = sent[at(i)], 2 * begin + i
                changes[at(i)] = higher(changes[at(i)], change_of(semiring, r, messages[at(e)], one))
                messages[at(e)] = r
        return float(changes.max())

    return send
