"""log Z of chains and its gradient in one pass over the data: the bulk of training a chain CRF.

A chain has log-potentials  x_t theta  of its labels, and one table of transitions. Token t has attributes with full
rows of parameters, row[first_row[t]:first_row[t + 1]], and single parameters: single[first_single[t]:...] is number W +
label; all with their values where these are not one (`besag.learn.losses.chains.occurrences`). With e_t = exp(x_t theta
- their largest) and T = exp(transition), normalised as one goes,

    a_0 = e_0 / c_0,   a_t = (a_t-1 T) e_t / c_t          log Z = sum_t log c_t + the largest
    b_L = 1,           b_t-1 = T (e_t b_t / c_t)          p(y_t) = a_t b_t
    p(y_t-1, y_t) = a_t-1 T (e_t b_t / c_t)               all times the weight of the sequence, which b carries

The recursion is that of `marginals`, which has to keep what is thrown away here and handles what is ruled out.

Nothing of the size of the data is stored: the work space of one sequence stays in the cache, and the output is the
gradient: `rows` (R, W), `singles` (S,) and `pairs` (1, W, W), the last to be multiplied by T at the end. W is K padded.

Range, as in `besag.infer.trees.kernels.pair_passes`: weights may be no smaller than DELTA times the largest. If no
transition is ruled out, every state can then be reached from the largest of the previous step, and whatever underflows
is negligible beside that. Otherwise a checked kernel tests each vector. A kernel returns -1, or the first sequence for
which the range does not suffice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.infer.trees.kernels.pair_passes import (
    DELTA,
    add_outer,
    add_outer_4,
    assign,
    is_lossy,
    multiply,
    multiply_by,
    scale,
    spread_outwards,
)
from besag.kernels.compile import at, gathering, inlined
from besag.kernels.exponential import exp_below
from besag.kernels.sparse import add_row

Kernel: TypeAlias = Callable[..., int]
LOWEST = math.log(DELTA)


@gathering
def token_products(
    n: int,
    weighted: int,
    first_row: AnyArray,
    row: AnyArray,
    row_value: Array,
    rows: Array,
    first_single: AnyArray,
    single: AnyArray,
    single_value: Array,
    singles: Array,
    t: int,
    unary: Array,
) -> None:
    """unary (W,) = x_t theta."""
    for k in range(n):
        unary[k] = 0.0
    for j in range(first_row[t], first_row[t + 1]):
        add_row(n, unary, 0, rows, int(row[j]) * n, row_value[j] if weighted else 1.0)
    for j in range(first_single[t], first_single[t + 1]):
        number, label = at(single[j]) // at(n), at(single[j]) % at(n)
        unary[label] += (single_value[j] if weighted else 1.0) * singles[number]


@gathering
def token_moments(
    n: int,
    weighted: int,
    first_row: AnyArray,
    row: AnyArray,
    row_value: Array,
    rows: Array,
    first_single: AnyArray,
    single: AnyArray,
    single_value: Array,
    singles: Array,
    t: int,
    marginal: Array,
) -> None:
    """The adjoint: add x_t (x) marginal (W,) to rows and singles."""
    for j in range(first_row[t], first_row[t + 1]):
        add_row(n, rows, int(row[j]) * n, marginal, 0, row_value[j] if weighted else 1.0)
    for j in range(first_single[t], first_single[t + 1]):
        number, label = at(single[j]) // at(n), at(single[j]) % at(n)
        singles[number] += (single_value[j] if weighted else 1.0) * marginal[label]


@inlined
def rule_out(n: int, unary: Array, ends: Array, is_first: bool, is_last: bool, label: int) -> None:
    """Set -inf for labels that may not begin or end a sequence, and for all but a known label."""
    for k in range(n):
        if is_first:
            unary[k] += ends[0, k]
        if is_last:
            unary[k] += ends[1, k]
        if label >= 0 and k != label:
            unary[k] = -math.inf


@inlined
def exponentials(n: int, width: int, unary: Array, e: Array, t: int) -> tuple[float, float]:
    """e_t = exp(unary - its largest); returns the largest, and how far below it the lowest finite one is."""
    highest, lowest = -math.inf, math.inf
    for k in range(n):
        highest = max(highest, unary[k])
    for k in range(n):
        lowest = min(lowest, unary[k] if unary[k] > -math.inf else highest)
    for k in range(n):
        e[t, k] = exp_below(unary[k] - highest)
    for k in range(n, width):
        e[t, k] = 0.0
    return highest, lowest - highest


def pad_columns(n_states: int) -> int:
    """The number of columns for K labels that suits vector instructions best."""
    return n_states if n_states <= 4 else (n_states + 3) // 4 * 4 if n_states <= 8 else (n_states + 7) // 8 * 8


def make_gradient(n_states: int, weighted: int, checked: int) -> Kernel:
    """The kernel for K labels; weighted: values are not all one; checked: there are hard zeros or known labels.

    Rows and tables have pad_columns(K) columns; those beyond K stay 0.
    """
    width = pad_columns(n_states)

    def kernel(
        first_row: AnyArray,
        row: AnyArray,
        row_value: Array,
        first_single: AnyArray,
        single: AnyArray,
        single_value: Array,
        weight_rows: Array,
        weight_singles: Array,
        ends: Array,
        tables: Array,
        offsets: IntArray,
        of_sequence: Array,
        known: IntArray,
        rows: Array,
        singles: Array,
        pairs: Array,
        log_z: Array,
    ) -> int:
        n, longest = width, 0
        n_sequences = len(offsets) - 1
        for s in range(n_sequences):
            longest = max(longest, offsets[s + 1] - offsets[s])
        e, a, c, unary = np.empty((longest, n)), np.empty((longest, n)), np.empty(longest), np.empty(n)
        b, marginal, pending = np.empty((1, n)), np.empty(n), np.empty((8, n))
        for s in range(n_sequences):
            origin, length, log_z[s] = offsets[s], offsets[s + 1] - offsets[s], 0.0
            for t in range(length):
                token_products(
                    n,
                    weighted,
                    first_row,
                    row,
                    row_value,
                    weight_rows,
                    first_single,
                    single,
                    single_value,
                    weight_singles,
                    origin + t,
                    unary,
                )
                if checked:
                    told = known[origin + t] if len(known) > 0 else -1
                    rule_out(n, unary, ends, t == 0, t == length - 1, told)
                highest, lowest = exponentials(n_states, n, unary, e, t)
                if not lowest > LOWEST:
                    return s
                if t == 0:
                    total = assign(n, e, 0, 1.0, a, 0)
                else:
                    spread_outwards(n, tables, 0, a, t - 1, b, 0)
                    total = multiply(n, e, t, b, 0, a, t)
                if not total > DELTA:
                    return s
                c[t] = 1.0 / total
                scale(n, a, t, c[t])
                if checked and is_lossy(n, a, t):
                    return s
                log_z[s] += highest + math.log(total)
            n_pending = 0
            for k in range(n):
                b[0, k] = of_sequence[s]
            for t in range(length - 1, -1, -1):
                for k in range(n):
                    marginal[k] = a[t, k] * b[0, k]
                token_moments(
                    n,
                    weighted,
                    first_row,
                    row,
                    row_value,
                    rows,
                    first_single,
                    single,
                    single_value,
                    singles,
                    origin + t,
                    marginal,
                )
                if t == 0:
                    break
                multiply_by(n, b, 0, e, t)
                assign(n, a, t - 1, 1.0, pending, 2 * n_pending)
                assign(n, b, 0, c[t], pending, 2 * n_pending + 1)
                spread_outwards(n, tables, 1, pending, 2 * n_pending + 1, b, 0)
                n_pending += 1
                if n_pending == 4:
                    add_outer_4(n, pending, pairs, 0)
                    n_pending = 0
            for j in range(n_pending):
                add_outer(n, pending, 2 * j, pairs, 0)
        return -1

    return kernel
