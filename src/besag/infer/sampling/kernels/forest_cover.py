"""Blocks of variables that are forests once all others are known.

Greedy, in a given order: a variable joins the block unless that closes a cycle of the factor graph on the block's
variables, which happens if two of its factors are already connected. The remaining variables form the next blocks in
the same way. On a grid with four neighbours the first block has about two thirds of the variables.

    V variables, F factors; first (V + 1,), linked: the factors of two or more variables on each (`make_incidence`)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from besag.arrays import IntArray
from besag.kernels.incidence import root_of


def make_cover() -> Callable[..., int]:
    """Kernel: fill in the block of every variable in `order`, -1 before; returns how many blocks there are."""

    def cover(order: IntArray, first: IntArray, linked: IntArray, n_factors: int, block_of: IntArray) -> int:
        parent, seen_by = np.empty(n_factors, np.int64), np.empty(n_factors, np.int64)
        n_blocks, n_left = 0, len(order)
        while n_left > 0:
            for f in range(n_factors):
                parent[f] = f
                seen_by[f] = -1
            for i in range(len(order)):
                v = order[i]
                if block_of[v] >= 0:
                    continue
                joins = True
                for j in range(first[v], first[v + 1]):
                    r = root_of(parent, linked[j])
                    joins = joins and seen_by[r] != v
                    seen_by[r] = v
                if not joins:
                    continue
                for j in range(first[v] + 1, first[v + 1]):
                    parent[root_of(parent, linked[j])] = root_of(parent, linked[first[v]])
                block_of[v] = n_blocks
                n_left -= 1
            n_blocks += 1
        return n_blocks

    return cover
