"""The numbers of a model as a file holds them: weights exp(-h), in as few digits as say the same.

A model keeps energies h = -log w. exp(-h) may differ from the w that was read in its last digit, so that 0.1 would come
out as 0.10000000000000002. Of the decimals near exp(-h) the writers take the one of fewest digits, 15 to 17, whose
energy is h, so that a file goes through a Model and comes out as it was.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from besag.arrays import Array
from besag.errors import ModelError
from besag.model.model import Model


def weights_of(model: Model) -> Iterator[tuple[list[int], Array]]:
    """The scope and the weights (K1..Kn) of each factor, in the model's order; ModelError where one overflows."""
    problem, graph = model.problem, model.graph
    distinct: dict[int, Array] = {}
    for number in range(graph.n_factors):
        factor = int(graph.factor_order[number])
        table = int(problem.table_of_factor[factor])
        if table not in distinct:
            logs = problem.table(factor)
            distinct[table] = _weights(logs, graph.factor_name(factor))
        yield graph.scope(factor).tolist(), distinct[table]


def _weights(logs: Array, name: str) -> Array:
    with np.errstate(over="ignore", under="ignore"):
        weights = np.exp(logs)
    wrong = (weights == np.inf) | ((weights < np.finfo(np.float64).tiny) & (logs > -np.inf))
    if wrong.any():
        raise ModelError(
            f"{name}: a weight is exp({logs[wrong].flat[0]:.6g}), which is no double: such a file cannot hold it; "
            "save the model as .json"
        )
    return shortest(weights, logs)


def shortest(weights: Array, logs: Array) -> Array:
    """The numbers of fewest decimal digits that have these logarithms; the weights where there are none."""
    chosen = np.array(weights)
    for digits in (16, 15):
        rounded = np.array([float(f"{w:.{digits}g}") for w in weights.reshape(-1).tolist()]).reshape(weights.shape)
        with np.errstate(divide="ignore"):
            same = np.log(rounded) == logs
        chosen[same] = rounded[same]
    return chosen


def number_text(values: Array) -> list[str]:
    """Numbers as text from which the same numbers are read again; whole ones without a point."""
    return [repr(v).removesuffix(".0") for v in values.reshape(-1).tolist()]
