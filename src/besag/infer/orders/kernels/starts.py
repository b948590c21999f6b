"""What greedy runs start from: who is whose neighbour, weights, and scores; `greedy_run` has the mathematics."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from besag.arrays import Array, IntArray
from besag.kernels.compile import inlined

LOG_UNIT = 2.0**-20  # logs are whole multiples of it, hence sums of them exact


MOST_WEIGHT = 2.0**26  # of all variables together: scores, at most its square, are then exact


class RunStart(NamedTuple):
    """What runs share; rows are weighted fill and fill."""

    cardinalities: Array  # (V,)
    logs: IntArray  # (V,) of the cardinalities, in LOG_UNITs
    weights: Array  # (2, V)
    sums: Array  # (2, V) of weights of neighbours
    scores: Array  # (2, V)
    sizes: IntArray  # (V,)


@inlined
def find_neighbours(n_variables: int, offsets: IntArray, scopes: IntArray) -> tuple[IntArray, IntArray]:
    """Who shares a factor with whom, (first, others), from the scopes of the factors."""
    begin = np.zeros(n_variables + 1, np.int64)  # factors beside each variable
    n_pairs = 0
    for f in range(len(offsets) - 1):
        arity = offsets[f + 1] - offsets[f]
        n_pairs += arity * (arity - 1)
        for e in range(offsets[f], offsets[f + 1]):
            begin[scopes[e] + 1] += 1
    for v in range(n_variables):
        begin[v + 1] += begin[v]
    beside = np.empty(len(scopes), np.int64)
    free = begin[:-1].copy()
    for f in range(len(offsets) - 1):
        for e in range(offsets[f], offsets[f + 1]):
            beside[free[scopes[e]]] = f
            free[scopes[e]] += 1
    first = np.zeros(n_variables + 1, np.int64)
    others = np.empty(n_pairs, np.int64)
    seen = np.full(n_variables, -1, np.int64)
    top = 0
    for v in range(n_variables):
        seen[v] = v
        for i in range(begin[v], begin[v + 1]):
            f = beside[i]
            for e in range(offsets[f], offsets[f + 1]):
                u = scopes[e]
                if seen[u] != v:
                    seen[u] = v
                    others[top] = u
                    top += 1
        first[v + 1] = top
    return first, others[:top].copy()


@inlined
def start_scores(
    first: IntArray, others: IntArray, logs: IntArray, weights: Array, sums: Array, scores: Array, sizes: IntArray
) -> None:
    """W, scores and sizes of all variables for R rows of weights (R, V); finds each triangle once."""
    n_variables, n_rows = len(logs), len(weights)
    # Each edge is kept at its end of fewer neighbours, which makes it O(A^1.5) however large a hub is.
    start = np.zeros(n_variables + 1, np.int64)
    ahead = np.empty(len(others), np.int64)
    top = 0
    for v in range(n_variables):
        sizes[v] = logs[v]
        for i in range(first[v], first[v + 1]):
            u = others[i]
            sizes[v] += logs[u]
            above = first[u + 1] - first[u] - (first[v + 1] - first[v])
            if above > 0 or (above == 0 and u > v):
                ahead[top] = u
                top += 1
        start[v + 1] = top
        for r in range(n_rows):
            total, squares = 0.0, 0.0
            for i in range(first[v], first[v + 1]):
                total += weights[r, others[i]]
                squares += weights[r, others[i]] * weights[r, others[i]]
            sums[r, v] = total
            scores[r, v] = (total * total - squares) * 0.5
    seen = np.full(n_variables, -1, np.int64)
    for v in range(n_variables):
        for i in range(start[v], start[v + 1]):
            seen[ahead[i]] = v
        for i in range(start[v], start[v + 1]):
            a = ahead[i]
            for j in range(start[a], start[a + 1]):
                b = ahead[j]
                if seen[b] == v:
                    for r in range(n_rows):
                        scores[r, v] -= weights[r, a] * weights[r, b]
                        scores[r, a] -= weights[r, v] * weights[r, b]
                        scores[r, b] -= weights[r, v] * weights[r, a]


@inlined
def prepare_runs(cardinalities: IntArray, first: IntArray, others: IntArray) -> RunStart:
    """What runs share."""
    n = len(cardinalities)
    counts, logs, weights = cardinalities.astype(np.float64), np.empty(n, np.int64), np.ones((2, n))
    share = min(1.0, MOST_WEIGHT / max(counts.sum(), 1.0))
    for v in range(n):
        logs[v] = math.floor(math.log(counts[v]) / math.log(2.0) / LOG_UNIT + 0.5)
        weights[0, v] = math.ceil(counts[v] * share)
    sums, scores, sizes = np.empty((2, n)), np.empty((2, n)), np.empty(n, np.int64)
    start_scores(first, others, logs, weights, sums, scores, sizes)
    return RunStart(counts, logs, weights, sums, scores, sizes)
