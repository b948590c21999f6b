"""Iterated conditional modes, 002 (39): flips of single variables that lower the energy, until no flip does.

    y' = icm(y):   choose s in argmin over s' of H(flip_s'[y]) - H(y);   icm(flip_s[y]) if that lowers H, else y

    greedy       as written: the flip that lowers H the most, ties to the lowest variable, then state
    sequential   each variable in turn takes its best state: Besag's own sweeps, faster and not greedy

A flip of a variable with more than two states is a change to any other of them. A step is one flip, or one sweep. The
search begins at `init=`, or with each variable at the best state of its unary factors; where hard zeros rule that out,
at a labelling that they allow. Where it ends no flip lowers H: a local minimum, about which nothing is proven. After
each of `n_restarts` it begins anew at a random labelling, and the best is kept.

    R rows of evidence, V variables
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from besag.arrays import IntArray
from besag.graph.problem import Problem
from besag.infer.engine import ENGINES, Want
from besag.infer.iterate import Process
from besag.infer.map.flips import no_flips
from besag.infer.map.kernels.descent import Flips, make_gains, make_greedy, make_sweep
from besag.infer.map.labeller import Labeller
from besag.infer.map.labellings import BestLabellings
from besag.infer.map.landscape import Landscape
from besag.infer.result import Result
from besag.kernels.compile import kernel_of

AT_ONCE = 1 << 16  # flips between two looks at the clock


@dataclass(frozen=True, slots=True)
class ICM(Labeller):
    """Iterated conditional modes: the best flip of one variable, again and again, until none lowers the energy.

    schedule: greedy, a step is the best flip; or sequential, a step is a sweep. max_iterations: steps, of all restarts.

    >>> import besag
    >>> model = besag.ising((3, 3), coupling=1.0, field=[[2.5, 0, 0], [0, 0, 0], [0, 0, 2.25]])
    >>> [int(r.labels.sum()) for r in model.steps(engine="icm", init=np.zeros((3, 3), int))]
    [1, 2]
    """

    name: ClassVar[str] = "icm"
    schedule: str = "greedy"
    n_restarts: int = 0
    max_iterations: int = 10**9
    memory_limit: int | None = None

    def __post_init__(self) -> None:
        ENGINES.check_choice(self, "schedule", ("greedy", "sequential"))
        ENGINES.check_counts(self, "n_restarts", least=0)
        self.limits(None)

    def begin(
        self, problem: Problem, warm: Result | None, rng: np.random.Generator | None, *, singly: bool, patient: bool
    ) -> Process:
        """Flips."""
        return Flipping(self, problem, warm, rng, 1 if singly else AT_ONCE)


class Flipping:
    """Flips on one problem: a Process. at_once: flips of each row in a step."""

    def __init__(
        self, engine: ICM, problem: Problem, warm: Result | None, rng: np.random.Generator | None, at_once: int
    ) -> None:
        self.engine, self.at_once = engine, at_once
        self.rng = np.random.default_rng(0) if rng is None else rng
        self.landscape = landscape = Landscape(problem, engine.memory_limit, noisy=True)
        self.best = BestLabellings(landscape, landscape.start(warm, self.rng))
        self.restarts, self.n_flips, self.left = 0, 0, engine.max_iterations
        self._begin(np.array(self.best.codes))

    def _begin(self, codes: IntArray) -> None:
        """From these labellings (R, V) on."""
        self.codes = codes
        self.flips: list[Flips | None] = [None] * len(codes)
        self.active = list(range(len(codes)))

    def step(self) -> float:
        """Flips of every row that has not ended; 0 where none is left to be made, else inf."""
        self.steps_taken = 1 if self.engine.schedule == "sequential" else 0
        goes_on = []
        for row in self.active:
            made, more = self._sweep(row) if self.engine.schedule == "sequential" else self._flip(row)
            self.n_flips += made
            self.steps_taken = max(self.steps_taken, made if self.engine.schedule == "greedy" else 1)
            if more:
                goes_on.append(row)
        self.active, self.left = goes_on, self.left - self.steps_taken
        self.best.offer(self.codes)
        if not goes_on and self.restarts < self.engine.n_restarts:
            self.restarts += 1
            self._begin(self.landscape.draw(self.rng))
        return math.inf if self.active else 0.0

    def _sweep(self, row: int) -> tuple[int, bool]:
        kernel = kernel_of(make_sweep, compile=self.landscape.setting.goes_on())
        changed = kernel(self.landscape.factors, self.landscape.axes, self.landscape.base(row), self.codes[row])
        return changed, changed > 0

    def _flip(self, row: int) -> tuple[int, bool]:
        landscape, compile = self.landscape, self.landscape.setting.goes_on()
        given = (landscape.factors, landscape.axes, landscape.base(row))
        flips = self.flips[row]
        if flips is None:
            flips = self.flips[row] = no_flips(landscape.graph.n_variables)
            kernel_of(make_gains, compile=compile)(*given, self.codes[row], flips)
        most = min(self.at_once, self.left)
        return kernel_of(make_greedy, compile=compile)(*given, most, self.codes[row], flips)

    def answer(self, want: frozenset[Want]) -> Result:
        """The best labellings so far."""
        return self.best.result()

    def details(self) -> Mapping[str, Any]:
        """How it was searched."""
        return {"schedule": self.engine.schedule, "flips": self.n_flips, "restarts": self.restarts}
