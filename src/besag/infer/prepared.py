"""A problem made ready for approximate engines.

Structured factors are expanded unless the engine knows them; unary factors and evidence are folded into `base` (R, S);
and states that hard zeros rule out under the evidence of a row are -inf there (`besag.kernels.support`). After that
every state that is left has, in every factor, an entry above -inf whose other states are left too: a message about it
is positive whatever the messages before it were. A row in which a variable has no state left has log Z = -inf.

    R rows of evidence, one for a union; S states of all variables; F factors, of which those on one variable are done
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from besag.arrays import AnyArray, Array, BoolArray, IntArray, freeze
from besag.graph.problem import Problem
from besag.infer.memory import default_memory_limit
from besag.infer.result import Diagnostics, Result
from besag.infer.unary import base_rows
from besag.kernels.compile import worth_compiling
from besag.kernels.support import propagate_support
from besag.model.structured.kernels import rules

KINDS = rules.KINDS  # of factors that need not be turned into tables, for layers that may not import kernels
LARGEST_SINGLE = 1e30  # log-potentials up to which sums in float32 are finite
SMALL_TABLE = 4  # entries that a factor is taken to have at the least, though many may share a table
FEW_STATES = 8  # of every variable, up to which their sums are added up state by state


class Prepared:
    """See the module. `kinds`: the structured factors that the engine knows, none of them tables."""

    def __init__(self, problem: Problem, kinds: frozenset[int], memory_limit: int | None) -> None:
        self.given = problem
        self.limit = default_memory_limit() if memory_limit is None else memory_limit
        self.problem = problem.expanded(kinds, self.limit)
        self.graph = graph = problem.graph
        self.n_rows = problem.evidence.n_rows
        self.factors = self.problem.factors
        self.entries = float(self.n_rows) * max(len(self.problem.log_potentials), SMALL_TABLE * graph.n_factors)
        self.compile = worth_compiling(self.entries)

    def goes_on(self) -> bool:
        """Whether to compile, asked before each iteration after the first: many small ones are a large one."""
        self.compile = self.compile or worth_compiling(self.entries)
        return self.compile

    @cached_property
    def base(self) -> Array:
        """(R, S), -inf at the states that are ruled out."""
        base = np.array(base_rows(self.problem, 0, self.n_rows))
        if self.has_zeros or (base == -np.inf).any():
            base[~propagate_support(self.factors, base > -np.inf, compile=self.compile)] = -np.inf
        return np.asarray(freeze(base))

    @cached_property
    def has_zeros(self) -> bool:
        """Whether some table has a hard zero."""
        return self.least == -np.inf

    @cached_property
    def least(self) -> float:
        """The least log-potential, or 0."""
        return self._looked_up("least", lambda values: float(values.min(initial=0.0)))

    @cached_property
    def largest(self) -> float:
        """The largest log-potential, or 0."""
        return self._looked_up("largest", lambda values: float(values.max(initial=0.0)))

    def _looked_up(self, key: str, look: Callable[[Array], float]) -> float:
        """What is to be known of the log-potentials, looked up once for the same numbers."""
        values = self.problem.log_potentials
        return (
            self.graph.plans.get_for(key, values, lambda: look(values)) if self.problem is self.given else look(values)
        )

    def number_type(self, dtype: str) -> type[np.floating[Any]]:
        """The type that is asked for, or float64 where float32 cannot hold sums of these numbers."""
        if dtype == "float64":
            return np.float64
        of_base = float(self.base.min(initial=0.0)), float(self.base.max(initial=0.0))
        reaches = ((self.base, of_base), (self.problem.log_potentials, (self.least, self.largest)))
        return np.float32 if max(_largest(*values) for values in reaches) <= LARGEST_SINGLE else np.float64

    @cached_property
    def possible(self) -> BoolArray:
        """(R,), or (N,) for a union: whether every variable has a state left."""
        if not (self.base == -np.inf).any():
            return np.ones(self.n_rows if self.graph.n_instances == 1 else self.graph.n_instances, np.bool_)
        highest = np.maximum.reduceat(self.base, self.graph.state_offsets[:-1], axis=1)
        alive = highest > -np.inf
        if self.graph.n_instances == 1:
            return np.asarray(alive.all(axis=1))
        return np.logical_and.reduceat(alive[0], self.graph.instance_offsets[:-1])

    def totals(self, of_variables: Array | None, of_factors: Array | None) -> Array:
        """Sums over variables (R, V) and factors (R, F) -> (R,), or (N,) for a union."""
        graph = self.graph
        if graph.n_instances == 1:
            parts = [values.sum(axis=1) for values in (of_variables, of_factors) if values is not None]
            return np.asarray(sum(parts, np.zeros(self.n_rows)))
        total = np.zeros(graph.n_instances)
        if of_variables is not None:
            total += np.add.reduceat(of_variables[0], graph.instance_offsets[:-1])
        if of_factors is not None:
            total += np.bincount(graph.factor_instances, weights=of_factors[0], minlength=graph.n_instances)
        return total

    def sums(self, values: Array) -> Array:
        """(R, S) -> (R, V): sums over the states of each variable."""
        n = self.graph.variables.common_cardinality
        if n is None or n > FEW_STATES:
            return np.asarray(np.add.reduceat(values, self.graph.state_offsets[:-1], axis=-1))
        total = np.array(values[..., ::n])
        for k in range(1, n):
            total += values[..., k::n]
        return total

    def spread_variables(self, of_variables: Array) -> Array:
        """(R, V) -> (R, S): the number of its variable at every state."""
        return np.repeat(of_variables, np.diff(self.graph.state_offsets), axis=-1)

    def spread(self, of_rows: AnyArray) -> AnyArray:
        """(R,) or (N,) -> (R, S): the number of its row or instance at every state."""
        if self.graph.n_instances == 1:
            return np.asarray(np.broadcast_to(of_rows[:, None], self.base.shape))
        sizes = np.diff(self.graph.state_offsets[self.graph.instance_offsets])
        return np.repeat(of_rows, sizes)[None]

    def energies(self, codes: IntArray) -> Array:
        """H of labellings (R, V): (R,), or (N,) for a union."""
        return self.given.energy(codes if self.graph.n_instances == 1 else codes[0])

    def empty(self, bound: str) -> Result:
        """A Result to fill."""
        evidence = self.given.evidence
        return Result(self.graph, bound, Diagnostics(), evidence.batched, evidence.index)

    def empty_impossible(self, result: Result) -> Result:
        """The result with log Z = -inf, for certain, and nothing but zeros where no labelling is possible."""
        if self.possible.all():
            return result
        log_z, p = result.log_partitions, result.probabilities
        if log_z is not None:
            low, high = (np.where(self.possible, bound, -np.inf) for bound in result.bound_arrays())
            result = replace(result, log_partitions=np.where(self.possible, log_z, -np.inf), bounds=(low, high))
        return replace(result, probabilities=None if p is None else np.where(self.spread(self.possible), p, 0.0))


def _largest(values: Array, reach: tuple[float, float]) -> float:
    """The largest absolute value that is finite, of values that reach from low to high."""
    low, high = reach
    if low == -np.inf:
        low = float(values.min(initial=0.0, where=values > -np.inf))
    return max(high, -low)
