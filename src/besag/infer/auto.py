"""Choosing an engine: `exact` and `auto`, and the reason in diagnostics.

exact   tree where the factor graph is a forest; else enumeration where it is small; else TooLargeError
auto    the same for now: the place where approximate engines will be chosen, with one ApproximationWarning
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from besag.errors import TooLargeError
from besag.graph.graph import Graph
from besag.graph.problem import Problem
from besag.infer.brute import Brute, most_labellings, shown_count
from besag.infer.engine import Capabilities, Engine, OnStep, Want
from besag.infer.result import Result
from besag.infer.tree import Tree, forest_of

ALL_WANTS: frozenset[Want] = frozenset(
    {"log_partition", "variables", "factors", "moments", "map", "samples", "messages"}
)
MAX_LABELLINGS = 2**20


@dataclass(frozen=True, slots=True)
class Exact:
    """The best exact engine for the graph, or TooLargeError."""

    capabilities: ClassVar[Capabilities] = Capabilities(ALL_WANTS, "exact")
    n_threads: int | None = None
    memory_limit: int | None = None
    n_samples: int = 1
    k: int = 1

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
        engine, reason = self.choose(problem.graph)
        served = want - {"messages"} if "messages" not in engine.capabilities.wants else want
        result = engine.infer(problem, served, warm=warm, rng=rng, time_limit=time_limit, on_step=on_step)
        return replace(result, diagnostics=result.diagnostics.extended(reason=reason))

    def choose(self, graph: Graph) -> tuple[Engine, str]:
        """The engine for a graph, and why."""
        count = most_labellings(graph)
        if forest_of(graph) is not None and self.k == 1:
            engine = Tree(n_threads=self.n_threads, memory_limit=self.memory_limit, n_samples=self.n_samples)
            return engine, "the factor graph is a forest"
        if count <= MAX_LABELLINGS:
            brute = Brute(memory_limit=self.memory_limit, n_samples=self.n_samples, k=self.k)
            why = "the factor graph has cycles" if self.k == 1 else f"the {self.k} best labellings are asked for"
            return brute, f"{why}, and there are only {count} labellings"
        why = "it has cycles" if self.k == 1 else f"its {self.k} best labellings are asked for"
        raise TooLargeError(
            f"the factor graph is too large: {why}, and it has {shown_count(count)} labellings; up to "
            f"{MAX_LABELLINGS} are enumerated; use a smaller model"
        )


@dataclass(frozen=True, slots=True)
class Auto(Exact):
    """The engine that suits the graph: exact where that fits."""
