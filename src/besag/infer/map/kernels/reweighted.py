"""Sequential reweighted message passing: bounds on the weight of every labelling, for factors of any arity.

Messages m_f,v(k) move weight from factor f to state k of variable v. With b the log-weights of the states,

    theta_v(k) = b_v(k) + sum_(f on v) m_f,v(k)          theta_f(y) = log-potential_f(y) - sum_(v of f) m_f,v(y_v)

have the same sum for every labelling, so that weight(y) <= bound = sum_v max theta_v + sum_f max theta_f. A pass visits
the variables in their order, or in the reverse of it, and at each variable v

    takes    from every factor f that has a variable before v all that f can say of v: m_f,v(k) += the maximum of
             theta_f where y_v = k, after which theta_f has the maximum 0 at every state of v
    gives    theta_v / n to each factor that has a variable after v, n the number of factors on v with a variable before
             it, or of those with one after it, whichever is more; the rest stays with v

Neither lowers the bound below what it was: it falls, or stays, from pass to pass. On factors of two variables this is
TRW-S. (V. Kolmogorov, Convergent tree-reweighted message passing, PAMI 2006; A new look at reweighted message passing,
PAMI 2015.)

Shapes as in `besag.infer.bounds.kernels.diffusion`: messages (.,) at offsets (E + 1,), K for each entry of a scope.
States that are ruled out have theta = -inf, and messages to them stay 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from besag.arrays import Array, IntArray
from besag.infer.bounds.kernels.diffusion import best_of_factor, room_for
from besag.infer.map.kernels.scores import Axes
from besag.kernels.factors import Factors


def make_reweigh() -> Callable[..., None]:
    """Kernel: a pass over all variables; theta (S,) and messages are continued from call to call."""

    def reweigh(
        factors: Factors,
        axes: Axes,
        ranks: IntArray,
        order: IntArray,
        offsets: IntArray,
        backwards: bool,
        theta: Array,
        messages: Array,
    ) -> None:
        state_offsets, scope_offsets = factors.state_offsets, factors.scope_offsets
        scope_variables = factors.scope_variables
        weights, best, digits, counts = room_for(state_offsets, scope_offsets)
        n_variables, sign = len(order), -1 if backwards else 1
        for step in range(n_variables):
            v = order[n_variables - 1 - step] if backwards else order[step]
            low, n = state_offsets[v], state_offsets[v + 1] - state_offsets[v]
            n_before, n_after = 0, 0
            for j in range(axes.first[v], axes.first[v + 1]):
                own = axes.entries[j]
                f = axes.owners[own]
                first = scope_offsets[f]
                arity = scope_offsets[f + 1] - first
                before, after, place = False, False, 0
                for i in range(arity):
                    u = scope_variables[first + i]
                    before = before or sign * (ranks[u] - ranks[v]) < 0
                    after = after or sign * (ranks[u] - ranks[v]) > 0
                    place = i if u == v else place
                n_before += before
                n_after += after
                if not before:
                    continue
                for i in range(arity):
                    u = scope_variables[first + i]
                    counts[i] = state_offsets[u + 1] - state_offsets[u]
                    for k in range(counts[i]):
                        allowed = theta[state_offsets[u] + k] > -math.inf
                        weights[i, k] = -messages[offsets[first + i] + k] if allowed else -math.inf
                best_of_factor(factors, f, counts, weights, digits, best)
                for k in range(n):
                    if theta[low + k] > -math.inf:
                        if best[place, k] == -math.inf:
                            theta[low + k] = -math.inf
                        else:
                            messages[offsets[own] + k] += best[place, k]
                            theta[low + k] += best[place, k]
            share = 1.0 / max(n_before, n_after, 1)
            for j in range(axes.first[v], axes.first[v + 1]):
                own = axes.entries[j]
                f = axes.owners[own]
                gives = False
                for e in range(scope_offsets[f], scope_offsets[f + 1]):
                    gives = gives or sign * (ranks[scope_variables[e]] - ranks[v]) > 0
                if gives:
                    for k in range(n):
                        if theta[low + k] > -math.inf:
                            messages[offsets[own] + k] -= share * theta[low + k]
            if n_after > 0:
                left = 1.0 - share * n_after
                for k in range(n):
                    if theta[low + k] > -math.inf:
                        theta[low + k] *= left if left > 1e-12 else 0.0

    return reweigh


def make_terms() -> Callable[..., None]:
    """Kernel: the terms of the bound, of_variables (V,) and of_factors (F,), from base and messages alone."""

    def terms(
        factors: Factors, offsets: IntArray, base: Array, messages: Array, of_variables: Array, of_factors: Array
    ) -> None:
        state_offsets, scope_offsets = factors.state_offsets, factors.scope_offsets
        scope_variables = factors.scope_variables
        weights, best, digits, counts = room_for(state_offsets, scope_offsets)
        theta = base.copy()
        for e in range(len(scope_variables)):
            v = scope_variables[e]
            for k in range(state_offsets[v + 1] - state_offsets[v]):
                theta[state_offsets[v] + k] += messages[offsets[e] + k]
        for v in range(len(state_offsets) - 1):
            of_variables[v] = -math.inf
            for s in range(state_offsets[v], state_offsets[v + 1]):
                of_variables[v] = max(of_variables[v], theta[s])
        for f in range(len(scope_offsets) - 1):
            first = scope_offsets[f]
            arity = scope_offsets[f + 1] - first
            for i in range(arity):
                v = scope_variables[first + i]
                counts[i] = state_offsets[v + 1] - state_offsets[v]
                for k in range(counts[i]):
                    ruled_out = base[state_offsets[v] + k] == -math.inf
                    weights[i, k] = -math.inf if ruled_out else -messages[offsets[first + i] + k]
            best_of_factor(factors, f, counts, weights, digits, best)
            of_factors[f] = -math.inf
            for k in range(counts[0]):
                of_factors[f] = max(of_factors[f], best[0, k])

    return terms


def make_decode() -> Callable[..., None]:
    """Kernel: a labelling, variables in turn, the best states given those before; for messages after a backward pass.

    A factor with labelled variables says the most that it allows given their labels, the others less their messages;
    one without says its message.
    """

    def decode(
        factors: Factors, axes: Axes, ranks: IntArray, order: IntArray, offsets: IntArray, base: Array,
        messages: Array, score: Array, codes: IntArray,
    ) -> None:  # fmt: skip
        state_offsets, scope_offsets = factors.state_offsets, factors.scope_offsets
        scope_variables = factors.scope_variables
        weights, best, digits, counts = room_for(state_offsets, scope_offsets)
        for v in order:
            low, n = state_offsets[v], state_offsets[v + 1] - state_offsets[v]
            for k in range(n):
                score[k] = base[low + k]
            for j in range(axes.first[v], axes.first[v + 1]):
                own = axes.entries[j]
                f = axes.owners[own]
                first, labelled, place = scope_offsets[f], False, 0
                arity = scope_offsets[f + 1] - first
                for i in range(arity):
                    u = scope_variables[first + i]
                    before = ranks[u] < ranks[v]
                    labelled = labelled or before
                    place = i if u == v else place
                    counts[i] = state_offsets[u + 1] - state_offsets[u]
                    for k in range(counts[i]):
                        weights[i, k] = 0.0 if u == v else -messages[offsets[first + i] + k]
                        if base[state_offsets[u] + k] == -math.inf or (before and k != codes[u]):
                            weights[i, k] = -math.inf
                if labelled:
                    best_of_factor(factors, f, counts, weights, digits, best)
                for k in range(n):
                    score[k] += best[place, k] if labelled else messages[offsets[own] + k]
            codes[v] = 0
            for k in range(1, n):
                if score[k] > score[codes[v]]:
                    codes[v] = k

    return decode
