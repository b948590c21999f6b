"""Local search that goes on until the time is over: tabu search, exact moves of forests and strips, restarts, fusion.

The search of one row is a `Climber`; a step is one move of each row, so that rows share the time. It ends at the time
limit; without one where MOVES_IN_VAIN moves have brought nothing, nor NO_GAIN seconds, nor as many as it took to the
best labelling (`stopped` is then no_progress); and where a move was the whole graph, which proves it optimal.

    R rows of evidence, V variables
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from besag.graph.problem import Problem
from besag.infer.engine import Want
from besag.infer.iterate import Process, Stopped
from besag.infer.map.blocks import Blocks
from besag.infer.map.climbing import Climber
from besag.infer.map.labeller import Labeller
from besag.infer.map.labellings import BestLabellings
from besag.infer.map.landscape import Landscape
from besag.infer.result import Result

NO_GAIN, MOVES_IN_VAIN = 1.0, 100  # seconds, and moves, that bring nothing before a search gives up


@dataclass(frozen=True, slots=True)
class LocalSearch(Labeller):
    """A search among labellings by moves of one variable, of trees and of strips, until the time is over.

    max_iterations: moves of each row.
    """

    name: ClassVar[str] = "local_search"
    max_iterations: int = 10**9
    memory_limit: int | None = None

    def begin(
        self, problem: Problem, warm: Result | None, rng: np.random.Generator | None, *, singly: bool, patient: bool
    ) -> Process:
        """Moves."""
        return Searching(Landscape(problem, self.memory_limit, noisy=True), warm, rng, patient=patient)


class Searching:
    """The search of all rows: a Process. patient: it goes on where nothing is gained."""

    def __init__(
        self, landscape: Landscape, warm: Result | None, rng: np.random.Generator | None, *, patient: bool
    ) -> None:
        self.landscape, self.patient = landscape, patient
        rng = np.random.default_rng(0) if rng is None else rng
        self.best = BestLabellings(landscape, landscape.start(warm, rng))
        self.blocks = Blocks(landscape)
        self.climbers = [
            Climber(landscape, self.blocks, row, codes, np.random.default_rng(rng.integers(2**62)))
            for row, codes in enumerate(self.best.codes)
        ]
        self.began = self.gained = time.perf_counter()
        self.in_vain, self.ended = 0, cast("Stopped | None", None)

    def step(self) -> float:
        """One move of each row that is not proven; 0 where all are."""
        gained = False
        for climber in self.climbers:
            if not climber.proven:
                before = climber.best_weight
                climber.step()
                gained |= climber.best_weight > before
                if climber.best_weight > before:
                    self._settle(climber)
        return self._after(gained)

    def _after(self, gained: bool) -> float:
        """After a turn: 0 where every row is proven, else inf; whether to give up."""
        self.best.offer(np.array([climber.best for climber in self.climbers]))
        self._note_proofs()
        now = time.perf_counter()
        self.gained = now if gained else self.gained
        self.in_vain = 0 if gained else self.in_vain + len(self.climbers)
        waited = now - self.gained > max(NO_GAIN, self.gained - self.began)
        if not self.patient and waited and self.in_vain >= MOVES_IN_VAIN:
            self.ended = "no_progress"
        return 0.0 if all(climber.proven for climber in self.climbers) else math.inf

    def _settle(self, climber: Climber) -> None:
        """Iterated conditional modes from a row's best labelling: none that is shown is bettered by them."""
        codes = self.landscape.settle(climber.row, climber.best)
        climber.note(codes, climber.weigh(codes))

    def _note_proofs(self) -> None:
        """What is proven to be optimal is its own bound."""
        proven = np.array([climber.proven for climber in self.climbers])
        found = np.broadcast_to(proven, self.best.energies.shape) & np.isfinite(self.best.energies)
        self.best.raise_bounds(np.where(found, self.best.energies, -np.inf))

    def answer(self, want: frozenset[Want]) -> Result:
        """The best labellings so far."""
        return self.best.result()

    def details(self) -> Mapping[str, Any]:
        """How it was searched."""
        return {
            "moves": sum(climber.moves for climber in self.climbers),
            "climbs": sum(climber.climbs for climber in self.climbers),
        }
