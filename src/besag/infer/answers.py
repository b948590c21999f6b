"""What the answers of engines are made of, whichever way their numbers were found.

R rows of evidence, one for a union; S states of all variables; L numbers of all tables
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from besag import recycled
from besag.arrays import AnyArray, Array
from besag.infer.memory import refuse_marginals
from besag.infer.prepared import Prepared
from besag.infer.result import Result, factor_offsets
from besag.infer.unary import add_unary_moments, copy_unary_marginals


class Answers:
    """Arrays of answers, a row each, filled slab by slab; where there is one slab, they are what came in it."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.found: dict[str, Any] = {}

    def put(self, name: str, start: int, part: AnyArray | None) -> None:
        """Rows from `start` on of one of them; None is nothing."""
        if part is None:
            return
        if len(part) == self.n_rows:
            self.found[name] = part
            return
        if name not in self.found:
            self.found[name] = recycled.empty((self.n_rows, *part.shape[1:]), part.dtype)
        self.found[name][start : start + len(part)] = part


def normalise_weights(setting: Prepared, weights: AnyArray) -> Array:
    """(R, S) weights as probabilities: zero at states that are ruled out, uniform where a variable has no weight."""
    allowed = setting.base > -np.inf
    kept = np.where(allowed, weights, 0.0)
    sums = setting.sums(kept)
    if not (sums > 0).all():
        kept = np.where(setting.spread_variables(sums) > 0, kept, allowed)
        sums = setting.sums(kept)
    return np.asarray(kept / setting.spread_variables(np.where(sums > 0, sums, 1.0)))


def make_marginals(setting: Prepared, besides: float = 0.0) -> Array:
    """Room for all factor marginals, (R, sum of table sizes), zeros; TooLargeError where they do not fit.

    besides: the bytes of all else that the engine holds.
    """
    size = int(factor_offsets(setting.graph)[-1])
    refuse_marginals(setting.n_rows, size, setting.limit, besides)
    return np.zeros((setting.n_rows, size))


def with_factors(setting: Prepared, result: Result, p: Array, marginals: Array | None, moments: Array | None) -> Result:
    """The result with marginals of all factors (R, .) and moments (L,) of the tables that the engine saw.

    What unary factors are to have in both is added here: the marginals p (R, S) of their variables.
    """
    problem = setting.problem
    if marginals is not None:
        copy_unary_marginals(problem, p, marginals)
    if moments is not None:
        add_unary_moments(problem, p, moments)
        moments = setting.given.contracted(problem, moments)
    return replace(result, factor_marginals=marginals, table_moments=moments)
