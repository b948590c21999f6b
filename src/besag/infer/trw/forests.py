"""Random forests of a factor graph: how often is each factor in one?

rho (G,), the probability that a factor is in a random set of factors without a cycle, is what tree-reweighted engines
weigh factors with. A mean of forests that together cover all factors is such a probability with rho > 0.
`spread_weights` grows each next forest from the factors that were in the fewest so far, the order among those at
random: rho is then as even as the graph allows. Where the graph is a forest, rho is 1. In large graphs not single
factors but runs of them are in random order: they are neighbours in memory, and looked at some five times faster.

The instances of a union have weights of their own, as if each were alone: random orders are of their factors' places
within the instance, so that mini-batches and shards add up to the whole.

`heaviest` is the forest of the largest sum of weights, by Kruskal's algorithm: the largest of all where factors have
two variables, and a good one where they have more.

    starts (G + 1,), variables (E,)   scopes    fixed (V,)   variables over which nothing is summed
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from besag.arrays import AnyArray, Array, BoolArray, IntArray, freeze
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


def spread_by_instance(scopes: Covered, instances: IntArray, n_forests: int, *, compile: bool) -> tuple[Array, int]:
    """rho (G,) for a union whose factors are of these instances (G,), and the largest number of forests of one."""
    sizes = np.bincount(instances)
    place = np.empty(len(instances), np.int64)
    place[np.argsort(instances, kind="stable")] = np.arange(len(instances)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    counts, n, left = np.zeros(len(instances), np.int64), np.zeros(len(sizes)), sizes > 0
    while left.any():
        order = np.argsort(_mixed(place, int(n.max())))
        ranks = np.minimum(counts[order], MAX_COUNT).astype(np.int16)
        chosen = grow_forest(scopes, order[np.argsort(ranks, kind="stable")], compile=compile)
        counts += chosen & left[instances]
        n += left
        is_covered = np.bincount(instances, weights=counts == 0) == 0
        left &= ~(is_covered & ((n == 1) | (n >= n_forests)))
    return counts / np.maximum(n, 1.0)[instances], int(n.max(initial=1))


def _mixed(places: IntArray, number: int) -> AnyArray:
    """A random number for each place, one of these for each number: the finaliser of splitmix64."""
    with np.errstate(over="ignore"):
        z = places.astype(np.uint64) + np.uint64(number + 1) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))


def _shuffled(n: int, rng: np.random.Generator) -> IntArray:
    if n < LARGE:
        return rng.permutation(n)
    order = (rng.permutation(-(-n // RUN))[:, None] * RUN + np.arange(RUN)).reshape(-1)
    return np.asarray(order[order < n])


def heaviest(scopes: Covered, weights: Array, *, compile: bool) -> BoolArray:
    """(G,): a forest of large total weight."""
    return grow_forest(scopes, np.argsort(-weights, kind="stable"), compile=compile)
