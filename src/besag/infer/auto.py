"""Choosing an engine: `exact` and `auto`, and the reason in diagnostics.

exact   tree where the factor graph is a forest; else junction_tree; TooLargeError where it does not fit
auto    the same where that fits into memory and time; else, with one ApproximationWarning, an estimate with bounds on
        log Z (`besag.infer.combined`)

Exact inference may take all of the time limit but a part, or PATIENCE seconds where there is none. To search for a good
elimination order of a large graph takes seconds, and in vain where no order can serve: so the first greedy order of the
variables near one of the largest degree is looked at before, and it is hopeless where even that takes HOPELESS times
the table entries that there is time for.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from besag.arrays import BoolArray, IntArray, frozen, inverse
from besag.errors import ApproximationWarning, TooLargeError, warn
from besag.graph.graph import Graph
from besag.graph.problem import Problem
from besag.infer.engine import CHOOSERS, REGISTRY, SHOWS, Capabilities, Engine, OnStep, Want, engine_class
from besag.infer.junction import SECONDS_AN_ENTRY, JunctionTree
from besag.infer.result import Result
from besag.infer.tree import Tree, forest_of
from besag.kernels.order import neighbours, within

ALL_WANTS: frozenset[Want] = frozenset(
    {"log_partition", "variables", "factors", "moments", "map", "samples", "messages", "trace"}
)
PATIENCE = 60.0
EXACT_SHARE = 0.7
HOPELESS = 2.0**10
FEW_FACTORS = 400  # for which the search for an order takes no time
NEAR = 4096  # variables that are looked at first


@dataclass(frozen=True, slots=True)
class Exact:
    """The best exact engine for the graph, or TooLargeError."""

    capabilities: ClassVar[Capabilities] = Capabilities(ALL_WANTS, "exact")
    n_threads: int | None = None
    memory_limit: int | None = None
    n_samples: int = 1
    k: int = 1
    targets: tuple[str, ...] | None = None

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
            raise TooLargeError(f"{error}; {other_engines(want)}") from error

    def exactly(
        self, problem: Problem, want: frozenset[Want], *, rng: np.random.Generator | None, time_limit: float | None
    ) -> Result:
        """The answer of the engine that fits the graph, and why that one."""
        engine, reason = self.choose(problem.graph)
        served = want - (SHOWS - engine.capabilities.wants)
        result = engine.infer(problem, served, rng=rng, time_limit=time_limit)
        return replace(result, diagnostics=result.diagnostics.extended(reason=reason))

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
    classes = {name: engine_class(name).capabilities for name in REGISTRY if name not in CHOOSERS}
    able = [name for name, can in classes.items() if can.bound != "exact" and want <= can.wants]
    if able:
        return f"engines that answer approximately: {', '.join(sorted(able))}"
    return "there is no approximate engine for it; model.cost(evidence) tells what some evidence would save"


@dataclass(frozen=True, slots=True)
class Auto(Exact):
    """The engine that suits the graph: exact where that fits, else an estimate with bounds on log Z."""

    seed: int = 0

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
        patience = patience_of(time_limit)
        reason = "no elimination order near the variable of the most factors is short enough"
        if self.k > 1 or not is_hopeless(problem, patience):
            try:
                return self.exactly(problem, want, rng=rng, time_limit=patience)
            except TooLargeError as error:
                if self.k > 1:
                    raise
                reason = str(error)
        left = None if time_limit is None else max(time_limit - (time.perf_counter() - began), 1e-3)
        return self._approximately(problem, want, reason, left, warm, rng, on_step)

    def _approximately(
        self,
        problem: Problem,
        want: frozenset[Want],
        reason: str,
        time_limit: float | None,
        warm: Result | None,
        rng: np.random.Generator | None,
        on_step: OnStep | None,
    ) -> Result:
        from besag.infer.combined import Resources, approximate, interval_text

        resources = Resources(self.n_threads, self.memory_limit, self.n_samples, time_limit)
        rng = np.random.default_rng(self.seed) if rng is None else rng
        result = approximate(problem, want - {"messages"}, resources, warm=warm, rng=rng, on_step=on_step)
        engines = result.diagnostics["engines"]
        used = ", ".join(dict.fromkeys(engines.values()))
        warn(
            ApproximationWarning(
                f"exact inference does not fit: {reason.partition(';')[0]}. Answered by {used}; "
                f'{interval_text(result)}. engine="exact" refuses instead; a time_limit buys accuracy'
            )
        )
        return replace(result, diagnostics=result.diagnostics.extended(reason=reason))


def patience_of(time_limit: float | None) -> float:
    """The seconds that exact inference may take."""
    return PATIENCE if time_limit is None else EXACT_SHARE * time_limit


def is_hopeless(problem: Problem, patience: float) -> bool:
    """Whether a look at a part of a large graph says that exact inference takes far longer than there is patience."""
    graph = problem.graph
    if graph.n_factors <= FEW_FACTORS or forest_of(graph) is not None:
        return False
    entries = HOPELESS * patience / SECONDS_AN_ENTRY
    observed: BoolArray = np.asarray((problem.evidence.observed >= 0).all(axis=0))
    counts = np.where(observed, 1, graph.variables.cardinalities)
    scopes = (graph.n_variables, graph.scope_offsets, graph.scope_variables)
    first, others = graph.plans.get("all neighbours", lambda: neighbours(*scopes))
    near = near_to(int(np.argmax(np.where(observed, 0, np.diff(first)))), first, others, NEAR, observed)
    return not within(counts[near], *induced(near, first, others), entries)


def near_to(start: int, first: IntArray, others: IntArray, size: int, closed: BoolArray) -> IntArray:
    """About so many variables around one, by breadth-first search that does not go through closed ones."""
    seen = np.array(closed)
    seen[start] = True
    front, found = np.array([start]), [np.array([start])]
    while len(front) and sum(map(len, found)) < size:
        counts = first[front + 1] - first[front]
        places = np.repeat(first[front] - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
        front = np.unique(others[places])
        front = front[~seen[front]]
        seen[front] = True
        found.append(front)
    return np.sort(np.concatenate(found))


def induced(kept: IntArray, first: IntArray, others: IntArray) -> tuple[IntArray, IntArray]:
    """The neighbours of some variables among themselves, numbered anew."""
    n = len(first) - 1
    order = np.concatenate([kept, np.setdiff1d(np.arange(n), kept)])
    number = inverse(order)
    owner = np.repeat(np.arange(n), np.diff(first))
    inside = (number[owner] < len(kept)) & (number[others] < len(kept))
    counts = np.bincount(number[owner[inside]], minlength=len(kept))
    sources = np.argsort(number[owner[inside]], kind="stable")
    return frozen(np.concatenate([[0], np.cumsum(counts)])), frozen(number[others[inside]][sources])
