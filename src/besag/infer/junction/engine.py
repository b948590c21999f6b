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
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from besag.arrays import Semiring
from besag.errors import EvidenceError
from besag.graph.problem import Problem
from besag.infer.engine import Capabilities, OnStep, Want, check_wants
from besag.infer.junction.run import EVERYTHING, JunctionRun
from besag.infer.junction.shown import CliqueMessages
from besag.infer.memory import refuse_samples
from besag.infer.result import Result
from besag.infer.unfolding import unfolding


@dataclass(frozen=True, slots=True)
class JunctionTree:
    """Message passing on a tree of cliques.

    targets: variables whose marginals are wanted, None for all. n_samples: draws per row. k: how many best labellings.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(
        frozenset({"log_partition", "variables", "factors", "moments", "map", "samples", "messages"}),
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
        """Compute the answers by propagation on the junction tree."""
        began = time.perf_counter()
        check_wants(self, want)
        run = JunctionRun(self, problem, time_limit=time_limit)
        answers: dict[str, Any] = {}
        if want & {"log_partition", "variables", "factors", "moments"}:
            answers |= run.sums(want - {"messages"})
        if "map" in want:
            answers |= run.best(self.k)
        if "samples" in want:
            refuse_samples(problem, self.n_samples, self.memory_limit)
            answers |= run.draws(np.random.default_rng(0) if rng is None else rng, self.n_samples)
        if "messages" in want:
            answers["message_log"] = self._messages(problem, Semiring.MAX if "map" in want else Semiring.LOG_SUM)
        limited = None if want & EVERYTHING else self.targets
        return run.result("junction_tree", began, targets=limited, **answers)

    def steps(
        self,
        problem: Problem,
        *,
        warm: Result | None = None,
        rng: np.random.Generator | None = None,
        time_limit: float | None = None,
    ) -> Iterator[Result]:
        """A Result for each message that is sent: `messages` so far, and all marginals with the last one."""
        log = self._messages(problem, Semiring.LOG_SUM).send_all()
        last = self.infer(problem, frozenset({"log_partition", "variables"}), time_limit=time_limit)
        for n in range(1, len(log.messages)):
            yield replace(last, log_partitions=None, probabilities=None, message_log=log.first(n))
        yield replace(last, message_log=log)

    def _messages(self, problem: Problem, semiring: Semiring) -> CliqueMessages:
        """The messages that all marginals, or the best labelling, take."""
        if problem.evidence.batched:
            raise EvidenceError("messages are traced for one row of evidence, a dict")
        return CliqueMessages(replace(self, targets=None), problem, semiring)
