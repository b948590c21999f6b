"""Undirected graphs of variables: their maximal cliques, and whether they are decomposable.

A graph is decomposable (chordal) where an order of its vertices exists in which the neighbours that come before a
vertex are tied to each other. Then its cliques C, in that order, meet what came before in separators S_C that lie in
one earlier clique, and

    p(y) = prod_C p(y_C) / prod_C p(y_S_C)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

Neighbours = list[set[int]]


def neighbours_of(n: int, scopes: Iterable[Sequence[int]]) -> Neighbours:
    """Vertices are neighbours where a scope has both."""
    near: Neighbours = [set() for _ in range(n)]
    for scope in scopes:
        for v in scope:
            near[v].update(u for u in scope if u != v)
    return near


def decomposition(near: Neighbours) -> list[tuple[tuple[int, ...], tuple[int, ...]]] | None:
    """(clique, separator) in an order such as above; None where there is none. By maximum cardinality search."""
    order, earlier, weight = [], [], [0] * len(near)
    left = set(range(len(near)))
    while left:
        v = max(left, key=lambda u: (weight[u], -u))
        left.remove(v)
        before = near[v] - left
        earlier.append(before)
        order.append(v)
        for u in near[v] & left:
            weight[u] += 1
    cliques: list[tuple[set[int], set[int]]] = []
    for v, before in zip(order, earlier, strict=True):
        if any(not before - {u} <= near[u] for u in before):
            return None
        if cliques and before == cliques[-1][0]:  # the clique goes on
            cliques[-1][0].add(v)
        else:
            cliques.append((before | {v}, before))
    return [(tuple(sorted(clique)), tuple(sorted(separator))) for clique, separator in cliques]


def maximal_cliques(near: Neighbours) -> list[tuple[int, ...]]:
    """All sets of vertices that are tied to each other and to no other together; Bron and Kerbosch, with pivots."""
    return sorted(tuple(sorted(clique)) for clique in _grown(set(), set(range(len(near))), set(), near))


def _grown(clique: set[int], may: set[int], done: set[int], near: Neighbours) -> Iterator[set[int]]:
    if not may and not done:
        yield clique
        return
    pivot = max(may | done, key=lambda u: len(near[u] & may))
    for v in sorted(may - near[pivot]):
        yield from _grown(clique | {v}, may & near[v], done & near[v], near)
        may = may - {v}
        done = done | {v}
