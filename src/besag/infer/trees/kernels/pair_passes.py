"""The two passes of `pairs`: pairwise tables, one number of states, the linear domain.

Linear domain, one row. With e_v = exp(base_v), T = exp(log-potential), p the parent variable, c the child of a factor
f,

    u_c = e_c prod_{g below c} m_g            m_f(y_p) = sum_{y_c} T(y_p, y_c) u_c(y_c)               upwards
    q_f = e_p d_p prod_{g below p, g != f} m_g     d_c(y_c) = sum_{y_p} T(y_p, y_c) q_f(y_p)          downwards
    p(y_c) = u_c d_c / z,     p(y_p, y_c) = T q_f u_c / z,     z = sum_{y_c} u_c(y_c) d_c(y_c)

The recursion is that of `passes`, which takes factors of any arity from lists. Here the number of states is known when
a kernel is compiled, and that is where the speed comes from (see the end), so that the two have no loop in common.

Two arrays of the size of the answer are enough: `out` holds e until the belief of a variable replaces it, and the slot
of m_f in `messages` takes q_f once the products without m_f are made (by running products from both sides: no
division).

Scale. A vector is rescaled only when its sum leaves [LOW, HIGH], so that no division delays the next message; the
logarithms go to log Z. Moments are sums of q u^T / z, in the orientation of the table, to be multiplied by T once at
the end.

Range. A checked kernel reports a vector that has an entry between 0 and DELTA times its sum. If there is none, and all
tables and all of base keep the same rule, the smallest product of three, DELTA^3 LOW^2, is a normal number, and an
exact zero comes from hard zeros only.

Vectors are rows of two-dimensional arrays. The loops are in small functions that do not know the number of states,
because LLVM unrolls short loops of a known length before it tries to vectorise them; inlined into a kernel that knows
the number, the vector loops become straight-line code."""

from __future__ import annotations

import math
from collections.abc import Callable

from besag.arrays import Array, IntArray
from besag.kernels.compile import at, inlined

LOW, HIGH = 1e-30, 1e30
DELTA = 1e-80
SHARE_LIMIT = 1e200  # keeps pairs of states finite until they are multiplied by a table entry of 0


@inlined
def spread_outwards(n: int, tables: Array, t: int, x: Array, i: int, y: Array, j: int) -> None:
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
    """The sum of x_i."""
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
        if checked and is_lossy(n, scratch, j):
            return -1.0
    settle(n, u, i, multiply(n, scratch, 1, messages, low, u, i))
    settle(n, u, i, multiply_by(n, u, i, out, v))
    z = multiply(n, u, i, scratch, 0, scratch, count + 1)
    multiply_by(n, scratch, 0, out, v)
    assign(n, scratch, count + 1, 1.0, out, v)
    for j in range(count):
        settle(n, scratch, j + 1, multiply_by(n, scratch, j + 1, scratch, 0))
        settle(n, scratch, 0, multiply_by(n, scratch, 0, messages, low + j))
        if checked and (is_lossy(n, scratch, j + 1) or is_lossy(n, scratch, 0)):
            return -1.0
        assign(n, scratch, j + 1, 1.0, messages, low + j)
    return z


@inlined
def settle(n: int, x: Array, i: int, total: float) -> float:
    """Bring x_i, whose sum is total, back to a sum near 1 if it left the window; returns the logarithm of the scale.

    The logarithm is a whole number, so that sums of many of them are exact.
    """
    if LOW < total < HIGH or total == 0.0:
        return 0.0
    taken = float(math.floor(0.5 + math.log(total)))
    scale(n, x, i, math.exp(-taken))
    return taken


@inlined
def is_lossy(n: int, x: Array, i: int) -> bool:
    """Whether x_i has an entry that is neither zero nor safely away from zero."""
    least, found = DELTA * total_of(n, x, i), False
    for c in range(n):
        found = found or 0.0 < x[i, c] < least
    return found


@inlined
def add_outer(n: int, pending: Array, i: int, moments: Array, a: int) -> None:
    """moments_a += x y^T for one waiting pair of vectors."""
    for r in range(n):
        x = pending[i, r]
        for c in range(n):
            moments[a, r, c] += x * pending[i + 1, c]


@inlined
def add_outer_4(n: int, pending: Array, moments: Array, a: int) -> None:
    """moments_a += sum of x y^T over four waiting pairs, so that moments_a is loaded and stored only once."""
    for r in range(n):
        x0, x1, x2, x3 = pending[0, r], pending[2, r], pending[4, r], pending[6, r]
        for c in range(n):
            moments[a, r, c] += x0 * pending[1, c] + x1 * pending[3, c] + x2 * pending[5, c] + x3 * pending[7, c]


