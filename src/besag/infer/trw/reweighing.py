"""Better weights for tree-reweighted messages: conditional gradient on rho; `engine` has the mathematics.

Each time that messages have settled, rho <- rho + step (chosen - rho), chosen being the forest of the most information.
gap = sum_f I_f (chosen_f - rho_f) bounds how much the best rho could still gain where factors have two variables. The
step is halved, and the move taken back, where less than a share of step * gap was gained. Steps are below one: rho
stays positive. Messages have settled where converging could change the bound by less than a share of that gain; this
is looked at every few sweeps, and a move has PATIENCE sweeps for it. Moves take the first half of all sweeps at most;
after the last one sweeps go on as ever.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from besag.arrays import AnyArray, Array, BoolArray
from besag.infer.trw.forests import heaviest

if TYPE_CHECKING:
    from besag.infer.trw.engine import Sweeps

FIRST_STEP, LAST_STEP = 0.5, 2.0**-6
LEAST_SHARE = 0.02  # of the gain that the gradient promises
SETTLED = 1e-4  # slack of the bound, relative to log Z, before the first move
LOOK_EVERY, PATIENCE = 5, 50  # sweeps
CLOSED = 1e-5  # gap, relative to log Z, at which rho is good enough


class BestSoFar(NamedTuple):
    """The best so far: the bound, rho, messages and their residuals, and where to go from there."""

    value: float
    rho: Array
    messages: AnyArray
    residuals: Array
    chosen: BoolArray
    gap: float


class Reweighing:
    """Moves the rho of some sweeps."""

    def __init__(self, sweeps: Sweeps, tolerance: float) -> None:
        self.sweeps, self.tolerance = sweeps, tolerance
        self.kept: BestSoFar | None = None
        self.step, self.moves, self.since, self.finished = FIRST_STEP, 0, 0, False

    def follow(self, residual: float) -> float:
        """After a sweep of this residual: what the residual is to be taken for."""
        if self.finished:
            return residual
        self.since += 1
        if residual > self.tolerance and self.since % LOOK_EVERY:
            return math.inf
        value, slack = self._measured()
        if residual > self.tolerance and slack > self._allowed(value) and not self._overdue():
            return math.inf
        self.since = 0
        self._judge(value)
        return self._go_on()

    def _measured(self) -> tuple[float, float]:
        """The bound, and by how much converging could lower it; of all rows together."""
        possible = self.sweeps.setting.possible
        upper, lower = (values[possible] for values in self.sweeps.note_bounds())
        return float(upper.sum()), float((upper - lower).sum())

    def _overdue(self) -> bool:
        """Whether a move has had its sweeps, or all moves have."""
        return self._is_late() or (self.kept is not None and self.since >= PATIENCE)

    def _is_late(self) -> bool:
        return 2 * self.sweeps.iterations >= self.sweeps.engine.max_iterations

    def _allowed(self, value: float) -> float:
        """The slack at which messages have settled."""
        if self.kept is None:
            return SETTLED * max(1.0, abs(value))
        return LEAST_SHARE * self.step * self.kept.gap

    def _judge(self, value: float) -> None:
        """Keeps what has been reached, or halves the step."""
        kept = self.kept
        if kept is not None and not value < kept.value - LEAST_SHARE * self.step * kept.gap:
            self.step /= 2
            return
        self.moves += kept is not None
        information = self.sweeps.information()
        chosen = heaviest(self.sweeps.scopes, information, compile=self.sweeps.setting.compile)
        rho, messages = self.sweeps.rho, self.sweeps.messages.copy()
        gap = float(np.sum(information * (chosen - rho)))
        self.kept = BestSoFar(value, rho, messages, self.sweeps.residuals, chosen, gap)

    def _go_on(self) -> float:
        """From the best: another move, or no more; the residual that there is then."""
        kept = self.kept
        assert kept is not None
        if self.sweeps.rho is not kept.rho:
            self.sweeps.messages[...] = kept.messages
            self.sweeps.set_rho(kept.rho)
        self.sweeps.residuals = kept.residuals
        closed = kept.gap <= CLOSED * max(1.0, abs(kept.value))
        self.finished = closed or self.step < LAST_STEP or self._is_late()
        if self.finished:
            return float(kept.residuals.max(initial=0.0))
        self.sweeps.move(kept.rho + self.step * (kept.chosen - kept.rho))
        return math.inf
