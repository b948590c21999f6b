"""Directing the edges of a partially directed graph.

    matrix (V, V)    [i, j] and not [j, i]: i -> j; both: i - j

Two DAGs are equivalent, the same independences hold in both, where they have the same edges apart from directions and
the same colliders a -> c <- b with a and b not joined (Verma and Pearl 1990). The CPDAG of a class directs the edges
that all of its DAGs direct alike: the colliders', and what Meek's rules (1995) derive from them. An extension is a DAG
with the same edges, the directed ones as they are, and no other colliders (Dor and Tarsi 1992).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from besag.arrays import BoolArray


def cpdag_of(dag: BoolArray) -> BoolArray:
    """The matrix of the CPDAG of a DAG."""
    joined = dag | dag.T
    kept = np.zeros_like(dag)
    for child in range(len(dag)):
        parents = np.flatnonzero(dag[:, child])
        apart = ~joined[np.ix_(parents, parents)]
        np.fill_diagonal(apart, False)
        kept[parents[apart.any(axis=1)], child] = True
    return apply_rules(joined & ~kept.T)


def apply_rules(matrix: BoolArray) -> BoolArray:
    """A PDAG with all edges directed that Meek's four rules direct."""
    matrix = matrix.copy()
    changed = True
    while changed:
        changed = False
        for a, b in np.argwhere(matrix & matrix.T).tolist():
            if matrix[b, a] and matrix[a, b] and _is_forced(matrix, a, b):
                matrix[b, a] = False
                changed = True
    return matrix


def _is_forced(matrix: BoolArray, a: int, b: int) -> bool:
    """Whether a - b must be a -> b: else there would be another collider, or a cycle."""
    directed, joined = matrix & ~matrix.T, matrix | matrix.T
    to_a, to_b, from_a = directed[:, a], directed[:, b], directed[a]
    if (to_a & ~joined[b]).any() or (from_a & to_b).any():
        return True
    beside = matrix[a] & matrix[:, a]
    through = np.flatnonzero(beside & to_b)  # a - c -> b
    if (~joined[np.ix_(through, through)] & ~np.eye(len(through), dtype=np.bool_)).any():
        return True
    first = np.flatnonzero(beside & ~joined[b])  # a - c -> d -> b with a joined to d, c not joined to b
    return bool((directed[first] & (to_b & joined[a])).any())


def extend(matrix: BoolArray) -> BoolArray | None:
    """The matrix of an extension; None where there is none."""
    dag, left = matrix & ~matrix.T, matrix.copy()
    remaining = np.ones(len(matrix), np.bool_)
    while remaining.any():
        sink = next(_sinks(left, remaining), None)
        if sink is None:
            return None
        beside = left[sink] & left[:, sink]
        dag[beside, sink] = True
        left[sink], left[:, sink] = False, False
        remaining[sink] = False
    return dag


def _sinks(left: BoolArray, remaining: BoolArray) -> Iterator[int]:
    """Variables without children, whose undirected neighbours are joined to all their other neighbours."""
    joined = left | left.T
    for v in np.flatnonzero(remaining & ~(left & ~left.T).any(axis=1)).tolist():
        near = np.flatnonzero(joined[v])
        beside = near[left[v, near] & left[near, v]]
        square = joined[np.ix_(beside, near)] | (beside[:, None] == near[None, :])
        if square.all():
            yield v


def along_order(matrix: BoolArray) -> BoolArray | None:
    """A DAG with the same edges, undirected ones along an order of the directed ones; None where these have a cycle."""
    order = order_of(matrix & ~matrix.T)
    if order is None:
        return None
    rank = np.empty(len(matrix), np.int64)
    rank[order] = np.arange(len(matrix))
    return np.asarray((matrix | matrix.T) & (rank[:, None] < rank[None, :]))


def order_of(dag: BoolArray) -> list[int] | None:
    """The variables with parents first, those of lower number before others; None where there is a cycle."""
    waiting = dag.sum(axis=0)
    order = np.flatnonzero(waiting == 0).tolist()
    for v in order:
        children = np.flatnonzero(dag[v])
        waiting[children] -= 1
        order += children[waiting[children] == 0].tolist()
    return order if len(order) == len(dag) else None
