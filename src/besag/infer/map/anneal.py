"""Simulated annealing: sweeps at falling temperatures, then iterated conditional modes (Kirkpatrick et al. 1983).

    T_0, .., T_{n-1}     from `hottest` to `coldest`, in equal ratios (geometric) or steps (linear); where nobody says,
                         hot enough for most changes, and cold enough for hardly any that raises the energy

A step is a sweep. After each of `n_restarts` it begins anew at a random labelling; the best labelling of all is kept,
and nothing is proven about it.

    R rows of evidence, V variables
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from besag.arrays import Array, IntArray, freeze
from besag.errors import CapabilityError
from besag.graph.problem import Problem
from besag.infer.engine import ENGINES, Want
from besag.infer.iterate import Process
from besag.infer.map.kernels.annealing import make_annealing
from besag.infer.map.kernels.scores import make_differences
from besag.infer.map.labeller import Labeller
from besag.infer.map.labellings import BestLabellings
from besag.infer.map.landscape import Landscape
from besag.infer.result import Result
from besag.kernels.compile import kernel_of

HOT, COLD = 1.0, 0.1  # temperatures in units of what a change of one variable does to H, in the median
AT_ONCE = 1 << 20  # variables drawn between two looks at the clock


@dataclass(frozen=True, slots=True)
class Anneal(Labeller):
    """Simulated annealing.

    schedule: geometric or linear, from hottest to coldest, None for what suits the model. n_sweeps: of each run.
    """

    name: ClassVar[str] = "anneal"
    n_sweeps: int = 500
    n_restarts: int = 3
    schedule: str = "geometric"
    hottest: float | None = None
    coldest: float | None = None
    memory_limit: int | None = None

    def __post_init__(self) -> None:
        ENGINES.check_counts(self, "n_sweeps")
        ENGINES.check_counts(self, "n_restarts", least=0)
        ENGINES.check_choice(self, "schedule", ("geometric", "linear"))
        ENGINES.check_positive(self, "hottest", "coldest")
        if self.hottest is not None and self.coldest is not None and self.coldest > self.hottest:
            text = f"anneal: coldest must be at most hottest, got {self.coldest!r} and {self.hottest!r}"
            raise CapabilityError(text)

    def begin(
        self, problem: Problem, warm: Result | None, rng: np.random.Generator | None, *, singly: bool, patient: bool
    ) -> Process:
        """Sweeps."""
        return Cooling(self, problem, warm, rng, singly=singly)


class Cooling:
    """Sweeps of all rows: a Process. singly: one sweep a step."""

    def __init__(
        self, engine: Anneal, problem: Problem, warm: Result | None, rng: np.random.Generator | None, *, singly: bool
    ) -> None:
        self.engine, self.rng = engine, np.random.default_rng(0) if rng is None else rng
        self.landscape = landscape = Landscape(problem, engine.memory_limit)
        self.best = BestLabellings(landscape, landscape.start(warm, self.rng))
        self.at_once = 1 if singly else max(1, AT_ONCE // max(landscape.n_rows * landscape.graph.n_variables, 1))
        self.temperatures = [self._temperatures(row) for row in range(landscape.n_rows)]
        self.runs, self.n_sweeps, self.steps_taken = 0, 0, 0
        self._begin(self.best.codes)

    def _temperatures(self, row: int) -> Array:
        """(n_sweeps,)."""
        landscape, base = self.landscape, self.landscape.soft_base(row)
        found = np.empty(len(base))
        kernel = kernel_of(make_differences, compile=landscape.setting.goes_on())
        kernel(landscape.soft_factors, landscape.axes, base, freeze(np.array(self.best.codes[row])), found)
        sizes = np.abs(found)
        sizes = sizes[(sizes > 0.0) & (sizes < 0.5 * landscape.penalty)]
        usual = float(np.median(sizes)) if len(sizes) else 1.0
        hottest = HOT * usual if self.engine.hottest is None else self.engine.hottest
        coldest = min(COLD * usual, hottest) if self.engine.coldest is None else self.engine.coldest
        make = np.geomspace if self.engine.schedule == "geometric" else np.linspace
        return freeze(make(max(hottest, coldest), coldest, self.engine.n_sweeps))

    def _begin(self, codes: IntArray) -> None:
        """A run, from labellings (R, V)."""
        self.codes, self.run_best, self.at = np.array(codes), np.array(codes), 0
        self.totals = np.zeros(len(codes))
        self.keys = self.rng.integers(2**62, size=len(codes))

    def step(self) -> float:
        """Some sweeps of each row; 0 where the last run is over."""
        landscape = self.landscape
        sweep = kernel_of(make_annealing, compile=landscape.setting.goes_on())
        stop = min(self.at + self.at_once, self.engine.n_sweeps)
        for row in range(landscape.n_rows):
            given = (landscape.soft_factors, landscape.axes, landscape.soft_base(row))
            part = freeze(self.temperatures[row][self.at : stop])
            which = (int(self.keys[row]), self.at, float(self.totals[row]))
            self.totals[row] = sweep(*given, part, *which, self.codes[row], self.run_best[row])
        self.steps_taken = stop - self.at
        self.n_sweeps += self.steps_taken
        self.at = stop
        self.best.offer(self.run_best)
        return self._end_run() if stop == self.engine.n_sweeps else math.inf

    def _end_run(self) -> float:
        """Iterated conditional modes from the best labelling of the run, and the next run."""
        self.best.offer(np.array([self.landscape.settle(row, codes) for row, codes in enumerate(self.run_best)]))
        self.runs += 1
        if self.runs > self.engine.n_restarts:
            return 0.0
        self._begin(self.landscape.draw(self.rng))
        return math.inf

    def answer(self, want: frozenset[Want]) -> Result:
        """The best labellings so far."""
        return self.best.result()

    def details(self) -> Mapping[str, Any]:
        """How many runs are over, and how warm it is."""
        warm = float(self.temperatures[0][min(self.at, self.engine.n_sweeps - 1)])
        return {"runs": self.runs, "sweeps": self.n_sweeps, "temperature": warm}
