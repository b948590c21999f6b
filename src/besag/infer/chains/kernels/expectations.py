"""The E-step of hidden Markov models: forward and backward on chains whose tokens share rows of weights.

    p(y, x) = pi(y_0) prod_t T(y_t-1, y_t) prod_t e_t(y_t)        e_t = rows[row[t]], what token t says of its state

Sequence n has tokens offsets[n] to offsets[n + 1]; rows (R, W) are linear, each with its largest entry 1, `taken` (R,)
the logarithms of what was taken out; R is the number of symbols, or that of tokens. W is K padded. Normalised as one
goes, with c_t the sum of a step,

    a_0 = pi e_0 / c_0,   a_t = (a_t-1 T) e_t / c_t        log Z = sum_t log c_t + taken
    b_L = 1,              b_t-1 = T (e_t b_t / c_t)        p(y_t) = a_t b_t,   p(y_t-1, y_t) = a_t-1 T (e_t b_t / c_t)

No posterior is kept: they are added up over tokens as they come, p(y_t) to counts[row[t]], pairs without their factor T
to be multiplied by it once at the end. Only a (L, W) of one sequence is stored; where the posteriors are what is asked
for, they take its place. A step does not wait for 1 / c_t of the
step before: it goes on from c_t a_t, and the quotient is made meanwhile; logarithms are taken of products of many c_t.

Range. Entries of pi and e are zero or at least SMALLEST, those of T zero or at least FAINTEST, and a sequence in which
an entry of a falls between zero and DELTA is marked in `lost` (N,), so that products of three are normal numbers and an
exact zero comes from hard zeros only. Sequences marked before are left out. `log_expectations` does both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from besag.arrays import Array, BoolArray, IntArray
from besag.infer.chains.kernels.gradient import pad_columns
from besag.infer.chains.kernels.marginals import longest_of
from besag.infer.trees.kernels.pair_passes import DELTA, assign, multiply_by, spread_outwards
from besag.kernels.compile import inlined

Kernel: TypeAlias = Callable[..., int]
SMALLEST, FAINTEST = 1e-60, 1e-140
SHRUNK = 1e-100  # products of normalisers are kept above it
BY_ROW, BY_TOKEN = 1, 2
STRIDE = 1023  # tokens between two corrections of what rounding adds up to on the way back


@inlined
def weigh_step(n: int, x: Array, rows: Array, r: int, factor: float, y: Array) -> float:
    """y = factor x rows_r, entry by entry; the sum of y."""
    total = 0.0
    for k in range(n):
        value = x[0, k] * (rows[r, k] * factor)
        y[0, k] = value
        total += value
    return total


@inlined
def keep_step(n: int, y: Array, factor: float, a: Array, t: int, lowest: Array) -> None:
    """a_t = factor y; lowest (1, W): the least entries so far that are not zero."""
    for k in range(n):
        value = factor * y[0, k]
        a[t, k] = value
        low = value if value > 0.0 else 1.0
        lowest[0, k] = low if low < lowest[0, k] else lowest[0, k]


@inlined
def is_lost(n: int, lowest: Array) -> bool:
    """Whether an entry came too near to zero."""
    least = 1.0
    for k in range(n):
        least = min(least, lowest[0, k])
    return least < DELTA


@inlined
def add_marginal(n: int, a: Array, t: int, b: Array, counts: Array, r: int) -> None:
    """counts_r += a_t b."""
    for k in range(n):
        counts[r, k] += a[t, k] * b[0, k]


@inlined
def total_marginal(n: int, a: Array, t: int, b: Array) -> float:
    """The sum of a_t b."""
    total = 0.0
    for k in range(n):
        total += a[t, k] * b[0, k]
    return total


@inlined
def weigh_back(n: int, rows: Array, r: int, b: Array, factor: float, a: Array, t: int, u: Array, i: int) -> None:
    """u_i = factor rows_r b where a_t is not 0: elsewhere b has no bound."""
    for k in range(n):
        u[i, k] = rows[r, k] * (b[0, k] * factor) if a[t, k] > 0.0 else 0.0


@inlined
def add_pairs(n: int, a: Array, t: int, u: Array, pairs: Array) -> None:
    """pairs += a_t (x) u_0 + a_t+1 (x) u_1 + a_t+2 (x) u_2 + a_t+3 (x) u_3."""
    for r in range(n):
        x0, x1, x2, x3 = a[t, r], a[t + 1, r], a[t + 2, r], a[t + 3, r]
        for k in range(n):
            pairs[r, k] += x0 * u[0, k] + x1 * u[1, k] + x2 * u[2, k] + x3 * u[3, k]


@inlined
def add_pair(n: int, a: Array, t: int, u: Array, i: int, pairs: Array) -> None:
    """pairs += a_t (x) u_i."""
    for r in range(n):
        x = a[t, r]
        for k in range(n):
            pairs[r, k] += x * u[i, k]


def make_expectations(n_states: int, marginals: int, paired: int) -> Kernel:
    """The kernel for K states: sequences [start, stop) -> log Z, and what is asked for; the number that were lost.

    marginals: 0, BY_ROW for counts (R, W), or BY_TOKEN; paired: whether begun (1, W) and pairs (W, W) are added to. a:
    (T, W) for the posteriors of all tokens, (L, W) as room for the longest sequence, (1, W) for log Z alone.
    BY_TOKEN goes without pairs, which need what it writes over.
    """
    width = pad_columns(n_states)

    def kernel(
        rows: Array,
        taken: Array,
        row: IntArray,
        initial: Array,
        tables: Array,
        offsets: IntArray,
        start: int,
        stop: int,
        a: Array,
        counts: Array,
        begun: Array,
        pairs: Array,
        log_z: Array,
        lost: BoolArray,
    ) -> int:
        n, n_lost = width, 0
        backward = marginals > 0 or paired > 0
        share = np.empty(longest_of(offsets, start, stop) if backward else 1)
        x, y, b, lowest, u = np.empty((1, n)), np.empty((1, n)), np.empty((1, n)), np.empty((1, n)), np.empty((4, n))
        for s in range(start, stop):
            first, length = offsets[s], offsets[s + 1] - offsets[s]
            origin = first if marginals == BY_TOKEN else 0
            if lost[s]:
                n_lost += 1
                continue
            value, product, factor = 0.0, 1.0, 1.0
            for k in range(n):
                lowest[0, k] = 1.0
            for t in range(length):
                r = row[first + t]
                if t == 0:
                    assign(n, initial, 0, 1.0, y, 0)
                else:
                    spread_outwards(n, tables, 0, x, 0, y, 0)
                total = weigh_step(n, y, rows, r, factor, x)
                if total == 0.0:
                    value = -math.inf
                    break
                factor = 1.0 / total
                at = t if backward else 0
                keep_step(n, x, factor, a, origin + at, lowest)
                share[at] = factor
                value += taken[r]
                product *= total
                if product < SHRUNK:
                    value += math.log(product)
                    product = 1.0
            lost[s] = is_lost(n, lowest)
            log_z[s] = value + math.log(product)
            if lost[s]:
                n_lost += 1
                continue
            if value == -math.inf and marginals == BY_TOKEN:
                a[origin : origin + length] = 0.0
            if not backward or value == -math.inf:
                continue
            waiting = 0
            for k in range(n):
                b[0, k] = 1.0
            for i in range(length):
                t = length - 1 - i
                r = row[first + t]
                if t & STRIDE == STRIDE:
                    factor = 1.0 / total_marginal(n, a, origin + t, b)
                    for k in range(n):
                        b[0, k] *= factor
                if marginals == BY_ROW:
                    add_marginal(n, a, origin + t, b, counts, r)
                slot = 3 - waiting
                if t > 0:
                    weigh_back(n, rows, r, b, share[t], a, origin + t, u, slot)
                if marginals == BY_TOKEN:
                    multiply_by(n, a, origin + t, b, 0)
                if t == 0:
                    break
                spread_outwards(n, tables, 1, u, slot, b, 0)
                waiting += 1
                if paired and waiting == 4:
                    add_pairs(n, a, origin + t - 1, u, pairs)
                waiting = waiting & 3
            if paired and length > 0:
                for i in range(waiting):
                    add_pair(n, a, origin + waiting - 1 - i, u, 3 - i, pairs)
                add_marginal(n, a, origin, b, begun, 0)
        return n_lost

    return kernel
