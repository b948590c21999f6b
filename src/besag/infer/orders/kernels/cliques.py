"""From an elimination order to a tree of cliques.

Eliminating v makes a clique of v and its remaining neighbours,

    C(v) = {v} + N(v),     N(v) = later neighbours of v  +  union over u with parent(u) = v of N(u) - {v}
    parent(v) = the first of N(v) to be eliminated

which is symbolic factorisation, in time proportional to the size of the result. If N(u) = C(v) for v = parent(u), C(v)
is part of C(u), and one such child u takes v over, so that each remaining clique eliminates a chain of variables. A
clique has a separator, which it shares with its parent, and a residual, which it eliminates. Cliques are numbered so
that children come before parents. Kept variables are never eliminated: they stay in separators up to the roots.

Shapes: V variables, n eliminated, C cliques, A members of all cliques.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from besag.arrays import Array, IntArray
from besag.kernels.compile import inlined

Answer = tuple[IntArray, IntArray, IntArray, IntArray, IntArray]


@inlined
def cliques(order: IntArray, first: IntArray, others: IntArray) -> Answer:
    """Cliques of an order (n,); first (V + 1,) and others list the neighbours.

    -> member_offsets (C + 1,), members (A,) with the separator before the residual, n_separator (C,), parent (C,) or
    -1, clique_of (V,): where a variable is eliminated, or -1.
    """
    n_variables, n = len(first) - 1, len(order)
    position = np.full(n_variables, n, np.int64)
    for i in range(n):
        position[order[i]] = i
    parent = np.full(n, -1, np.int64)
    child, sibling = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    starts = np.zeros(n + 1, np.int64)
    left = np.empty(2 * len(others) + 16, np.int64)  # N of each step, one after the other
    seen = np.full(n_variables, -1, np.int64)
    top = 0
    for i in range(n):
        v = order[i]
        seen[v] = i
        room = first[v + 1] - first[v]
        u = child[i]
        while u >= 0:
            room += starts[u + 1] - starts[u]
            u = sibling[u]
        if top + room > len(left):
            larger = np.empty(2 * len(left) + room, np.int64)
            for j in range(top):
                larger[j] = left[j]
            left = larger
        for j in range(first[v], first[v + 1]):
            w = others[j]
            if position[w] > i and seen[w] != i:
                seen[w] = i
                left[top] = w
                top += 1
        u = child[i]
        while u >= 0:
            for j in range(starts[u], starts[u + 1]):
                w = left[j]
                if seen[w] != i:
                    seen[w] = i
                    left[top] = w
                    top += 1
            u = sibling[u]
        starts[i + 1] = top
        up = n
        for j in range(starts[i], top):
            up = min(up, position[left[j]])
        if up < n:
            parent[i] = up
            sibling[i] = child[up]
            child[up] = i
    owner = np.full(n, -1, np.int64)  # the first step of the chain that a step belongs to
    last = np.full(n, -1, np.int64)  # of a chain: its last step
    for i in range(n):
        if owner[i] < 0:
            owner[i] = i
        last[owner[i]] = i
        up = parent[i]
        if up >= 0 and owner[up] < 0 and starts[i + 1] - starts[i] == starts[up + 1] - starts[up] + 1:
            owner[up] = owner[i]
    number = np.full(n, -1, np.int64)
    n_cliques = 0
    for i in range(n):  # by last steps: children before parents
        if last[owner[i]] == i:
            number[owner[i]] = n_cliques
            n_cliques += 1
    clique_of = np.full(n_variables, -1, np.int64)
    offsets = np.zeros(n_cliques + 1, np.int64)
    for i in range(n):
        clique_of[order[i]] = number[owner[i]]
        offsets[number[owner[i]] + 1] += 1
        if last[owner[i]] == i:
            offsets[number[owner[i]] + 1] += starts[i + 1] - starts[i]
    for c in range(n_cliques):
        offsets[c + 1] += offsets[c]
    members = np.empty(offsets[n_cliques], np.int64)
    n_separator, parents = np.zeros(n_cliques, np.int64), np.full(n_cliques, -1, np.int64)
    filled = offsets[:n_cliques].copy()
    for i in range(n):
        if last[owner[i]] == i:
            c = number[owner[i]]
            n_separator[c] = starts[i + 1] - starts[i]
            for j in range(starts[i], starts[i + 1]):
                members[filled[c]] = left[j]
                filled[c] += 1
            if parent[i] >= 0:
                parents[c] = number[owner[parent[i]]]
    for i in range(n):
        c = number[owner[i]]
        members[filled[c]] = order[i]
        filled[c] += 1
    return offsets, members, n_separator, parents, clique_of


def make_cliques() -> Callable[..., Answer]:
    """Kernel: cliques."""

    def tree(order: IntArray, first: IntArray, others: IntArray) -> Answer:
        return cliques(order, first, others)

    return tree


def clique_entries(counts: IntArray, member_offsets: IntArray, members: IntArray) -> Array:
    """(C,): table entries of each clique, as float64 since int64 may overflow."""
    if len(members) == 0:
        return np.ones(len(member_offsets) - 1)
    logs = np.add.reduceat(np.log2(counts[members].astype(np.float64)), member_offsets[:-1])
    with np.errstate(over="ignore"):
        return np.asarray(np.exp2(logs))
