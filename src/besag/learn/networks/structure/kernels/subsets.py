"""The best DAG over every subset of the variables, by dynamic programming (Silander and Myllymaki 2006).

A subset is an int, variable v its bit v. The last variable of an order over a subset has its parents among the others:

    best[S] = max over v in S of  best[S - v] + max{score of v with parents P: P within S - v}

    masks, scores (L,)    the parent sets worth having, those of variable v from first[v] to first[v + 1], best first
    linked (V,)           variables that v must be joined to: whichever comes later has the other as a parent
    last (2^V,) uint8     the variable that v is in the maximum
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.kernels.compile import inlined


@inlined
def best_set(v: int, among: int, first: IntArray, masks: IntArray, linked: IntArray) -> int:
    """The place of the best parent set of v within `among`; -1 where there is none."""
    must = linked[v] & among
    for i in range(first[v], first[v + 1]):
        if masks[i] & ~among == 0 and must & ~masks[i] == 0:
            return i
    return -1


def make_subsets() -> Callable[..., None]:
    """Kernel: `best` and `last` of the subsets from start to stop, from those of all before them."""

    def subsets(
        n: int,
        start: int,
        stop: int,
        first: IntArray,
        masks: IntArray,
        scores: Array,
        linked: IntArray,
        best: Array,
        last: AnyArray,
    ) -> None:
        for subset in range(start, stop):
            most, who = -np.inf, 0
            for v in range(n):
                if subset >> v & 1:
                    rest = subset ^ (1 << v)
                    place = best_set(v, rest, first, masks, linked)
                    if place >= 0 and best[rest] + scores[place] > most:
                        most, who = best[rest] + scores[place], v
            best[subset], last[subset] = most, who

    return subsets
