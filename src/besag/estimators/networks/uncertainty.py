"""How much the data leave open: networks drawn from the posterior, and what a query is in each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from besag.arrays import Array
from besag.errors import ModelError
from besag.model.model import Model
from besag.registry import is_number

Query = str | Mapping[str, Any] | Callable[[Model], Any]


@dataclass(frozen=True, slots=True, eq=False)
class CredibleInterval:
    """A query's value in the fitted model, and the ends between which it lies with probability `level`.

    value, low, high: numbers or arrays of one shape. draws (n, ...): the values in models from the posterior.
    """

    value: Array
    low: Array
    high: Array
    level: float
    draws: Array

    def __repr__(self) -> str:
        if self.value.ndim > 1:
            return f"CredibleInterval(value, low and high of shape {self.value.shape}; level={self.level})"
        if self.value.ndim:
            rows = ", ".join(
                f"{v:.4g} [{a:.4g}, {b:.4g}]" for v, a, b in zip(self.value, self.low, self.high, strict=True)
            )
            return f"CredibleInterval({rows}; level={self.level})"
        return f"CredibleInterval({self.value:.4g} [{self.low:.4g}, {self.high:.4g}]; level={self.level})"


def read_query(query: Query, evidence: Any) -> Callable[[Model], Array]:
    """A query as a function of a model: {name: state, ..} its probability, a name its marginal, or any function."""
    if isinstance(query, str):
        return lambda model: np.asarray(model.marginals([query], evidence=evidence)[query])
    if isinstance(query, Mapping):
        return lambda model: np.asarray(_probability(model, query, evidence))
    if not callable(query):
        raise ModelError(
            f"a query is the name of a variable, {{name: state}}, or a function of a model, got {type(query).__name__}"
        )
    if evidence is not None:
        raise ModelError("a query that is a function of a model takes its evidence itself")
    return lambda model: np.asarray(query(model), np.float64)


def _probability(model: Model, query: Mapping[str, Any], evidence: Any) -> float:
    """p(query | evidence)."""
    table = model.joint(list(query), evidence=evidence)
    codes = [model.variables.find_state(model.variables.index(name), state) for name, state in query.items()]
    for (name, state), code in zip(query.items(), codes, strict=True):
        if code is None:
            raise ModelError(model.variables.no_state(model.variables.index(name), state))
    return float(table[tuple(codes)])


def credible_interval(
    model: Model, drawn: Iterable[Model], ask: Callable[[Model], Array], level: float
) -> CredibleInterval:
    """The equal-tailed interval of a query over models drawn from the posterior."""
    if not (is_number(level) and 0 < level < 1):
        raise ModelError(f"level must be a probability between 0 and 1, got {level!r}")
    draws = np.stack([ask(other) for other in drawn])
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return CredibleInterval(ask(model), np.asarray(low), np.asarray(high), level, draws)
