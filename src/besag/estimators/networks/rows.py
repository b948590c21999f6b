"""Many rows on one model: the distinct ones among them, log-probabilities, conditionals where all else is known.

log p(y) = sum_f log-potential_f(y_Sf) - log Z                             complete rows, by look-up
p(y_v | rest) ~ exp of the sum over the factors f on v                     one variable unknown, by look-up
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.errors import EvidenceError
from besag.graph.evidence import row_name
from besag.learn.networks.moments import by_factor
from besag.model.model import Model

ROWS = 1 << 16  # at a time
LARGEST_KEY = 1 << 62


def distinct_rows(columns: Sequence[AnyArray], sizes: Sequence[int]) -> tuple[IntArray, IntArray]:
    """(D,) the first of each distinct row, and (N,) which of these each row is; sizes: one above the largest code."""
    import pandas as pd

    n_rows = len(columns[0]) if columns else 0
    key, size = np.zeros(n_rows, np.int64), 1
    for column, n in zip(columns, sizes, strict=True):
        if size * n > LARGEST_KEY:
            key, size = _renumbered(key)
        key = key * n + column
        size *= n
    which, values = pd.factorize(key)
    first = np.full(len(values), n_rows, np.int64)
    np.minimum.at(first, which, np.arange(n_rows))
    return first, which.astype(np.int64)


def _renumbered(key: IntArray) -> tuple[IntArray, int]:
    import pandas as pd

    which, values = pd.factorize(key)
    return which.astype(np.int64), len(values)


def tables_of(model: Model) -> Iterator[tuple[tuple[int, ...], Array]]:
    """(scope, log-potentials) of every factor; the model has tables only."""
    logs = -model.theta if model.support is None else np.where(model.support, -model.theta, -np.inf)
    return by_factor(model, logs)


def log_potentials_of_rows(model: Model, codes: Sequence[AnyArray]) -> Array:
    """(N,): minus the energy of complete rows."""
    n_rows = len(codes[0])
    total = np.zeros(n_rows)
    for scope, logs in tables_of(model):
        flat = logs.reshape(-1)
        for start in range(0, n_rows, ROWS):
            part = slice(start, start + ROWS)
            total[part] += flat[_joint_state([codes[v][part] for v in scope], logs.shape)]
    return total


def _joint_state(columns: Sequence[AnyArray], shape: Sequence[int]) -> IntArray:
    index = np.zeros(len(columns[0]), np.int64)
    for column, size in zip(columns, shape, strict=True):
        index *= size
        index += column
    return index


def conditional_logs(model: Model, codes: Sequence[AnyArray], v: int) -> Array:
    """(N, K): log p(y_v | all others) up to a constant of each row; column v is not read."""
    total = np.zeros((len(codes[0]), int(model.variables.cardinalities[v])))
    for scope, logs in tables_of(model):
        if v in scope:
            at = scope.index(v)
            rest = [u for u in scope if u != v]
            table = np.moveaxis(logs, at, -1).reshape(-1, logs.shape[at])
            sizes = [int(model.variables.cardinalities[u]) for u in rest]
            total += table[_joint_state([codes[u] for u in rest], sizes)] if rest else table[0]
    return total


def normalised_logs(logs: Array, index: Any) -> Array:
    """Rows of log weights (N, K) as probabilities; EvidenceError that names a row in which none is possible."""
    largest = logs.max(axis=1, keepdims=True)
    impossible = largest[:, 0] == -np.inf
    if impossible.any():
        at = int(np.argmax(impossible))
        row = at if index is None else index[at]
        raise EvidenceError(
            f"{row_name(row)} has probability zero: the data that were learnt from have no such case; a prior, such as "
            f'prior="laplace", leaves none out',
            row=row,
        )
    weights = np.exp(logs - largest)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def weighted_sum(scores: Array, weights: Array) -> float:
    """Of the scores of rows (N,); those of rows without weight may be -inf."""
    some = weights > 0
    return float((scores[some] * weights[some]).sum())
