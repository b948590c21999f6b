"""What `auto` does for a labelling where exact inference does not fit: local search and dual ascent in turns.

    local search    a `Climber` for each row (`local_search`)
    dual ascent     a bound, and labellings to fuse with the best one (`dual`), as long as it gains more than TOLERANCE
                    a step, with at most SHARE of the time
    fewer states    labellings with state k of v weigh at most bound - slack(v, k): where that is less than the best one
                    weighs, no move needs to try the state. As states go, blocks grow; where one is all that is left,
                    the labelling is optimal

Every labelling that is shown is a local minimum: iterated conditional modes change nothing about it. A step is one move
of each row, and a step of dual ascent where its turn has come.

    R rows of evidence, V variables, S states
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from besag.errors import TooLargeError
from besag.graph.problem import Problem
from besag.infer.engine import OnStep, Want
from besag.infer.iterate import Limits, iterate
from besag.infer.map.dual import Bounder
from besag.infer.map.labellings import ENDED
from besag.infer.map.landscape import Landscape
from besag.infer.map.local_search import Searching
from besag.infer.result import Result

TOLERANCE = 1e-6  # of what dual ascent adds to a bound, relative
SHARE = 0.3  # of the time, for dual ascent
WHOLE_BITS = 16.0  # of the tables of the whole graph, that are tried whenever states have been left out
MARGIN = 1e-9  # relative, by which a state must be worse to be left out


def search_and_bound(
    problem: Problem,
    memory_limit: int | None,
    want: frozenset[Want],
    *,
    warm: Result | None,
    rng: np.random.Generator,
    time_limit: float | None,
    on_step: OnStep | None,
) -> Result:
    """The best labellings that are found in the time, with bounds."""
    began = time.perf_counter()
    process = Portfolio(Landscape(problem, memory_limit), warm, rng, patient=time_limit is not None)
    return iterate("local_search", process, want, Limits(10**9, ENDED, time_limit), began, on_step)


class Portfolio(Searching):
    """Search and bounds of all rows: a Process."""

    def __init__(self, landscape: Landscape, warm: Result | None, rng: np.random.Generator, *, patient: bool) -> None:
        super().__init__(landscape, warm, rng, patient=patient)
        self.bounder = self._bounder()
        self.ascents, self.ascent_seconds, self.rises = 0, 0.0, self.bounder is not None

    def _bounder(self) -> Bounder | None:
        """None where the tables or messages do not fit."""
        try:
            return Bounder(self.landscape.setting.given, self.landscape.setting.limit)
        except TooLargeError:
            return None

    def step(self) -> float:
        """One move of each row, and a step of dual ascent; 0 where every row is proven."""
        now = time.perf_counter()
        if self.rises and self.ascent_seconds <= SHARE * (now - self.began):
            self._ascend()
            self.ascent_seconds += time.perf_counter() - now
        residual = super().step()
        return 0.0 if residual == 0.0 or self.best.closed else math.inf

    def _ascend(self) -> None:
        bounder, before = self.bounder, self.best.bounds
        assert bounder is not None
        for row, climber in enumerate(self.climbers):
            if not climber.proven:
                bounder.ascend(row, backwards=False)
                bounder.ascend(row, backwards=True)
                climber.offer(bounder.decode(row))
        self.best.raise_bounds(bounder.bounds())
        self.ascents += 1
        with np.errstate(invalid="ignore"):
            gained = (self.best.bounds - before) / np.maximum(1.0, np.abs(self.best.bounds))
        self.rises = not (gained <= TOLERANCE).all()
        if self.ascents % 5 == 0 or not self.rises:
            self._leave_out_states()

    def _leave_out_states(self) -> None:
        """The states that no labelling better than the best one has."""
        if self.landscape.graph.n_instances > 1:
            return
        assert self.bounder is not None
        for row, climber in enumerate(self.climbers):
            if np.isfinite(self.best.energies[row]):
                bound, slack = self.bounder.slack(row)
                margin = MARGIN * max(1.0, abs(bound))
                self.blocks.allowed[row] &= slack <= bound + self.best.energies[row] + margin
                found = self.blocks.solve(row, climber.best, self.ascents, WHOLE_BITS)
                if found is not None:
                    climber.note(found, climber.weigh(found))
                    climber.proven = True

    def details(self) -> Mapping[str, Any]:
        """How it was searched, and whether bounds have come to their end."""
        left = float(np.add.reduceat(self.blocks.allowed, self.landscape.graph.state_offsets[:-1], axis=1).mean())
        return {**super().details(), "ascents": self.ascents, "bound_rises": self.rises, "mean_states": left}
