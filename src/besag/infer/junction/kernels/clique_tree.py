"""The two kernels around the choice of an order: the graph to be ordered before it, the tree of cliques after it.

Shapes: V variables, S states, F factors, C cliques.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from besag.arrays import Array, BoolArray, IntArray
from besag.infer.junction.kernels.products import WORTHWHILE, gather_operands
from besag.infer.orders.kernels.cliques import cliques
from besag.infer.orders.kernels.starts import find_neighbours
from besag.kernels.compile import inlined

Outline = tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]
Tree = tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray, IntArray, Array, Array]


def make_outline() -> Callable[..., Outline]:
    """Kernel: the states left to each variable, and the free variables of the factors in use.

    used (F,), fixed (V,), allowed (S,), see `besag.infer.purpose`. -> counts (V,): how many states are left to each
    variable, 1 if it is fixed; codes: which, flat at digit_offsets (V + 1,), 0 as long as a fixed variable has no row;
    scope_offsets (F + 1,) and scopes of free variables only; lists of neighbours, first (V + 1,) and others.
    """

    def outline(
        state_offsets: IntArray,
        scope_offsets: IntArray,
        scope_variables: IntArray,
        used: BoolArray,
        fixed: BoolArray,
        allowed: BoolArray,
    ) -> Outline:
        n = len(fixed)
        counts, digit_offsets = np.zeros(n, np.int64), np.zeros(n + 1, np.int64)
        codes = np.empty(state_offsets[n], np.int64)
        top = 0
        for v in range(n):
            if fixed[v]:
                codes[top] = 0
                top += 1
            else:
                for s in range(state_offsets[v], state_offsets[v + 1]):
                    if allowed[s]:
                        codes[top] = s - state_offsets[v]
                        top += 1
            digit_offsets[v + 1] = top
            counts[v] = top - digit_offsets[v]
        offsets, scopes = np.zeros(len(used) + 1, np.int64), np.empty(len(scope_variables), np.int64)
        end = 0
        for f in range(len(used)):
            for e in range(scope_offsets[f], scope_offsets[f + 1]):
                if used[f] and counts[scope_variables[e]] > 1:
                    scopes[end] = scope_variables[e]
                    end += 1
            offsets[f + 1] = end
        scopes = scopes[:end].copy()
        first, others = find_neighbours(n, offsets, scopes)
        return counts, codes[:top].copy(), digit_offsets, offsets, scopes, first, others

    return outline


def make_tree() -> Callable[..., Tree]:
    """Kernel: the tree of cliques of an order, products of large cliques made in steps.

    Takes an order and what `outline` gives. -> member_offsets, members, n_separator, parent, clique_of as given by
    `besag.infer.orders.kernels.cliques`; clique_of_factor (F,) or -1; outside: factors in use without a clique, since
    their variables are fixed or kept; entries and separator_entries (C,) of tables, as float64: int64 may overflow.
    """

    def tree(
        order: IntArray,
        counts: IntArray,
        scope_offsets: IntArray,
        scopes: IntArray,
        first: IntArray,
        others: IntArray,
        used: BoolArray,
    ) -> Tree:
        offsets, members, n_separator, parent, clique_of = cliques(order, first, others)
        clique_of_factor, outside = factor_cliques(order, scope_offsets, scopes, used, clique_of)
        entries = entries_of(counts, offsets, members, offsets[1:])
        largest = 0.0
        for c in range(len(entries)):
            largest = max(largest, entries[c])
        if len(entries) > 0 and largest >= WORTHWHILE:
            offsets, members, n_separator, parent, clique_of_factor, number = gather_operands(
                counts, offsets, members, n_separator, parent, entries, clique_of_factor, scope_offsets, scopes
            )
            for v in range(len(clique_of)):
                if clique_of[v] >= 0:
                    clique_of[v] = number[clique_of[v]]
            entries = entries_of(counts, offsets, members, offsets[1:])
        separators = entries_of(counts, offsets, members, offsets[:-1] + n_separator)
        return offsets, members, n_separator, parent, clique_of, clique_of_factor, outside, entries, separators

    return tree


@inlined
def factor_cliques(
    order: IntArray, scope_offsets: IntArray, scopes: IntArray, used: BoolArray, clique_of: IntArray
) -> tuple[IntArray, IntArray]:
    """The clique of each factor in use, that which eliminates the first of its variables; and factors without one."""
    position = np.full(len(clique_of), len(order), np.int64)
    for i in range(len(order)):
        position[order[i]] = i
    found, outside = np.full(len(used), -1, np.int64), np.empty(len(used), np.int64)
    n_outside = 0
    for f in range(len(used)):
        least = len(order)
        for e in range(scope_offsets[f], scope_offsets[f + 1]):
            least = min(least, position[scopes[e]])
        if least < len(order):
            found[f] = clique_of[order[least]]
        elif used[f]:
            outside[n_outside] = f
            n_outside += 1
    return found, outside[:n_outside].copy()


@inlined
def entries_of(counts: IntArray, offsets: IntArray, members: IntArray, ends: IntArray) -> Array:
    """(C,): the product of the counts of members offsets[c] to ends[c]."""
    entries = np.empty(len(offsets) - 1)
    for c in range(len(entries)):
        size = 1.0
        for a in range(offsets[c], ends[c]):
            size *= float(counts[members[a]])
        entries[c] = size
    return entries
