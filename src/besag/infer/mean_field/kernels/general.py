"""Coordinate ascent of a product distribution q(y) = prod_v q_v(y_v), and expectations under it; any factors.

    logits_v(k) = base_v(k) + sum over factors f on v of E_q[log-potential_f | y_v = k]       q_v propto exp(logits_v)

With all other q fixed this is the q_v of the highest lower bound on log Z, so a sweep never lowers it, 001.

Hard zeros. 0 times -inf is 0: only settings of the other variables that q can take count, each of them by its own q > 0
and not by a product, which may underflow. A variable for which every state is at -inf keeps its q.

Shapes: A rows of q, of which row a has the base of row a mod R; S states of all variables; positions count along the
order of `schedule`. A table is read row by row, the last axis innermost; `digits` are the states of the axes before it.

Kernels take their factors apart once (`*factors`): a field of a tuple in an inner loop costs six times as much.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.kernels.compile import inlined
from besag.kernels.factors import TABLE, Factors
from besag.model.structured.kernels.rules import add_expected_structured, expect_structured


@inlined
def weight_of(
    state_offsets: IntArray,
    scope_variables: IntArray,
    scope: int,
    n_axes: int,
    skipped: int,
    digits: IntArray,
    p: AnyArray,
) -> float:
    """The probability of the digits of the first axes but one; -1 where one of them cannot be."""
    weight, possible = 1.0, True
    for a in range(n_axes):
        if a != skipped:
            x = p[state_offsets[scope_variables[scope + a]] + digits[a]]
            weight *= x
            possible = possible and x > 0.0
    return weight if possible else -1.0


@inlined
def advance(state_offsets: IntArray, scope_variables: IntArray, scope: int, n_axes: int, digits: IntArray) -> None:
    """The next setting of the first axes, in row-major order."""
    for a in range(n_axes - 1, -1, -1):
        v = scope_variables[scope + a]
        digits[a] += 1
        if digits[a] < state_offsets[v + 1] - state_offsets[v]:
            return
        digits[a] = 0


@inlined
def row_mean(hard: int, values: AnyArray, row: int, p: AnyArray, first: int, n: int) -> float:
    """sum over k of p(k) times a row of a table; -inf where a possible state is ruled out."""
    total = 0.0
    for k in range(n):
        x = p[first + k]
        if hard == 0 or x > 0.0:
            total += x * values[row + k]
    return total


@inlined
def add_row(hard: int, values: AnyArray, row: int, weight: float, n: int, logits: Array) -> None:
    """logits += weight times a row of a table."""
    for k in range(n):
        if hard == 1 and values[row + k] == -math.inf:
            logits[k] = -math.inf
        else:
            logits[k] += weight * values[row + k]


@inlined
def add_expected(
    hard: int,
    state_offsets: IntArray,
    scope_offsets: IntArray,
    scope_variables: IntArray,
    kinds: IntArray,
    table_of_factor: IntArray,
    table_offsets: IntArray,
    values: AnyArray,
    f: int,
    axis: int,
    p: AnyArray,
    digits: IntArray,
    logits: Array,
) -> None:
    """logits(k) += E_p[log-potential of f], given that the variable on an axis is k."""
    scope, n_leading = scope_offsets[f], scope_offsets[f + 1] - scope_offsets[f] - 1
    start, stop = table_offsets[table_of_factor[f]], table_offsets[table_of_factor[f] + 1]
    last = scope_variables[scope + n_leading]
    first_last, n_last = state_offsets[last], state_offsets[last + 1] - state_offsets[last]
    if kinds[f] != TABLE:
        other = state_offsets[scope_variables[scope + 1 - axis]]
        add_expected_structured(kinds[f], axis, n_last, values, start, p, other, logits)
    elif n_leading == 1 and axis == 0:
        for k in range((stop - start) // n_last):
            logits[k] += row_mean(hard, values, start + k * n_last, p, first_last, n_last)
    elif n_leading == 1:
        above = state_offsets[scope_variables[scope]]
        for j in range((stop - start) // n_last):
            if hard == 0 or p[above + j] > 0.0:
                add_row(hard, values, start + j * n_last, p[above + j], n_last, logits)
    else:
        for a in range(n_leading):
            digits[a] = 0
        for row in range(start, stop, n_last):
            weight = weight_of(state_offsets, scope_variables, scope, n_leading, axis, digits, p)
            if weight >= 0.0 and axis == n_leading:
                add_row(hard, values, row, weight, n_last, logits)
            elif weight >= 0.0:
                mean = row_mean(hard, values, row, p, first_last, n_last)
                logits[digits[axis]] += mean if mean == -math.inf else weight * mean
            advance(state_offsets, scope_variables, scope, n_leading, digits)


@inlined
def mean_of(
    hard: int,
    state_offsets: IntArray,
    scope_offsets: IntArray,
    scope_variables: IntArray,
    kinds: IntArray,
    table_of_factor: IntArray,
    table_offsets: IntArray,
    values: AnyArray,
    f: int,
    p: AnyArray,
    digits: IntArray,
) -> float:
    """E_p[log-potential of f]."""
    scope, n_leading = scope_offsets[f], scope_offsets[f + 1] - scope_offsets[f] - 1
    start, stop = table_offsets[table_of_factor[f]], table_offsets[table_of_factor[f] + 1]
    last = scope_variables[scope + n_leading]
    first_last, n_last = state_offsets[last], state_offsets[last + 1] - state_offsets[last]
    above, total = state_offsets[scope_variables[scope]], 0.0
    if kinds[f] != TABLE:
        total = expect_structured(kinds[f], n_last, values, start, p, above, first_last)
    elif n_leading == 1:
        for j in range((stop - start) // n_last):
            if hard == 0 or p[above + j] > 0.0:
                total += p[above + j] * row_mean(hard, values, start + j * n_last, p, first_last, n_last)
    else:
        for a in range(n_leading):
            digits[a] = 0
        for row in range(start, stop, n_last):
            weight = weight_of(state_offsets, scope_variables, scope, n_leading, -1, digits, p)
            if weight >= 0.0:
                mean = row_mean(hard, values, row, p, first_last, n_last)
                total += mean if mean == -math.inf else weight * mean
            advance(state_offsets, scope_variables, scope, n_leading, digits)
    return total


@inlined
def normalise(logits: Array, n: int, p: AnyArray, first: int) -> float:
    """p = exp(logits), normalised, in its place; the total variation distance from what it was."""
    high = -math.inf
    for k in range(n):
        high = max(high, logits[k])
    if high == -math.inf:
        return 0.0
    total, change = 0.0, 0.0
    for k in range(n):
        logits[k] = math.exp(logits[k] - high)
        total += logits[k]
    for k in range(n):
        x = logits[k] / total
        change += abs(x - p[first + k])
        p[first + k] = x
    return change / 2


@inlined
def most_of(offsets: IntArray, chosen: IntArray, start: int, stop: int) -> int:
    """The largest of the chosen pieces start to stop, at least 1."""
    most = 1
    for i in range(start, stop):
        most = max(most, offsets[chosen[i] + 1] - offsets[chosen[i]])
    return most


def make_sweep(hard: int) -> Callable[..., None]:
    """Kernel: q_v of the variables at positions start to stop, one after the other, in rows[first_row:last_row]."""

    def sweep(
        factors: Factors,
        order: IntArray,
        first: IntArray,
        factor: IntArray,
        axis: IntArray,
        base: AnyArray,
        start: int,
        stop: int,
        rows: IntArray,
        first_row: int,
        last_row: int,
        q: AnyArray,
        change: Array,
    ) -> None:
        state_offsets, scope_offsets, scope_variables, kinds, table_of_factor, table_offsets, values = factors
        logits = np.empty(most_of(state_offsets, order, start, stop))
        digits = np.zeros(most_of(scope_offsets, factor, first[start], first[stop]), np.int64)
        for r in range(first_row, last_row):
            p, b = q[rows[r]], base[rows[r] % len(base)]
            for i in range(start, stop):
                s = state_offsets[order[i]]
                n = state_offsets[order[i] + 1] - s
                for k in range(n):
                    logits[k] = b[s + k]
                for j in range(first[i], first[i + 1]):
                    add_expected(
                        hard,
                        state_offsets,
                        scope_offsets,
                        scope_variables,
                        kinds,
                        table_of_factor,
                        table_offsets,
                        values,
                        factor[j],
                        axis[j],
                        p,
                        digits,
                        logits,
                    )
                change[r] = max(change[r], normalise(logits, n, p, s))

    return sweep


def make_tilt(hard: int) -> Callable[..., None]:
    """Kernel: the logits themselves, of the variables at positions start to stop, in rows[first_row:last_row]."""

    def tilt(
        factors: Factors,
        order: IntArray,
        first: IntArray,
        factor: IntArray,
        axis: IntArray,
        base: AnyArray,
        start: int,
        stop: int,
        rows: IntArray,
        first_row: int,
        last_row: int,
        q: AnyArray,
        tilted: Array,
    ) -> None:
        state_offsets, scope_offsets, scope_variables, kinds, table_of_factor, table_offsets, values = factors
        logits = np.empty(most_of(state_offsets, order, start, stop))
        digits = np.zeros(most_of(scope_offsets, factor, first[start], first[stop]), np.int64)
        for r in range(first_row, last_row):
            p, b, out = q[rows[r]], base[rows[r] % len(base)], tilted[rows[r]]
            for i in range(start, stop):
                s = state_offsets[order[i]]
                n = state_offsets[order[i] + 1] - s
                for k in range(n):
                    logits[k] = b[s + k]
                for j in range(first[i], first[i + 1]):
                    add_expected(
                        hard,
                        state_offsets,
                        scope_offsets,
                        scope_variables,
                        kinds,
                        table_of_factor,
                        table_offsets,
                        values,
                        factor[j],
                        axis[j],
                        p,
                        digits,
                        logits,
                    )
                for k in range(n):
                    out[s + k] = logits[k]

    return tilt


def make_means(hard: int) -> Callable[..., None]:
    """Kernel: E_p[log-potential] of used factors start to stop, for all rows p (R, S), into means (R, F)."""

    def means(factors: Factors, used: IntArray, start: int, stop: int, p: Array, out: Array) -> None:
        state_offsets, scope_offsets, scope_variables, kinds, table_of_factor, table_offsets, values = factors
        digits = np.zeros(most_of(scope_offsets, used, start, stop), np.int64)
        for r in range(len(p)):
            own, row = p[r], out[r]
            for j in range(start, stop):
                row[used[j]] = mean_of(
                    hard,
                    state_offsets,
                    scope_offsets,
                    scope_variables,
                    kinds,
                    table_of_factor,
                    table_offsets,
                    values,
                    used[j],
                    own,
                    digits,
                )

    return means
