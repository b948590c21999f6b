"""The numbers of a model as a file holds them: weights exp(-h), in as few digits as say the same.

A model keeps energies h = -log w. exp(-h) may differ from the w that was read in its last digit, so that 0.1 would come
out as 0.10000000000000002. Of the decimals near exp(-h) the writers take the one of fewest digits whose energy is h, so
that a file goes through a Model and comes out as it was. Where |h| is large, the doubles that share an energy are
further apart than 15 digits, hence the search from 12 digits on.

Tables of one model repeat a few numbers many times, so that each is rounded and written once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from besag.arrays import Array, IntArray, Kind
from besag.errors import ModelError
from besag.graph.problem import Problem
from besag.model.model import Model

MANY = 64  # numbers for which looking for equal ones pays
LIMIT = 1 << 40  # bytes of tables, expanded: a model beyond it is beyond any file


class FileWeights(NamedTuple):
    """The tables of a model: values (L,), one table after the other, the t-th from offsets[t] to offsets[t + 1].

    scopes and table_of_factor (F,): the scope of each factor and which table it has, in the model's order.
    """

    values: Array
    offsets: IntArray
    scopes: list[list[int]]
    table_of_factor: list[int]


def tables_of(model: Model) -> FileWeights:
    """All tables of weights, each once; ModelError where a weight is no double."""
    problem, graph = model.problem.expanded(frozenset({Kind.TABLE}), LIMIT), model.graph
    values = _weights(problem)
    order = graph.factor_order
    starts, ends = graph.scope_offsets[order].tolist(), graph.scope_offsets[order + 1].tolist()
    variables = graph.scope_variables.tolist()
    scopes = [variables[start:end] for start, end in zip(starts, ends, strict=True)]
    return FileWeights(values, problem.table_offsets, scopes, problem.table_of_factor[order].tolist())


def weights_of(model: Model) -> Iterator[tuple[list[int], Array]]:
    """The scope and the weights (K1..Kn) of each factor, in the model's order; ModelError where one is no double."""
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
    """The numbers of fewest decimal digits that have these logarithms; the weights where there are none."""
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
    """The weights, or the doubles beside them where these have the logarithms and the weights do not."""
    with np.errstate(divide="ignore"):
        wrong = np.log(weights) != logs
        for side in (0.0, np.inf):
            beside = np.nextafter(weights, side)
            weights = np.where(wrong & (np.log(beside) == logs), beside, weights)
    return weights


def number_text(values: Array) -> list[str]:
    """Numbers as text from which the same numbers are read again; whole ones without a point."""
    flat = values.reshape(-1)
    if len(flat) < MANY:
        return [repr(v).removesuffix(".0") for v in flat.tolist()]
    distinct, which = np.unique(flat, return_inverse=True)
    texts = np.array([repr(v).removesuffix(".0") for v in distinct.tolist()], object)
    found: list[str] = texts[which].tolist()
    return found
