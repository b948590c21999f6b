"""What engines share that better labellings step by step: their work is a Process, run to its end or looked at by step.

An engine says how its Process begins; max_iterations and tolerance are read where it has them.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from besag.graph.problem import Problem
from besag.infer.engine import Capabilities, OnStep, Want, check_wants
from besag.infer.iterate import Limits, Process, each_step, iterate
from besag.infer.map.labellings import ENDED
from besag.infer.result import Result

WANTS: frozenset[Want] = frozenset({"map", "trace"})


class Labeller(ABC):
    """An engine for labellings; name: its own in ENGINES."""

    __slots__ = ()
    name: ClassVar[str]
    capabilities: ClassVar[Capabilities] = Capabilities(WANTS, "estimate", starts_from="labelling")

    def __post_init__(self) -> None:
        self.limits(None)

    @abstractmethod
    def begin(
        self, problem: Problem, warm: Result | None, rng: np.random.Generator | None, *, singly: bool, patient: bool
    ) -> Process:
        """The work on a problem. singly: each step is looked at. patient: there is a time limit, which may be used."""

    def limits(self, time_limit: float | None) -> Limits:
        """When to stop."""
        return Limits(getattr(self, "max_iterations", 10**9), getattr(self, "tolerance", ENDED), time_limit)

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
        """The best labelling that is found, with a bound where the engine has one."""
        began = time.perf_counter()
        check_wants(self, want)
        process = self.begin(problem, warm, rng, singly="trace" in want, patient=time_limit is not None)
        return iterate(self.name, process, want, self.limits(time_limit), began, on_step)

    def steps(
        self,
        problem: Problem,
        *,
        warm: Result | None = None,
        rng: np.random.Generator | None = None,
        time_limit: float | None = None,
    ) -> Iterator[Result]:
        """A Result for each step."""
        began = time.perf_counter()
        process = self.begin(problem, warm, rng, singly=True, patient=time_limit is not None)
        return each_step(self.name, process, frozenset({"map"}), self.limits(time_limit), began)
