"""The structured family of mean field, the "tree approximation" of 001: q(y) = prod_T q_T(y_T), a forest of the model.

The forest is induced (`besag.infer.mean_field.kernels.induced`): it keeps the strongest factors, and every factor that
it leaves out has at most one variable in each tree T, so that expectations of these need marginals of single variables
only. With the other trees fixed, the best q_T is exact inference on the tree,

    q_T(y) propto exp(sum_v tilted_v(y_v) + sum_{f in T} log-potential_f(y_f))
    tilted_v(k) = base_v(k) + sum over left-out factors f on v of E_q[log-potential_f | y_v = k]
    bound(q) = sum_T (log Z_T - sum_v E_q[tilted_v - base_v]) + sum over left-out f of E_q[log-potential_f]

with tilted as it was when T was last updated. So no sweep lowers the bound; it is log Z itself where the factor graph
has no cycle. Trees that share a left-out factor have different colours, and trees of one colour are one call of
`besag.infer.trees.sums`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from besag.arrays import AnyArray, Array, BoolArray, IntArray, freeze, offsets_of
from besag.infer.mean_field.kernels.general import make_tilt
from besag.infer.mean_field.kernels.induced import induce_forest
from besag.infer.mean_field.naive import Pick, factor_means, find_linked, is_hard
from besag.infer.mean_field.schedule import Schedule, make_schedule
from besag.infer.memory import message_entries
from besag.infer.prepared import Prepared
from besag.infer.products import add_product_moments, multiply_marginals
from besag.infer.result import factor_offsets
from besag.infer.trees import sums
from besag.infer.trees.plan import Forest, plan_forest
from besag.kernels.colouring import colours_of
from besag.kernels.compile import kernel_of
from besag.kernels.factors import Factors
from besag.kernels.threads import run_chunks


@dataclass(frozen=True, slots=True, eq=False)
class ColourTrees:
    """The trees of one colour, as a problem of their own."""

    forest: Forest
    factors: Factors
    variables: IntArray  # (v,) of the problem
    states: IntArray  # (s,) of the problem
    numbers: IntArray  # (f,) factors of the problem
    entries: IntArray  # (l,) of its log-potentials
    component: IntArray  # (s,) tree of each state


@dataclass(frozen=True, slots=True, eq=False)
class Cover:
    """The forest: which factors it has (F,), those it leaves out, the order of a sweep, and its parts by colour."""

    inside: BoolArray
    outside: BoolArray
    schedule: Schedule
    parts: tuple[ColourTrees, ...]


def cover_of(setting: Prepared) -> Cover:
    """The forest of the strongest factors of a problem."""
    factors, linked = setting.factors, find_linked(setting)
    candidates = np.flatnonzero(linked)
    strongest_first = np.argsort(-_strengths(factors)[candidates], kind="stable")
    inside, tree_of = induce_forest(factors, candidates[strongest_first], compile=setting.compile)
    colours = colours_of(*factors[:3], tree_of, compile=setting.compile)[tree_of]
    schedule = make_schedule(factors, colours, linked & ~inside, merged=False)
    of_factor = colours[factors.scope_variables[factors.scope_offsets[:-1]]]
    parts = []
    for colour, (first, last) in enumerate(schedule.stages):
        variables = np.sort(schedule.order[schedule.chunks[first] : schedule.chunks[last]])
        parts.append(_part(factors, variables, np.flatnonzero(inside & (of_factor == colour))))
    return Cover(inside, linked & ~inside, schedule, tuple(parts))


def _strengths(factors: Factors) -> Array:
    """(F,): how far the log-potentials of a factor lie apart, inf where it has hard zeros."""
    values, offsets = factors.log_potentials, factors.table_offsets
    if len(offsets) == 1:
        return np.zeros(0)
    highest, lowest = np.maximum.reduceat(values, offsets[:-1]), np.minimum.reduceat(values, offsets[:-1])
    apart = np.where(lowest == -np.inf, np.inf, np.where(highest > -np.inf, highest, 0.0) - lowest)
    return np.asarray(apart[factors.table_of_factor])


def _part(factors: Factors, variables: IntArray, numbers: IntArray) -> ColourTrees:
    number_of = np.full(len(factors.state_offsets) - 1, -1)
    number_of[variables] = np.arange(len(variables))
    tables, reader = np.unique(factors.table_of_factor[numbers], return_inverse=True)
    states, state_offsets = _gathered(factors.state_offsets, variables)
    scopes, scope_offsets = _gathered(factors.scope_offsets, numbers)
    entries, table_offsets = _gathered(factors.table_offsets, tables)
    own = Factors.of(
        state_offsets,
        scope_offsets,
        number_of[factors.scope_variables[scopes]],
        factors.kinds[numbers],
        reader.reshape(-1).astype(np.int64),
        table_offsets,
        factors.log_potentials[entries],
    )
    forest = plan_forest(*own[:3])
    assert forest is not None
    component = np.repeat(forest.component, np.diff(state_offsets))
    return ColourTrees(forest, own, variables, states, numbers, entries, component)


def _gathered(offsets: IntArray, chosen: IntArray) -> tuple[IntArray, IntArray]:
    """The places of chosen pieces of a flat array, one piece after the other, and the offsets of the pieces then."""
    sizes = np.diff(offsets)[chosen]
    starts = offsets_of(sizes)
    return np.arange(starts[-1]) + np.repeat(offsets[chosen] - starts[:-1], sizes), starts


class Trees:
    """Distributions on a forest; arrays q (A, S) of marginals, row a of which has the evidence of row a mod R."""

    dtype: type[np.floating[Any]] = np.float64
    name = "tree"

    def __init__(self, setting: Prepared, n_threads: int | None) -> None:
        self.setting, self.n_threads = setting, n_threads
        numbers = setting.given.log_potentials
        self.cover = setting.graph.plans.get_for("mean_field trees", numbers, lambda: cover_of(setting))
        self.tilted = np.zeros((0, setting.base.shape[1]))
        self.own = np.zeros(
            (0, setting.graph.n_variables)
        )  # entropy and inner parts of the bound, at the root of a tree
        hard = int(is_hard(setting, self.cover.outside))
        self.tilt = kernel_of(make_tilt, hard, compile=setting.compile)

    @property
    def bytes_of_row(self) -> int:
        """What a row of q takes, with what is kept beside it and what comes and goes while trees are fitted to it."""
        graph = self.setting.graph
        states, messages = int(graph.state_offsets[-1]), message_entries(graph)
        return 8 * (4 * states + 3 * graph.n_variables + messages // 8)

    @property
    def exact(self) -> bool:
        """Whether the best q is p itself."""
        return not self.cover.outside.any()

    def add_rows(self, q: AnyArray) -> None:
        """Rows of q (A, S) beyond those known: every tree is fitted to the others."""
        known, n_new = len(self.tilted), len(q) - len(self.tilted)
        self.tilted = np.concatenate([self.tilted, np.zeros((n_new, self.tilted.shape[1]))])
        self.own = np.concatenate([self.own, np.zeros((n_new, self.own.shape[1]))])
        self.sweep(q, np.arange(known, len(q)))

    def sweep(self, q: AnyArray, rows: IntArray) -> Array:
        """One sweep of some rows of q, in their place; how much each changed."""
        change = np.zeros(len(rows))
        for part, (first, last) in zip(self.cover.parts, self.cover.schedule.stages, strict=True):
            self._tell(q, freeze(rows), first, last)
            np.maximum(change, self._fit(part, q, rows), out=change)
        return change

    def _tell(self, q: AnyArray, rows: IntArray, first: int, last: int) -> None:
        """What the other trees say to those of one colour: their part of `tilted`."""
        plan = self.cover.schedule
        fixed = (self.setting.factors, plan.order, plan.first, plan.factor, plan.axis, self.setting.base)

        def task(number: int) -> None:
            start, stop = int(plan.chunks[first + number]), int(plan.chunks[first + number + 1])
            self.tilt(*fixed, start, stop, rows, 0, len(rows), q, self.tilted)

        run_chunks(task, last - first, self.n_threads)

    def _fit(self, part: ColourTrees, q: AnyArray, rows: IntArray) -> Array:
        """The best trees of one colour; how much their marginals changed."""
        places = np.ix_(rows, part.states)
        tilted, old = self.tilted[places], q[places]
        fitted = self._sums(part, tilted)
        assert fitted.variables is not None
        fine = (fitted.log_partition > -np.inf)[:, part.component]
        new = np.where(fine, fitted.variables, old)
        base = self.setting.base[np.ix_(rows % self.setting.n_rows, part.states)]
        told = new * np.subtract(tilted, base, where=fine & (new > 0), out=np.zeros(new.shape))
        n_trees = len(part.forest.roots)
        inner = fitted.log_partition - np.array([np.bincount(part.component, row, n_trees) for row in told])
        self.own[np.ix_(rows, part.variables[part.forest.roots])] = inner
        q[places] = new
        moved = np.add.reduceat(np.abs(new - old), part.factors.state_offsets[:-1], axis=1)
        return np.asarray(moved.max(axis=1, initial=0.0) / 2)

    def _sums(self, part: ColourTrees, tilted: Array, **wanted: Any) -> sums.Marginals:
        return sums.sum_product(part.factors, part.forest, tilted, n_threads=self.n_threads, **wanted)

    def bounds(self, p: Array, rows: IntArray) -> Array:
        """The bound of each row, or instance of a union, from normalised p (R, S), which are these rows of q."""
        return self.setting.totals(self.own[rows], factor_means(self.setting, self.cover.outside, p, self.n_threads))

    def factor_marginals(self, p: Array, pick: Pick, out: Array) -> None:
        """Writes factor marginals (R, .); products where a tree has no labelling."""
        multiply_marginals(self.setting.problem, p, np.ones(len(self.cover.inside), np.bool_), out)
        offsets, tilted = factor_offsets(self.setting.graph), pick(self.tilted)
        for part in self.cover.parts:
            places, own_offsets = _gathered(offsets, part.numbers)
            found = self._sums(part, tilted[:, part.states], factor_offsets=own_offsets)
            assert found.factors is not None
            fine = np.flatnonzero((found.log_partition > -np.inf).all(axis=1))
            out[np.ix_(fine, places)] = found.factors[fine]

    def add_moments(self, p: Array, pick: Pick, out: Array) -> None:
        """Adds moments (L,) of the expanded problem."""
        problem, tilted = self.setting.problem, pick(self.tilted)
        add_product_moments(problem, p, ~self.cover.inside, out)
        of_instances = np.ones(self.setting.graph.n_instances)
        if problem.weights is not None and len(of_instances) > 1:
            of_instances = problem.weights
        weights = np.repeat(of_instances, np.diff(self.setting.graph.instance_offsets))
        for part in self.cover.parts:
            asked = {"weights": weights[part.variables], "row_weights": problem.row_weights}
            found = self._sums(part, tilted[:, part.states], want_moments=True, **asked)
            assert found.moments is not None
            out[part.entries] += found.moments

    def state(self, pick: Pick) -> dict[str, Any]:
        """What defines q beside its marginals: the factors (F,) that it keeps."""
        return {"inside": freeze(self.cover.inside)}