@inlined
def write_cell(n: int, tables: Array, t: int, pending: Array, i: int, factors: Array, start: int) -> None:
    """One factor marginal, T x y^T."""
    for r in range(n):
        x, row = pending[i, r], start + r * n
        for c in range(n):
            factors[at(row + c)] = x * pending[i + 1, c] * tables[t, r, c]


def make_beyond() -> Callable[..., int]:
    """Kernel: how many entries of base (V, K) are farther from 0 than the limit."""

    def beyond(base: Array, limit: float) -> int:
        count, flat = 0, base.reshape(-1)
        for i in range(len(flat)):
            count += 1 if abs(flat[i]) > limit else 0
        return count

    return beyond


def make_shift(n_states: int) -> Callable[..., float]:
    """Kernel: out_v = base_v - max to the nearest whole number, which goes to log Z; the lowest finite entry of out."""

    def shift(base: Array, component: IntArray, out: Array, log_z: Array) -> float:
        n = n_states if n_states > 0 else base.shape[1]
        lowest = 0.0
        for v in range(len(base)):
            highest = -math.inf
            for c in range(n):
                highest = max(highest, base[v, c])
            highest = 0.0 if highest == -math.inf else float(math.floor(0.5 + highest))
            log_z[component[v]] += highest
            for c in range(n):
                value = base[v, c] - highest
                out[v, c] = value
                if -math.inf < value < lowest:
                    lowest = value
        return lowest

    return shift


def make_upward(n_states: int, shared: int, checked: int) -> Callable[..., bool]:
    """Kernel: upward messages and log Z of one chunk; True if the range was too narrow.

    tables (2U, K, K), table and transpose, if shared, else (U, K, K). out (V, K): e. messages (., K): those of the
    chunk. scratch (max_children + 2, K). log_z (C,) is added to.
    """

    def upward(
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
        component: IntArray,
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
                if checked and is_lossy(n, scratch, 0):
                    return True
                log_z[component[v]] += settle(n, scratch, 0, total)
                total = multiply_by(n, scratch, 0, messages, k)
            if checked and is_lossy(n, scratch, 0):
                return True
            if i < first_child:
                log_z[component[v]] += math.log(total) if total > 0.0 else -math.inf
                continue
            if not LOW < total < HIGH:
                log_z[component[v]] += settle(n, scratch, 0, total)
            k = i - first_child
            m = matrix[offset + k]
            if shared:
                spread_outwards(n, tables, m ^ 1, scratch, 0, messages, k)
            elif m & 1:
                spread_outwards(n, tables, m >> 1, scratch, 0, messages, k)
            else:
                collect(n, tables, m >> 1, scratch, 0, messages, k)
            if checked and is_lossy(n, messages, k):
                return True
        return False

    return upward


def make_downward(n_states: int, shared: int, checked: int) -> Callable[..., bool]:
    """Kernel: downward messages of one chunk and the answers from them; True if the range was too narrow.

    Arrays as in `upward`; out (V, K) becomes the marginals. pending (8, K) is work space. moments (A, K, K) gets sums
    of weight q u^T / z; factors, flat with factor_offsets, gets factor marginals; either may have length 0, as may
    weights (V,), which then count as 1.
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
                    spread_outwards(n, tables, m, messages, k, scratch, 0)
                elif m & 1:
                    collect(n, tables, m >> 1, messages, k, scratch, 0)
                else:
                    spread_outwards(n, tables, m >> 1, messages, k, scratch, 0)
                if n_pending > 0 and slot[offset + k] != pending_slot:
                    for j in range(n_pending):
                        add_outer(n, pending, 2 * j, moments, pending_slot)
                    n_pending = 0
            taken = 0.0
            if checked:
                taken = settle(n, scratch, 0, total_of(n, scratch, 0))
                if is_lossy(n, scratch, 0):
                    return True
            upper, lower = 2 * n_pending + (m & 1), 2 * n_pending + 1 - (m & 1)
            if low == high:
                z = join_none(n, out, v, scratch, pending, lower)
            elif low + 1 == high:
                z, total = join_one(n, out, v, scratch, messages, low, pending, lower)
                settle(n, messages, low, total)
                if checked and is_lossy(n, messages, low):
                    return True
            else:
                z = join_many(n, checked, out, v, scratch, messages, low, high, pending, lower)
                if checked and z < 0.0:
                    return True
            share = 1.0 / z if z > 0.0 else 0.0
            scale(n, out, v, share)
            if k < 0 or (len(moments) == 0 and len(factors) == 0):
                continue
            if checked and taken != 0.0:  # z is from the d before rescaling
                share *= math.exp(-taken)
                if share > SHARE_LIMIT:
                    return True
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
