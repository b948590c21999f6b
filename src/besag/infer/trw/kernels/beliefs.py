"""Beliefs of factors under tree-reweighted messages: arrays in, arrays out.

    b_f(y_f) = exp(lp_f(y_f) / rho_f + sum_{v in f} q_{v->f}(y_v)) / Z_f

They are written to `cells` (R, C), added to `moments` (L,), and averaged over: `expected` (G,) = sum over rows of
E[lp_f]. The moments of a structured factor are those of its levels; its table is made only where cells are wanted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.infer.trw.kernels.messages import (
    TINY,
    SweepLinks,
    SweepTables,
    count_on,
    entry,
    receive,
    table_size,
)
from besag.kernels.compile import at, inlined
from besag.kernels.factors import TABLE
from besag.kernels.semiring import SUM
from besag.model.structured.kernels.rules import add_shares, level, weigh_structured


class Averages(NamedTuple):
    """What is summed over rows."""

    row_weights: Array  # (R,)
    factor_weights: Array  # (G,)
    moments: Array  # (L,)
    expected: Array  # (G,)


@inlined
def fill_belief(
    links: SweepLinks, tables: SweepTables, g: int, q: Array, x: Array, belief: Array, digits: IntArray
) -> None:
    """belief = b_f, row-major."""
    first, n_axes, size, total = links.starts[g], links.starts[g + 1] - links.starts[g], table_size(links, g), 0.0
    for a in range(n_axes):
        digits[a] = 0
    for index in range(size):
        at_entry = index if tables.kinds[g] == TABLE else level(tables.kinds[g], digits[0], digits[1])
        value = tables.linear[tables.weights[g] + at_entry]
        to = 0
        for a in range(n_axes):
            value *= x[to + digits[a]]
            to += links.sizes[first + a]
        belief[index] = value
        total += value
        count_on(n_axes, links.sizes, first, digits)
    if total < TINY:
        total = fill_wide(links, tables, g, q, belief, digits)
    for index in range(size):
        belief[index] /= total


@inlined
def fill_wide(links: SweepLinks, tables: SweepTables, g: int, q: Array, belief: Array, digits: IntArray) -> float:
    """belief in proportion to b_f, from the log domain; its sum."""
    first, n_axes, size = links.starts[g], links.starts[g + 1] - links.starts[g], table_size(links, g)
    for a in range(n_axes):
        digits[a] = 0
    high, total = -math.inf, 0.0
    for index in range(size):
        value, to = entry(tables, g, index, digits), 0
        for a in range(n_axes):
            value += q[to + digits[a]]
            to += links.sizes[first + a]
        belief[index] = value
        high = max(high, value)
        count_on(n_axes, links.sizes, first, digits)
    for index in range(size):
        belief[index] = math.exp(belief[index] - high)
        total += belief[index]
    return total


@inlined
def add_table(links: SweepLinks, tables: SweepTables, g: int, belief: Array, weight: float, moments: Array) -> float:
    """Adds a belief to the moments of its table; E[lp]."""
    expected, start = 0.0, tables.logs[g]
    for index in range(table_size(links, g)):
        if belief[index] > 0.0:
            expected += belief[index] * tables.log_potentials[at(start + index)]
            moments[at(start + index)] += weight * belief[index]
    return expected


@inlined
def sum_levels(kind: int, n: int, belief: Array, shares: Array) -> None:
    """shares = the belief of each level, from that of each entry."""
    for i in range(n):
        for k in range(n):
            shares[level(kind, i, k)] += belief[at(i * n + k)]


@inlined
def add_levels(shares: Array, tables: SweepTables, g: int, weight: float, moments: Array) -> float:
    """Adds the beliefs of levels to their moments; E[lp]."""
    expected, start = 0.0, tables.logs[g]
    for index in range(len(shares)):
        if shares[index] > 0.0:
            expected += shares[index] * tables.log_potentials[start + index]
            moments[start + index] += weight * shares[index]
    return expected


def make_beliefs() -> Callable[..., None]:
    """Kernel: all factors of all rows; `starts` (G,) says where cells go and is empty where none are wanted."""

    def beliefs(
        links: SweepLinks,
        tables: SweepTables,
        totals: Array,
        messages: AnyArray,
        averages: Averages,
        starts: IntArray,
        cells: Array,
        max_size: int,
    ) -> None:
        q, x, s = np.empty(links.max_states), np.empty(links.max_states), np.empty(links.max_states)
        belief, digits = np.empty(max_size), np.empty(links.max_arity, np.int64)
        shares = np.empty(2 * links.max_states)  # of levels: a displacement on a grid has twice as many of them
        for r in range(len(totals)):
            of_row, sent = totals[r], messages[r]
            for g in range(len(links.starts) - 1):
                n, void = 0, False
                for e in range(links.starts[g], links.starts[g + 1]):
                    shift = receive(links.sizes[e], of_row, links.places[e], sent, links.messages[e], q, x, n)
                    void |= shift == -math.inf
                    n += links.sizes[e]
                if void:
                    continue
                kind, total = tables.kinds[g], 0.0
                weight = averages.row_weights[r] * averages.factor_weights[g]
                if kind != TABLE:
                    linear, w = tables.linear, tables.weights[g]
                    _, total = weigh_structured(SUM, kind, n // 2, linear, w, x, 0, n // 2, s)
                if len(starts) > 0 or total < TINY:
                    fill_belief(links, tables, g, q, x, belief, digits)
                if kind == TABLE:
                    averages.expected[g] += add_table(links, tables, g, belief, weight, averages.moments)
                else:
                    shares[:] = 0.0
                    if total >= TINY:
                        add_shares(SUM, kind, n // 2, linear, w, x, 0, n // 2, 0.0, total, 1.0, shares, 0)
                    else:
                        sum_levels(kind, n // 2, belief, shares)
                    averages.expected[g] += add_levels(shares, tables, g, weight, averages.moments)
                if len(starts) > 0:
                    for index in range(table_size(links, g)):
                        cells[r, at(starts[g] + index)] = belief[index]

    return beliefs
