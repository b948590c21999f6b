"""The triangulation that an elimination order makes: maximal cliques, separators, and the added edges.

Variables that share a factor are neighbours. Eliminating v joins its remaining neighbours, N(v), to each other; the
edges added in this way are the fill-in, and with them the graph is chordal. Each of its edges {a, b} is met once, when
the first of the two, a, is eliminated and b is in N(a):

    N(r_i) = separator + {r_{i+1}, .., r_k}     for a clique that eliminates r_1, .., r_k, its residual, in this order

so that the pairs (r_i, b), b in N(r_i), except the edges of the graph, are the fill-in, without repetition.

Shapes: V variables, n eliminated, C maximal cliques, A members of all cliques, M edges added.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from besag.arrays import BoolArray, IntArray, freeze
from besag.graph.graph import Graph
from besag.infer.orders.kernels.cliques import make_cliques
from besag.infer.orders.search import find_neighbours_of
from besag.kernels.compile import kernel_of, worth_compiling


@dataclass(frozen=True, slots=True, eq=False)
class Triangulation:
    """Maximal cliques as a forest, children before parents."""

    member_offsets: IntArray  # (C + 1,)
    members: IntArray  # (A,) of each clique, the separator first, then what it eliminates
    n_separator: IntArray  # (C,) how many members a clique shares with its parent
    parent: IntArray  # (C,) or -1
    fill_in: IntArray  # (M, 2) the lower variable first, in order


def triangulate(graph: Graph, order: IntArray, free: BoolArray) -> Triangulation:
    """The triangulation of the graph on the free variables (V,) by an order (n,) of them."""
    compile = worth_compiling(20.0 * len(graph.scope_variables))
    inside = free[graph.scope_variables]
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(inside)])[graph.scope_offsets]
    scopes = freeze(graph.scope_variables[inside])
    first, others = find_neighbours_of(graph.n_variables, freeze(starts), scopes, compile=compile)
    found = kernel_of(make_cliques, compile=compile)(freeze(order), first, others)
    offsets, members, n_separator, parent, _ = (freeze(part) for part in found)
    added = _fill_in(offsets, members, n_separator, first, others)
    return Triangulation(offsets, members, n_separator, parent, freeze(added))


def _fill_in(
    offsets: IntArray, members: IntArray, n_separator: IntArray, first: IntArray, others: IntArray
) -> IntArray:
    """(M, 2): the edges of the triangulation that are not in the graph."""
    n, sizes = len(first) - 1, np.diff(offsets)
    clique = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(len(members)) - offsets[clique]
    eliminated = np.flatnonzero(place >= n_separator[clique])
    width = sizes[clique[eliminated]]
    source = np.repeat(eliminated, width)
    other = np.arange(len(source)) - np.repeat(np.cumsum(width) - width, width)  # the place of the other end
    later = (other < n_separator[clique[source]]) | (other > place[source])
    edges = _keys(n, members[source], members[offsets[clique[source]] + other])[later]
    there = _keys(n, np.repeat(np.arange(n), np.diff(first)), others)
    added = np.sort(edges[~np.isin(edges, there)])
    return np.stack([added // n, added % n], axis=1)


def _keys(n: int, a: IntArray, b: IntArray) -> IntArray:
    """A number for each pair {a, b} of n variables."""
    return np.minimum(a, b) * n + np.maximum(a, b)
