"""The k best of the labellings that were found: distinct, sorted by their energies, which are the Problem's.

Tasks are what has a best labelling of its own: the rows of evidence, or the instances of a union. Where fewer than k
labellings of finite energy are known, energies end in inf.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from besag.arrays import Array, IntArray
from besag.infer.brute import most_labellings
from besag.infer.map.labellings import BestLabellings
from besag.infer.map.landscape import Landscape
from besag.infer.result import Result


def rank(landscape: Landscape, found: Sequence[Sequence[IntArray]], k: int) -> tuple[IntArray, Array]:
    """Codes (R, k, V) and energies (R, k), or (1, k, V) and (N, k) for a union.

    found: of each task, labellings of its variables; every task has one at least.
    """
    graph, n = landscape.graph, max(k, *map(len, found))
    parts = [[*own, *[own[0]] * (n - len(own))] for own in found]
    axis = 0 if graph.n_instances == 1 else 1
    columns = [np.stack([own[i] for own in parts]) if axis == 0 else np.concatenate([own[i] for own in parts])[None]
               for i in range(n)]  # fmt: skip
    energies = np.stack([landscape.energies(codes) for codes in columns], axis=1)
    for task, own in enumerate(parts):
        seen: set[bytes] = set()
        for i, codes in enumerate(own):
            key = codes.tobytes()
            energies[task, i] = np.inf if key in seen else energies[task, i]
            seen.add(key)
    order = np.argsort(energies, axis=1, kind="stable")[:, :k]
    codes = np.stack(columns, axis=1)
    places = order[:, :, None] if axis == 0 else np.repeat(order, np.diff(graph.instance_offsets), axis=0).T[None]
    return np.take_along_axis(codes, places, axis=1), np.take_along_axis(energies, order, axis=1)


def tasks_of(landscape: Landscape) -> list[tuple[int, int]]:
    """(row, instance) of each task."""
    return [(row, i) for row in range(landscape.n_rows) for i in range(landscape.graph.n_instances)]


def with_ranking(best: BestLabellings, found: Sequence[Sequence[IntArray]], k: int, *, proven: bool) -> Result:
    """The best labellings with the k best of what else was found; proven: whether these are the k best there are."""
    result, landscape = best.result(), best.landscape
    if k == 1:
        return result
    offsets = landscape.graph.instance_offsets
    first = [best.codes[row, offsets[i] : offsets[i + 1]] for row, i in tasks_of(landscape)]
    codes, energies = rank(landscape, [[one, *own] for one, own in zip(first, found, strict=True)], k)
    bound = "exact" if proven and best.closed else "estimate"
    return replace(result, codes=codes, energies=energies, bound=bound)


def count_asked(landscape: Landscape, k: int) -> int:
    """k, or as many labellings as there are."""
    return int(min(k, most_labellings(landscape.graph)))
