"""Coordinate ascent of a product distribution on pairwise factors of one size, K a compile-time constant.

The same update as in `general`, for tables without hard zeros or for Potts factors, in the dtype of q:

    logits_v(k) = base_v(k) + sum over (u, f) beside v of sum_j q_u(j) table_f(j, k),   or - c_f q_u(k) for Potts,

where a constant that all states share is left out: that is why Potts factors have a kernel here and do not go by their
rules. No other kind of structured factor is taken. With two states, what a table says about v is

    sum_j q_u(j) (t(j, 1) - t(j, 0)) = constant + coupling q_u(1),     coupling = t(0, 0) + t(1, 1) - t(0, 1) - t(1, 0)

so that the table shrinks to one number and the constant to a part of v's bias; and one exponential does.

`source` (I,) is the first state of u; `table` (I,) is twice the place of the table in `values` plus the axis of v.

Tables of three states or more are read once in a sweep, by the variable v that goes after u: it hears u through the
table, and when q_v is known it tells u, while the table is in the cache: the sum over k of q_v(k) table_f(j, k) is kept
in `told` (R, F K) until the next sweep, when u hears it from there. `slot` (I,) is that place for u, and -1 minus that
place for v. At any moment `told` is what the q of that moment say. In single precision tables are copied anyway, and
are put into the order in which they are read: a sweep then goes through memory from one end to the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.kernels.compile import at, inlined
from besag.kernels.exponential import exp_below
from besag.kernels.factors import Factors

BLOCK = 64  # variables, whose numbers stay in the cache
SHORT = 16  # states: longer lines come from memory, four at a time slower than one by one


@inlined
def add_columns(n: int, values: AnyArray, start: int, p: AnyArray, source: int, logits: AnyArray) -> None:
    """logits(k) += sum over j of p(j) table(j, k)."""
    for j in range(n):
        weight = p[at(source + j)]
        for k in range(n):
            logits[k] += weight * values[at(start + j * n + k)]


@inlined
def add_lines(n: int, values: AnyArray, start: int, p: AnyArray, source: int, logits: AnyArray) -> None:
    """logits(k) += sum over j of p(j) table(k, j); four short lines at a time, which read each p(j) once."""
    by_four = n - n % 4 if n <= SHORT else 0
    for k in range(0, by_four, 4):
        one, two, three, four = logits[k], logits[k + 1], logits[k + 2], logits[k + 3]
        for j in range(n):
            weight, place = p[at(source + j)], start + k * n + j
            one += weight * values[at(place)]
            two += weight * values[at(place + n)]
            three += weight * values[at(place + 2 * n)]
            four += weight * values[at(place + 3 * n)]
        logits[k], logits[k + 1], logits[k + 2], logits[k + 3] = one, two, three, four
    for k in range(by_four, n):
        total = logits[k]
        for j in range(n):
            total += p[at(source + j)] * values[at(start + k * n + j)]
        logits[k] = total


@inlined
def subtract(n: int, weight: float, p: AnyArray, source: int, logits: AnyArray) -> None:
    """logits(k) -= weight p(k)."""
    for k in range(n):
        logits[k] -= weight * p[at(source + k)]


@inlined
def load(n: int, base: AnyArray, s: int, logits: AnyArray) -> None:
    """logits = base."""
    for k in range(n):
        logits[k] = base[at(s + k)]


@inlined
def normalise(n: int, logits: AnyArray, p: AnyArray, s: int) -> float:
    """p = exp(logits), normalised, in its place; the total variation distance from what it was."""
    high = logits[0]
    for k in range(1, n):
        high = max(high, logits[k])
    if high == -math.inf:
        return 0.0
    for k in range(n):
        logits[k] = exp_below(logits[k] - high)
    total = logits[0]
    for k in range(1, n):
        total += logits[k]
    scale, change = 1 / total, total - total  # a zero of the same dtype
    for k in range(n):
        x = logits[k] * scale
        change += abs(x - p[at(s + k)])
        p[at(s + k)] = x
    return change / 2  # type: ignore[no-any-return]


@inlined
def hear(n: int, told: AnyArray, place: int, logits: AnyArray) -> None:
    """logits += told."""
    for k in range(n):
        logits[k] += told[at(place + k)]


@inlined
def store(n: int, logits: AnyArray, told: AnyArray, place: int) -> None:
    """told = logits."""
    for k in range(n):
        told[at(place + k)] = logits[k]


@inlined
def clear(n: int, logits: AnyArray) -> None:
    """logits = 0."""
    for k in range(n):
        logits[k] = 0.0


def make_gathered() -> Callable[..., None]:
    """Kernel: tables of one size, first to last of those that begin at `starts`, one after the other."""

    def gathered(size: int, values: Array, starts: IntArray, first: int, last: int, out: AnyArray) -> None:
        for i in range(first, last):
            for j in range(size):
                out[at(i * size + j)] = values[at(starts[i] + j)]

    return gathered


def make_table_sweep(n: int, only_tell: int) -> Callable[..., None]:
    """Kernel: q_v of the variables at positions start to stop in rows[first_row:last_row], K = n of 3 or more.

    only_tell: q stays as it is, and only `told` is written.
    """

    def sweep(
        order: IntArray,
        first: IntArray,
        source: AnyArray,
        table: AnyArray,
        slot: AnyArray,
        values: AnyArray,
        base: AnyArray,
        start: int,
        stop: int,
        rows: IntArray,
        first_row: int,
        last_row: int,
        q: AnyArray,
        told: AnyArray,
        change: Array,
    ) -> None:
        logits = np.empty(n, values.dtype)
        for r in range(first_row, last_row):
            p, b, t = q[rows[r]], base[rows[r] % len(base)], told[rows[r]]
            for i in range(start, stop):
                s = order[i] * n
                if only_tell == 0:
                    load(n, b, s, logits)
                    for j in range(first[i], first[i + 1]):
                        if slot[j] >= 0:
                            hear(n, t, slot[j], logits)
                        elif table[j] & 1:
                            add_columns(n, values, table[j] >> 1, p, source[j], logits)
                        else:
                            add_lines(n, values, table[j] >> 1, p, source[j], logits)
                    change[r] = max(change[r], normalise(n, logits, p, s))
                for j in range(first[i], first[i + 1]):
                    if slot[j] < 0:
                        clear(n, logits)
                        if table[j] & 1:
                            add_lines(n, values, table[j] >> 1, p, s, logits)
                        else:
                            add_columns(n, values, table[j] >> 1, p, s, logits)
                        store(n, logits, t, -1 - slot[j])

    return sweep


def make_potts_sweep(n: int) -> Callable[..., None]:
    """Kernel: the same for Potts factors, whose one number is read on both sides."""

    def sweep(
        order: IntArray,
        first: IntArray,
        source: AnyArray,
        table: AnyArray,
        values: AnyArray,
        base: AnyArray,
        start: int,
        stop: int,
        rows: IntArray,
        first_row: int,
        last_row: int,
        q: AnyArray,
        change: Array,
    ) -> None:
        logits = np.empty(n, values.dtype)
        for r in range(first_row, last_row):
            p, b = q[rows[r]], base[rows[r] % len(base)]
            for i in range(start, stop):
                s = order[i] * n
                load(n, b, s, logits)
                for j in range(first[i], first[i + 1]):
                    subtract(n, values[at(table[j] >> 1)], p, source[j], logits)
                change[r] = max(change[r], normalise(n, logits, p, s))

    return sweep


@inlined
def rise_of(begin: int, end: int, bias: float, source: AnyArray, coupling: AnyArray, p: AnyArray) -> float:
    """ln q_v(1) / q_v(0)."""
    if end - begin == 4:  # the inside of a grid
        one = coupling[at(begin)] * p[at(source[at(begin)] + 1)]
        two = coupling[at(begin + 1)] * p[at(source[at(begin + 1)] + 1)]
        three = coupling[at(begin + 2)] * p[at(source[at(begin + 2)] + 1)]
        four = coupling[at(begin + 3)] * p[at(source[at(begin + 3)] + 1)]
        return bias + ((one + two) + (three + four))  # type: ignore[no-any-return]
    rise = bias
    for j in range(begin, end):
        rise += coupling[at(j)] * p[at(source[at(j)] + 1)]
    return rise


def make_binary_sweep() -> Callable[..., None]:
    """Kernel: the same for K = 2, where each pair has one number: ln q_v(1) / q_v(0) = bias_v + sum of coupling q_u(1).

    bias (R, V), by position, is infinite where evidence leaves one state, and NaN where it leaves none: then q_v stays.
    Variables from start to stop do not hear each other, so that exponentials are taken of BLOCK at a time, by vector
    arithmetic.
    """

    def sweep(
        order: AnyArray,
        first: AnyArray,
        source: AnyArray,
        coupling: AnyArray,
        bias: AnyArray,
        start: int,
        stop: int,
        rows: IntArray,
        first_row: int,
        last_row: int,
        q: AnyArray,
        change: Array,
    ) -> None:
        rises, lows, highs = np.empty(BLOCK, q.dtype), np.empty(BLOCK, q.dtype), np.empty(BLOCK, q.dtype)
        for r in range(first_row, last_row):
            p, b = q[rows[r]], bias[rows[r] % len(bias)]
            worst = abs(p[0] - p[0])
            for begin in range(start, stop, BLOCK):
                n = min(BLOCK, stop - begin)
                for i in range(n):
                    pairs = first[at(begin + i)], first[at(begin + i + 1)]
                    rises[i] = rise_of(pairs[0], pairs[1], b[at(begin + i)], source, coupling, p)
                for i in range(n):
                    small = exp_below(-abs(rises[i]))
                    large = 1.0 / (1.0 + small)
                    lows[i] = small * large if rises[i] > 0 else large
                    highs[i] = large if rises[i] > 0 else small * large
                for i in range(n):
                    v = order[at(begin + i)]
                    if rises[i] == rises[i]:
                        worst = max(worst, abs(highs[i] - p[at(2 * v + 1)]))
                        p[at(2 * v)], p[at(2 * v + 1)] = lows[i], highs[i]
            change[r] = max(change[r], worst)

    return sweep


def make_pair_means(hard: int) -> Callable[..., None]:
    """Kernel: as `general.make_means` for tables of two variables, of any size: a third of the time."""

    def means(factors: Factors, used: IntArray, start: int, stop: int, p: Array, out: Array) -> None:
        state_offsets, scope_offsets, scope_variables, _, table_of_factor, table_offsets, values = factors
        for r in range(len(p)):
            own = p[r]
            for j in range(start, stop):
                f = used[j]
                above, last = state_offsets[scope_variables[scope_offsets[f]]], scope_variables[scope_offsets[f] + 1]
                first, n = state_offsets[last], state_offsets[last + 1] - state_offsets[last]
                table, total = table_of_factor[f], 0.0
                for row in range(table_offsets[table], table_offsets[table + 1], n):
                    x, mean = own[above], 0.0
                    above += 1
                    for k in range(n):
                        if hard == 0 or (x > 0.0 and own[at(first + k)] > 0.0):
                            mean += own[at(first + k)] * values[at(row + k)]
                    total += x * mean
                out[r, f] = total

    return means
