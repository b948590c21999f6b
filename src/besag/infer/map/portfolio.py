"""What `auto` does for a labelling where exact inference does not fit: local search and dual ascent in turns.

    local search    a `Climber` for each row (`local_search`)
    ascent          a bound, and labellings to fuse with the best one, as long as it gains more than TOLERANCE a step:
                    `trws` where factors have at most two variables, else `dual`
    fewer states    labellings with state k of v cost at least bound + slack(v, k): where that is more than the best one
                    costs, no move needs to try the state, and bounds are on labellings without it: those of all are
                    the lower one of them and the best energy. As states go, blocks grow; where one is all that is
                    left, the labelling is optimal

A turn is a move of each row, or as many ascents as take about as long as it takes to offer and fuse what they say.
The turn is that of the one that has closed more of the gap per second, of late; the other one has SHARE of the time.
The best labelling and the bound are those of all turns. Every labelling that is shown is a local minimum: iterated
conditional modes change nothing about it.

    R rows of evidence, V variables, S states
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from besag.arrays import BoolArray, IntArray
from besag.errors import TooLargeError
from besag.graph.problem import Problem
from besag.infer.engine import OnStep, Want
from besag.infer.iterate import Limits, iterate
from besag.infer.map.dual import Bounder, measure_gain
from besag.infer.map.labellings import ENDED
from besag.infer.map.landscape import Landscape
from besag.infer.map.local_search import Searching
from besag.infer.map.trws import Messages, is_pairwise
from besag.infer.result import Result

TOLERANCE = 1e-6  # of what an ascent adds to a bound, relative
SHARE = 0.3  # of the time, for the one that closes less of the gap
WORTHWHILE = 0.01  # of the gap, that a turn of ascents closes; with less it has brought nothing
MEMORY = 0.7  # of what a turn has paid, in the next one of its kind
CHECK_EVERY = 5  # turns of ascents, before states are left out
FEWER = 0.9  # of the states: where less are left, ascents go on
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
    process = Portfolio(Landscape(problem, memory_limit, noisy=True), warm, rng, patient=time_limit is not None)
    return iterate("local_search", process, want, Limits(10**9, ENDED, time_limit), began, on_step)


class Turns:
    """What a kind of turns has taken and paid: seconds of all, and of the gap per second, the last ones most."""

    def __init__(self) -> None:
        self.seconds, self.pay, self.taken = 0.0, math.inf, 0

    def note(self, seconds: float, closed: float) -> None:
        """After a turn that closed so much of the gap; inf or nan where one end of it was not there."""
        if math.isfinite(closed):
            paid = closed / max(seconds, 1e-9)
            self.pay = paid if self.pay == math.inf else MEMORY * self.pay + (1.0 - MEMORY) * paid
        self.seconds += seconds
        self.taken += 1


class Portfolio(Searching):
    """Search and bounds of all rows: a Process."""

    def __init__(self, landscape: Landscape, warm: Result | None, rng: np.random.Generator, *, patient: bool) -> None:
        super().__init__(landscape, warm, rng, patient=patient)
        self.bounder = self._bounder()
        self.rises, self.offering = self.bounder is not None, 0.0
        self.searches, self.ascents = Turns(), Turns()

    def _bounder(self) -> Bounder | Messages | None:
        """None where the tables or messages do not fit."""
        setting = self.landscape.setting
        try:
            return Messages(setting) if is_pairwise(setting.graph) else Bounder(setting.given, setting.limit)
        except TooLargeError:
            return None

    def step(self) -> float:
        """A turn; 0 where every row is proven."""
        began, before = time.perf_counter(), self._gap()
        ascends = self.rises and self._is_turn_of_ascents()
        residual = self._ascend() if ascends else super().step()
        turns = self.ascents if ascends else self.searches
        turns.note(time.perf_counter() - began, before - self._gap())
        return 0.0 if residual == 0.0 or self.best.closed else math.inf

    def _is_turn_of_ascents(self) -> bool:
        one, other = self.ascents, self.searches
        if min(one.seconds, other.seconds) < SHARE * (one.seconds + other.seconds) or not other.taken:
            return one.seconds <= other.seconds
        return one.pay >= other.pay

    def _gap(self) -> float:
        """Of all rows that have one."""
        possible = self.landscape.possible
        return float((self.best.energies - self.best.bounds)[possible].sum())

    def _ascend(self) -> float:
        """Ascents for as long as it took to offer what the last ones said, and that."""
        bounder, began, gap = self.bounder, time.perf_counter(), self._gap()
        assert bounder is not None
        while True:
            before = self.best.bounds.copy()
            read = {climber.row: bounder.ascend(climber.row) for climber in self.climbers if not climber.proven}
            self.best.raise_bounds(np.minimum(bounder.bounds(), self.best.found))
            self.rises = measure_gain(before, self.best.bounds) > TOLERANCE
            if not self.rises or time.perf_counter() - began >= self.offering:
                break
        ascended = time.perf_counter()
        self._offer(read)
        if self.ascents.taken % CHECK_EVERY == 0 or not self.rises:
            self._leave_out_states()
        self.offering = time.perf_counter() - ascended
        return self._after(gap - self._gap() > WORTHWHILE * gap)

    def _offer(self, read: Mapping[int, list[IntArray]]) -> None:
        """To the climbers, which fuse them with what they have."""
        for row, labellings in read.items():
            climber = self.climbers[row]
            for codes in labellings:
                climber.offer(codes)
            self._settle(climber)
        self.best.offer(np.array([climber.best for climber in self.climbers]))

    def _leave_out_states(self) -> None:
        """The states that no labelling better than the best one has."""
        if self.landscape.graph.n_instances > 1:
            return
        assert self.bounder is not None
        for row, climber in enumerate(self.climbers):
            if np.isfinite(self.best.energies[row]):
                bound, slack = self.bounder.slack(row)
                margin = MARGIN * max(1.0, abs(bound))
                self._allow(row, bound + slack <= self.best.energies[row] + margin)
                found = self.blocks.solve(row, climber.best, self.ascents.taken, WHOLE_BITS)
                if found is not None:
                    climber.note(found, climber.weigh(found))
                    climber.proven = True

    def _allow(self, row: int, allowed: BoolArray) -> None:
        """Leaves out all states of a row but these and those of the best labelling; where many go, bounds may rise."""
        before = self.blocks.allowed[row].sum()
        self.blocks.allowed[row] &= allowed
        self.blocks.allowed[row, self.landscape.graph.state_offsets[:-1] + self.best.codes[row]] = True
        assert self.bounder is not None
        self.bounder.restrict(row, self.blocks.allowed[row])
        self.rises |= bool(self.blocks.allowed[row].sum() < FEWER * before)

    def details(self) -> Mapping[str, Any]:
        """How it was searched, and whether bounds have come to their end."""
        left = float(np.add.reduceat(self.blocks.allowed, self.landscape.graph.state_offsets[:-1], axis=1).mean())
        return {**super().details(), "ascents": self.ascents.taken, "bound_rises": self.rises, "mean_states": left}
