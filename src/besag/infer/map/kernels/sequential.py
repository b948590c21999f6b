"""Sequential tree-reweighted message passing, TRW-S, for factors of two variables.

(V. Kolmogorov, Convergent tree-reweighted message passing for energy minimization, PAMI 2006.)

A pass visits the variables in the order of their numbers, or backwards. Weights are -H. A pair f on u < v has one
message m_f: after a pass forwards it speaks to v, after one backwards to u. At v, with b the base and the share
s = 1 / max(pairs with variables before v, pairs with those after it),

    theta_v(k) = b_v(k) + sum of m_f(k) over the pairs f on v
    m_f(j)     = max_k log-potential_f(k, j) + s theta_v(k) - m_f(k) - n_f         n_f such that the largest is 0

the latter for the r pairs with variables that come later, in place. In exact arithmetic every pass shows that

    weight of any labelling <= sum_v (1 - r s) max theta_v + sum_f n_f

because theta_v is shared out among the terms of this sum, and what is subtracted in one is added in another. It never
rises from pass to pass. And as max theta_v stood for itself before v was visited, labellings with y_v = k weigh at most
the bound of the pass before, less the slack max theta_v - theta_v(k).

`terms` (V,): what belongs to each variable, its own and the n_f that it has sent. slack (S,), or empty where it is not
wanted. States that are ruled out have a base, and so theta, of -inf. x, which is sent, has NARROW entries of -inf on
either side, as `send_near` wants them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from besag.arrays import EXTENTS, Array, IntArray
from besag.kernels.compile import at, inlined
from besag.kernels.factors import POTTS, TABLE
from besag.kernels.semiring import MAX
from besag.model.structured.kernels.distance import NARROW, send_near
from besag.model.structured.kernels.rules import DISPLACEMENT, add_given, send_structured


class Pairs(NamedTuple):
    """The factors of two variables, sorted by the earlier one; f counts them."""

    first: IntArray  # (V + 1,): the pairs of v with variables after it are first[v] to first[v + 1]
    ends: IntArray  # (G,) their later variable
    before: IntArray  # (V + 1,) into entries
    entries: IntArray  # (G,): the pairs of v with variables before it
    starts: IntArray  # (G,): the earlier variable
    flipped: IntArray  # (G,) 1 where the first axis of the table is the later variable
    offsets: IntArray  # (G + 1,): room for the message, as many numbers as the larger of both has states
    kinds: IntArray  # (G,) as in Factors
    tables: IntArray  # (G,) where the table begins in log_potentials, or the levels


@inlined
def most_states(state_offsets: IntArray) -> int:
    """Of a variable."""
    most = 1
    for v in range(len(state_offsets) - 1):
        most = max(most, state_offsets[v + 1] - state_offsets[v])
    return most


@inlined
def copy_from(n: int, x: Array, start: int, out: Array) -> None:
    """out = n numbers of x."""
    for k in range(n):
        out[at(k)] = x[at(start + k)]


@inlined
def add_up(n: int, x: Array, start: int, out: Array) -> None:
    """out += n numbers of x."""
    for k in range(n):
        out[at(k)] += x[at(start + k)]


@inlined
def add_four(n: int, base: Array, low: int, x: Array, two: int, one: int, other: int, out: Array) -> None:
    """out = base + the messages of four pairs, two of which lie one after the other: inside of a grid."""
    for k in range(n):
        out[at(k)] = base[at(low + k)] + x[at(two + k)] + x[at(two + n + k)] + x[at(one + k)] + x[at(other + k)]


@inlined
def take_off(n: int, share: float, theta: Array, x: Array, start: int, out: Array, target: int) -> None:
    """n numbers of out at target = share theta - n numbers of x, -inf where theta is."""
    for k in range(n):
        out[at(target + k)] = share * theta[at(k)] - x[at(start + k)] if theta[at(k)] > -math.inf else -math.inf


@inlined
def highest_of(n: int, x: Array, start: int, room: Array) -> float:
    """The largest of n numbers, by halves: loops that are vectors."""
    half = (n + 1) // 2
    for i in range(n - half):
        room[at(i)] = max(x[at(start + i)], x[at(start + half + i)])
    if n - half < half:
        room[half - 1] = x[start + half - 1]
    while half > 1:
        rest = half // 2
        half -= rest
        for i in range(rest):
            room[at(i)] = max(room[at(i)], room[at(half + i)])
    return room[0]  # type: ignore[no-any-return]


@inlined
def shift(n: int, value: float, out: Array, start: int) -> float:
    """Subtracts a value from n numbers, and returns it; where it is -inf, nothing is possible, and all become 0."""
    if value == -math.inf:
        value = 0.0
        for k in range(n):
            out[at(start + k)] = 0.0
    for k in range(n):
        out[at(start + k)] -= value
    return value


@inlined
def send_potts(n: int, change: float, x: Array, out: Array, start: int, room: Array) -> float:
    """The message of levels 0 and `change`; its n_f. Where it is better to agree, the best state counts for all."""
    best = highest_of(n, x, NARROW, room)
    if change <= 0.0 or n == 1:
        for k in range(n):
            out[at(start + k)] = max(change, x[at(NARROW + k)] - best)
        return best
    ties = 0.0
    for k in range(n):
        ties += 1.0 if x[at(NARROW + k)] == best else 0.0
    for k in range(n):
        out[at(start + k)] = x[at(NARROW + k)] if x[at(NARROW + k)] < best else -math.inf
    second = highest_of(n, out, start, room)
    alone = max(-change, second - best) if ties == 1.0 else 0.0
    for k in range(n):
        out[at(start + k)] = 0.0 if x[at(NARROW + k)] < best else alone
    return best + change


@inlined
def send_distance(
    kind: int, axis: int, n: int, values: Array, table: int, x: Array, out: Array, start: int, room: Array
) -> float:
    """The message to an axis of a factor that reads a distance; its n_f."""
    extent = kind // EXTENTS
    if kind % EXTENTS != DISPLACEMENT and extent <= NARROW and values[table] >= values[table + 1]:
        best = highest_of(n, x, NARROW, room)
        send_near(extent, n, values, table, best, x, NARROW, out, start)
        return values[table] + best  # type: ignore[no-any-return]
    send_structured(MAX, kind, axis, n, values, table, x, NARROW, out, start)
    return shift(n, highest_of(n, out, start, room), out, start)


@inlined
def send_table(
    n: int, m: int, by_rows: bool, values: Array, table: int, x: Array, out: Array, start: int, row: Array, room: Array
) -> float:
    """The message of a table from n states to m, those of its rows where `by_rows`; its n_f."""
    if by_rows:
        for j in range(m):
            for k in range(n):
                row[at(k)] = values[at(table + j * n + k)] + x[at(NARROW + k)]
            out[start + j] = highest_of(n, row, 0, room)
    else:
        for j in range(m):
            out[at(start + j)] = -math.inf
        for k in range(n):
            for j in range(m):
                out[at(start + j)] = max(out[at(start + j)], x[at(NARROW + k)] + values[at(table + k * m + j)])
    return shift(m, highest_of(m, out, start, room), out, start)


@inlined
def add_pair(
    only: int, pairs: Pairs, values: Array, f: int, leads: bool, n: int, m: int, other: int, score: Array
) -> None:
    """score (n,) += the log-potentials of a pair given the other's state, one of m; leads: it has the first axis."""
    table = pairs.tables[f]
    kind = only if only >= 0 else pairs.kinds[f]
    if kind != TABLE:
        add_given(kind, 0 if leads else 1, n, values, table, other, score)
    else:
        for k in range(n):
            score[k] += values[table + k * m + other] if leads else values[table + other * n + k]


