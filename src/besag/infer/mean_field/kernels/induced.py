"""Induced forests: trees of factors, so that every other factor has at most one variable in each tree.

Under a distribution of which the trees are independent parts, such a factor's expectation needs nothing but marginals
of single variables. Factors are taken in a given order, as in Kruskal's method: f joins the trees of its variables if
they are all different, and if no other factor would then have two variables in the joined tree. A factor graph without
cycles is taken whole.

The test goes through the factors of all trees to be joined but the largest, and ends at the first that is in the way.

    V variables, F factors; first (V + 1,), linked: factors beside each variable (`besag.kernels.incidence`)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from besag.arrays import BoolArray, IntArray, freeze
from besag.kernels.compile import inlined, kernel_of
from besag.kernels.factors import Factors
from besag.kernels.incidence import make_incidence


def induce_forest(factors: Factors, candidates: IntArray, *, compile: bool = True) -> tuple[BoolArray, IntArray]:
    """Which factors (F,) are in the forest, and the number of each variable's tree (V,)."""
    graph = tuple(freeze(array) for array in factors[:3])
    first, linked = kernel_of(make_incidence, compile=compile)(*graph)
    inside = np.zeros(len(factors.kinds), np.bool_)
    top = np.arange(len(factors.state_offsets) - 1)
    kernel_of(make_induced, compile=compile)(
        graph[1], graph[2], freeze(first), freeze(linked), freeze(candidates), inside, top
    )
    return inside, np.unique(top, return_inverse=True)[1].reshape(-1).astype(np.int64)


@inlined
def find(top: IntArray, v: int) -> int:
    """The variable that stands for the tree of v."""
    while top[v] != v:
        top[v] = top[top[v]]
        v = top[v]
    return v


@inlined
def in_the_way(
    scope_offsets: IntArray,
    scope_variables: IntArray,
    first: IntArray,
    linked: IntArray,
    inside: BoolArray,
    f: int,
    tree: int,
    top: IntArray,
    after: IntArray,
    mark: IntArray,
) -> bool:
    """Whether a factor on a tree, other than f, has two variables in the trees that bear the mark of f."""
    v = tree
    while True:
        for j in range(first[v], first[v + 1]):
            g = linked[j]
            if g != f and not inside[g]:
                n_marked = 0
                for e in range(scope_offsets[g], scope_offsets[g + 1]):
                    n_marked += mark[find(top, scope_variables[e])] == f
                if n_marked >= 2:
                    return True
        v = after[v]
        if v == tree:
            return False


def make_induced() -> Callable[..., None]:
    """Kernel: fills inside (F,), False before, and top (V,), each variable itself before."""

    def induced(
        scope_offsets: IntArray,
        scope_variables: IntArray,
        first: IntArray,
        linked: IntArray,
        candidates: IntArray,
        inside: BoolArray,
        top: IntArray,
    ) -> None:
        n_variables = len(top)
        after = np.arange(n_variables)  # the next variable of the same tree, in a circle
        size, mark = np.ones(n_variables, np.int64), np.full(n_variables, -1, np.int64)
        for f in candidates:
            largest, free = -1, True
            for e in range(scope_offsets[f], scope_offsets[f + 1]):
                tree = find(top, scope_variables[e])
                free = free and mark[tree] != f
                mark[tree] = f
                if largest < 0 or size[tree] > size[largest]:
                    largest = tree
            for e in range(scope_offsets[f], scope_offsets[f + 1]):
                tree = find(top, scope_variables[e])
                free = free and (
                    tree == largest
                    or not in_the_way(scope_offsets, scope_variables, first, linked, inside, f, tree, top, after, mark)
                )
            if not free:
                continue
            inside[f] = True
            for e in range(scope_offsets[f], scope_offsets[f + 1]):
                tree = find(top, scope_variables[e])
                if tree != largest:
                    after[tree], after[largest] = after[largest], after[tree]
                    size[largest] += size[tree]
                    top[tree] = largest
        for v in range(n_variables):
            top[v] = find(top, v)

    return induced
