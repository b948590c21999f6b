"""Products made in steps: operands of a large clique are joined at their own size first.

A clique of N entries with k operands costs N k multiplications, and as many additions for its outputs. If the union of
the scopes of two operands has far fewer entries than the clique, they are multiplied there: a clique on that union is
put between, which eliminates nothing and whose message is the product (a binary join tree, Shenoy 1997). The pair with
the smallest union is joined first, until none is `SHARE` times smaller than the clique or two operands are left.

Shapes: F factors, V variables, C cliques.
"""

from __future__ import annotations

import numpy as np

from besag.arrays import Array, IntArray
from besag.kernels.compile import inlined

WORTHWHILE = 512.0  # entries of a clique: below this another clique costs more than it saves
SHARE = 4.0
LARGE, LARGE_SHARE = 1e6, 16.0  # of large cliques, for every message between takes memory
MAX_MEMBERS, MAX_OPERANDS = 62, 48  # scopes are bit sets in a word; the search is cubic

Answer = tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]


@inlined
def gather_operands(
    counts: IntArray,
    member_offsets: IntArray,
    members: IntArray,
    n_separator: IntArray,
    parent: IntArray,
    entries: Array,
    clique_of_factor: IntArray,
    free_offsets: IntArray,
    free_variables: IntArray,
) -> Answer:
    """The cliques, with those put between.

    free_offsets (F + 1,), free_variables: axes of factors that are not fixed. -> member_offsets, members, n_separator,
    parent, clique_of_factor (F,), number (C,): the new numbers of the given cliques.
    """
    n_cliques, n_factors = len(parent), len(clique_of_factor)
    n_all = n_cliques + n_factors
    first = np.zeros(n_cliques + 1, np.int64)  # operands of each clique: factor f, or n_factors + child
    for f in range(n_factors):
        if clique_of_factor[f] >= 0:
            first[clique_of_factor[f] + 1] += 1
    for c in range(n_cliques):
        if parent[c] >= 0:
            first[parent[c] + 1] += 1
    for c in range(n_cliques):
        first[c + 1] += first[c]
    operand, top = np.empty(first[n_cliques], np.int64), first[:n_cliques].copy()
    for f in range(n_factors):
        if clique_of_factor[f] >= 0:
            operand[top[clique_of_factor[f]]] = f
            top[clique_of_factor[f]] += 1
    for c in range(n_cliques):
        if parent[c] >= 0:
            operand[top[parent[c]]] = n_factors + c
            top[parent[c]] += 1
    owner = np.full(n_all, -1, np.int64)  # new clique of each factor, then new parent of each given clique
    n_new = n_cliques + len(operand)
    new_parent, between, new_mask = (
        np.full(n_new, -1, np.int64),
        np.full(n_new, -1, np.int64),
        np.zeros(n_new, np.int64),
    )
    number = np.zeros(n_cliques, np.int64)
    place = np.zeros(len(counts), np.int64)
    masks, sizes = np.zeros(MAX_OPERANDS, np.int64), np.zeros(MAX_OPERANDS)
    holds = np.zeros(MAX_OPERANDS, np.int64)  # an operand, or -1 minus the new clique's number
    n_made = 0
    for c in range(n_cliques):
        low, size = member_offsets[c], member_offsets[c + 1] - member_offsets[c]
        k = first[c + 1] - first[c]
        merging = entries[c] >= WORTHWHILE and 2 < k <= MAX_OPERANDS and size <= MAX_MEMBERS
        start = n_made
        if merging:
            for a in range(size):
                place[members[low + a]] = a
            for i in range(k):
                o = operand[first[c] + i]
                holds[i], masks[i], sizes[i] = o, 0, 1.0
                begin, end = free_offsets[min(o, n_factors)], 0
                if o < n_factors:
                    begin, end = free_offsets[o], free_offsets[o + 1]
                    for s in range(begin, end):
                        masks[i] |= 1 << place[free_variables[s]]
                        sizes[i] *= counts[free_variables[s]]
                else:
                    begin = member_offsets[o - n_factors]
                    for s in range(begin, begin + n_separator[o - n_factors]):
                        masks[i] |= 1 << place[members[s]]
                        sizes[i] *= counts[members[s]]
            limit = entries[c] / (LARGE_SHARE if entries[c] > LARGE else SHARE)
            while k > 2:
                best, left, right, union = np.inf, -1, -1, 0
                for i in range(k):
                    if sizes[i] > limit:
                        continue
                    for j in range(i):
                        if sizes[j] > limit:
                            continue
                        both = sizes[i]
                        extra = masks[j] & ~masks[i]
                        a = 0
                        while extra:
                            if extra & 1:
                                both *= counts[members[low + a]]
                            extra >>= 1
                            a += 1
                        if both < best:
                            best, left, right, union = both, j, i, masks[i] | masks[j]
                if best > limit:
                    break
                u = n_made
                n_made += 1
                between[u], new_mask[u] = c, union
                for i in (left, right):
                    if holds[i] >= 0:
                        owner[holds[i]] = u
                    else:
                        new_parent[-1 - holds[i]] = u
                holds[left], masks[left], sizes[left] = -1 - u, union, best
                holds[right], masks[right], sizes[right] = holds[k - 1], masks[k - 1], sizes[k - 1]
                k -= 1
        number[c] = n_made
        n_made += 1
        for u in range(start, number[c]):
            if new_parent[u] < 0:
                new_parent[u] = number[c]
        for i in range(first[c], first[c + 1]):
            if owner[operand[i]] < 0:
                owner[operand[i]] = number[c]
    offsets = np.zeros(n_made + 1, np.int64)
    for u in range(n_made):
        if between[u] >= 0:
            extra = new_mask[u]
            while extra:
                offsets[u + 1] += extra & 1
                extra >>= 1
    for c in range(n_cliques):
        offsets[number[c] + 1] = member_offsets[c + 1] - member_offsets[c]
    for u in range(n_made):
        offsets[u + 1] += offsets[u]
    all_members, n_sep = np.empty(offsets[n_made], np.int64), np.zeros(n_made, np.int64)
    for u in range(n_made):
        if between[u] >= 0:
            extra, a, to = new_mask[u], member_offsets[between[u]], offsets[u]
            while extra:
                if extra & 1:
                    all_members[to] = members[a]
                    to += 1
                extra >>= 1
                a += 1
            n_sep[u] = to - offsets[u]
    for c in range(n_cliques):
        u = number[c]
        n_sep[u] = n_separator[c]
        for a in range(member_offsets[c + 1] - member_offsets[c]):
            all_members[offsets[u] + a] = members[member_offsets[c] + a]
        if parent[c] >= 0:
            new_parent[u] = owner[n_factors + c]
    return offsets, all_members, n_sep, new_parent[:n_made].copy(), owner[:n_factors].copy(), number
