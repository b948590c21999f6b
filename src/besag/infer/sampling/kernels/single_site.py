"""Gibbs sampling, 001: each variable in turn is drawn from its conditional given all others.

    p(y_v = k | rest)  proportional to  exp(base[v, k] + sum of the log-potentials at y_v = k of the factors on v)

This is the sweep for any factors: tables of any arity with hard zeros, and structured factors by their rules. A chain
must start at a labelling of positive weight; it never leaves those. Besides the states a sweep adds up:

    sums     the conditionals themselves, whose mean over sweeps is the Rao-Blackwellised marginal
    scores   the log-weight of each drawn state given its neighbours, a scalar of each chain to be watched

A unit is one chain of one row of evidence. Random numbers are indexed by (key of the sweep, unit, variable): a sweep is
the same whichever thread does which part of it. Variables of a segment of `order` are done one after the other; those
of one colour may be done in several calls at once.

    U units = R rows x C chains; V variables, S states, I = (variable, factor) pairs of factors of two or more variables
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from besag.arrays import Array, IntArray, freeze
from besag.kernels.compile import inlined, kernel_of
from besag.kernels.factors import TABLE, Factors
from besag.kernels.random import pick, stream, uniform
from besag.model.structured.kernels.noisy import add_given_noisy, is_noisy
from besag.model.structured.kernels.rules import add_given, level


class Neighbourhood(NamedTuple):
    """The factors of two or more variables on each variable."""

    first: IntArray  # (V + 1,) pairs of variable v are first[v] to first[v + 1]
    factor: IntArray  # (I,)
    entry: IntArray  # (I,) the position of the variable in scope_variables
    strides: IntArray  # (E,) stride of each variable's axis in the table of its factor


def links_of(factors: Factors, *, compile: bool) -> Neighbourhood:
    """The links of a factor graph."""
    scopes = (freeze(factors.state_offsets), freeze(factors.scope_offsets), freeze(factors.scope_variables))
    made = kernel_of(make_links, compile=compile)(*scopes)
    return Neighbourhood(*(freeze(array) for array in made))


def make_links() -> Callable[..., tuple[IntArray, IntArray, IntArray, IntArray]]:
    """Kernel: the arrays of `Neighbourhood`."""

    def links(
        state_offsets: IntArray, scope_offsets: IntArray, scope_variables: IntArray
    ) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        n_variables, n_factors = len(state_offsets) - 1, len(scope_offsets) - 1
        first, strides = np.zeros(n_variables + 1, np.int64), np.empty(len(scope_variables), np.int64)
        for f in range(n_factors):
            stride = 1
            for e in range(scope_offsets[f + 1] - 1, scope_offsets[f] - 1, -1):
                v = scope_variables[e]
                strides[e] = stride
                stride *= state_offsets[v + 1] - state_offsets[v]
                if scope_offsets[f + 1] - scope_offsets[f] > 1:
                    first[v + 1] += 1
        for v in range(n_variables):
            first[v + 1] += first[v]
        free = first.copy()
        factor, entry = np.empty(first[n_variables], np.int64), np.empty(first[n_variables], np.int64)
        for f in range(n_factors):
            if scope_offsets[f + 1] - scope_offsets[f] > 1:
                for e in range(scope_offsets[f], scope_offsets[f + 1]):
                    v = scope_variables[e]
                    factor[free[v]] = f
                    entry[free[v]] = e
                    free[v] += 1
        return first, factor, entry, strides

    return links


@inlined
def add_table(
    cell: int,
    first: int,
    last: int,
    entry: int,
    scope_variables: IntArray,
    strides: IntArray,
    log_potentials: Array,
    states: IntArray,
    logits: Array,
    n: int,
) -> None:
    """Add the log-potentials of a table, at the states of its other variables, to the n logits of one of them."""
    for e in range(first, last):
        if e != entry:
            cell += strides[e] * states[scope_variables[e]]
    stride = strides[entry]
    for k in range(n):
        logits[k] += log_potentials[cell + k * stride]


@inlined
def weigh(logits: Array, n: int) -> float:
    """Turn n log-weights into weights of which the largest is 1; returns their sum, 0 if all are -inf."""
    top = logits[0]
    for k in range(1, n):
        top = max(top, logits[k])
    total = 0.0
    if top == -math.inf:
        return total
    for k in range(n):
        logits[k] = math.exp(logits[k] - top)
        total += logits[k]
    return total


def make_sweep() -> Callable[..., None]:
    """Kernel: the variables order[start:stop], one after the other, in units [first_unit, last_unit).

    states (U, V) and scores (U, .) are written to, as are sums (U, S) if `keep` is true. Unit u reads row u //
    n_chains of base (R, S). A score goes to column `part`.
    """

    def sweep(
        factors: Factors,
        links: Neighbourhood,
        base: Array,
        n_chains: int,
        order: IntArray,
        start: int,
        stop: int,
        first_unit: int,
        last_unit: int,
        key: int,
        states: IntArray,
        keep: bool,
        sums: Array,
        scores: Array,
        part: int,
    ) -> None:
        # Unpacked: numba updates the reference count of every array in a tuple, atomically, at each call.
        state_offsets, scope_offsets, scope_variables = (
            factors.state_offsets, factors.scope_offsets, factors.scope_variables
        )  # fmt: skip
        log_potentials, kinds = factors.log_potentials, factors.kinds
        starts, first, entries = factors.table_offsets, links.first, links.entry
        most = 1
        for i in range(start, stop):
            most = max(most, state_offsets[order[i] + 1] - state_offsets[order[i]])
        logits, raw, zeros = np.empty(most), np.empty(most), np.empty(most, np.int64)
        for u in range(first_unit, last_unit):
            seed, mine, row, score = stream(key, u, 0), states[u], base[u // n_chains], 0.0
            mine_sums = sums[u]
            for i in range(start, stop):
                v = order[i]
                offset, n = state_offsets[v], state_offsets[v + 1] - state_offsets[v]
                for k in range(n):
                    logits[k] = row[offset + k]
                for j in range(first[v], first[v + 1]):
                    f, entry = links.factor[j], entries[j]
                    cell, low, high = starts[factors.table_of_factor[f]], scope_offsets[f], scope_offsets[f + 1]
                    if is_noisy(kinds[f]):
                        add_given_noisy(factors, f, entry, mine, logits, zeros)
                    elif kinds[f] != TABLE:
                        other = mine[scope_variables[low + high - 1 - entry]]
                        add_given(kinds[f], entry - low, n, log_potentials, cell, other, logits)
                    else:
                        add_table(
                            cell, low, high, entry, scope_variables, links.strides, log_potentials, mine, logits, n
                        )
                for k in range(n):
                    raw[k] = logits[k]
                total = weigh(logits, n)
                if total == 0.0:  # a row without a labelling
                    continue
                chosen = pick(logits, n, uniform(seed, v) * total)
                mine[v] = chosen
                score += raw[chosen]
                if keep:
                    for k in range(n):
                        mine_sums[offset + k] += logits[k] / total
            scores[u, part] = score

    return sweep


def make_counts() -> Callable[..., None]:
    """Kernel: for all units, add the weights of its row (R,) and of its instance (F,) at each factor's table entry.

    cells (., n): row u // n_chains, or the only row, gets what unit u adds, at starts[f] + entry. Factors of one
    variable, and rows of weight 0, are left out. If `closed` is true, a structured factor counts
    the level of its entry.
    """

    def counts(
        factors: Factors,
        strides: IntArray,
        states: IntArray,
        n_chains: int,
        row_weights: Array,
        starts: IntArray,
        factor_weights: Array,
        closed: bool,
        cells: Array,
    ) -> None:
        for u in range(len(states)):
            weight = row_weights[u // n_chains]
            if weight == 0.0:
                continue
            mine, row = states[u], cells[min(u // n_chains, len(cells) - 1)]
            for f in range(len(starts)):
                first, last = factors.scope_offsets[f], factors.scope_offsets[f + 1]
                if last - first < 2:
                    continue
                if closed and factors.kinds[f] != TABLE:
                    one, other = mine[factors.scope_variables[first]], mine[factors.scope_variables[first + 1]]
                    row[starts[f] + level(factors.kinds[f], one, other)] += weight * factor_weights[f]
                    continue
                entry = 0
                for e in range(first, last):
                    entry += strides[e] * mine[factors.scope_variables[e]]
                row[starts[f] + entry] += weight * factor_weights[f]

    return counts


def make_totals() -> Callable[..., None]:
    """Kernel: the sum of finite log-potentials of factors of two or more variables, and how many are -inf.

    finite and violated (U, N), by the instance of a factor, (F,).
    """

    def totals(
        factors: Factors,
        strides: IntArray,
        states: IntArray,
        instance: IntArray,
        first_unit: int,
        last_unit: int,
        finite: Array,
        violated: Array,
    ) -> None:
        for u in range(first_unit, last_unit):
            mine = states[u]
            for f in range(len(instance)):
                first, last = factors.scope_offsets[f], factors.scope_offsets[f + 1]
                if last - first < 2:
                    continue
                cell = factors.table_offsets[factors.table_of_factor[f]]
                if factors.kinds[f] != TABLE:
                    one, other = mine[factors.scope_variables[first]], mine[factors.scope_variables[first + 1]]
                    value = factors.log_potentials[cell + level(factors.kinds[f], one, other)]
                else:
                    for e in range(first, last):
                        cell += strides[e] * mine[factors.scope_variables[e]]
                    value = factors.log_potentials[cell]
                if value == -math.inf:
                    violated[u, instance[f]] += 1.0
                else:
                    finite[u, instance[f]] += value

    return totals
