"""Labellings by one minimum cut, for problems whose variables have two states left under evidence and hard zeros.

Where the energy is submodular, perhaps after exchanging the states of some variables, the cut is a labelling of least
energy: `exact`. Elsewhere roof duality gives a lower bound, and states that some best labelling has; the variables that
it leaves open keep the states of a labelling to begin with, which then goes down by single flips (`icm`).

    R rows of evidence, V variables
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from besag.arrays import Array, IntArray, freeze
from besag.errors import CapabilityError, TooLargeError
from besag.graph.problem import Problem
from besag.infer.bounds.narrowing import ROUNDING
from besag.infer.engine import Capabilities, OnStep, Want
from besag.infer.iterate import Process, iterate
from besag.infer.map.cuts import Cut
from besag.infer.map.kernels.quadratic import make_states_left
from besag.infer.map.labeller import WANTS, Labeller
from besag.infer.map.labellings import BestLabellings
from besag.infer.map.landscape import Landscape
from besag.infer.result import Result
from besag.kernels.compile import kernel_of

LARGEST = np.finfo(np.float64).max
AT_ONCE = 1 << 20  # nodes scanned and paths sent along between two looks at the clock


@dataclass(frozen=True, slots=True)
class GraphCut(Labeller):
    """A minimum cut: exact for submodular energies of binary variables, a bound and a part of a labelling elsewhere.

    >>> import besag
    >>> model = besag.ising((30, 30), coupling=1.0, field=np.random.default_rng(0).normal(size=(30, 30)))
    >>> model.map(engine="graph_cut").optimal
    True
    """

    name: ClassVar[str] = "graph_cut"
    capabilities: ClassVar[Capabilities] = Capabilities(
        WANTS, "estimate", "variables of two states", starts_from="labelling"
    )
    memory_limit: int | None = None

    def begin(
        self, problem: Problem, warm: Result | None, rng: np.random.Generator | None, *, singly: bool, patient: bool
    ) -> Process:
        """Parts of the search for a maximum flow."""
        return Cutting(Landscape(problem, self.memory_limit), warm, rng)


def cut_if_submodular(
    problem: Problem,
    want: frozenset[Want],
    memory_limit: int | None,
    *,
    time_limit: float | None,
    on_step: OnStep | None,
) -> Result | None:
    """Labellings of least energy by cuts, where each row's energy is binary and submodular; else None."""
    began = time.perf_counter()
    if problem.graph.variables.cardinalities.max(initial=1) > 2:
        return None
    try:
        process = Cutting(Landscape(problem, memory_limit), None, None)
        if not process.cut.submodular:
            return None
        result = iterate("graph_cut", process, want, GraphCut().limits(time_limit), began, on_step)
    except (CapabilityError, TooLargeError):  # factors on many variables; no room
        return None
    return result if process.submodular else None


def two_states(landscape: Landscape, row: int) -> tuple[IntArray, IntArray]:
    """(V,), (V,): the states that a row of evidence leaves each variable, the same where there is but one, or none."""
    base = landscape.base(row)
    if not landscape.possible.all():
        base = freeze(np.where(landscape.setting.spread(landscape.possible)[row], base, -np.inf))
    zero, one = (np.empty(landscape.graph.n_variables, np.int64) for _ in range(2))
    kernel = kernel_of(make_states_left, compile=landscape.setting.goes_on())
    many = kernel(landscape.graph.state_offsets, base, zero, one)
    if many >= 0:
        raise CapabilityError(
            _too_many(landscape, many, int((landscape.base(row)[_states_of(landscape, many)] > -np.inf).sum()))
        )
    return zero, one


def _states_of(landscape: Landscape, v: int) -> slice:
    return slice(*landscape.graph.state_offsets[v : v + 2].tolist())


def _too_many(landscape: Landscape, v: int, n_left: int) -> str:
    graph = landscape.graph
    places = np.flatnonzero(graph.scope_variables == v)
    owners = np.searchsorted(graph.scope_offsets, places[:1], side="right") - 1
    where = f", in factor {graph.factor_name(int(owners[0]))}," if len(owners) else ""
    return (
        f"graph_cut takes variables of which two states are left, but {graph.variables.names_at([v])[0]!r}{where} has "
        f"{n_left}; use engine='alpha_expansion', 'local_search' or 'auto'"
    )


class Cutting:
    """The cuts of all rows, one after the other: a Process. submodular, flipped: of the rows so far; see Cut."""

    def __init__(self, landscape: Landscape, warm: Result | None, rng: np.random.Generator | None) -> None:
        self.landscape = landscape
        self.row, self.cut = 0, self._next(0)
        self.submodular, self.flipped, self.undecided = True, 0, 0
        if self.cut.submodular and warm is None and landscape.n_rows == 1:
            start = self.cut.zero[None]  # it need not be a good one
        else:
            start = landscape.start(warm, np.random.default_rng(0) if rng is None else rng)
        self.best = BestLabellings(landscape, start)

    def _next(self, row: int) -> Cut:
        return Cut(self.landscape, row, *two_states(self.landscape, row))

    def step(self) -> float:
        """A part of the cut of a row; 0 where that was the last, else inf."""
        ended = self.cut.grow(AT_ONCE)
        self._raise(self.cut.bounds)
        if not ended:
            return math.inf
        self._settle()
        self.row += 1
        if self.row == self.landscape.n_rows:
            return 0.0
        self.cut = self._next(self.row)
        return math.inf

    def _settle(self) -> None:
        """What the cut of this row tells."""
        cut, row = self.cut, self.row
        labels, start = cut.labels, self.best.codes[row]
        told = np.where(labels < 0, start, cut.codes)
        self.best.offer_row(row, told)
        self.submodular, self.flipped = self.submodular and cut.submodular, self.flipped + cut.flipped
        self.undecided += int((labels < 0).sum())
        if (labels < 0).any():
            self.best.offer_row(row, self.landscape.settle(row, told))
        decided = np.logical_and.reduceat(labels >= 0, self.landscape.graph.instance_offsets[:-1])
        energies = self.best.energies
        if self.landscape.setting.has_zeros:  # not all that is told need be allowed
            offered = self.best.codes.copy()
            offered[row] = told
            energies = self.landscape.energies(offered)
        proven = np.where(decided & np.isfinite(energies), energies, -np.inf)
        if self.landscape.graph.n_instances > 1:
            self.best.raise_bounds(proven)
        else:
            self.best.raise_bound(row, float(proven[row]))

    def _raise(self, of_variables: Array) -> None:
        """The bound that the flow has come to, less what rounding may have done."""
        graph = self.landscape.graph
        sums, sizes = (np.add.reduceat(x, graph.instance_offsets[:-1]) for x in (of_variables, np.abs(of_variables)))
        sums = np.where(sizes < np.inf, sums - ROUNDING * (1.0 + np.minimum(sizes, LARGEST)), np.inf)
        if graph.n_instances > 1:
            self.best.raise_bounds(sums)
        else:
            self.best.raise_bound(self.row, float(sums[0]))

    def answer(self, want: frozenset[Want]) -> Result:
        """The best labellings and bounds so far."""
        return self.best.result()

    def details(self) -> Mapping[str, Any]:
        """What the energy is like, and how many variables roof duality has left open."""
        return {"submodular": self.submodular, "flipped": self.flipped, "undecided": self.undecided}
