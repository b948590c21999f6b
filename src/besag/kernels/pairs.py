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
def scale(n: int, x: Array, i: int, factor: float) -> None:
    """x_i *= factor."""
    for c in range(n):
        x[i, c] *= factor


@inlined
def multiply_by(n: int, x: Array, i: int, y: Array, j: int) -> float:
    """x_i *= y_j, entry by entry; the sum of x_i."""
    total = 0.0
    for c in range(n):
        value = x[i, c] * y[j, c]
        x[i, c] = value
        total += value
    return total


@inlined
def total_of(n: int, x: Array, i: int) -> float:
    total = 0.0
    for c in range(n):
        total += x[i, c]
    return total


@inlined
def join_none(n: int, out: Array, v: int, scratch: Array, u: Array, i: int) -> float:
    """A variable without child factors: u = e, belief = d e in place of e; its sum."""
    z = 0.0
    for c in range(n):
        belief = out[v, c] * scratch[0, c]
        u[i, c] = out[v, c]
        out[v, c] = belief
        z += belief
    return z


@inlined
def join_one(
    n: int, out: Array, v: int, scratch: Array, messages: Array, k: int, u: Array, i: int
) -> tuple[float, float]:
    """A variable with one child factor: u = e m, belief = d e m in place of e, q = d e in place of m; both sums."""
    z, total = 0.0, 0.0
    for c in range(n):
        up = out[v, c] * messages[k, c]
        down = out[v, c] * scratch[0, c]
        belief = up * scratch[0, c]
        u[i, c] = up
        messages[k, c] = down
        out[v, c] = belief
        z += belief
        total += down
    return z, total


@inlined
def join_many(
    n: int, checked: int, out: Array, v: int, scratch: Array, messages: Array, low: int, high: int, u: Array, i: int
) -> float:
    """A variable with child factors low..high: as join_one, each q without its own message; the sum, or -1: narrow.

    Row 0 of scratch holds d, then e d times the messages so far; row 1 + j the product of the messages after number j.
    """
    count = high - low
    for c in range(n):
        scratch[count, c] = 1.0
    for j in range(count - 1, 0, -1):
        total = multiply(n, scratch, j + 1, messages, low + j, scratch, j)
        settle(n, scratch, j, total)
        if checked and between(n, scratch, j):
            return -1.0
    settle(n, u, i, multiply(n, scratch, 1, messages, low, u, i))
    settle(n, u, i, multiply_by(n, u, i, out, v))
    z = multiply(n, u, i, scratch, 0, scratch, count + 1)
    multiply_by(n, scratch, 0, out, v)
    assign(n, scratch, count + 1, 1.0, out, v)
    for j in range(count):
        settle(n, scratch, j + 1, multiply_by(n, scratch, j + 1, scratch, 0))
        settle(n, scratch, 0, multiply_by(n, scratch, 0, messages, low + j))
        if checked and (between(n, scratch, j + 1) or between(n, scratch, 0)):
            return -1.0
        assign(n, scratch, j + 1, 1.0, messages, low + j)
    return z


@inlined
def settle(n: int, x: Array, i: int, total: float) -> float:
    """Bring x_i, whose sum is total, back to sum 1 where it left the window; the logarithm of what was divided by."""
    if LOW < total < HIGH or total == 0.0:
        return 0.0
    scale(n, x, i, 1.0 / total)
    return math.log(total)


@inlined
def between(n: int, x: Array, i: int) -> bool:
    """Whether x_i has an entry that is neither zero nor safely away from zero."""
    total = total_of(n, x, i)
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


def make_shift(n_states: int) -> Callable[..., float]:
    """Kernel: out_v = base_v - max, with the maxima added to log Z; the lowest finite entry of out."""

    def shift(
        base: Array, first_variable: int, last_variable: int, component: IntArray, out: Array, log_z: Array
    ) -> float:
        n = n_states if n_states > 0 else base.shape[1]
        lowest = 0.0
        for v in range(first_variable, last_variable):
            highest = -math.inf
            for c in range(n):
                highest = max(highest, base[v, c])
            if highest == -math.inf:
                highest = 0.0
            log_z[component[v]] += highest
            for c in range(n):
                value = base[v, c] - highest
                out[v, c] = value
                if -math.inf < value < lowest:
                    lowest = value
        return lowest

    return shift


