"""Junction trees: exact inference on any graph whose cliques are small enough, 000 (6.36)-(6.40) on a tree of cliques.

Variables are eliminated in a greedy order; each elimination makes a clique, and the cliques form a tree in which
messages go up to the roots and down again (`besag.infer.junction.propagate`). Before an order is chosen the problem is
reduced:

    observed variables are not axes of any table; hard zeros rule out states (`besag.kernels.support`), once for the
    model, and again under the evidence if the cliques are large; barren parts of a Bayesian network are left out if
    only some marginals are asked for (`besag.infer.junction.relevance`).

Whatever depends on structure alone is a plan, kept by the Graph for each set of observed variables. Clique tables are
never stored, so the memory needed is that of the messages.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from besag.graph.problem import Problem
from besag.infer.engine import Capabilities, OnStep, Want, check_wants
from besag.infer.junction.run import EVERYTHING, JunctionRun
from besag.infer.memory import refuse_samples
from besag.infer.result import Result


@dataclass(frozen=True, slots=True)
class JunctionTree:
    """Message passing on a tree of cliques.

    targets: variables whose marginals are wanted, None for all. n_samples: draws per row. k: how many best labellings.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(
        frozenset({"log_partition", "variables", "factors", "moments", "map", "samples"}),
        "exact",
        "cliques that fit in memory",
    )
    n_threads: int | None = None
    memory_limit: int | None = None
    n_samples: int = 1
    k: int = 1
    targets: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.targets, str):  # from text, "junction_tree[targets=A]"
            object.__setattr__(self, "targets", (self.targets,))

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
        """Compute the answers by propagation on the junction tree."""
        began = time.perf_counter()
        check_wants(self, want)
        run = JunctionRun(self, problem, time_limit=time_limit)
        answers: dict[str, Any] = {}
        if want & {"log_partition", "variables", "factors", "moments"}:
            answers |= run.sums(want)
        if "map" in want:
            answers |= run.best(self.k)
        if "samples" in want:
            refuse_samples(problem, self.n_samples, self.memory_limit)
            answers |= run.draws(np.random.default_rng(0) if rng is None else rng, self.n_samples)
        limited = None if want & EVERYTHING else self.targets
        return run.result("junction_tree", began, targets=limited, **answers)
