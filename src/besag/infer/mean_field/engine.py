"""Mean field, 001: the best distribution q of a simple family, and with it a lower bound on log Z.

    log Z >= E_q[log-weight] + entropy(q) = log Z - KL(q || p)

    family="naive"           q(y) = prod_v q_v(y_v)                                      (`naive`)
    family="tree"            q(y) = prod_T q_T(y_T), disjoint trees of the model         (`trees`)
    family="spanning_tree"   q(y) = prod_r q(y_r) prod_c q(y_c | y_p), a spanning tree   (`spanning`)

A step is a sweep of coordinate ascent, so the bound holds at every step and never falls; the residual is the largest
total variation distance that a variable's q has moved, or that of the two variables of an edge of a spanning tree.

Starts. The uniform start of 001 is a fixed point of symmetric models, and often a saddle of the bound (Ising, 6 x 6,
J = 1: 54.95 against 61.84). So where a uniform start has settled and some variable has states of equal probability, one
more start is made of it, tilted towards each variable's first state and stirred a little; where that rises, the fixed
point was a saddle. Further random starts are `n_restarts`. All starts are rows of one array q (A, S), A = starts x R,
and the answer takes the best one of each row, or of each instance of a union.

Where the family holds p itself (independent variables; for "tree", a factor graph without cycles; for "spanning_tree",
factors of two variables without cycles) one sweep finds it, and the answer is exact.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from besag.arrays import AnyArray, Array, IntArray, Kind
from besag.errors import CapabilityError
from besag.graph.problem import Problem
from besag.infer.answers import make_marginals, normalise_weights
from besag.infer.engine import ENGINES, Capabilities, OnStep, Want, check_dtype, check_wants
from besag.infer.iterate import SHOWN, Clock, Limits, each_step, iterate, refuse_late
from besag.infer.mean_field.naive import Naive, Pick, find_linked
from besag.infer.mean_field.spanning import Spanning
from besag.infer.mean_field.starts import random_start, read_start, uniform_start, warm_start
from besag.infer.mean_field.tree_choice import read_edges
from besag.infer.mean_field.trees import Trees
from besag.infer.memory import count_linked, refuse
from besag.infer.prepared import Prepared
from besag.infer.result import Result
from besag.infer.unfolding import unfolding_noisy
from besag.model.structured.kernels.rules import KINDS

TABLES = frozenset({int(Kind.TABLE)})
FAMILIES, STARTS = ("naive", "tree", "spanning_tree"), ("uniform", "random")
SETTLED = 1e-6  # residual at which a uniform start is looked at, if tolerance is less
TILT, STIR = 0.1, 0.01  # of the logarithms of probabilities
TIED = {np.float64: 1e-8, np.float32: 1e-4}  # relative difference of equal probabilities
SECONDS_A_LINK, SECONDS_A_STATE = 3e-7, 6e-7  # of the plan of trees and of their first sweep
RISEN = 1e-9  # relative difference of bounds


@dataclass(frozen=True, slots=True, eq=False)
class GivenStart:
    """An array to start from; engines are compared by their options, and arrays cannot be."""

    values: AnyArray


@dataclass(frozen=True, slots=True)
class MeanField:
    """Mean field by coordinate ascent: a lower bound on log Z, and the marginals of q.

    family: "naive", every variable independent; "tree", a forest of the model; or "spanning_tree", all variables on
    one tree. tree_edges: that tree, or a forest, [("a", "b"), ("b", "c")] or as text "a -- b; b -- c"; by default the
    edges of strongest coupling. init: "uniform", "random", or probabilities of all states, (S,), (V, K) or (B, S).
    n_restarts: further starts, at random, and on random trees where none is given; the best one is the answer.
    tolerance: of the change of q in a sweep. dtype: of naive sweeps; the bound is made in float64.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(
        frozenset({"log_partition", "variables", "factors", "moments", "trace"}), "lower"
    )
    family: str = "naive"
    init: str | ArrayLike | GivenStart = "uniform"
    n_restarts: int = 0
    max_iterations: int = 1000
    tolerance: float = 1e-6
    dtype: str = "float64"
    n_threads: int | None = None
    memory_limit: int | None = None
    tree_edges: str | Sequence[Sequence[str]] | None = None

    def __post_init__(self) -> None:
        Limits(self.max_iterations, self.tolerance)
        ENGINES.check_choice(self, "family", FAMILIES)
        if self.tree_edges is not None:
            if self.family != "spanning_tree":
                raise CapabilityError(f"tree_edges are for family='spanning_tree', got family={self.family!r}")
            object.__setattr__(self, "tree_edges", read_edges(self.tree_edges))
        check_dtype(self.dtype)
        if isinstance(self.init, str):
            ENGINES.check_choice(self, "init", STARTS)
        elif not isinstance(self.init, GivenStart):
            object.__setattr__(self, "init", GivenStart(np.array(self.init, np.float64)))
        ENGINES.check_counts(self, "n_restarts", least=0)

    @unfolding_noisy()
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
        """Answers by coordinate ascent."""
        began = time.perf_counter()
        check_wants(self, want)
        process = Ascent(self, problem, warm, rng, Clock(time_limit, began))
        limits = Limits(self.max_iterations, self.tolerance, time_limit)
        return iterate("mean_field", process, want, limits, began, on_step)

    def steps(
        self,
        problem: Problem,
        *,
        warm: Result | None = None,
        rng: np.random.Generator | None = None,
        time_limit: float | None = None,
    ) -> Iterator[Result]:
        """A Result for each sweep."""
        began = time.perf_counter()
        limits = Limits(self.max_iterations, self.tolerance, time_limit)
        process = Ascent(self, problem, warm, rng, Clock(time_limit, began))
        return each_step("mean_field", process, SHOWN, limits, began)


