"""Choosing an engine: `exact` and `auto`, and the reason in diagnostics.

exact   tree where the factor graph is a forest; else junction_tree; TooLargeError where it does not fit
auto    the same for now: the place where approximate engines will be chosen, with one ApproximationWarning
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from besag.errors import TooLargeError
from besag.graph.graph import Graph
from besag.graph.problem import Problem
from besag.infer.engine import CHOOSERS, REGISTRY, Capabilities, Engine, OnStep, Want, engine_class
from besag.infer.junction import JunctionTree
from besag.infer.result import Result
from besag.infer.tree import Tree, forest_of

ALL_WANTS: frozenset[Want] = frozenset(
    {"log_partition", "variables", "factors", "moments", "map", "samples", "messages", "trace"}
)


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
        engine, reason = self.choose(problem.graph)
        served = want - ({"messages", "trace"} - engine.capabilities.wants)
        try:
            result = engine.infer(problem, served, warm=warm, rng=rng, time_limit=time_limit, on_step=on_step)
        except TooLargeError as error:
            raise TooLargeError(f"{error}; {other_engines(want)}") from error
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
    """The engine that suits the graph: exact where that fits."""
