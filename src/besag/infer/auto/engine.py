"""Choosing an engine: `exact` and `auto`, and the reason in diagnostics.

exact   tree where the factor graph is a forest; else junction_tree; TooLargeError where it does not fit
auto    the same where that fits into memory and time; else, with one ApproximationWarning, an estimate with bounds on
        log Z (`besag.infer.auto.approximate`). Where the energy of a large graph is binary and submodular, the best
        labelling is one minimum cut (`besag.infer.map.graph_cut`), which is tried before

Exact inference may take all of the time limit but a part, or PATIENCE seconds where there is none. It is hopeless where
a look at a part of the graph (`besag.infer.junction.outlook`) finds HOPELESS times the table entries that there is time
for; for the best labelling bounds are tried even then (`besag.infer.junction.few_states`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from besag.errors import ApproximationWarning, TooLargeError, warn
from besag.graph.graph import Graph
from besag.graph.problem import Problem
from besag.graph.unfolded import unfold
from besag.infer.engine import CHOOSERS, ENGINES, SHOWS, Capabilities, Engine, OnStep, Want
from besag.infer.junction.engine import JunctionTree
from besag.infer.junction.few_states import search_without_a_tree
from besag.infer.junction.outlook import HOPELESS, HOPELESS_REASON, is_easy, is_hopeless
from besag.infer.junction.run import SECONDS_AN_ENTRY, JunctionRun
from besag.infer.result import Result
from besag.infer.trees.engine import Tree, forest_of
from besag.infer.unfolding import unfolding

ALL_WANTS: frozenset[Want] = frozenset(
    {"log_partition", "variables", "factors", "moments", "map", "samples", "messages", "trace"}
)
PATIENCE = 60.0
EXACT_SHARE = 0.7


@dataclass(frozen=True, slots=True)
class Exact:
    """The best exact engine for the graph, or TooLargeError."""

    capabilities: ClassVar[Capabilities] = Capabilities(ALL_WANTS, "exact")
    n_threads: int | None = None
    memory_limit: int | None = None
    n_samples: int = 1
    k: int = 1
    targets: tuple[str, ...] | None = None

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
        """Answers with the engine that fits the graph."""
        try:
            return self.exactly(problem, want, rng=rng, time_limit=time_limit)
        except TooLargeError as error:
            raise TooLargeError(f"{error}; {other_engines(want)}", seconds=error.seconds) from error

    def exactly(
        self, problem: Problem, want: frozenset[Want], *, rng: np.random.Generator | None, time_limit: float | None
    ) -> Result:
        """The answer of the engine that fits the graph, and why that one."""
        engine, reason = self.choose(problem.graph)
        served = want - (SHOWS - engine.capabilities.wants)
        result = engine.infer(problem, served, rng=rng, time_limit=time_limit)
        return replace(result, diagnostics=result.diagnostics.extend(reason=reason))

    def choose(self, graph: Graph) -> tuple[Engine, str]:
        """The engine for a graph, and why."""
        options: dict[str, Any] = {
            "n_threads": self.n_threads,
            "memory_limit": self.memory_limit,
            "n_samples": self.n_samples,
        }
        if self.k == 1 and forest_of(graph) is not None:
            return Tree(**options), "the factor graph is a forest"
        why = "the factor graph has cycles" if self.k == 1 else f"the {self.k} best labellings are asked for"
        return JunctionTree(**options, k=self.k, targets=self.targets), why


def other_engines(want: frozenset[Want]) -> str:
    """Who can serve a want that is too large for exact inference."""
    classes = {name: ENGINES.find(name).capabilities for name in ENGINES if name not in CHOOSERS}
    able = [name for name, can in classes.items() if can.bound != "exact" and want <= can.wants]
    if able:
        return f"engines that answer approximately: {', '.join(sorted(able))}"
    return "there is no approximate engine for it; model.cost(evidence) tells what some evidence would save"


@dataclass(frozen=True, slots=True)
class Auto(Exact):
    """The engine that suits the graph: exact where that fits, else an estimate with bounds on log Z."""

    seed: int = 0

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
        """Answers exactly where that fits into memory and time, else approximately."""
        began = time.perf_counter()
        if self.k == 1 and want - SHOWS == {"map"} and not is_easy(problem.graph):
            found = self._by_a_cut(problem, want - {"messages"}, time_limit, on_step)
            if found is not None:
                return found
        patience = patience_of(time_limit)
        known: dict[str, Result] = {}
        try:
            if not self._is_hopeless(problem, want, patience, time_limit):
                return self.exactly(problem, want, rng=rng, time_limit=patience)
            refusal = TooLargeError(HOPELESS_REASON)
            if "map" in want and self.k == 1:
                known = self._best_by_bounds(problem, patience)
        except TooLargeError as error:
            if self.k > 1 and problem.graph.n_instances > 1:
                raise
            refusal = error
        if known and want - SHOWS == {"map"}:
            return known["map"]
        left = None if time_limit is None else max(time_limit - (time.perf_counter() - began), 1e-3)
        result = self._approximately(problem, want, left, known, warm, rng, on_step)
        seconds = time.perf_counter() - began
        if not _is_proven(result):
            warn(ApproximationWarning(f"{_why(refusal)}. {_how(result, seconds)}{_instead(refusal, time_limit)}"))
        return replace(result, diagnostics=result.diagnostics.extend(reason=str(refusal), seconds=seconds))

    def search_without_tables(
        self, problem: Problem, refusal: TooLargeError, want: frozenset[Want], **options: Any
    ) -> Result:
        """The best labelling found where a noisy-MAX is too large for a table of what the evidence leaves of it."""
        began = time.perf_counter()
        if self.k > 1:
            raise TooLargeError(f"{refusal}; k=1 has an approximate answer", seconds=refusal.seconds) from refusal
        limit, warm, rng, on_step = (options.get(key) for key in ("time_limit", "warm", "rng", "on_step"))
        absorbed = unfold(problem, absorb=True, chains=False)
        left = problem if absorbed is None else absorbed.problem
        result = replace(self._approximately(left, want, limit, {}, warm, rng, on_step), graph=problem.graph)
        how = _how(result, time.perf_counter() - began)
        warn(ApproximationWarning(f"{_why(refusal)}. {how}{_instead(refusal, None)}"))
        return replace(result, diagnostics=result.diagnostics.extend(reason=str(refusal)))

    def _by_a_cut(
        self, problem: Problem, want: frozenset[Want], time_limit: float | None, on_step: OnStep | None
    ) -> Result | None:
        from besag.infer.map.graph_cut import cut_if_submodular

        found = cut_if_submodular(problem, want, self.memory_limit, time_limit=time_limit, on_step=on_step)
        if found is None:
            return None
        flipped = found.diagnostics["flipped"]
        after = f" after exchanging the states of {flipped} variables" if flipped else ""
        reason = f"the energy is submodular{after}: a minimum cut is a best labelling"
        return replace(found, diagnostics=found.diagnostics.extend(reason=reason))

    def _is_hopeless(self, problem: Problem, want: frozenset[Want], patience: float, time_limit: float | None) -> bool:
        """Whether not even an order is to be looked for."""
        if is_easy(problem.graph):
            return False
        run = JunctionRun(JunctionTree(memory_limit=self.memory_limit, targets=self.targets), problem, dense=False)
        return is_hopeless(run, run.find_purpose(want - SHOWS), HOPELESS * patience / SECONDS_AN_ENTRY)

    def _best_by_bounds(self, problem: Problem, patience: float) -> dict[str, Result]:
        """The labelling of least energy, where bounds leave so few states that it can be found."""
        began = time.perf_counter()
        run = JunctionRun(JunctionTree(self.n_threads, self.memory_limit), problem, time_limit=patience)
        found = search_without_a_tree(run)
        if found is None:
            return {}
        result = run.result("junction_tree", began, **found)
        return {"map": replace(result, diagnostics=result.diagnostics.extend(reason="bounds leave few states"))}

    def _approximately(
        self,
        problem: Problem,
        want: frozenset[Want],
        time_limit: float | None,
        known: dict[str, Result],
        warm: Result | None,
        rng: np.random.Generator | None,
        on_step: OnStep | None,
    ) -> Result:
        from besag.infer.auto.approximate import Resources, approximate

        resources = Resources(self.n_threads, self.memory_limit, self.n_samples, time_limit, self.k)
        rng = np.random.default_rng(self.seed) if rng is None else rng
        return approximate(problem, want - {"messages"}, resources, known, warm=warm, rng=rng, on_step=on_step)


def _is_proven(result: Result) -> bool:
    """Whether all of an answer is exact all the same: log Z and marginals of one tree, a labelling that is optimal."""
    return result.bound == "exact" and result.sampled is None and (result.codes is None or bool(np.all(result.optimal)))


def _why(refusal: TooLargeError) -> str:
    if str(refusal) == HOPELESS_REASON:
        return HOPELESS_REASON
    return f"exact inference does not fit: {str(refusal).partition(';')[0]}"


def _how(result: Result, seconds: float) -> str:
    """Who answered, how sure that is, and what more time would do where it does something."""
    from besag.infer.auto.approximate import interval_text

    used = ", ".join(dict.fromkeys(result.diagnostics["engines"].values()))
    wrong = " and ".join(result.diagnostics.get("disproved", ()))
    left_out = f"; bounds on log Z have disproved what {wrong} said" if wrong else ""
    more = "" if result.log_partitions is None else f" after {seconds:.2g} s, and a longer time_limit may buy accuracy"
    return f"Answered by {used}; {interval_text(result)}{more}{left_out}. "


def _instead(refusal: TooLargeError, time_limit: float | None) -> str:
    """What engine="exact" does instead."""
    seconds = refusal.seconds
    if seconds is not None and (time_limit is None or seconds <= time_limit):
        return f'engine="exact" takes about {seconds:.2g} s instead'
    if str(refusal) == HOPELESS_REASON:
        return 'engine="exact" searches all of the graph, and refuses where nothing fits'
    return 'engine="exact" refuses instead'


def patience_of(time_limit: float | None) -> float:
    """The seconds that exact inference may take."""
    return PATIENCE if time_limit is None else EXACT_SHARE * time_limit