class Ascent:
    """Coordinate ascent at work on one problem, from all starts side by side."""

    def __init__(
        self,
        engine: MeanField,
        problem: Problem,
        warm: Result | None,
        rng: np.random.Generator | None,
        clock: Clock,
    ) -> None:
        kinds = TABLES if engine.family == "spanning_tree" else KINDS
        self.setting = setting = Prepared(problem, kinds, engine.memory_limit)
        self._refuse(engine.n_restarts + 2, 0)
        if engine.family == "tree":
            n_links, n_states = len(problem.graph.scope_variables), int(problem.graph.state_offsets[-1])
            of_rows = SECONDS_A_STATE * setting.n_rows * n_states
            refuse_late("mean_field[family=tree]", SECONDS_A_LINK * n_links + of_rows, clock)
        self.tolerance = engine.tolerance
        # A copy: whoever asks again with the same generator, for factor marginals say, gets the same q.
        self.rng = np.random.default_rng(0) if rng is None else copy.deepcopy(rng)
        self.family = self._family(engine, warm, clock)
        self._refuse(engine.n_restarts + 2, self.family.bytes_of_row)
        self.uniform = warm is None and isinstance(engine.init, str) and engine.init == "uniform"
        starts = [self._first(engine, warm), *(random_start(setting, self.rng) for _ in range(engine.n_restarts))]
        self.q: AnyArray = np.concatenate(starts).astype(self.family.dtype)
        self.family.add_rows(self.q)
        self.residuals = np.full(len(self.q), math.inf)
        self.active = np.ones(len(self.q), np.bool_)
        self.known: list[Array | None] = [None] * len(starts)  # bounds of each start, (R,) or (N,)
        self.unchecked, self.stirred = self.uniform, False

    def _family(self, engine: MeanField, warm: Result | None, clock: Clock) -> Naive | Trees | Spanning:
        setting = self.setting
        if engine.family == "naive":
            return Naive(setting, setting.number_type(engine.dtype), engine.n_threads)
        if engine.family == "tree":
            return Trees(setting, engine.n_threads)
        edges = None if engine.tree_edges is None else read_edges(engine.tree_edges)
        return Spanning(setting, edges, engine.n_restarts + 1, warm, self.rng, engine.n_threads, clock)

    def _first(self, engine: MeanField, warm: Result | None) -> Array:
        if warm is not None:
            return warm_start(self.setting, warm)
        if isinstance(engine.init, GivenStart):
            return read_start(self.setting, engine.init.values)
        return uniform_start(self.setting) if self.uniform else random_start(self.setting, self.rng)

    def _refuse(self, n_starts: int, of_start: int) -> None:
        """TooLargeError where the order of sweeps, and starts of so many bytes a row, would not fit."""
        graph, rows, size = self.setting.graph, self.setting.n_rows, int(self.setting.graph.state_offsets[-1])
        planned = 8 * count_linked(graph) + 2 * graph.n_variables
        of_row = 4 * size + graph.n_factors + graph.n_variables  # base, the answer, and what its bound takes
        self.needed = needed = 8 * (planned + rows * of_row) + n_starts * rows * of_start
        what, least = f"{n_starts} starts of {rows * size} probabilities", (16 * size + n_starts * of_start) * rows
        refuse(what, needed, self.setting.limit, "ask for fewer n_restarts or rows, or use more memory", least=least)

    def step(self) -> float:
        """One sweep of every row that still changes."""
        rows = np.flatnonzero(self.active)
        for start in np.unique(rows // self.setting.n_rows).tolist():
            self.known[start] = None
        self.residuals[rows] = self.family.sweep(self.q, rows)
        if self.tolerance > 0:
            self.active[rows] = self.residuals[rows] > self.tolerance
        settled = self.residuals[: self.setting.n_rows].max() <= max(self.tolerance, SETTLED)
        if self.unchecked and settled:
            self.unchecked = False
            if self._stir():
                return math.inf
        return float(self.residuals.max())

    def _stir(self) -> bool:
        """One more start, beside the uniform one, for rows in which states are tied; whether there are any."""
        n_rows, offsets = self.setting.n_rows, self.setting.graph.state_offsets
        settled = self.q[:n_rows]
        tied = _tied_rows(settled, offsets, self._linked_variables(), TIED[self.family.dtype])
        if not tied.any():
            return False
        tilt = STIR * self.rng.standard_normal(settled.shape)
        tilt[:, offsets[:-1]] += TILT
        moved = normalise_weights(self.setting, settled * np.exp(tilt))
        added = np.where(tied[:, None], moved, settled).astype(self.family.dtype)
        with_added = np.concatenate([self.q, added])
        self.family.add_rows(with_added)  # takes time: Ctrl-C here leaves what there was
        self.q = with_added
        self.residuals = np.concatenate([self.residuals, np.where(tied, math.inf, self.residuals[:n_rows])])
        self.active = np.concatenate([self.active, tied])
        self.known.append(None)
        self.stirred = True
        return True

    def _linked_variables(self) -> IntArray:
        factors = self.setting.factors
        linked = np.repeat(find_linked(self.setting), np.diff(factors.scope_offsets))
        return np.unique(factors.scope_variables[linked])

    def bounds(self) -> Array:
        """(starts, R), or (starts, N) for a union."""
        n_rows = self.setting.n_rows
        for start, known in enumerate(self.known):
            if known is None:
                rows = np.arange(start * n_rows, (start + 1) * n_rows)
                self.known[start] = self.family.bounds(normalise_weights(self.setting, self.q[rows]), rows)
        return np.stack([known for known in self.known if known is not None])

    def answer(self, want: frozenset[Want]) -> Result:
        """The best start of each row, or instance, as it stands."""
        setting, n_starts = self.setting, len(self.known)
        bounds = self.bounds() if "log_partition" in want or self._asks_for_bounds else None

        n_answers = setting.n_rows if setting.graph.n_instances == 1 else setting.graph.n_instances
        best = np.zeros(n_answers, np.int64) if bounds is None else np.argmax(bounds, axis=0)
        pick = Pick(setting, n_starts, best)
        p = np.where(setting.spread(setting.possible), normalise_weights(setting, pick(self.q)), 0.0)
        result = replace(
            setting.empty("exact" if self.family.exact else "lower"),
            log_partitions=None if bounds is None or "log_partition" not in want else bounds.max(axis=0),
            probabilities=p if "variables" in want else None,
            state={"engine": "mean_field", "marginals": p, **self.family.state(pick)},
        )
        if "factors" in want:
            marginals = make_marginals(setting, self.needed)
            self.family.factor_marginals(p, pick, marginals)
            result = replace(result, factor_marginals=marginals)
        if "moments" in want:
            moments = np.zeros(len(setting.problem.log_potentials))
            self.family.add_moments(p, pick, moments)
            result = replace(result, table_moments=setting.given.contracted(setting.problem, moments))
        return setting.empty_impossible(result)

    @property
    def _asks_for_bounds(self) -> bool:
        """Whether an answer needs them: to choose among starts, or to see whether hard zeros are met."""
        return len(self.known) > 1 or not isinstance(self.family, Naive) or self.family.hard

    def details(self) -> Mapping[str, Any]:
        """Of all starts; feasible: whether each possible row has a start that meets no hard zero.

        bounds: only where they had to be made.
        """
        details = {
            "family": self.family.name,
            "dtype": np.dtype(self.family.dtype).name,
            "starts": len(self.known),
            "saddle": False,
            "feasible": True,
        }
        if not self._asks_for_bounds and any(known is None for known in self.known):
            return details
        bounds = self.bounds()
        lowest = np.where(self.setting.possible, bounds.max(axis=0), 0.0)
        rounding = RISEN * np.maximum(1.0, np.abs(bounds[0], where=bounds[0] > -np.inf, out=np.zeros(len(lowest))))
        return details | {
            "bounds": tuple(float(total) for total in bounds.sum(axis=1)),
            "saddle": self.stirred and bool((bounds[-1] > bounds[0] + rounding).any()),
            "feasible": bool((lowest > -np.inf).all()),
        }


def _tied_rows(q: AnyArray, state_offsets: IntArray, variables: IntArray, tolerance: float) -> Any:
    """(R,): in which rows one of some variables has two possible states of equal probability."""
    tied = np.zeros(len(q), np.bool_)
    sizes = np.diff(state_offsets)[variables]
    for n in np.unique(sizes[sizes > 1]).tolist():
        states = state_offsets[variables[sizes == n]][:, None] + np.arange(n)
        for row, p in enumerate(q):
            values = np.sort(p[states], axis=1)
            low, high = values[:, :-1], values[:, 1:]
            tied[row] |= bool(((low > 0) & (high - low <= tolerance * high)).any())
    return tied
