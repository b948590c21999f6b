"""Engines: what turns a Problem into a Result, and how they are named.

An engine is a frozen dataclass of options, named by text in ENGINES. What it can give, and how good it is, stands in
its `capabilities`.

`want` is a set of
    log_partition  log Z, (N,) or (B,)
    variables      all variable marginals
    factors        every factor marginal, stored
    moments        the gradient of sum_n w_n log Z_n by every number that the Problem holds, (L,): summed where a table
                   is shared, contracted where it is structured; learning asks for these and stores no factor marginals
    map            the labelling of least energy (the k best where the engine can)
    samples        draws from p
    messages       what was sent, for people to look at
    trace          how an iterative engine got on, step by step
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from besag.errors import CapabilityError
from besag.graph.problem import Problem
from besag.infer.result import Result
from besag.registry import Registry

Want: TypeAlias = Literal["log_partition", "variables", "factors", "moments", "map", "samples", "messages", "trace"]
Bound: TypeAlias = Literal["exact", "lower", "upper", "estimate"]
OnStep: TypeAlias = Callable[[Result], None]

SHOWS: frozenset[Want] = frozenset({"messages", "trace"})  # of an engine's work, where it can


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Which wants an engine serves, how its log Z is to be read, what it needs, and what else it can start from.

    starts_from: what `init` may be besides a Result, "" where that is all.
    """

    wants: frozenset[Want]
    bound: Bound
    needs: str = "any graph"
    starts_from: str = ""


def check_dtype(dtype: object) -> None:
    """CapabilityError unless it names one of the two types of numbers."""
    if dtype not in ("float32", "float64"):
        raise CapabilityError(f"dtype must be float32 or float64, got {dtype!r}")


class Engine(Protocol):
    """What every engine offers."""

    capabilities: ClassVar[Capabilities]

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
        """Answers."""


CHOOSERS = ("auto", "exact")  # engines that only choose another

ENGINES: Registry[Engine] = Registry(
    "engine",
    "infer",
    "tree",
    {
        "ais": ("besag.infer.sampling.ais", "AIS"),
        "alpha_beta_swap": ("besag.infer.map.expansion", "AlphaBetaSwap"),
        "alpha_expansion": ("besag.infer.map.expansion", "AlphaExpansion"),
        "anneal": ("besag.infer.map.anneal", "Anneal"),
        "auto": ("besag.infer.auto.engine", "Auto"),
        "exact": ("besag.infer.auto.engine", "Exact"),
        "bp": ("besag.infer.bp.engine", "BP"),
        "brute": ("besag.infer.brute", "Brute"),
        "dual": ("besag.infer.map.dual", "Dual"),
        "elimination": ("besag.infer.junction.elimination", "Elimination"),
        "gibbs": ("besag.infer.sampling.gibbs", "Gibbs"),
        "graph_cut": ("besag.infer.map.graph_cut", "GraphCut"),
        "icm": ("besag.infer.map.icm", "ICM"),
        "ilp": ("besag.infer.map.ilp", "ILP"),
        "join_graph": ("besag.infer.join_graph.engine", "JoinGraph"),
        "junction_tree": ("besag.infer.junction.engine", "JunctionTree"),
        "local_search": ("besag.infer.map.local_search", "LocalSearch"),
        "mean_field": ("besag.infer.mean_field.engine", "MeanField"),
        "toulbar2": ("besag.infer.map.toulbar2", "Toulbar2"),
        "tree": ("besag.infer.trees.engine", "Tree"),
        "trw": ("besag.infer.trw.engine", "TRW"),
        "trws": ("besag.infer.map.trws", "TRWS"),
    },
)


def check_wants(engine: Engine, want: frozenset[Want]) -> None:
    """CapabilityError where the engine cannot serve what is asked."""
    missing = want - engine.capabilities.wants
    if missing:
        able = [name for name in ENGINES if missing <= ENGINES.find(name).capabilities.wants]
        if missing & SHOWS:  # of the engine itself, not of one that it chooses
            able = [name for name in able if name not in CHOOSERS]
        raise CapabilityError(
            f"engine {ENGINES.name_of(engine)!r} cannot give {', '.join(sorted(missing))}; "
            f"{', '.join(able) or 'no engine'} can"
        )
