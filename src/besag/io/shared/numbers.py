"""The numbers of a model as written to a file: weights exp(-h), in as few digits as determine h.

A model keeps energies h = -log w. exp(-h) may differ from the w that was read in its last digit, so that 0.1 would be
written as 0.10000000000000002. Of the decimals near exp(-h) the writers take the one with the fewest digits whose
energy is h, so that numbers read from a file are written back unchanged. If |h| is large, the doubles that share an
energy are further apart than 15 digits, hence the search starts from 12 digits.

Tables of one model repeat a few numbers many times, so each is rounded and formatted only once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from besag.arrays import Array, IntArray, Kind
from besag.errors import ModelError
from besag.graph.problem import Problem
from besag.model.model import Model

MANY = 64  # numbers from which on looking for equal ones pays
LIMIT = 1 << 40  # most bytes of tables, expanded: more is too large for any file


class FileWeights(NamedTuple):
    """The tables of a model: values (L,), one table after the other, the t-th from offsets[t] to offsets[t + 1].

    scopes and table_of_factor (F,): the scope of each factor and which table it has, in the model's order.
    """

    values: Array
    offsets: IntArray
    scopes: list[list[int]]
    table_of_factor: list[int]


def tables_of(model: Model) -> FileWeights:
    """All tables of weights, each once; ModelError if a weight exceeds the range of doubles."""
    problem, graph = model.problem.expanded(frozenset({Kind.TABLE}), LIMIT), model.graph
    values = _weights(problem)
    order = graph.factor_order
    starts, ends = graph.scope_offsets[order].tolist(), graph.scope_offsets[order + 1].tolist()
    variables = graph.scope_variables.tolist()
    scopes = [variables[start:end] for start, end in zip(starts, ends, strict=True)]
    return FileWeights(values, problem.table_offsets, scopes, problem.table_of_factor[order].tolist())


def weights_of(model: Model) -> Iterator[tuple[list[int], Array]]:
    """The scope and the weights (K1..Kn) of each factor, in the model's order; ModelError if one is no double."""
    values, offsets, scopes, table_of_factor = tables_of(model)
    sizes, bounds = model.variables.cardinalities.tolist(), offsets.tolist()
    for scope, table in zip(scopes, table_of_factor, strict=True):
        yield scope, values[bounds[table] : bounds[table + 1]].reshape([sizes[v] for v in scope])


def _weights(problem: Problem) -> Array:
    logs = problem.log_potentials
    with np.errstate(over="ignore", under="ignore"):
        weights = np.exp(logs)
    wrong = (weights == np.inf) | ((weights == 0.0) & (logs > -np.inf))
    if wrong.any():
        at = int(np.argmax(wrong))
        table = int(np.searchsorted(problem.table_offsets, at, side="right")) - 1
        factor = int(np.argmax(problem.table_of_factor == table))
        raise ModelError(
            f"{problem.graph.factor_name(factor)}: a weight is exp({logs[at]:.6g}), which is no double: such a file "
            "cannot hold it; save the model as .json"
        )
    return shortest(weights, logs)


def shortest(weights: Array, logs: Array) -> Array:
    """The numbers with the fewest decimal digits that have these logarithms; the weights if there are none."""
    distinct, first, which = np.unique(logs.reshape(-1), return_index=True, return_inverse=True)
    chosen = _with_logs(weights.reshape(-1)[first], distinct)
    left = np.flatnonzero(distinct > -np.inf)
    for digits in (12, 13, 14, 15, 16):
        tried = left if digits > 14 else left[np.abs(distinct[left]) > 1]
        rounded = np.array([float(f"{w:.{digits}g}") for w in chosen[tried].tolist()])
        same = np.log(rounded) == distinct[tried]
        chosen[tried[same]] = rounded[same]
        left = np.setdiff1d(left, tried[same], assume_unique=True)
    return np.asarray(chosen[which].reshape(weights.shape))


def _with_logs(weights: Array, logs: Array) -> Array:
    """The weights, or a neighbouring double where that has the given logarithm and the weight does not."""
    with np.errstate(divide="ignore"):
        wrong = np.log(weights) != logs
        for side in (0.0, np.inf):
            beside = np.nextafter(weights, side)
            weights = np.where(wrong & (np.log(beside) == logs), beside, weights)
    return weights


def number_text(values: Array) -> list[str]:
    """Numbers as text from which the same numbers are read back; whole ones without a point."""
    flat = values.reshape(-1)
    if len(flat) < MANY:
        return [repr(v).removesuffix(".0") for v in flat.tolist()]
    distinct, which = np.unique(flat, return_inverse=True)
    texts = np.array([repr(v).removesuffix(".0") for v in distinct.tolist()], object)
    found: list[str] = texts[which].tolist()
    return found
