"""An upper bound on the weight of every labelling, by moving weight between factors and variables.

This is max-product linear programming (Globerson and Jaakkola, NIPS 2007). A message m_f,v(k) takes weight from factor
f to state k of variable v. With b the log-weights of the states,

    theta_v(k) = b_v(k) + sum_(f on v) m_f,v(k)          theta_f(y) = log-potential_f(y) - sum_(v of f) m_f,v(y_v)

have the same sum for every labelling, whatever the messages, hence

    weight(y) <= bound = sum_v max theta_v + sum_f max theta_f
    weight(y) <= bound - slack(v, k)        if y_v = k, where slack(v, k) is by how much the terms of v and of the
                                            factors on it fall: max theta_v - theta_v(k) + sum_(f on v) [max theta_f -
                                            max_(y_f : y_v = k) theta_f]

A step takes one factor of n variables, gives it all weight of its variables but its own messages, and shares the total
evenly among them, which never raises the bound:

    M_v(k) = max_(y_f : y_v = k) [log-potential_f(y) + sum_u (theta_u - m_f,u)(y_u)],    theta_v = M_v / n

This also finds states that hard zeros rule out: their weight is -inf.

Shapes: V variables, S states, F factors, E entries of scopes; messages (.,) at offsets (E + 1,), K for each entry.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from besag.arrays import Array, IntArray
from besag.kernels.compile import at, inlined
from besag.kernels.factors import TABLE, Factors
from besag.kernels.semiring import MAX
from besag.model.structured.kernels.rules import send_structured

Shape = tuple[IntArray, IntArray, IntArray]  # state_offsets (V + 1,), scope_offsets (F + 1,), scope_variables (E,)
Tables = tuple[IntArray, IntArray, Array]  # table_of_factor (F,), table_offsets (T + 1,), log_potentials (L,)


@inlined
def room_for(state_offsets: IntArray, scope_offsets: IntArray) -> tuple[Array, Array, IntArray, IntArray]:
    """Work space for any factor: two numbers for each state of its variables, two integers for each variable."""
    arity, states = 1, 1
    for f in range(len(scope_offsets) - 1):
        arity = max(arity, scope_offsets[f + 1] - scope_offsets[f])
    for v in range(len(state_offsets) - 1):
        states = max(states, state_offsets[v + 1] - state_offsets[v])
    return np.empty((arity, states)), np.empty((arity, states)), np.zeros(arity, np.int64), np.zeros(arity, np.int64)


@inlined
def best_of_states(
    n: int, counts: IntArray, logs: Array, start: int, weights: Array, digits: IntArray, best: Array
) -> None:
    """best[i, k] = max over entries of a table where axis i is at k of the entry plus weights[., .] of all axes."""
    size, inner, own, best_own = 1, counts[n - 1], weights[n - 1], best[n - 1]
    for i in range(n):
        digits[i] = 0
        size *= counts[i]
        for k in range(counts[i]):
            best[i, k] = -math.inf
    for row in range(0, size, inner):
        outer = 0.0
        for i in range(n - 1):
            outer += weights[i, digits[i]]
        if outer > -math.inf:
            highest = -math.inf
            for k in range(inner):
                value = logs[at(start + row + k)] + outer + own[k]
                if value > best_own[k]:
                    best_own[k] = value
                if value > highest:
                    highest = value
            for i in range(n - 1):
                if highest > best[i, digits[i]]:
                    best[i, digits[i]] = highest
        i = n - 2
        while i >= 0:
            digits[i] += 1
            if digits[i] < counts[i]:
                break
            digits[i] = 0
            i -= 1


@inlined
def best_of_factor(factors: Factors, f: int, counts: IntArray, weights: Array, digits: IntArray, best: Array) -> None:
    """The same of a factor, whose table may be a formula: of two variables then, in O(K)."""
    start, kind = factors.table_offsets[factors.table_of_factor[f]], factors.kinds[f]
    if kind == TABLE:
        arity = factors.scope_offsets[f + 1] - factors.scope_offsets[f]
        best_of_states(arity, counts, factors.log_potentials, start, weights, digits, best)
        return
    for i in range(2):
        n = counts[i]
        send_structured(MAX, kind, i, n, factors.log_potentials, start, weights[1 - i], 0, best[i], 0)
        for k in range(n):
            best[i, k] += weights[i, k]


def make_diffuse() -> Callable[..., float]:
    """Kernel: sweeps over all factors, alternately forwards and backwards, as long as they pay.

    theta (S,) begins as the log-weights of the states, -inf where one is ruled out, and messages as zeros; both are
    continued from call to call. Ends when two sweeps lower the bound by less than tolerance. -> the bound, up to
    rounding.
    """

    def diffuse(
        shape: Shape, tables: Tables, offsets: IntArray, n_sweeps: int, tolerance: float, theta: Array, messages: Array
    ) -> float:
        state_offsets, scope_offsets, scope_variables = shape
        table_of_factor, table_offsets, logs = tables
        n_factors = len(scope_offsets) - 1
        weights, best, digits, counts = room_for(state_offsets, scope_offsets)
        bound, before = math.inf, math.inf
        for sweep in range(n_sweeps):
            for step in range(n_factors):
                f = step if sweep % 2 == 0 else n_factors - 1 - step
                first = scope_offsets[f]
                n = scope_offsets[f + 1] - first
                if n == 0:
                    continue
                for i in range(n):
                    v = scope_variables[first + i]
                    counts[i] = state_offsets[v + 1] - state_offsets[v]
                    for k in range(counts[i]):
                        value = theta[state_offsets[v] + k]
                        weights[i, k] = value - messages[offsets[first + i] + k] if value > -math.inf else value
                best_of_states(n, counts, logs, table_offsets[table_of_factor[f]], weights, digits, best)
                for i in range(n):
                    v = scope_variables[first + i]
                    for k in range(counts[i]):
                        share = best[i, k] / n
                        theta[state_offsets[v] + k] = share
                        if share > -math.inf:
                            messages[offsets[first + i] + k] = share - weights[i, k]
            if sweep % 2 == 1:
                bound = 0.0
                for v in range(len(state_offsets) - 1):
                    highest = -math.inf
                    for s in range(state_offsets[v], state_offsets[v + 1]):
                        highest = max(highest, theta[s])
                    bound += highest
                if bound == -math.inf or not before - bound >= tolerance:
                    break
                before = bound
        return bound

    return diffuse


def make_state_bounds() -> Callable[..., tuple[float, float]]:
    """Kernel: slack (S,) = the bound minus the bound on labellings with a state; inf where a state is ruled out.

    base (S,): log-weights of states, -inf where one is ruled out. Everything is computed again from the messages, so
    that it holds whatever rounding did to theta. -> the bound, and the magnitude of the sums in it.
    """

    def state_bounds(
        factors: Factors, offsets: IntArray, base: Array, messages: Array, slack: Array
    ) -> tuple[float, float]:
        state_offsets, scope_offsets = factors.state_offsets, factors.scope_offsets
        scope_variables = factors.scope_variables
        weights, best, digits, counts = room_for(state_offsets, scope_offsets)
        bound, size = 0.0, 0.0
        theta = base.copy()
        for f in range(len(scope_offsets) - 1):
            for e in range(scope_offsets[f], scope_offsets[f + 1]):
                v = scope_variables[e]
                for k in range(state_offsets[v + 1] - state_offsets[v]):
                    theta[state_offsets[v] + k] += messages[offsets[e] + k]
        for v in range(len(state_offsets) - 1):
            highest = -math.inf
            for s in range(state_offsets[v], state_offsets[v + 1]):
                highest = max(highest, theta[s])
            bound += highest
            size += abs(highest)
            for s in range(state_offsets[v], state_offsets[v + 1]):
                slack[s] = highest - theta[s] if theta[s] > -math.inf else math.inf
        for f in range(len(scope_offsets) - 1):
            first = scope_offsets[f]
            n = scope_offsets[f + 1] - first
            if n == 0:
                continue
            for i in range(n):
                v = scope_variables[first + i]
                counts[i] = state_offsets[v + 1] - state_offsets[v]
                for k in range(counts[i]):
                    ruled_out = base[state_offsets[v] + k] == -math.inf
                    weights[i, k] = -math.inf if ruled_out else -messages[offsets[first + i] + k]
            best_of_factor(factors, f, counts, weights, digits, best)
            highest = -math.inf
            for k in range(counts[0]):
                highest = max(highest, best[0, k])
            bound += highest
            size += abs(highest)
            for i in range(n):
                v = scope_variables[first + i]
                for k in range(counts[i]):
                    s = state_offsets[v] + k
                    slack[s] = slack[s] + highest - best[i, k] if best[i, k] > -math.inf else math.inf
        return bound, size

    return state_bounds