def make_upward(n_states: int, shared: int, checked: int) -> Callable[..., bool]:
    """Kernel: upward messages and log Z of one chunk; True where the range was too narrow.

    tables (2U, K, K), table and transpose, where shared, else (U, K, K). out (V, K): e. messages (., K): those of the
    chunk. scratch (max_children + 2, K). log_z (C,) is added to.
    """

    def upward(
        variables: IntArray,
        child_factors: IntArray,
        component: IntArray,
        matrix: IntArray,
        tables: Array,
        first_variable: int,
        first_child: int,
        last_variable: int,
        out: Array,
        messages: Array,
        scratch: Array,
        log_z: Array,
    ) -> bool:
        n = n_states if n_states > 0 else out.shape[1]
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
                total = multiply_by(n, scratch, 0, messages, k)
            if checked and between(n, scratch, 0):
                return True
            if i < first_child:
                log_z[component[v]] += math.log(total) if total > 0.0 else -math.inf
                continue
            if not LOW < total < HIGH:
                log_z[component[v]] += settle(n, scratch, 0, total)
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
        return False

    return upward


def make_downward(n_states: int, shared: int, checked: int) -> Callable[..., bool]:
    """Kernel: downward messages of one chunk and all that follows from them; True where the range was too narrow.

    Arrays as in `upward`; out (V, K) becomes the marginals. pending (8, K) is work space. moments (A, K, K) gets sums of
    weight q u^T / z; factors, flat with factor_offsets, gets factor marginals; either may have length 0, and so may
    weights (V,), which then are 1.
    """

    def downward(
        variables: IntArray,
        child_factors: IntArray,
        matrix: IntArray,
        tables: Array,
        first_variable: int,
        first_child: int,
        last_variable: int,
        out: Array,
        messages: Array,
        scratch: Array,
        pending: Array,
        weights: Array,
        slot: IntArray,
        moments: Array,
        order: IntArray,
        factor_offsets: IntArray,
        factors: Array,
    ) -> bool:
        n = n_states if n_states > 0 else out.shape[1]
        offset = child_factors[first_variable]
        n_pending, pending_slot = 0, 0
        for i in range(first_variable, last_variable):
            v, low, high = variables[i], child_factors[i] - offset, child_factors[i + 1] - offset
            k, m = i - first_child, 0
            if k < 0:
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
                if n_pending > 0 and slot[offset + k] != pending_slot:
                    for j in range(n_pending):
                        add_outer(n, pending, 2 * j, moments, pending_slot)
                    n_pending = 0
            if checked:
                settle(n, scratch, 0, total_of(n, scratch, 0))
                if between(n, scratch, 0):
                    return True
            upper, lower = 2 * n_pending + (m & 1), 2 * n_pending + 1 - (m & 1)
            if low == high:
                z = join_none(n, out, v, scratch, pending, lower)
            elif low + 1 == high:
                z, total = join_one(n, out, v, scratch, messages, low, pending, lower)
                settle(n, messages, low, total)
                if checked and between(n, messages, low):
                    return True
            else:
                z = join_many(n, checked, out, v, scratch, messages, low, high, pending, lower)
                if checked and z < 0.0:
                    return True
            share = 1.0 / z if z > 0.0 else 0.0
            scale(n, out, v, share)
            if k < 0 or (len(moments) == 0 and len(factors) == 0):
                continue
            assign(n, messages, k, share, pending, upper)
            if len(factors) > 0:
                t = m - (m & 1) if shared else m >> 1
                write_cell(n, tables, t, pending, 2 * n_pending, factors, factor_offsets[order[offset + k]])
            if len(moments) > 0:
                if len(weights) > 0:
                    scale(n, pending, upper, weights[v])
                pending_slot = slot[offset + k]
                n_pending += 1
                if not shared:
                    add_outer(n, pending, 0, moments, pending_slot)
                    n_pending = 0
                elif n_pending == 4:
                    add_outer_4(n, pending, moments, pending_slot)
                    n_pending = 0
        for j in range(n_pending):
            add_outer(n, pending, 2 * j, moments, pending_slot)
        return False

    return downward


