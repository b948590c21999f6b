"""Random forests of a factor graph: how often is each factor in one?

rho (G,), the probability that a factor is in a random set of factors without a cycle, is what tree-reweighted engines
weigh factors with. A mean of forests that together cover all factors is such a probability with rho > 0.
`spread_weights` grows each next forest from the factors that were in the fewest so far, the order among those at
random: rho is then as even as the graph allows. Where the graph is a forest, rho is 1. In large graphs not single
factors but runs of them are in random order: they are neighbours in memory, and looked at some five times faster.

`heaviest` is the forest of the largest sum of weights, by Kruskal's algorithm: the largest of all where factors have
two variables, and a good one where they have more.

    starts (G + 1,), variables (E,)   scopes    fixed (V,)   variables over which nothing is summed
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, freeze
from besag.infer.trw.kernels.spanning import make_grow
from besag.kernels.compile import kernel_of

LARGE, RUN = 2**16, 64  # factors
MAX_COUNT = 2**15 - 1  # counts are sorted as 16 bit numbers, in linear time


class Covered(NamedTuple):
    """The factors that are to be covered, and the variables that do not count."""

    starts: IntArray
    variables: IntArray
    fixed: BoolArray


def grow_forest(scopes: Covered, order: IntArray, *, compile: bool) -> BoolArray:
    """(G,): the factors that Kruskal's algorithm takes in this order."""
    chosen = np.zeros(len(scopes.starts) - 1, np.bool_)
    grow = kernel_of(make_grow, compile=compile)
    grow(freeze(order), freeze(scopes.starts), freeze(scopes.variables), freeze(scopes.fixed), chosen)
    return chosen


def spread_weights(
    scopes: Covered,
    n_forests: int,
    rng: np.random.Generator,
    *,
    compile: bool,
    enough: Callable[[], bool] = lambda: False,
) -> tuple[Array, int]:
    """rho (G,) of at least n_forests forests, more where it takes more to cover all factors, and their number.

    enough: whether those that there are will do, if they cover all factors.
    """
    n_factors = len(scopes.starts) - 1
    counts, n = np.zeros(n_factors, np.int64), 0
    while (counts == 0).any() or (n < n_forests and not (n and enough())):
        order = _shuffled(n_factors, rng)
        ranks = np.minimum(counts[order], MAX_COUNT).astype(np.int16)
        counts += grow_forest(scopes, order[np.argsort(ranks, kind="stable")], compile=compile)
        n += 1
        if n == 1 and counts.all():
            return np.ones(n_factors), 1
    return counts / n, n


def _shuffled(n: int, rng: np.random.Generator) -> IntArray:
    if n < LARGE:
        return rng.permutation(n)
    order = (rng.permutation(-(-n // RUN))[:, None] * RUN + np.arange(RUN)).reshape(-1)
    return np.asarray(order[order < n])


def heaviest(scopes: Covered, weights: Array, *, compile: bool) -> BoolArray:
    """(G,): a forest of large total weight."""
    return grow_forest(scopes, np.argsort(-weights, kind="stable"), compile=compile)
