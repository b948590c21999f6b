"""A plan with numbers and rows of evidence, in the domain of a semiring: what the kernels over rows are given.

SUM takes exp(log-potential - largest entry of its table), and the same for evidence; what is taken out goes to the
constants of the rows, with log-weights of variables that are not free and factors on such variables only.

Shapes: R rows, V variables, S states of all variables, L table entries, G groups of components (the instances of a
union), D states of soft variables, E of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from besag.arrays import Array, IntArray, Semiring, frozen, offsets_of
from besag.kernels.compile import kernel_of
from besag.kernels.join_lanes import LANES, LaneWork, make_lanes
from besag.kernels.join_plan import Plan
from besag.kernels.join_rows import Rows, Walk, Work
from besag.kernels.join_wide import WideRow
from besag.kernels.linear import Linear, linear
from besag.kernels.prepare import Factors
from besag.kernels.threads import run_chunks

CHUNKS = 32  # tasks that rows are divided into


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """Rows of evidence, and the group of each variable."""

    observed: IntArray  # (R, V)
    log_weights: Array | None  # (R or 1, S)
    group_of: IntArray  # (V,)
    n_groups: int


class Bound:
    """A plan with numbers and rows, in the domain of a semiring."""

    def __init__(
        self, plan: Plan, factors: Factors, given: Given, semiring: Semiring, scaled: Linear | None = None
    ) -> None:
        """scaled: the tables in the linear domain, where somebody has them."""
        self.plan, self.factors, self.given, self.semiring = plan, factors, given, semiring
        self.codes = self._codes()
        self.constants = np.zeros((len(given.observed), given.n_groups))
        tables = factors.table_of_factor[plan.factors]
        table_spans = np.zeros(len(plan.bases))
        if semiring == Semiring.SUM:
            scaled = linear(factors) if scaled is None else scaled
            self.values = scaled.values
            self._take_out(scaled.largest[tables])
            table_spans[plan.of_factors] = scaled.spans[tables]
        else:
            self.values = factors.log_potentials
        soft, soft_spans, soft_offsets = self._soft()
        self._weigh_fixed()
        self._weigh_outside()
        self.soft_start = plan.n_messages
        self.table_start = self.soft_start + soft.shape[1]
        bases = plan.bases.copy()
        bases[plan.of_factors] = self.table_start + factors.table_offsets[tables]
        bases[plan.of_evidence] = self.soft_start + soft_offsets
        groups = np.zeros(len(plan.join.parent), np.int64)
        if given.n_groups > 1:
            groups = given.group_of[plan.axes[plan.axis_offsets[:-1]]]
        self.rows = Rows(
            frozen(self.codes),
            plan.fixed_offsets,
            plan.fixed_variables,
            plan.fixed_strides,
            frozen(bases),
            frozen(table_spans),
            frozen(soft),
            self.soft_start,
            frozen(plan.of_evidence),
            frozen(soft_spans),
            frozen(self.constants),
            frozen(groups),
            frozen(np.arange(len(groups))),
        )
        self.walk = Walk(plan.axis_offsets, plan.axes, plan.splits, plan.sketch.counts)
        self.log_z = np.empty(self.constants.shape)

    @property
    def longest(self) -> int:
        """Entries of the longest residual."""
        shape = self.plan.join.shape
        return int((shape[:, 1] * shape[:, 2]).max(initial=1))

    def _codes(self) -> IntArray:
        """(R, V): the code of every variable that is not free, 0 of the others."""
        drawn, observed = self.plan.sketch, self.given.observed
        if len(self.plan.single) == 0:
            return np.zeros(observed.shape, np.int64)
        only = drawn.codes[drawn.digit_offsets[:-1]] * (drawn.counts == 1)
        return np.where(self.plan.setting.fixed, observed, only)

    def _take_out(self, logs: Array) -> None:
        """What the factors of the plan are scaled by goes to the constants."""
        if self.given.n_groups == 1:
            self.constants += logs.sum()
        else:
            groups = self._groups(self.plan.factors)
            self.constants += np.bincount(groups, weights=logs, minlength=self.given.n_groups)

    def _soft(self) -> tuple[Array, Array, IntArray]:
        """Weights of soft variables (R, D), their spans (R, E), and where each begins (E,)."""
        plan, given = self.plan, self.given
        n_rows, variables = len(given.observed), plan.soft
        if len(variables) == 0:
            return np.empty((n_rows, 0)), np.empty((n_rows, 0)), np.zeros(0, np.int64)
        counts = plan.sketch.counts[variables]
        offsets = offsets_of(counts)
        digit = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
        codes = plan.sketch.codes[np.repeat(plan.sketch.digit_offsets[variables], counts) + digit]
        seen = np.repeat(given.observed[:, variables], counts, axis=1)
        weights = np.where((seen >= 0) & (seen != codes), -np.inf, 0.0)
        if given.log_weights is not None:
            weights += given.log_weights[:, np.repeat(self.factors.state_offsets[variables], counts) + codes]
        if self.semiring != Semiring.SUM:
            return weights, np.zeros((n_rows, len(variables))), offsets[:-1]
        high = np.maximum.reduceat(weights, offsets[:-1], axis=1)
        high[high == -np.inf] = 0.0
        low = np.minimum.reduceat(np.where(weights == -np.inf, np.inf, weights), offsets[:-1], axis=1)
        np.add.at(self.constants.T, given.group_of[variables], high.T)
        with np.errstate(under="ignore", over="ignore"):
            linear = np.exp(weights - np.repeat(high, counts, axis=1))
        return linear, np.where(low == np.inf, 0.0, high - low), offsets[:-1]

    def _weigh_fixed(self) -> None:
        """Log-weights of fixed variables at their codes, and -inf where a row sees another state than the one left."""
        given, single = self.given, self.plan.single
        if len(single) == 0:
            return
        codes, seen = self.codes[:, single], given.observed[:, single]
        values = np.where((seen >= 0) & (seen != codes), -np.inf, 0.0)
        if given.log_weights is not None:
            at = self.factors.state_offsets[single] + codes
            values += np.take_along_axis(
                np.broadcast_to(given.log_weights, (len(codes), given.log_weights.shape[1])), at, axis=1
            )
        if values.any():
            np.add.at(self.constants.T, given.group_of[single], values.T)

    def _weigh_outside(self) -> None:
        """Factors without a free variable, at the codes of the row."""
        outside = self.plan.sketch.outside
        if len(outside):
            values = self.factors.log_potentials[self._entries(outside)]
            np.add.at(self.constants.T, self._groups(outside), values.T)

    def _groups(self, factors: IntArray) -> IntArray:
        return self.given.group_of[self.factors.scope_variables[self.factors.scope_offsets[factors]]]

    def _entries(self, factors: IntArray) -> IntArray:
        """(R, .): where the entries of factors are in log_potentials, at the codes of the row."""
        given, cardinalities = self.factors, np.diff(self.factors.state_offsets)
        found = np.empty((len(self.codes), len(factors)), np.int64)
        arity = np.diff(given.scope_offsets)[factors]
        for n in np.unique(arity):
            which = np.flatnonzero(arity == n)
            scopes = given.scope_variables[given.scope_offsets[factors[which]][:, None] + np.arange(n)]
            inside = np.zeros((len(self.codes), len(which)), np.int64)
            for axis in range(n):
                inside = inside * cardinalities[scopes[:, axis]] + self.codes[:, scopes[:, axis]]
            found[:, which] = given.table_offsets[given.table_of_factor[factors[which]]] + inside
        return found

    def wide(self, work: Work, n_threads: int | None, compile: bool) -> WideRow | None:
        """The way of one row of a large plan."""
        if len(self.log_z) > 1 or self.plan.stages is None:
            return None
        return WideRow(self.plan, self.plan.stages, self.rows, work, self.semiring, n_threads, compile)

    def run(self, rows: Callable[[Work, int, int], bool], n_threads: int | None) -> bool:
        """rows(work, first, last) over all rows in chunks; True as soon as one says that the range is too narrow."""
        n_rows = len(self.log_z)
        n_chunks = min(n_rows, CHUNKS)
        edges = [n_rows * h // n_chunks for h in range(n_chunks + 1)]
        narrow = np.zeros(len(edges) - 1, np.bool_)

        def chunk(h: int) -> None:
            if not narrow.any():
                narrow[h] = rows(self.work(), edges[h], edges[h + 1])

        run_chunks(chunk, len(edges) - 1, n_threads)
        return bool(narrow.any())

    def run_lanes(
        self, out_bases: IntArray, down: bool, marginals: Array, n_threads: int | None, compile: bool
    ) -> bool:
        """All rows, LANES at a time; True as soon as the range is too narrow."""
        plan, n_cliques = self.plan, len(self.plan.join.parent)
        evidence_of = np.full(len(plan.bases), -1, np.int64)
        evidence_of[plan.of_evidence] = np.arange(len(plan.of_evidence))
        bases = np.array(self.rows.bases)
        bases[plan.of_factors] -= self.table_start
        moved = np.repeat(np.arange(len(bases)), np.diff(plan.fixed_offsets))  # by variables that have one state left
        np.add.at(bases, moved, plan.fixed_strides * self.codes[0, plan.fixed_variables])
        rows = self.rows._replace(bases=frozen(bases))
        propagate = kernel_of(make_lanes, LANES, compile=compile)
        values, columns = frozen(self.values), frozen(evidence_of)

        def chunk(_: Work, first: int, last: int) -> bool:
            work = LaneWork(
                np.empty((self.table_start, LANES)),
                np.empty((plan.largest_tile, LANES)),
                np.empty((plan.largest_room, LANES)),
                np.empty((n_cliques, LANES)),
                np.empty((n_cliques, LANES)),
                np.empty((3, LANES)),
            )
            narrow: bool = propagate(
                plan.join,
                plan.reads,
                rows,
                values,
                columns,
                out_bases,
                work,
                first,
                last,
                down,
                self.log_z,
                marginals,
            )
            return narrow

        return self.run(chunk, n_threads)

    def work(self) -> Work:
        plan, n, n_cliques = self.plan, len(self.plan.join.kinds), len(self.plan.join.parent)
        store = np.empty(self.table_start + len(self.values))
        store[self.table_start :] = self.values
        return Work(
            store,
            np.empty(n, np.int64),
            np.empty(n, np.int64),
            np.empty(n),
            np.empty(n_cliques),
            np.empty(n_cliques),
            np.empty(plan.largest_tile),
            np.empty(plan.largest_tile),
            np.empty(plan.largest_room),
        )

    def codes_of(self, digits: IntArray) -> IntArray:
        """Digits (R, ..., V) as codes."""
        drawn = self.plan.sketch
        shape = (len(digits),) + (1,) * (digits.ndim - 2) + digits.shape[-1:]
        found = drawn.codes[drawn.digit_offsets[:-1] + digits]
        return np.asarray(np.where(drawn.counts > 1, found, self.codes.reshape(shape)))

    def probabilities(self, marginals: Array) -> Array:
        """Marginals of all states (R, S) from those of the digits; one-hot where a variable is not free."""
        plan, offsets = self.plan, self.factors.state_offsets
        if plan.free_digits is None:
            return marginals
        answer = np.zeros((len(marginals), int(offsets[-1])))
        answer[:, plan.free_states] = marginals[:, plan.free_digits]
        single = plan.single
        possible = (self.log_z > -np.inf)[:, self.given.group_of[single]].astype(np.float64)
        answer[np.arange(len(answer))[:, None], offsets[single] + self.codes[:, single]] = possible
        return answer

    def with_outside(self, cells: Array, cell_offsets: IntArray) -> Array:
        """Cells with those of factors that have no free variable: one at the codes of the row."""
        outside = self.plan.sketch.outside
        if len(outside):
            starts = cell_offsets[outside] - self.factors.table_offsets[self.factors.table_of_factor[outside]]
            possible = (self.log_z > -np.inf)[:, self._groups(outside)].astype(np.float64)
            np.put_along_axis(cells, self._entries(outside) + starts, possible, axis=1)
        return cells
