"""Message passing on chains and forests, 000 (6.36)-(6.40), 002 (33)-(37) and (41)-(44): exact, in linear time.

Messages go from the leaves to a root and back. With the semiring (+, x) they give log Z and all marginals; with (min,
+) the labelling of least energy. Factors of one variable and evidence are folded into a `base` (B, S) first
(`besag.infer.unary`); the rest is done by `besag.infer.trees.sums`, or by `besag.infer.trees.pairs` if the problem is
large and all its factors are pairwise tables of one size. This module chooses between them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, TypedDict

import numpy as np

from besag.arrays import Array, IntArray, Semiring
from besag.errors import CapabilityError, EvidenceError
from besag.graph.graph import Graph
from besag.graph.problem import Problem
from besag.infer.answers import Answers
from besag.infer.engine import Capabilities, OnStep, Want, check_wants
from besag.infer.memory import (
    bytes_of_rows,
    default_memory_limit,
    refuse,
    refuse_marginals,
    refuse_samples,
    rows_at_once,
    slabs,
)
from besag.infer.result import Diagnostics, Result, factor_offsets
from besag.infer.trees import pairs, sums
from besag.infer.trees.messages import MessageLog, send_all
from besag.infer.trees.plan import Forest, plan_forest
from besag.infer.trees.sums import Marginals
from besag.infer.unary import add_unary_moments, base_blocks, base_rows, copy_unary_marginals
from besag.infer.unfolding import unfolding
from besag.model.structured.kernels.rules import KINDS

SLAB_ENTRIES = 2**24  # of base: rows are done in slabs of so many entries
PLAN_OF_VARIABLE, PLAN_OF_FACTOR = 8, 2  # numbers of a plan, while it is made
WORK_OF_STATE, WORK_OF_VARIABLE = 6, 4  # temporary numbers of a row
WORK_OF_PAIRS = 3  # temporary numbers for each state in the fast kernel


def forest_of(graph: Graph, root: int | None = None) -> Forest | None:
    """The plan of message passing on a graph, hung from a root; None if the factor graph has a cycle."""
    return graph.plans.get(
        ("forest", root), lambda: plan_forest(graph.state_offsets, graph.scope_offsets, graph.scope_variables, root)
    )


@dataclass(frozen=True, slots=True)
class Tree:
    """Message passing on a forest, hung from `root`, by default from its centre.

    n_samples: draws per row.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(
        frozenset({"log_partition", "variables", "factors", "moments", "map", "samples", "messages"}),
        "exact",
        "a factor graph without cycles",
    )
    root: str | None = None
    n_threads: int | None = None
    memory_limit: int | None = None
    n_samples: int = 1
    k: int = 1

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
        """Compute the answers by message passing."""
        began = time.perf_counter()
        check_wants(self, want)
        if self.k != 1 and "map" in want:
            raise CapabilityError(f"engine 'tree' gives the best labelling, not the {self.k} best; junction_tree does")
        run = _TreeRun(self, problem)
        answer = Result(problem.graph, "exact", Diagnostics(), problem.evidence.batched, problem.evidence.index)
        details: dict[str, object] = {}
        if want & {"log_partition", "variables", "factors", "moments"}:
            answer, details = run.sums(answer, want)
        if "map" in want:
            answer = run.best(answer)
        if "samples" in want:
            refuse_samples(problem, self.n_samples, self.memory_limit)
            answer = run.draws(answer, np.random.default_rng(0) if rng is None else rng, self.n_samples)
        if "messages" in want:
            answer = replace(answer, message_log=run.messages(Semiring.MAX if "map" in want else Semiring.LOG_SUM))
        seconds = time.perf_counter() - began
        told = Diagnostics(
            engine="tree", converged=True, iterations=1, seconds=seconds, rows=problem.evidence.n_rows, **details
        )
        return replace(answer, diagnostics=told)

    def steps(
        self,
        problem: Problem,
        *,
        warm: Result | None = None,
        rng: np.random.Generator | None = None,
        time_limit: float | None = None,
    ) -> Iterator[Result]:
        """A Result for each message that is sent: `messages` so far, and all marginals with the last one."""
        last = self.infer(problem, frozenset({"log_partition", "variables", "messages"}))
        log = last.message_log
        for n in range(1, len(log.messages)):
            yield replace(last, log_partitions=None, probabilities=None, message_log=log.first(n))
        yield last

    def hang(self, graph: Graph) -> Forest:
        """The forest of a graph, hung from the root; CapabilityError if there are cycles."""
        forest = forest_of(graph, None if self.root is None else graph.variables.index(self.root))
        if forest is None:
            raise CapabilityError("engine 'tree' needs a factor graph without cycles; this one has some: try 'exact'")
        return forest


