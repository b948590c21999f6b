"""All DAGs of a few variables, and data to learn them from."""

from __future__ import annotations

from functools import cache
from itertools import combinations, product

import numpy as np

from besag.arrays import AnyArray, Array, BoolArray, IntArray
from besag.graph.directed.orientation import order_of


@cache
def all_dags(n: int) -> list[BoolArray]:
    """The matrices of all DAGs of n variables: 1, 3, 25, 543 of them."""
    pairs = list(combinations(range(n), 2))
    found = []
    for ways in product(range(3), repeat=len(pairs)):
        matrix = np.zeros((n, n), np.bool_)
        for (i, j), way in zip(pairs, ways, strict=True):
            matrix[i, j], matrix[j, i] = way == 1, way == 2
        if order_of(matrix) is not None:
            found.append(matrix)
    return found


def colliders(matrix: BoolArray) -> frozenset[tuple[int, int, int]]:
    """Triples a -> c <- b of which a and b are not joined."""
    joined = matrix | matrix.T
    return frozenset(
        (a, c, b)
        for c in range(len(matrix))
        for a, b in combinations(np.flatnonzero(matrix[:, c]).tolist(), 2)
        if not joined[a, b]
    )


def dependent_rows(sizes: IntArray, n_rows: int, seed: int) -> AnyArray:
    """Codes (V, N), each column a noisy sum of up to two before it."""
    rng = np.random.default_rng(seed)
    columns: list[AnyArray] = []
    for v, k in enumerate(sizes.tolist()):
        above = [columns[p] for p in rng.permutation(v)[:2]]
        noise = rng.integers(0, k, n_rows) * (rng.random(n_rows) < 0.4)
        columns.append((sum(above, np.zeros(n_rows, np.int64)) + noise) % k)
    return np.stack(columns).astype(np.uint8)


def family_counts(codes: AnyArray, sizes: IntArray, child: int, parents: tuple[int, ...], weights: Array) -> Array:
    """(q, K) counts of a family, straight from the definition."""
    shape = [int(sizes[p]) for p in (*parents, child)]
    table = np.zeros(shape)
    np.add.at(table, tuple(codes[v].astype(np.int64) for v in (*parents, child)), weights)
    return table.reshape(-1, shape[-1])
