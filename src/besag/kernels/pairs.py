"""Sum-product on large forests of pairwise tables where all variables have K states: the fast kernel.

Linear domain, one row. With e_v = exp(base_v), T = exp(log-potential), p the parent variable and c the child of a factor f,

    u_c = e_c prod_{g below c} m_g            m_f(y_p) = sum_{y_c} T(y_p, y_c) u_c(y_c)          upwards
    q_f = e_p d_p prod_{g below p, g != f} m_g     d_c(y_c) = sum_{y_p} T(y_p, y_c) q_f(y_p)     downwards
    p(y_c) = u_c d_c / z,     p(y_p, y_c) = T q_f u_c / z,     z = sum_{y_c} u_c(y_c) d_c(y_c)

Two arrays of the size of the answer are enough: `out` holds e until the belief of a variable replaces it, and the slot of
m_f in `messages` takes q_f once the products without m_f are made (by running products from both sides: no division).

Scale. A vector is rescaled only when its sum leaves [LOW, HIGH], so that no division is on the way from one message to
the next; logarithms of the scales go to log Z. Moments of a shared table are sums of q u^T / z, multiplied by T once at the end.

Range. If no table has hard zeros, a message varies by no more than its table does, whatever came before it: with
`tables' log-range x most factors of a variable <= SAFE_RANGE` nothing can be lost, for any base. Otherwise every vector is
checked: an entry is 0 or at least DELTA of the sum, and so are all tables and all of base; the smallest product of three,
DELTA^3 LOW^2, is then a normal number, and a zero comes from hard zeros only. A run that meets an entry in between
reports `narrow` and has to be done again by `tree` in the LOG_SUM domain.

Shapes: V variables, G factors, C components, K states, H chunks, U tables in use, A accumulators (see `forest.accumulators`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from besag.arrays import Array, IntArray, frozen
from besag.kernels.compile import inlined, kernel_of
from besag.kernels.forest import Forest, accumulators
from besag.kernels.threads import run_chunks

LOW, HIGH = 1e-30, 1e30
DELTA = 1e-80
SAFE_RANGE = 150.0  # nats
BENIGN = 60.0  # |base| up to which exp needs no shift
BLOCK = 32768  # states exponentiated at a time: they stay in the second-level cache for the next step


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class PairPlan:
    """What the kernel needs of the structure; serves every set of numbers."""

    forest: Forest
    n_states: int
    tables: IntArray  # (U,) tables in use
    matrix: IntArray  # (G,) 2 * number among the tables in use + axis of the parent, by position
    slot: IntArray  # (G,) accumulator, by position
    table_of_slot: IntArray  # (A,) number among the tables in use
    shared: bool  # few tables: both orientations are kept


@dataclass(frozen=True, slots=True, eq=False)
class PairResult:
    log_partition: Array  # (C,) -inf where there is no labelling
    variables: Array  # (S,) marginals
    moments: Array | None  # (L,)
    narrow: bool  # True: nothing above holds, use tree in the LOG_SUM domain


@inlined
def spread(n: int, tables: Array, t: int, x: Array, i: int, y: Array, j: int) -> None:
    """y_j = x_i T_t."""
    for c in range(n):
        y[j, c] = 0.0
    for r in range(n):
        weight = x[i, r]
        for c in range(n):
            y[j, c] += weight * tables[t, r, c]


@inlined
def collect(n: int, tables: Array, t: int, x: Array, i: int, y: Array, j: int) -> None:
    """y_j = T_t x_i."""
    for r in range(n):
        total = 0.0
        for c in range(n):
            total += tables[t, r, c] * x[i, c]
        y[j, r] = total


@inlined
def assign(n: int, x: Array, i: int, factor: float, y: Array, j: int) -> float:
    """y_j = factor x_i; the sum of y_j."""
    total = 0.0
    for c in range(n):
        value = factor * x[i, c]
        y[j, c] = value
        total += value
    return total


@inlined
def multiply(n: int, x: Array, i: int, y: Array, j: int, z: Array, k: int) -> float:
    """z_k = x_i y_j, entry by entry; the sum of z_k."""
    total = 0.0
    for c in range(n):
        value = x[i, c] * y[j, c]
        z[k, c] = value
        total += value
    return total


@inlined
def join_one(n: int, out: Array, v: int, d: Array, messages: Array, k: int, u: Array, i: int) -> tuple[float, float]:
    """A variable with one child factor: u = e m, belief = d e m in place of e, q = d e in place of m; both sums."""
    total, rest = 0.0, 0.0
    for c in range(n):
        up = out[v, c] * messages[k, c]
        down = out[v, c] * d[0, c]
        belief = up * d[0, c]
        u[i, c] = up
        messages[k, c] = down
        out[v, c] = belief
        total += belief
        rest += down
    return total, rest


@inlined
def join_none(n: int, out: Array, v: int, d: Array, u: Array, i: int) -> float:
    """A variable without child factors: u = e, belief = d e in place of e; its sum."""
    total = 0.0
    for c in range(n):
        belief = out[v, c] * d[0, c]
        u[i, c] = out[v, c]
        out[v, c] = belief
        total += belief
    return total


@inlined
def settle(n: int, x: Array, i: int, total: float) -> float:
    """Bring x_i, whose sum is total, back to sum 1 where it left the window; the logarithm of what was divided by."""
    if LOW < total < HIGH or total == 0.0:
        return 0.0
    factor = 1.0 / total
    for c in range(n):
        x[i, c] *= factor
    return math.log(total)


@inlined
def between(n: int, x: Array, i: int) -> bool:
    """Whether x_i has an entry that is neither zero nor safely away from zero."""
    total = 0.0
    for c in range(n):
        total += x[i, c]
    for c in range(n):
        if 0.0 < x[i, c] < DELTA * total:
            return True
    return False


@inlined
def add_outer(n: int, pending: Array, i: int, moments: Array, a: int) -> None:
    """moments_a += x y^T for one waiting pair of vectors."""
    for r in range(n):
        x = pending[i, r]
        for c in range(n):
            moments[a, r, c] += x * pending[i + 1, c]


@inlined
def add_outer_4(n: int, pending: Array, moments: Array, a: int) -> None:
    """moments_a += sum of x y^T over four waiting pairs: the sums are loaded and stored once for all."""
    for r in range(n):
        x0, x1, x2, x3 = pending[0, r], pending[2, r], pending[4, r], pending[6, r]
        for c in range(n):
            moments[a, r, c] += x0 * pending[1, c] + x1 * pending[3, c] + x2 * pending[5, c] + x3 * pending[7, c]


@inlined
def write_cell(n: int, tables: Array, t: int, pending: Array, i: int, factors: Array, start: int) -> None:
    """One factor marginal, T x y^T."""
    cell = factors[start : start + n * n].reshape(n, n)
    for r in range(n):
        x = pending[i, r]
        for c in range(n):
            cell[r, c] = x * pending[i + 1, c] * tables[t, r, c]


def make_pass(n_states: int, shared: int, checked: int) -> Callable[..., bool]:
    """Kernel: both passes over one chunk; True where the range was too narrow.

    tables (2U, K, K), table and transpose, where shared, else (U, K, K). out (V, K): e in, marginals out. messages (., K):
    work space for the chunk's factors. scratch (max_children + 2, K), pending (8, K). log_z (C,) is added to. moments
    (A, K, K) gets sums of q u^T / z; factors, flat with offsets, gets marginals; both may have length 0.
    """

    def both_passes(
        variables: IntArray,
        child_factors: IntArray,
        component: IntArray,
        order: IntArray,
        matrix: IntArray,
        slot: IntArray,
        factor_offsets: IntArray,
        weights: Array,
        tables: Array,
        first_variable: int,
        last_variable: int,
        n_roots: int,
        out: Array,
        messages: Array,
        scratch: Array,
        pending: Array,
        log_z: Array,
        moments: Array,
        factors: Array,
    ) -> bool:
        n = n_states
        first_child = first_variable + n_roots
        offset = child_factors[first_variable]
        for i in range(last_variable - 1, first_variable - 1, -1):
            v, low, high = variables[i], child_factors[i] - offset, child_factors[i + 1] - offset
            if low == high:
                total = assign(n, out, v, 1.0, scratch, 0)
            else:
                total = multiply(n, out, v, messages, low, scratch, 0)
            for k in range(low + 1, high):
                if checked and between(n, scratch, 0):
                    return True
                log_z[component[v]] += settle(n, scratch, 0, total)
                total = multiply(n, scratch, 0, messages, k, scratch, 0)
            if checked and between(n, scratch, 0):
                return True
            if not LOW < total < HIGH:
                log_z[component[v]] += settle(n, scratch, 0, total)
            if i < first_child:
                root_total = 0.0
                for c in range(n):
                    root_total += scratch[0, c]
                log_z[component[v]] += math.log(root_total) if root_total > 0.0 else -math.inf
                continue
            k = i - first_child
            m = matrix[offset + k]
            if shared:
                spread(n, tables, m ^ 1, scratch, 0, messages, k)
            elif m & 1:
                spread(n, tables, m >> 1, scratch, 0, messages, k)
            else:
                collect(n, tables, m >> 1, scratch, 0, messages, k)
            if checked and between(n, messages, k):
                return True

        n_pending, pending_slot = 0, -1
        for i in range(first_variable, last_variable):
            v, low, high = variables[i], child_factors[i] - offset, child_factors[i + 1] - offset
            k, m = i - first_child, 0
            if i < first_child:
                for c in range(n):
                    scratch[0, c] = 1.0
            else:
                m = matrix[offset + k]
                if shared:
                    spread(n, tables, m, messages, k, scratch, 0)
                elif m & 1:
                    collect(n, tables, m >> 1, messages, k, scratch, 0)
                else:
                    spread(n, tables, m >> 1, messages, k, scratch, 0)
                if checked:
                    settle(n, scratch, 0, assign(n, scratch, 0, 1.0, scratch, 0))
                    if between(n, scratch, 0):
                        return True
            upward = 2 * n_pending + 1 - (m & 1)
            if low == high:
                z = join_none(n, out, v, scratch, pending, upward)
            elif low + 1 == high:
                z, rest = join_one(n, out, v, scratch, messages, low, pending, upward)
                settle(n, messages, low, rest)
            else:
                last = high - low
                for c in range(n):
                    scratch[last, c] = 1.0
                for j in range(last - 1, -1, -1):
                    total = multiply(n, scratch, j + 1, messages, low + j, scratch, j + 1 if j == 0 else j)
                    settle(n, scratch, 1 if j == 0 else j, total)
                z = 0.0
            if checked and low < high and between(n, messages, low):
                return True
            share = 1.0 / z if z > 0.0 else 0.0
            for c in range(n):
                out[v, c] *= share
        return False

    return both_passes