class Wanted(TypedDict):
    """What is asked of a kernel."""

    want_variables: bool
    want_moments: bool
    factor_offsets: IntArray | None
    weights: Array | None
    n_threads: int | None


class _TreeRun:
    """One problem on its forest."""

    def __init__(self, engine: Tree, problem: Problem) -> None:
        self.given, self.n_threads, self.root = problem, engine.n_threads, engine.root
        self.limit = default_memory_limit() if engine.memory_limit is None else engine.memory_limit
        self.problem = problem.expanded(KINDS, self.limit)
        self.graph = problem.graph
        self._refuse_row(0)
        self.forest = engine.hang(problem.graph)
        self.factors = self.problem.factors

    def _planned(self) -> int:
        """Bytes of the forest while it is planned."""
        variables, factors = self.graph.n_variables, self.graph.n_factors
        return 8 * (PLAN_OF_VARIABLE * variables + PLAN_OF_FACTOR * factors + len(self.graph.scope_variables))

    def _work_of_row(self) -> int:
        """Temporary bytes of a row: its base, messages up and down, marginals."""
        graph = self.graph
        messages = int(np.diff(graph.state_offsets)[graph.scope_variables].sum()) // 2
        states = WORK_OF_STATE * int(graph.state_offsets[-1])
        return 8 * (states + WORK_OF_VARIABLE * graph.n_variables + messages + graph.n_factors)

    def _refuse_row(self, work: int) -> None:
        """TooLargeError if the forest and so many more bytes would not fit."""
        what, needed = f"message passing between {self.graph.n_variables} variables", self._planned() + work
        refuse(what, needed, self.limit, "use more memory or a smaller model")

    def slabs(self, kept: int) -> Iterator[tuple[int, int]]:
        """Rows in slabs, so that a large batch does not need all of its base at once.

        kept: numbers of a row that stay; TooLargeError if they do not fit.
        """
        rows, n_states, least = self.problem.evidence.n_rows, int(self.graph.state_offsets[-1]), sums.LANES
        work = self._work_of_row() + 8 * kept
        stays = self._planned() + bytes_of_rows(self.problem) + 8 * rows * kept
        if rows > 1:
            advice = "ask for fewer rows at a time"
            refuse(f"the answers for {rows} rows", stays + min(least, rows) * work, self.limit, advice)
        size = rows_at_once(rows, self.limit - stays, work, most=SLAB_ENTRIES // n_states, least=least)
        return slabs(rows, size)

    def sums(self, answer: Result, want: frozenset[Want]) -> tuple[Result, dict[str, object]]:
        """The answers of the semiring (+, x): log Z and marginals."""
        offsets = factor_offsets(self.graph) if "factors" in want else None
        rows = self.problem.evidence.n_rows
        if offsets is not None:
            refuse_marginals(rows, int(offsets[-1]), self.limit)
        log_z, answers, moments = [], Answers(rows), np.zeros(len(self.problem.log_potentials))
        needs_variables = bool(want & {"variables", "factors", "moments"})
        kept = int(self.graph.state_offsets[-1]) if "variables" in want else 0
        for start, stop in self.slabs(kept + (0 if offsets is None else int(offsets[-1]))):
            wanted = Wanted(
                want_variables=needs_variables,
                want_moments="moments" in want,
                factor_offsets=offsets,
                weights=self.variable_weights(start, stop),
                n_threads=self.n_threads,
            )
            part = self._sum_product(start, stop, wanted)
            log_z.append(self.by_instance(part.log_partition))
            if needs_variables and (log_z[-1] == -np.inf).any():
                base = self._emptied(base_rows(self.problem, start, stop), log_z[-1])
                part = self._general(start, stop, base, wanted)
            if "variables" in want:
                answers.put("probabilities", start, part.variables)
            if part.factors is not None and part.variables is not None:
                copy_unary_marginals(self.problem, part.variables, part.factors)
                answers.put("factor_marginals", start, part.factors)
            if part.moments is not None and part.variables is not None:
                moments += part.moments
                add_unary_moments(self.problem, part.variables, moments, start)
        answer = replace(
            answer,
            **answers.found,
            log_partitions=np.concatenate(log_z),
            table_moments=self.given.contracted(self.problem, moments) if "moments" in want else None,
        )
        return answer, {"domain": "linear" if part.semiring == Semiring.SUM else "log"}

    def _emptied(self, base: Array, log_z: Array) -> Array:
        """The base with no state left in a row or instance without a labelling, so that no component of it counts."""
        if self.graph.n_instances == 1:
            return np.where((log_z == -np.inf)[:, None], -np.inf, base)
        sizes = np.diff(self.graph.state_offsets[self.graph.instance_offsets])
        return np.where(np.repeat(log_z == -np.inf, sizes), -np.inf, base)

    def _sum_product(self, start: int, stop: int, wanted: Wanted) -> Marginals:
        """Run the fast kernel if it serves, else the general one."""
        fast = self._pair_plan() if stop - start == 1 else None
        if fast is not None:
            self._refuse_row(8 * WORK_OF_PAIRS * int(self.graph.state_offsets[-1]))
            answer = pairs.sum_product(fast, self.factors, base_blocks(self.problem, start), **wanted)
            if answer is not None:
                return answer
        self._refuse_row(self._work_of_row())
        return self._general(start, stop, base_rows(self.problem, start, stop), wanted)

    def _general(self, start: int, stop: int, base: Array, wanted: Wanted) -> Marginals:
        by_row = None if stop - start == 1 else self.problem.row_weights[start:stop]
        return sums.sum_product(self.factors, self.forest, base, row_weights=by_row, **wanted)

    def _pair_plan(self) -> pairs.PairPlan | None:
        """The plan of the fast kernel, kept while the same factors share the same tables; None if it cannot serve."""
        readers = self.problem.table_of_factor
        plans, key = self.graph.plans, ("pairs", self.root)
        held_for, fast = plans.get(key, lambda: (readers, pairs.plan_pairs(self.factors, self.forest)))
        return fast if held_for is readers else pairs.plan_pairs(self.factors, self.forest)

    def best(self, answer: Result) -> Result:
        """The labelling of least energy, for each row."""
        self._refuse_row(self._work_of_row())
        answers, energies = Answers(self.problem.evidence.n_rows), []
        for start, stop in self.slabs(self.graph.n_variables):
            part = sums.max_product(
                self.factors, self.forest, base_rows(self.problem, start, stop), n_threads=self.n_threads
            )
            answers.put("codes", start, part.labels)
            energies.append(np.where(self.by_instance(part.log_weight) == -np.inf, np.inf, 0.0))
        codes = answers.found["codes"]
        found = self.given.energy_of_answers(codes)
        return replace(answer, codes=codes[:, None], energies=(found + np.concatenate(energies))[:, None])

    def draws(self, answer: Result, rng: np.random.Generator, n_samples: int) -> Result:
        """Independent samples, for each row, from one key of the generator."""
        self._refuse_row(self._work_of_row())
        key = int(rng.integers(2**62))
        log_z, answers = [], Answers(self.problem.evidence.n_rows)
        for start, stop in self.slabs(self.graph.n_variables * n_samples):
            base = base_rows(self.problem, start, stop)
            part = sums.sample(self.factors, self.forest, base, n_samples, key + start, n_threads=self.n_threads)
            log_z.append(self.by_instance(part.log_partition))
            answers.put("sampled", start, part.samples)
        return replace(answer, log_partitions=np.concatenate(log_z), **answers.found)

    def messages(self, semiring: Semiring) -> MessageLog:
        """Every message, in the order of sending."""
        if self.problem.evidence.batched:
            raise EvidenceError("messages are traced for one row of evidence, a dict")
        return send_all(self.given, self.forest, semiring)

    def by_instance(self, per_component: Array) -> Array:
        """(B, C) -> (B,), or (N,) for a union: sums over components."""
        if self.graph.n_instances == 1:
            return np.asarray(per_component.sum(axis=1))
        instance = np.searchsorted(self.graph.instance_offsets, self.forest.roots, side="right") - 1
        return np.bincount(instance, weights=per_component[0], minlength=self.graph.n_instances).astype(np.float64)

    def variable_weights(self, start: int, stop: int) -> Array | None:
        """The weight of each variable's instance, (V,), or that of the row where there is but one."""
        if self.problem.weights is None:
            return None
        if self.graph.n_instances == 1:
            return np.full(self.graph.n_variables, self.problem.row_weights[start]) if stop - start == 1 else None
        return np.repeat(self.problem.weights, np.diff(self.graph.instance_offsets))
