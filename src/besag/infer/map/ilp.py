"""Integer programming: the labelling of least energy by branch and cut on the local polytope, by HiGHS (scipy).

States are integer, entries of factors are not (`polytope`). HiGHS takes whole numbers to be whole within 1e-6, reduced
costs to be signed within 1e-7, and ends at a gap of 1e-6: all that together is SLACK, and what it says is scaled so
that SLACK is a gap that is none (CLOSED). The bound is HiGHS's less SLACK; energies are the Problem's.

    k             the next best labelling is the best one after a cut: not all variables as in one that is known
    relaxation    the linear program alone: a lower bound, made of its multipliers, which holds however they are
                  rounded, and the labelling that takes the largest x of each variable, then iterated conditional modes

    R rows of evidence, V variables
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from besag.arrays import Array, IntArray
from besag.graph.problem import Problem
from besag.infer.engine import Capabilities, OnStep, Want, check_wants
from besag.infer.iterate import Clock, Limits, Stopped, iterate
from besag.infer.map.labellings import CLOSED, ENDED, BestLabellings
from besag.infer.map.landscape import Landscape
from besag.infer.map.polytope import Polytope, make_polytope, refuse_polytope
from besag.infer.map.ranking import count_asked, tasks_of, with_ranking
from besag.infer.prepared import Prepared
from besag.infer.result import Result
from besag.infer.unfolding import unfolding
from besag.kernels.factors import TABLE

TABLES = frozenset({TABLE})
LARGEST_COST = 1e12  # after scaling, above which reduced costs have no digits left
LEAST_SECONDS = 0.01
OPTIMAL, INFEASIBLE = 0, 2  # scipy's status


@dataclass(frozen=True, slots=True)
class ILP:
    """The best labelling by integer programming, or the best within the time and a bound.

    relaxation: the linear program alone.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(
        frozenset({"map", "trace"}), "exact", "tables that fit in memory", starts_from="labelling"
    )
    relaxation: bool = False
    k: int = 1
    memory_limit: int | None = None

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
        """The best labellings, and bounds."""
        began = time.perf_counter()
        check_wants(self, want)
        process = Programming(self, Landscape(problem, self.memory_limit), warm, rng, Clock(time_limit, began))
        return iterate("ilp", process, want, Limits(10**9, ENDED, time_limit), began, on_step)


