"""Sweeps of messages that are kept, and back-propagation through them; the mathematics is in `losses.unrolled`.

    m <- m + share (s - m)         s = log sum_{y_f \\ v} exp(lp_f / rho_f + sum_{u != v} q_u)        q_u = total_u - m
    total_v <- total_v + rho (m after - m before)

A sweep reads totals and writes totals: one array where factors follow one another, two where all are at once. Going
back, `slopes` are derivatives by what was written, `read_slopes` by what was read; totals are taken back as well.
With T = exp(lp / rho) and x = exp(q), the derivative of s_v(k) by the entry y of lp / rho, and by q_u(y_u), u != v, is

    T(y) prod_{u != v} x_u(y_u) / exp(s_v(k))      where y_v = k, else 0

States that are ruled out have total = -inf and message 0. Sums that are too small for the linear domain are done again
in logarithms. Arrays are those of `besag.infer.trw.kernels.messages`; all factors are tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from besag.arrays import Array, IntArray
from besag.infer.trw.kernels.messages import (
    SweepLinks,
    SweepTables,
    count_on,
    entry,
    finish,
    receive,
    send_pair,
    send_table,
    send_wide,
    table_size,
)
from besag.kernels.compile import at, inlined


@inlined
def send_all(
    n_axes: int, sizes: IntArray, first: int, linear: Array, start: int, x: Array, s: Array, before: Array,
    digits: IntArray,
) -> None:  # fmt: skip
    """s = exp of the messages of a table to its variables."""
    if n_axes == 2:
        send_pair(sizes[first], sizes[first + 1], linear, start, x, s)
    else:
        send_table(n_axes, sizes, first, linear, start, x, s, before, digits)


def make_unrolled() -> Callable[..., None]:
    """Kernel: one sweep over all positions, from messages `old` (M,) to `new` (M,)."""

    def sweep(
        links: SweepLinks,
        tables: SweepTables,
        backwards: bool,
        shares: Array,
        old: Array,
        new: Array,
        read: Array,
        written: Array,
    ) -> None:
        starts, sizes, places, message_of = links.starts, links.sizes, links.places, links.messages
        rho, weights, linear = tables.rho, tables.weights, tables.linear
        q, x, s = np.empty(links.max_states), np.empty(links.max_states), np.empty(links.max_states)
        highs, digits = np.empty(links.max_arity), np.empty(links.max_arity, np.int64)
        n_positions = len(starts) - 1
        for i in range(n_positions):
            g = n_positions - 1 - i if backwards else i
            first, n_axes, to = starts[g], starts[g + 1] - starts[g], 0
            for e in range(first, first + n_axes):
                receive(sizes[e], read, places[e], old, message_of[e], q, x, to)
                to += sizes[e]
            send_all(n_axes, sizes, first, linear, weights[g], x, s, highs, digits)
            if not finish(0, n_axes, sizes, first, q, s, highs):
                send_wide(links, tables, g, q, s, highs, digits)
            to = 0
            for e in range(first, first + n_axes):
                for k in range(sizes[e]):
                    m = message_of[e] + k
                    new[at(m)] = old[at(m)]
                    if q[at(to + k)] > -math.inf:
                        new[at(m)] += shares[g] * (s[at(to + k)] - old[at(m)])
                        written[at(places[e] + k)] += rho[g] * (new[at(m)] - old[at(m)])
                to += sizes[e]

    return sweep


@inlined
def share_pair(
    n: int, m: int, linear: Array, start: int, x: Array, c: Array, scale: float, cells: Array, cell: int, back: Array
) -> None:
    """See `share_table`, for a table (n, m)."""
    for j in range(m):
        back[n + j] = 0.0
    for i in range(n):
        of_row, x_i, c_i = 0.0, x[i], c[i]
        for j in range(m):
            weight = linear[at(start + i * m + j)]
            to_first, to_last = weight * c_i * x[n + j], weight * c[n + j] * x_i
            cells[at(cell + i * m + j)] += scale * (to_first + to_last)
            of_row += to_last
            back[n + j] += to_first
        back[i] = of_row


@inlined
def share_table(
    n_axes: int, sizes: IntArray, first: int, linear: Array, start: int, x: Array, c: Array, scale: float,
    cells: Array, cell: int, back: Array, size: int, digits: IntArray,
) -> None:  # fmt: skip
    """From c = (derivative by s) / exp(s): `scale` times that by lp / rho is added to cells, that by q is in back."""
    to = 0
    for a in range(n_axes):
        digits[a] = 0
        for k in range(sizes[first + a]):
            back[to + k] = 0.0
        to += sizes[first + a]
    for index in range(size):
        to, total = 0, 0.0
        for a in range(n_axes):
            share, other = linear[start + index] * c[to + digits[a]], 0
            for b in range(n_axes):
                if b != a:
                    share *= x[other + digits[b]]
                other += sizes[first + b]
            total += share
            other = 0
            for b in range(n_axes):
                if b != a:
                    back[other + digits[b]] += share
                other += sizes[first + b]
            to += sizes[first + a]
        cells[cell + index] += scale * total
        count_on(n_axes, sizes, first, digits)


@inlined
def share_wide(
    links: SweepLinks, tables: SweepTables, g: int, q: Array, s: Array, highs: Array, c: Array, scale: float,
    cells: Array, back: Array, digits: IntArray,
) -> None:  # fmt: skip
    """As `share_table`, in the log domain: c = derivative by s, and s + highs are the messages."""
    first, n_axes, to = links.starts[g], links.starts[g + 1] - links.starts[g], 0
    for a in range(n_axes):
        digits[a] = 0
        for k in range(links.sizes[first + a]):
            back[to + k] = 0.0
        to += links.sizes[first + a]
    for index in range(table_size(links, g)):
        value, to, total = entry(tables, g, index, digits), 0, 0.0
        for a in range(n_axes):
            value += q[to + digits[a]]
            to += links.sizes[first + a]
        to = 0
        for a in range(n_axes):
            k = to + digits[a]
            if value > -math.inf:
                share = c[k] * math.exp(value - q[k] - s[k] - highs[a])
                total += share
                other = 0
                for b in range(n_axes):
                    if b != a:
                        back[other + digits[b]] += share
                    other += links.sizes[first + b]
            to += links.sizes[first + a]
        cells[tables.logs[g] + index] += scale * total
        count_on(n_axes, links.sizes, first, digits)


@inlined
def take_back(
    size: int, place: int, message: int, share: float, rho: float, in_turn: bool, to: int, old: Array, new: Array,
    totals: Array, slopes: Array, by_messages: Array, c: Array,
) -> None:  # fmt: skip
    """Before an update: totals as they were, c = derivative by s, by_messages that by `old`, but for what goes by q."""
    for k in range(size):
        c[at(to + k)] = 0.0
        if totals[at(place + k)] > -math.inf:
            by_total = rho * slopes[at(place + k)]
            by_new = by_messages[at(message + k)] + by_total
            c[at(to + k)] = share * by_new
            by_messages[at(message + k)] = (1.0 - share) * by_new - by_total
            if in_turn:
                totals[at(place + k)] -= rho * (new[at(message + k)] - old[at(message + k)])


def make_rolled_back() -> Callable[..., None]:
    """Kernel: a sweep of `make_unrolled` backwards; by_messages (M,) goes from those by `new` to those by `old`.

    Derivatives by log-potentials are added to cells (L,). totals: those that the sweep has left, where it is in_turn,
    and are taken back; else those that it has read.
    """

    def roll_back(
        links: SweepLinks,
        tables: SweepTables,
        backwards: bool,
        in_turn: bool,
        shares: Array,
        old: Array,
        new: Array,
        totals: Array,
        slopes: Array,
        read_slopes: Array,
        by_messages: Array,
        cells: Array,
    ) -> None:
        starts, sizes, places, message_of = links.starts, links.sizes, links.places, links.messages
        rho, weights, linear = tables.rho, tables.weights, tables.linear
        q, x, s = np.empty(links.max_states), np.empty(links.max_states), np.empty(links.max_states)
        c, back = np.empty(links.max_states), np.empty(links.max_states)
        highs, digits = np.empty(links.max_arity), np.empty(links.max_arity, np.int64)
        n_positions = len(starts) - 1
        for i in range(n_positions):
            g = i if backwards else n_positions - 1 - i
            first, n_axes, to = starts[g], starts[g + 1] - starts[g], 0
            for e in range(first, first + n_axes):
                place, message = places[e], message_of[e]
                take_back(
                    sizes[e], place, message, shares[g], rho[g], in_turn, to, old, new, totals, slopes,
                    by_messages, c,
                )  # fmt: skip
                receive(sizes[e], totals, place, old, message, q, x, to)
                to += sizes[e]
            send_all(n_axes, sizes, first, linear, weights[g], x, s, highs, digits)
            for k in range(to):
                back[k] = s[k]
            if finish(0, n_axes, sizes, first, q, s, highs):
                for k in range(to):
                    c[k] = c[k] / back[k] if q[k] > -math.inf else 0.0
                if n_axes == 2:
                    share_pair(
                        sizes[first],
                        sizes[first + 1],
                        linear,
                        weights[g],
                        x,
                        c,
                        1.0 / rho[g],
                        cells,
                        tables.logs[g],
                        back,
                    )
                else:
                    share_table(
                        n_axes, sizes, first, linear, weights[g], x, c, 1.0 / rho[g], cells, tables.logs[g], back,
                        table_size(links, g), digits,
                    )  # fmt: skip
            else:
                send_wide(links, tables, g, q, s, highs, digits)
                share_wide(links, tables, g, q, s, highs, c, 1.0 / rho[g], cells, back, digits)
            to = 0
            for e in range(first, first + n_axes):
                for k in range(sizes[e]):
                    if q[at(to + k)] > -math.inf:
                        read_slopes[at(places[e] + k)] += back[at(to + k)]
                        by_messages[at(message_of[e] + k)] -= back[at(to + k)]
                to += sizes[e]

    return roll_back
