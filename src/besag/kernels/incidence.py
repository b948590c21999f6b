"""The factors that each variable is in, and the connected components of variables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from besag.arrays import IntArray
from besag.kernels.compile import inlined


def make_incidence() -> Callable[..., tuple[IntArray, IntArray]]:
    """Kernel: the factors of two or more variables that each variable is in, as (first (V + 1,), linked)."""

    def incidence(
        state_offsets: IntArray, scope_offsets: IntArray, scope_variables: IntArray
    ) -> tuple[IntArray, IntArray]:
        n_variables, n_factors = len(state_offsets) - 1, len(scope_offsets) - 1
        first = np.zeros(n_variables + 1, np.int64)
        for f in range(n_factors):
            if scope_offsets[f + 1] - scope_offsets[f] >= 2:
                for e in range(scope_offsets[f], scope_offsets[f + 1]):
                    first[scope_variables[e] + 1] += 1
        for v in range(n_variables):
            first[v + 1] += first[v]
        linked = np.empty(first[n_variables], np.int64)
        free = first[:-1].copy()
        for f in range(n_factors):
            if scope_offsets[f + 1] - scope_offsets[f] >= 2:
                for e in range(scope_offsets[f], scope_offsets[f + 1]):
                    v = scope_variables[e]
                    linked[free[v]] = f
                    free[v] += 1
        return first, linked

    return incidence


@inlined
def root_of(parents: IntArray, v: int) -> int:
    """The variable that represents the component of v."""
    while parents[v] != v:
        parents[v] = parents[parents[v]]
        v = parents[v]
    return v