def plan_pairs(forest: Forest, n_states: int, table_of_factor: IntArray) -> PairPlan:
    """The plan for a forest whose factors are pairwise tables of n_states x n_states."""
    tables, number = np.unique(table_of_factor[forest.order], return_inverse=True)
    numbers = np.zeros(len(table_of_factor), np.int64)
    numbers[forest.order] = number
    slot, table_of_slot = accumulators(forest, numbers, len(tables))
    matrix = 2 * number + forest.parent_axis
    shared = 4 * len(tables) <= len(number)
    return PairPlan(forest, n_states, frozen(tables), frozen(matrix), slot, table_of_slot, shared)


def run(
    plan: PairPlan,
    base: Array,
    table_offsets: IntArray,
    log_potentials: Array,
    *,
    want_variables: bool = True,
    want_moments: bool = False,
    weights: Array | None = None,
    factor_offsets: IntArray | None = None,
    n_threads: int | None = None,
    compile: bool = True,
) -> PairResult:
    """log Z, and what else is wanted, from base (S,) and the tables."""
    forest, n = plan.forest, plan.n_states
    base = frozen(base.reshape(-1, n))
    tables, shift, checked = _weights_of(plan, table_offsets, log_potentials)
    flags = (n, int(plan.shared), int(checked))
    upward, downward = (kernel_of(make, *flags, compile=compile) for make in (make_upward, make_downward))
    sizes = np.bincount(forest.component, minlength=len(forest.roots))
    log_z = shift * (sizes - 1.0)
    out = np.empty(base.shape)
    moments = np.zeros((len(plan.table_of_slot) if want_moments else 0, n, n))
    factors = np.empty(0 if factor_offsets is None else int(factor_offsets[-1]))
    offsets = frozen(np.zeros(1, np.int64) if factor_offsets is None else factor_offsets)
    weights = frozen(np.empty(0) if weights is None else weights)
    linear = _Linear(plan, base, out, log_z, checked, compile)
    narrow = np.zeros(forest.n_chunks, np.bool_)
    if not forest.contiguous:
        linear.fill(0, len(base))

    def chunk(h: int) -> None:
        first, last = int(forest.chunk_variables[h]), int(forest.chunk_variables[h + 1])
        if forest.contiguous:
            linear.fill(first, last)
        first_child = first + int(forest.chunk_roots[h + 1] - forest.chunk_roots[h])
        messages = np.empty((last - first_child, n))
        scratch, pending = np.empty((forest.max_children + 2, n)), np.empty((8, n))
        where = (tables, first, first_child, last, out, messages, scratch)
        links = (forest.variables, forest.child_factors)
        narrow[h] = upward(*links, forest.component, plan.matrix, *where, log_z)
        if want_variables and not narrow[h]:
            extras = (pending, weights, plan.slot, moments, forest.order, offsets, factors)
            narrow[h] = downward(*links, plan.matrix, *where, *extras)

    run_chunks(chunk, forest.n_chunks, n_threads)
    return log_z, out, moments, factors, tables, narrow.any()


class _Linear:
    def __init__(self, plan, base, out, log_z, checked, compile):
        self.__dict__.update(locals())
        self.shift = kernel_of(make_shift, plan.n_states, compile=compile)
        self.lowest=0.0
    def fill(self, first, last):
        step = BLOCK // self.plan.n_states
        for a in range(first, last, step):
            b = min(a + step, last)
            block = self.base[a:b]
            if not self.checked and block.min() >= -BENIGN and block.max() <= BENIGN:
                np.exp(block, out=self.out[a:b])
            else:
                self.lowest = min(self.lowest, self.shift(self.base, a, b, self.plan.forest.component, self.out, self.log_z))
                np.exp(self.out[a:b], out=self.out[a:b])

def _weights_of(plan, table_offsets, log_potentials):
    n=plan.n_states
    t = log_potentials.reshape(-1,n,n)[plan.tables]
    shift=t.max()
    w=np.exp(t-shift)
    if plan.shared:
        w=np.ascontiguousarray(np.stack([w,w.transpose(0,2,1)],1)).reshape(-1,n,n)
    return frozen(w), shift, bool(t.min()==-np.inf)
