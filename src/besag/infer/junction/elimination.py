"""Bucket elimination: everything but a few variables is summed out, one variable after the other (Dechter 1999).

    sum over y_rest of exp(-H(y))  =  product of tables on the variables that are kept

It is the upward pass of a junction tree (`besag.infer.junction.roots`), in an order that puts the kept variables last;
a marginal is what remains when one variable is kept. Each marginal takes a pass of its own, so this pays for a few of
them: `junction_tree` gives all in two passes. Factors that cannot matter are dropped first: barren ones, and for a
marginal also those that observed variables separate from it (`besag.infer.junction.relevance`).

joint and marginal_map ask `Buckets.eliminate` for the remaining tables.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import ClassVar

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, freeze
from besag.graph.problem import Problem
from besag.infer.engine import Capabilities, OnStep, Want, check_wants
from besag.infer.junction.engine import JunctionTree
from besag.infer.junction.evidence_rows import GivenRows
from besag.infer.junction.plan import CliquePlan, make_plan
from besag.infer.junction.relevance import find_relevant, find_separated
from besag.infer.junction.remaining import Remaining
from besag.infer.junction.roots import Left, eliminate, find_states_left
from besag.infer.junction.run import JunctionRun, setting_key, variable_groups
from besag.infer.result import Result
from besag.infer.unfolding import unfolding
from besag.kernels.compile import worth_compiling


@dataclass(frozen=True, slots=True)
class Elimination:
    """Bucket elimination, one pass for each marginal.

    targets: variables whose marginals are wanted, None for all.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(
        frozenset({"log_partition", "variables"}), "exact", "tables that fit in memory"
    )
    n_threads: int | None = None
    memory_limit: int | None = None
    targets: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.targets, str):  # from text, "elimination[targets=A]"
            object.__setattr__(self, "targets", (self.targets,))

    @unfolding
    def infer(
        self,
        problem: Problem,
        want: frozenset[Want],
        *,
        warm: Result | None = None,
        rng: np.random.Generator | None = None,
        time_limit: float | None = None,
        on_step: OnStep | None = None,
    ) -> Result:
        """Compute the answers by summing out."""
        began = time.perf_counter()
        check_wants(self, want)
        run = Buckets(JunctionTree(self.n_threads, self.memory_limit), problem, time_limit=time_limit)
        log_z: Array = run.sums(frozenset({"log_partition"}))["log_partitions"]
        marginals = run.marginals(self._numbers(problem), log_z > -np.inf) if "variables" in want else None
        limited = None if marginals is None else self.targets
        return run.result("elimination", began, log_partitions=log_z, probabilities=marginals, targets=limited)

    def _numbers(self, problem: Problem) -> list[int]:
        if self.targets is None:
            return list(range(problem.graph.n_variables))
        return [problem.graph.variables.index(name) for name in self.targets]


class Buckets(JunctionRun):
    """One problem, and what remains of it when all but a few variables are summed out."""

    def marginals(self, targets: list[int], possible: BoolArray) -> Array:
        """(R, S): p of the targets, zeros elsewhere and in rows or instances that are impossible."""
        offsets, graph = self.graph.state_offsets, self.graph
        answer = np.zeros((self.problem.evidence.n_rows, int(offsets[-1])))
        of_rows = possible if graph.n_instances == 1 else np.ones(1, np.bool_)
        for kept in self._batches(targets, possible):
            used = find_separated(self.problem, find_relevant(self.problem, kept), kept)
            parts = [part.alone() for part in self.eliminate(kept, used=used)]
            for i, v in enumerate(kept.tolist()):
                tables = np.concatenate([part[i].joint() for part in parts])
                answer[of_rows, offsets[v] : offsets[v + 1]] = normalise_logs(tables[of_rows])
        return answer

    def _batches(self, targets: list[int], possible: BoolArray) -> Iterator[IntArray]:
        """Targets one by one; in a union one from each possible instance at a time: instances are independent."""
        groups = variable_groups(self.graph).of
        waiting: dict[int, list[int]] = {}
        for v in targets:
            if self.graph.n_instances == 1 or possible[groups[v]]:
                waiting.setdefault(int(groups[v]), []).append(v)
        for batch in zip_longest(*waiting.values()):
            yield np.array([v for v in batch if v is not None], np.int64)

    def eliminate(self, kept: IntArray, *, used: BoolArray | None = None, width: int = 1) -> Iterator[Remaining]:
        """What remains on the kept variables, in slabs of rows; `width`: entries that the caller needs per row."""
        made = self._planned_for(kept, find_relevant(self.problem, kept) if used is None else used)
        rows = self.problem.evidence.n_rows
        compile = worth_compiling(made.sketch.entries.sum() * rows)
        sizes = np.diff(made.join.message_offsets)[made.join.parent < 0]
        for start, stop in self.slabs(max(width, self.graph.n_variables, int(sizes.sum()))):
            given = self.evidence_rows(start, stop)
            left = eliminate(made, self.factors, given, n_threads=self.n_threads, compile=compile)
            yield self._remaining(made, left, given, kept)

    def _planned_for(self, kept: IntArray, used: BoolArray) -> CliquePlan:
        nothing = np.zeros(self.graph.n_variables, np.bool_)
        keep = nothing.copy()
        keep[kept] = True
        setting = self.setting(nothing, used, False)
        setting = replace(setting, keep=freeze(keep), soft=freeze(setting.soft & ~keep))
        setting, drawn = self.with_states(setting, self.sketch(setting))
        self.refuse(drawn)
        self.told.update(width=drawn.order.width, entries=float(drawn.entries.sum()))
        compile = worth_compiling(drawn.entries.sum())
        key = ("elimination", *setting_key(setting))
        return self.graph.plans.get(key, lambda: make_plan(self.factors, setting, drawn, compile=compile))

    def _remaining(self, made: CliquePlan, left: Left, given: GivenRows, kept: IntArray) -> Remaining:
        """The tables by position among the kept variables, with those of the evidence on these variables."""
        states = [[find_states_left(made.sketch, v, codes) for v in kept.tolist()] for codes in left.codes]
        position = np.zeros(self.graph.n_variables, np.int64)
        position[kept] = np.arange(len(kept))
        scopes, tables = [position[scope] for scope in left.scopes], list(left.tables)
        for i, v in enumerate(kept.tolist()):
            if made.sketch.counts[v] > 1:
                weights = self._weights(given, v, states[0][i])
                if weights.any():
                    scopes.append(np.array([i]))
                    tables.append(weights)
        return Remaining(self.graph.variables.cardinalities[kept], states, left.constants, scopes, tables)

    def _weights(self, given: GivenRows, v: int, codes: IntArray) -> Array:
        """(R, k): what evidence adds at these states of a variable."""
        seen = given.observed[:, [v]]
        weights = np.where((seen >= 0) & (seen != codes), -np.inf, 0.0)
        if given.log_weights is not None:
            weights += given.log_weights[:, self.graph.state_offsets[v] + codes]
        return weights


def normalise_logs(tables: Array) -> Array:
    """Probabilities from logarithms: sum to one over all axes but the first; each row must have a finite entry."""
    axes = tuple(range(1, tables.ndim))
    p = np.exp(tables - tables.max(axis=axes, keepdims=True))
    return np.asarray(p / p.sum(axis=axes, keepdims=True))
