"""Dual ascent: lower bounds on the least energy that rise from step to step, and labellings read off from them.

A step is a pass over all variables forwards and one backwards (`kernels/reweighted`), for factors of any arity. The
bound holds at every step. It converges where a step gains less than `tolerance`, relative; where bound and energy meet,
the labelling is optimal. Otherwise the gap is that of the local polytope, which no reparametrisation closes.

    R rows of evidence, V variables, S states, E entries of the scopes of factors of two or more variables
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, freeze, offsets_of
from besag.graph.problem import Problem
from besag.infer.bounds.kernels.diffusion import make_state_bounds
from besag.infer.bounds.narrowing import ROUNDING
from besag.infer.engine import Want
from besag.infer.iterate import Process
from besag.infer.map.kernels.reweighted import make_decode, make_reweigh, make_terms
from besag.infer.map.kernels.scores import Axes, make_axes
from besag.infer.map.labeller import Labeller
from besag.infer.map.labellings import BestLabellings
from besag.infer.map.landscape import Landscape
from besag.infer.memory import message_entries, refuse
from besag.infer.prepared import KINDS, Prepared
from besag.infer.result import Result
from besag.kernels.compile import kernel_of
from besag.kernels.factors import Factors


@dataclass(frozen=True, slots=True)
class Dual(Labeller):
    """Convergent dual ascent on the local polytope, for factors of any arity: labellings with a lower bound.

    tolerance: of what a step adds to the bound, relative.
    """

    name: ClassVar[str] = "dual"
    max_iterations: int = 1000
    tolerance: float = 1e-6
    memory_limit: int | None = None

    def begin(
        self, problem: Problem, warm: Result | None, rng: np.random.Generator | None, *, singly: bool, patient: bool
    ) -> Process:
        """Passes forwards and backwards."""
        return Ascending(Landscape(problem, self.memory_limit), warm, rng)


class Linked(NamedTuple):
    """The factors of two or more variables alone; which they are among all, (G,)."""

    factors: Factors
    axes: Axes
    offsets: IntArray
    numbers: IntArray


def link(setting: Prepared) -> Linked:
    """The factors of two or more variables of a problem."""
    given, arities = setting.factors, np.diff(setting.graph.scope_offsets)
    numbers = np.flatnonzero(arities > 1)
    variables = given.scope_variables[np.repeat(arities > 1, arities)]
    arrays = (offsets_of(arities[numbers]), variables, given.kinds[numbers], given.table_of_factor[numbers])
    factors = Factors.of(given.state_offsets, *arrays, given.table_offsets, given.log_potentials)
    sizes = (len(given.state_offsets), len(variables), len(variables), len(variables))
    places = [np.zeros(size, np.int64) for size in sizes]
    kernel_of(make_axes, compile=setting.compile)(factors, *places)
    offsets = offsets_of(np.diff(given.state_offsets)[variables])
    return Linked(factors, Axes(*map(freeze, places)), freeze(offsets), freeze(numbers))


class Bounder:
    """Messages and bounds of all rows of evidence; bounds (R,), or (N,) for a union, on -H from above."""

    def __init__(self, problem: Problem, memory_limit: int | None) -> None:
        self.setting = setting = Prepared(problem, KINDS, memory_limit)
        needed = 8.0 * setting.n_rows * (message_entries(problem.graph) + int(problem.graph.state_offsets[-1]))
        refuse("all messages", needed, setting.limit, "use more memory, or ask for fewer rows at a time")
        self.linked = link(setting)
        self.base = np.where(setting.spread(setting.possible), setting.base, 0.0)
        self.messages = np.zeros((setting.n_rows, int(self.linked.offsets[-1])))
        self.theta = np.array(self.base)
        self.order = freeze(np.arange(problem.graph.n_variables))

    def ascend(self, row: int) -> list[IntArray]:
        """A pass forwards and one backwards; the labelling, (V,), that messages then speak for."""
        self.send(row, backwards=False)
        self.send(row, backwards=True)
        return [self.decode(row)]

    def send(self, row: int, *, backwards: bool) -> None:
        """A pass."""
        factors, axes, offsets, _ = self.linked
        given = (factors, axes, self.order, self.order, offsets, backwards)
        kernel_of(make_reweigh, compile=self.setting.goes_on())(*given, self.theta[row], self.messages[row])

    def decode(self, row: int) -> IntArray:
        """(V,): the labelling that messages after a backward pass speak for."""
        factors, axes, offsets, _ = self.linked
        codes, sizes = np.zeros(len(self.order), np.int64), np.diff(factors.state_offsets)
        given = (factors, axes, self.order, self.order, offsets, freeze(self.base[row]), freeze(self.messages[row]))
        kernel_of(make_decode, compile=self.setting.goes_on())(*given, np.empty(int(sizes.max(initial=1))), codes)
        return codes

    def restrict(self, row: int, allowed: BoolArray) -> None:
        """From now on bounds are on labellings of these states (S,), of which one must be possible."""
        self.base[row, ~allowed] = self.theta[row, ~allowed] = -np.inf

    def bounds(self) -> Array:
        """Lower bounds on the energies, at these messages: what rounding may have done is taken off."""
        factors, _, offsets, numbers = self.linked
        graph, compile = self.setting.graph, self.setting.goes_on()
        of_variables = np.empty((self.setting.n_rows, graph.n_variables))
        of_factors = np.zeros((self.setting.n_rows, graph.n_factors))
        for row in range(self.setting.n_rows):
            found = np.empty(len(numbers))
            given = (factors, offsets, self._left(row), freeze(self.messages[row]))
            kernel_of(make_terms, compile=compile)(*given, of_variables[row], found)
            of_factors[row, numbers] = found
        with np.errstate(invalid="ignore"):
            size = self.setting.totals(np.abs(of_variables), np.abs(of_factors))
            total = self.setting.totals(of_variables, of_factors)
            return np.where(total > -np.inf, -total - ROUNDING * (1.0 + size), np.inf)

    def _left(self, row: int) -> Array:
        """(S,): base, -inf at the states that messages have ruled out."""
        return freeze(np.where(self.theta[row] == -np.inf, -np.inf, self.base[row]))

    def slack(self, row: int) -> tuple[float, Array]:
        """A lower bound on the energies of a row, and how much higher it is for labellings with each state, (S,)."""
        factors, _, offsets, _ = self.linked
        slack = np.empty(self.base.shape[1])
        kernel = kernel_of(make_state_bounds, compile=self.setting.goes_on())
        bound, size = kernel(factors, offsets, self._left(row), freeze(self.messages[row]), slack)
        return -bound - ROUNDING * (1.0 + size), slack


class Ascending:
    """Dual ascent on all rows: a Process."""

    def __init__(self, landscape: Landscape, warm: Result | None, rng: np.random.Generator | None) -> None:
        rng = np.random.default_rng(0) if rng is None else rng
        self.landscape, self.best = landscape, BestLabellings(landscape, landscape.start(warm, rng))
        self.bounder = Bounder(landscape.setting.given, landscape.setting.limit)
        self.best.raise_bounds(self.bounder.bounds())

    def step(self) -> float:
        """A pass forwards and one backwards; what they added to the bound, relative; 0 where no gap is left."""
        before = self.best.bounds.copy()
        codes = [self.bounder.ascend(row)[-1] for row in range(self.landscape.n_rows)]
        self.best.raise_bounds(self.bounder.bounds())
        self.best.offer(np.array(codes))
        return 0.0 if self.best.closed else measure_gain(before, self.best.bounds)

    def answer(self, want: frozenset[Want]) -> Result:
        """The best labellings and bounds so far."""
        return self.best.result()

    def details(self) -> Mapping[str, Any]:
        """Nothing more."""
        return {}


def measure_gain(before: Array, after: Array) -> float:
    """The largest relative difference of bounds; inf where one was not there."""
    with np.errstate(invalid="ignore"):
        gained = np.where(after > before, (after - before) / np.maximum(1.0, np.abs(after)), 0.0)
    return float(np.where(np.isnan(gained), math.inf, gained).max(initial=0.0))
