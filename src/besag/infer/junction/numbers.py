"""A plan with numbers, in the domain of a semiring: what all rows of evidence share, made once and reused.

SUM takes exp(log-potential - largest entry of its table); these largest entries go to the constants. A store has
messages first, then the weights of soft variables, then all tables.

Shapes: V variables, L table entries, G groups of components (the instances of a union), C cliques, O small tables, E
soft variables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from besag.arrays import Array, IntArray, Semiring, freeze, offsets_of
from besag.infer.junction.kernels.rows import CliqueWalk
from besag.infer.junction.plan import CliquePlan
from besag.kernels.compile import compiled, entry_of
from besag.kernels.domain import Linear, to_linear
from besag.kernels.factors import Factors


class Groups(NamedTuple):
    """The group of each variable (V,), and how many groups there are."""

    of: IntArray
    n: int


def one_group(n_variables: int) -> Groups:
    """All variables together."""
    return Groups(freeze(np.zeros(n_variables, np.int64)), 1)


@dataclass(frozen=True, slots=True, eq=False)
class CliqueNumbers:
    """The tables of a plan in one semiring, and where they lie in a store."""

    plan: CliquePlan
    factors: Factors
    semiring: Semiring
    groups: Groups
    values: Array  # (L,) in the domain of the semiring
    constants: Array  # (G,) logarithms of what was taken out
    bases: IntArray  # (O,) where tables begin in a store, fixed variables at code 0
    spans: Array  # (O,) of factors
    soft_offsets: IntArray  # (E + 1,) of the weights of soft variables, which follow the messages
    group_of_clique: IntArray  # (C,)
    cliques: IntArray  # (C,) all of them, children before parents
    walk: CliqueWalk
    longest: int  # entries of the longest residual
    entries: dict[Any, Callable[..., Any]] = field(default_factory=dict)  # of the kernels called so far

    @property
    def table_start(self) -> int:
        """Where the tables begin in a store."""
        return self.plan.n_messages + int(self.soft_offsets[-1])

    def call(self, make_kernel: Callable[..., Any], constants: tuple[int, ...], question: Any, compile: bool) -> Any:
        """Call a kernel; from the second call on without dispatch on the types of all arrays.

        The types are the same each time, because a Bound makes all arrays of a question in one way.
        """
        if not compile:
            return make_kernel(*constants)(*question)
        key = (make_kernel, *constants)
        entry = self.entries.get(key)
        if entry is not None:
            return entry(*question)
        kernel = compiled(make_kernel, *constants)
        answer = kernel(*question)
        self.entries[key] = entry_of(kernel, *question)
        return answer


def numbers_of(
    plan: CliquePlan, factors: Factors, semiring: Semiring, groups: Groups, scaled: Linear | None = None
) -> CliqueNumbers:
    """Put the tables into the domain of a semiring; scaled: them in the linear domain, if the caller has that."""
    tables = factors.table_of_factor[plan.factors]
    soft_offsets = offsets_of(plan.sketch.counts[plan.soft])
    spans, constants, values = np.zeros(len(plan.bases)), np.zeros(groups.n), factors.log_potentials
    if semiring == Semiring.SUM:
        scaled = to_linear(factors) if scaled is None else scaled
        values = scaled.values
        spans[plan.of_factors] = scaled.spans[tables]
        taken_out = scaled.largest[tables]
        if groups.n > 1:
            first = factors.scope_variables[factors.scope_offsets[plan.factors]]
            np.add.at(constants, groups.of[first], taken_out)
        else:
            constants[0] = taken_out.sum()
    bases = plan.bases.copy()
    bases[plan.of_factors] = plan.n_messages + soft_offsets[-1] + factors.table_offsets[tables]
    bases[plan.of_evidence] = plan.n_messages + soft_offsets[:-1]
    return CliqueNumbers(
        plan,
        factors,
        semiring,
        groups,
        values,
        constants,
        freeze(bases),
        freeze(spans),
        soft_offsets,
        freeze(groups.of[plan.axes[plan.axis_offsets[:-1]]]),
        freeze(np.arange(len(plan.join.parent))),
        CliqueWalk(plan.axis_offsets, plan.axes, plan.splits, plan.sketch.counts),
        int((plan.join.shape[:, 1] * plan.join.shape[:, 2]).max(initial=1)),
    )