def make_pass(n_states: int, only: int) -> Callable[..., None]:
    """Kernel: a pass; n_states: of every variable, 0 where they differ; only: the kind of all factors, else -1."""

    def run_pass(
        state_offsets: IntArray, pairs: Pairs, values: Array, backwards: bool, base: Array, messages: Array,
        terms: Array, slack: Array,
    ) -> None:  # fmt: skip
        first, before, entries, offsets = pairs.first, pairs.before, pairs.entries, pairs.offsets
        most = n_states if n_states else most_states(state_offsets)
        theta, row, room = np.empty(most), np.empty(most), np.empty(most)
        x = np.full(most + 2 * NARROW, -math.inf)
        n_variables = len(first) - 1
        for step in range(n_variables):
            v = n_variables - 1 - step if backwards else step
            low = state_offsets[v]
            n = n_states if n_states else state_offsets[v + 1] - low
            n_after, n_before = first[v + 1] - first[v], before[v + 1] - before[v]
            if n_states and n_after == 2 and n_before == 2:
                one, other = entries[before[v]], entries[before[v] + 1]
                add_four(n, base, low, messages, first[v] * n, one * n, other * n, theta)
            else:
                copy_from(n, base, low, theta)
                for f in range(first[v], first[v + 1]):
                    add_up(n, messages, f * n if n_states else offsets[f], theta)
                for j in range(before[v], before[v + 1]):
                    add_up(n, messages, entries[j] * n if n_states else offsets[entries[j]], theta)
            most_pairs = max(n_after, n_before, 1)
            share = 1.0 / most_pairs
            begin, end = (before[v], before[v + 1]) if backwards else (first[v], first[v + 1])
            total = 0.0
            if end - begin < most_pairs:
                total = (1.0 - share * (end - begin)) * highest_of(n, theta, 0, room)
            if len(slack):
                highest = highest_of(n, theta, 0, room)
                for k in range(n):
                    slack[low + k] = highest - theta[k]
            for j in range(begin, end):
                f = entries[j] if backwards else j
                start = f * n if n_states else offsets[f]
                table, kind = pairs.tables[f], only if only >= 0 else pairs.kinds[f]
                take_off(n, share, theta, messages, start, x, NARROW)
                if kind == POTTS:
                    total += values[table] + send_potts(n, values[table + 1] - values[table], x, messages, start, room)
                elif kind == TABLE:
                    u = pairs.starts[f] if backwards else pairs.ends[f]
                    m = n_states if n_states else state_offsets[u + 1] - state_offsets[u]
                    by_rows = backwards != (pairs.flipped[f] == 1)
                    total += send_table(n, m, by_rows, values, table, x, messages, start, row, room)
                else:
                    axis = 0 if backwards != (pairs.flipped[f] == 1) else 1
                    total += send_distance(kind, axis, n, values, table, x, messages, start, room)
            terms[v] = total

    return run_pass


