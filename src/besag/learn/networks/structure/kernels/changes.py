"""The best change of one edge of a DAG, and random DAGs of its equivalence class; arrays are those of `moves`.

A change of kind 0 adds the edge i -> j, 1 removes it, 2 reverses it. held (V, V): changes of these pairs count only
where they are worth more than `bar`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from besag.arrays import Array, BoolArray, IntArray
from besag.kernels.compile import inlined


@inlined
def goes_round(i: int, j: int, matrix: BoolArray, above: BoolArray) -> bool:
    """Whether there is a path from i to another parent of j."""
    found = False
    for k in range(len(matrix)):
        found |= above[i, k] & matrix[k, j]
    return found


def make_best_change() -> Callable[..., tuple[int, int, int, float]]:
    """Kernel: (kind, i, j, worth) of the first change that is worth most, up to slack; kind -1 where there is none.

    worth (3, V, V) is written.
    """

    def best_change(
        matrix: BoolArray,
        above: BoolArray,
        added: Array,
        removed: Array,
        linked: BoolArray,
        held: BoolArray,
        bar: float,
        slack: float,
        worth: Array,
    ) -> tuple[int, int, int, float]:
        n, most = len(matrix), -np.inf
        worth[:] = -np.inf
        for i in range(n):
            for j in range(n):
                if matrix[i, j]:
                    if not linked[i, j]:
                        worth[1, i, j] = removed[i, j]
                    turned = removed[i, j] + added[j, i]
                    if turned > -np.inf and not goes_round(i, j, matrix, above):
                        worth[2, i, j] = turned
                elif not matrix[j, i] and not above[j, i]:
                    worth[0, i, j] = added[i, j]
                for kind in range(3):
                    if held[i, j] and worth[kind, i, j] <= bar:
                        worth[kind, i, j] = -np.inf
                    if worth[kind, i, j] > most:
                        most = worth[kind, i, j]
        if most > -np.inf:
            for kind in range(3):
                for i in range(n):
                    for j in range(n):
                        if worth[kind, i, j] >= most - slack:
                            return kind, i, j, worth[kind, i, j]
        return -1, 0, 0, -np.inf

    return best_change


def make_shuffle() -> Callable[..., None]:
    """Kernel: reverse covered edges of a DAG in place, where they may be: one is tried for each draw (n,) in [0, 1)."""

    def shuffle(matrix: BoolArray, may: BoolArray, draws: Array, ends: IntArray) -> None:
        n, n_edges = len(matrix), 0
        for i in range(n):
            for j in range(n):
                if matrix[i, j]:
                    ends[n_edges, 0], ends[n_edges, 1] = i, j
                    n_edges += 1
        for draw in draws:
            e = int(draw * n_edges)
            i, j = ends[e, 0], ends[e, 1]
            covered = may[i, j]
            for k in range(n):
                if k != i and matrix[k, i] != matrix[k, j]:
                    covered = False
            if covered:
                matrix[i, j], matrix[j, i] = False, True
                ends[e, 0], ends[e, 1] = j, i

    return shuffle
