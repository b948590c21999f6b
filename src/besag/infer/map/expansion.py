"""Alpha-expansion and alpha-beta swap (Boykov, Veksler and Zabih, PAMI 2001): moves of any number of variables at once.

    expansion of a       each variable keeps its state or takes a
    swap of a and b      each variable of state a or b takes either

A move is a cut (`cuts`). Where it is not submodular roof duality says who changes, and the others keep their states:
the energy never rises. States are numbers here: a variable that has no state a, or may not take it, keeps its own. The
search ends where no move lowers the energy. With Potts factors whose costs are not negative that is within a factor of
two of the least energy for expansions; otherwise nothing is proven.

    R rows of evidence, V variables
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, TypeAlias

import numpy as np

from besag.arrays import BoolArray, IntArray
from besag.graph.problem import Problem
from besag.infer.engine import Want
from besag.infer.iterate import Process
from besag.infer.map.cuts import Cut
from besag.infer.map.kernels.scores import make_weigh
from besag.infer.map.labeller import Labeller
from besag.infer.map.labellings import CLOSED, BestLabellings
from besag.infer.map.landscape import Landscape
from besag.infer.result import Result
from besag.kernels.compile import kernel_of

Move: TypeAlias = tuple[int, ...]  # (a,), or (a, b)


@dataclass(frozen=True, slots=True)
class AlphaExpansion(Labeller):
    """Moves in which each variable keeps its state or takes one and the same state a, for each a in turn.

    max_iterations: moves of each row.
    """

    name: ClassVar[str] = "alpha_expansion"
    max_iterations: int = 10**9
    memory_limit: int | None = None

    def begin(
        self, problem: Problem, warm: Result | None, rng: np.random.Generator | None, *, singly: bool, patient: bool
    ) -> Process:
        """Expansions."""
        return Moving(Landscape(problem, self.memory_limit), warm, rng, n_states=1)


@dataclass(frozen=True, slots=True)
class AlphaBetaSwap(Labeller):
    """Moves in which each variable of one of two states takes either, for each pair of states in turn.

    max_iterations: moves of each row.
    """

    name: ClassVar[str] = "alpha_beta_swap"
    max_iterations: int = 10**9
    memory_limit: int | None = None

    def begin(
        self, problem: Problem, warm: Result | None, rng: np.random.Generator | None, *, singly: bool, patient: bool
    ) -> Process:
        """Swaps."""
        return Moving(Landscape(problem, self.memory_limit), warm, rng, n_states=2)


class Moving:
    """Moves of all rows: a Process. n_states: that a move is about."""

    def __init__(
        self, landscape: Landscape, warm: Result | None, rng: np.random.Generator | None, *, n_states: int
    ) -> None:
        self.landscape = landscape
        rng = np.random.default_rng(0) if rng is None else rng
        self.best = BestLabellings(landscape, landscape.start(warm, rng))
        self.codes = np.array(self.best.codes)
        self.least_gains = [CLOSED * (1.0 + abs(self._weigh(*given))) for given in enumerate(self.codes)]
        self.soft = not np.isfinite(self.best.found).all()
        self.sizes = np.diff(landscape.graph.state_offsets)
        self.all_moves = list(combinations(range(int(self.sizes.max(initial=1))), n_states))
        self.open = bool((self.sizes == self.sizes.max(initial=1)).all() and (landscape.setting.base > -np.inf).all())
        self.turn, self.moves, self.gains = 0, 0, 0
        self.in_vain = [0] * landscape.n_rows

    def _weigh(self, row: int, codes: IntArray) -> float:
        """-H, with penalties for hard zeros."""
        kernel, landscape = kernel_of(make_weigh, compile=self.landscape.setting.goes_on()), self.landscape
        return float(kernel(landscape.soft_factors, landscape.axes, landscape.soft_base(row), codes))

    def step(self) -> float:
        """The next move of every row that may still gain; 0 where none may, else inf."""
        move = self.all_moves[self.turn % len(self.all_moves)] if self.all_moves else ()
        self.turn += 1
        for row, failures in enumerate(self.in_vain):
            if failures < len(self.all_moves):
                gained = self._make(row, move)
                self.in_vain[row] = 0 if gained else failures + 1
                self.gains += gained
                self.moves += 1
        if self.soft:
            self.best.offer(self.codes)
            self.soft = not np.isfinite(self.best.found).all()
        return math.inf if any(failures < len(self.all_moves) for failures in self.in_vain) else 0.0

    def _make(self, row: int, move: Move) -> bool:
        """A move of a row; whether it lowers the energy."""
        before = self.codes[row].copy()
        zero, one = self._choices(row, before, move)
        if (zero == one).all():
            return False
        cut = Cut(self.landscape, row, zero, one, soft=self.soft, whole=False)
        cut.grow()
        after = np.where(cut.labels < 0, before, cut.codes)
        gain = cut.gain_over(before)
        if gain is None:
            gain = self._weigh(row, after) - self._weigh(row, before)
        if gain <= self.least_gains[row]:
            return False
        self.codes[row] = after
        return True

    def _choices(self, row: int, codes: IntArray, move: Move) -> tuple[IntArray, IntArray]:
        """The two states of each variable in a move."""
        if len(move) == 1:
            return codes, np.where(self._able(row, move[0]), move[0], codes)
        a, b = move
        chosen = ((codes == a) & self._able(row, b)) | ((codes == b) & self._able(row, a))
        if self.landscape.setting.has_zeros:  # zero is to be a labelling that they allow
            return codes, np.where(chosen, a + b - codes, codes)
        return np.where(chosen, a, codes), np.where(chosen, b, codes)

    def _able(self, row: int, a: int) -> BoolArray:
        """(V,), or () where all are: the variables that have a state a, which is not ruled out."""
        if self.open:
            return np.ones((), np.bool_)
        places = self.landscape.graph.state_offsets[:-1] + np.minimum(a, self.sizes - 1)
        return np.asarray((self.sizes > a) & (self.landscape.base(row)[places] > -np.inf))

    def answer(self, want: frozenset[Want]) -> Result:
        """The best labellings so far."""
        self.best.offer(self.codes)
        return self.best.result()

    def details(self) -> Mapping[str, Any]:
        """How many moves there were, and how many lowered the energy."""
        return {"moves": self.moves, "gains": self.gains}