def make_read(n_states: int, only: int) -> Callable[..., None]:
    """Kernel: codes (V,), read off in turn, each best given those before it and the messages from those to come.

    backwards: from the last variable on, after a pass forwards; else from the first one on, after one backwards.
    n_states, only: as of a pass.
    """

    def read(
        state_offsets: IntArray, pairs: Pairs, values: Array, backwards: bool, base: Array, messages: Array,
        codes: IntArray,
    ) -> None:  # fmt: skip
        first, before, entries, offsets = pairs.first, pairs.before, pairs.entries, pairs.offsets
        most = n_states if n_states else most_states(state_offsets)
        score, room, n_variables = np.empty(most), np.empty(most), len(codes)
        for step in range(n_variables):
            v = n_variables - 1 - step if backwards else step
            low = state_offsets[v]
            n = n_states if n_states else state_offsets[v + 1] - low
            copy_from(n, base, low, score)
            for j in range(before[v], before[v + 1]):
                f = entries[j]
                if backwards:
                    add_up(n, messages, f * n if n_states else offsets[f], score)
                else:
                    u = pairs.starts[f]
                    m = state_offsets[u + 1] - state_offsets[u]
                    add_pair(only, pairs, values, f, pairs.flipped[f] == 1, n, m, codes[u], score)
            for f in range(first[v], first[v + 1]):
                if backwards:
                    u = pairs.ends[f]
                    m = state_offsets[u + 1] - state_offsets[u]
                    add_pair(only, pairs, values, f, pairs.flipped[f] == 0, n, m, codes[u], score)
                else:
                    add_up(n, messages, f * n if n_states else offsets[f], score)
            highest = highest_of(n, score, 0, room)
            k = 0
            while score[k] < highest:
                k += 1
            codes[v] = k

    return read