class Programming:
    """Integer programs of all rows or instances, one at each step: a Process."""

    def __init__(
        self, engine: ILP, landscape: Landscape, warm: Result | None, rng: np.random.Generator | None, clock: Clock
    ) -> None:
        self.engine, self.landscape, self.clock = engine, landscape, clock
        self.setting = Prepared(landscape.setting.given, TABLES, landscape.setting.limit)
        refuse_polytope(self.setting)
        rng = np.random.default_rng(0) if rng is None else rng
        self.best = BestLabellings(landscape, landscape.start(warm, rng))
        self.tasks = tasks_of(landscape)
        self.found: list[list[IntArray]] = [[] for _ in self.tasks]
        self.k = count_asked(landscape, engine.k)
        self.n_solved, self.n_complete = 0, 0
        self.ended = cast("Stopped | None", None)

    def step(self) -> float:
        """One program; 0 where that was the last one, and all of them were solved."""
        number = self.n_solved
        row, instance = self.tasks[number]
        polytope = None
        if self.landscape.possible[number]:
            polytope = make_polytope(self.setting, row, instance)
            self.landscape.possible[number] = polytope is not None
        complete = True
        if polytope is not None:
            seconds = max(self.clock.left / (len(self.tasks) - number), LEAST_SECONDS)
            complete = self._relax(polytope, number, seconds) if self.engine.relaxation else self._solve(
                polytope, number, seconds
            )  # fmt: skip
        self.n_complete += complete
        self.n_solved += 1
        if self.n_solved < len(self.tasks):
            return math.inf
        self.ended = "time_limit" if self.n_complete < len(self.tasks) else "no_progress"
        return 0.0 if self.n_complete == len(self.tasks) else math.inf

    def _solve(self, polytope: Polytope, number: int, seconds: float) -> bool:
        """The k best labellings of a task; whether HiGHS came to the end of each."""
        clock, cuts = Clock(seconds), list[IntArray]()
        while True:
            scale, slack = self._scale(polytope, number)
            left = max(clock.left, LEAST_SECONDS)
            x, bound, complete = _branch_and_cut(polytope, cuts, scale, left)
            if x is None and complete and not cuts:
                self.landscape.possible[number] = False
            if x is not None:
                self._offer(number, codes := self._codes(polytope, number, x))
            if not cuts and math.isfinite(bound):
                self._raise_bound(number, polytope.constant + (bound - slack) / scale)
            if x is None or not complete:
                return complete
            if cuts or scale >= self._scale(polytope, number)[0]:
                cuts.append(polytope.columns_of(codes + self._state_offsets(number)))
            if len(cuts) == self.k:
                return True

    def _scale(self, polytope: Polytope, number: int) -> tuple[float, float]:
        """By what energies are multiplied, and how wrong what HiGHS says of them may then be.

        It grows where the energy that is known gets smaller: then the first program is solved again.
        """
        slack = 1e-6 + 1e-7 * (polytope.n_variables + len(polytope.groups))
        energy = self.best.found[number]
        size = max(1.0, abs(energy)) if math.isfinite(energy) else 1.0
        largest = float(polytope.costs.max(initial=1.0) - polytope.costs.min(initial=0.0))
        return min(4.0 * slack / (CLOSED * size), LARGEST_COST / max(largest, 1e-300)), slack

    def _relax(self, polytope: Polytope, number: int, seconds: float) -> bool:
        scale, _ = self._scale(polytope, number)
        x, multipliers = _linear_program(polytope, scale, seconds)
        self._raise_bound(number, polytope.bound_of(np.zeros(polytope.n_rows) if x is None else multipliers))
        if x is None:
            return False
        self._offer(number, self._codes(polytope, number, x))
        return True

    def _raise_bound(self, number: int, bound: float) -> None:
        """A lower bound of a task, unless a labelling disproves it."""
        energy = self.best.found[number]
        if bound <= energy + CLOSED * max(1.0, abs(energy)):
            self.best.raise_bound(number, bound)

    def _state_offsets(self, number: int) -> IntArray:
        graph = self.landscape.graph
        low, high = graph.instance_offsets[self.tasks[number][1] :][:2]
        return graph.state_offsets[low:high]

    def _codes(self, polytope: Polytope, number: int, x: Array) -> IntArray:
        return polytope.codes_of(x, self._state_offsets(number))

    def _offer(self, number: int, codes: IntArray) -> None:
        """A labelling of a task, and where iterated conditional modes take it if that is better than all there were."""
        row, instance = self.tasks[number]
        self.found[number].append(codes)
        whole = self.best.complete(row, instance, codes)
        self.best.offer_row(row, whole)
        if self.engine.relaxation:
            self.best.offer_row(row, self.landscape.settle(row, whole))

    def answer(self, want: frozenset[Want]) -> Result:
        """The best labellings so far."""
        return with_ranking(self.best, self.found, self.k, proven=self.n_complete == len(self.tasks))

    def details(self) -> Mapping[str, Any]:
        """How many programs were solved."""
        return {"programs": self.n_solved, "solved": self.n_complete}


def _branch_and_cut(
    polytope: Polytope, cuts: list[IntArray], scale: float, seconds: float
) -> tuple[Array | None, float, bool]:
    """x where there is one, a bound on its costs (scaled), and whether HiGHS has come to its end."""
    from scipy import optimize
    from scipy.sparse import csr_array

    sides = polytope.sides
    rows = [optimize.LinearConstraint(polytope.matrix(), sides, sides)]
    if cuts:
        columns, n = np.concatenate(cuts), polytope.n_variables
        numbers, shape = np.repeat(np.arange(len(cuts)), n), (len(cuts), len(polytope.costs))
        rows.append(
            optimize.LinearConstraint(csr_array((np.ones(len(columns)), (numbers, columns)), shape=shape), ub=n - 1)
        )
    whole = np.zeros(len(polytope.costs), np.int64)
    whole[: polytope.n_states] = 1
    solve: Any = optimize.milp
    found = solve(
        scale * polytope.costs, integrality=whole, bounds=optimize.Bounds(0.0, 1.0), constraints=rows,
        options={"mip_rel_gap": 0.0, **_within(seconds)},
    )  # fmt: skip
    bound = -math.inf if found.mip_dual_bound is None else float(found.mip_dual_bound)
    return found.x, bound, found.status in (OPTIMAL, INFEASIBLE)


def _linear_program(polytope: Polytope, scale: float, seconds: float) -> tuple[Array | None, Array]:
    """x where there is one, and the multipliers of the rows."""
    from scipy import optimize

    solve: Any = optimize.linprog
    given = {"A_eq": polytope.matrix(), "b_eq": polytope.sides, "method": "highs", "options": _within(seconds)}
    found = solve(scale * polytope.costs, **given)
    if found.status != OPTIMAL:
        return None, np.zeros(0)
    return found.x, np.asarray(found.eqlin.marginals) / scale


def _within(seconds: float) -> dict[str, float]:
    """HiGHS's option for a time limit."""
    return {"time_limit": seconds} if seconds < math.inf else {}
