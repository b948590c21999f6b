"""Rows of evidence bound to a plan with numbers: the arguments of the kernels over rows.

Evidence weights are put into the domain of the semiring as tables are (`besag.infer.junction.numbers`): for SUM, the
scale taken out goes to the constants of the rows, as do log-weights of variables that are not free and factors on such
variables only.

Shapes: R rows, V variables, S states of all variables, L table entries, G groups of components (the instances of a
union), D states of soft variables, E of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from besag.arrays import Array, IntArray, Semiring, freeze
from besag.infer.junction.kernels.lanes import LANES, LaneOutputs, LaneWork, make_lanes
from besag.infer.junction.kernels.rows import RowNumbers, RowWork
from besag.infer.junction.numbers import CliqueNumbers
from besag.infer.junction.one_row import WideRow
from besag.kernels.compile import kernel_of
from besag.kernels.threads import run_chunks

CHUNKS = 32  # at most so many tasks, into which rows are divided


@dataclass(frozen=True, slots=True, eq=False)
class GivenRows:
    """Rows of evidence."""

    observed: IntArray  # (R, V)
    log_weights: Array | None = None  # (R or 1, S)


class Bound:
    """A plan with numbers and rows."""

    def __init__(self, numbers: CliqueNumbers, given: GivenRows) -> None:
        self.numbers, self.given = numbers, given
        self.plan, self.factors, self.semiring = numbers.plan, numbers.factors, numbers.semiring
        plan = numbers.plan
        self.codes = self._codes()
        self.constants = np.repeat(numbers.constants[None], len(given.observed), axis=0)
        soft, soft_spans = self._soft()
        self._weigh_fixed()
        self._weigh_outside()
        self.rows = RowNumbers(
            freeze(self.codes),
            plan.fixed_offsets,
            plan.fixed_variables,
            plan.fixed_strides,
            numbers.bases,
            numbers.spans,
            freeze(soft),
            plan.n_messages,
            plan.of_evidence,
            freeze(soft_spans),
            freeze(self.constants),
            numbers.group_of_clique,
            numbers.cliques,
        )
        self.log_z = np.empty(self.constants.shape)

    def _codes(self) -> IntArray:
        """(R, V): the code of every variable that is not free, 0 for the others."""
        drawn, observed = self.plan.sketch, self.given.observed
        if len(self.plan.single) == 0:
            return np.zeros(observed.shape, np.int64)
        only = drawn.codes[drawn.digit_offsets[:-1]] * (drawn.counts == 1)
        return np.where(self.plan.setting.fixed, observed, only)

    def _soft(self) -> tuple[Array, Array]:
        """Weights of soft variables (R, D), and their spans (R, E)."""
        plan, given = self.plan, self.given
        n_rows, variables = len(given.observed), plan.soft
        if len(variables) == 0:
            return np.empty((n_rows, 0)), np.empty((n_rows, 0))
        counts = plan.sketch.counts[variables]
        offsets = self.numbers.soft_offsets
        digit = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
        codes = plan.sketch.codes[np.repeat(plan.sketch.digit_offsets[variables], counts) + digit]
        seen = np.repeat(given.observed[:, variables], counts, axis=1)
        weights = np.where((seen >= 0) & (seen != codes), -np.inf, 0.0)
        if given.log_weights is not None:
            weights += given.log_weights[:, np.repeat(self.factors.state_offsets[variables], counts) + codes]
        if self.semiring != Semiring.SUM:
            return weights, np.zeros((n_rows, len(variables)))
        high = np.maximum.reduceat(weights, offsets[:-1], axis=1)
        high[high == -np.inf] = 0.0
        low = np.minimum.reduceat(np.where(weights == -np.inf, np.inf, weights), offsets[:-1], axis=1)
        np.add.at(self.constants.T, self.numbers.groups.of[variables], high.T)
        with np.errstate(under="ignore", over="ignore"):
            linear = np.exp(weights - np.repeat(high, counts, axis=1))
        return linear, np.where(low == np.inf, 0.0, high - low)

    def _weigh_fixed(self) -> None:
        """Log-weights of fixed variables at their codes; -inf where a row observes a state that was ruled out."""
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
            np.add.at(self.constants.T, self.numbers.groups.of[single], values.T)

    def _weigh_outside(self) -> None:
        """Factors without a free variable, at the codes of the row."""
        outside = self.plan.sketch.outside
        if len(outside):
            values = self.factors.log_potentials[self._entries(outside)]
            np.add.at(self.constants.T, self._groups(outside), values.T)

    def _groups(self, factors: IntArray) -> IntArray:
        return self.numbers.groups.of[self.factors.scope_variables[self.factors.scope_offsets[factors]]]

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

    def wide(self, work: RowWork, n_threads: int | None, compile: bool) -> WideRow | None:
        """The runner of a single row on several threads; None if there are more rows or the plan is small."""
        if len(self.log_z) > 1 or self.plan.stages is None:
            return None
        return WideRow(self.plan, self.plan.stages, self.rows, work, self.semiring, n_threads, compile)

    def run(self, rows: Callable[[RowWork, int, int], bool], n_threads: int | None) -> bool:
        """rows(work, first, last) over all rows in chunks; True as soon as one reports that the range is too narrow."""
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
        self,
        out_bases: IntArray,
        marginals: Array,
        row_weights: Array,
        cells: Array,
        *,
        down: bool,
        n_threads: int | None,
        compile: bool,
    ) -> bool:
        """All rows, LANES at a time; True as soon as the range is too narrow. cells (M,): see `LaneOutputs`."""
        plan, n_cliques = self.plan, len(self.plan.join.parent)
        evidence_of = np.full(len(plan.bases), -1, np.int64)
        evidence_of[plan.of_evidence] = np.arange(len(plan.of_evidence))
        bases = np.array(self.rows.bases)
        bases[plan.of_factors] -= self.numbers.table_start
        moved = np.repeat(np.arange(len(bases)), np.diff(plan.fixed_offsets))  # by variables with one state left
        moves = np.zeros(len(bases), np.int64)
        np.add.at(moves, moved, plan.fixed_strides * self.codes[0, plan.fixed_variables])
        rows = self.rows._replace(bases=freeze(bases + moves))
        parts: dict[
            int, Array
        ] = {}  # of cells, by the first row: added up in a fixed order, whichever thread made them
        propagate = kernel_of(make_lanes, LANES, compile=compile)
        values, columns = freeze(self.numbers.values), freeze(evidence_of)

        def chunk(_: RowWork, first: int, last: int) -> bool:
            work = LaneWork(
                np.empty((self.numbers.table_start, LANES)),
                np.empty((plan.largest_tile, LANES)),
                np.empty((plan.largest_room, LANES)),
                np.empty((n_cliques, LANES)),
                np.empty((n_cliques, LANES)),
                np.empty((3, LANES)),
            )
            parts[first] = np.zeros(len(cells))
            out = LaneOutputs(out_bases, freeze(moves), freeze(row_weights), marginals, parts[first])
            narrow: bool = propagate(
                plan.join,
                plan.reads,
                rows,
                values,
                columns,
                out,
                work,
                first,
                last,
                down,
                self.log_z,
            )
            return narrow

        is_narrow = self.run(chunk, n_threads)
        for start in sorted(parts):
            cells += parts[start]
        return is_narrow

    def work(self) -> RowWork:
        plan, n, n_cliques = self.plan, len(self.plan.join.kinds), len(self.plan.join.parent)
        store = np.empty(self.numbers.table_start + len(self.numbers.values))
        store[self.numbers.table_start :] = self.numbers.values
        return RowWork(
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
        found: IntArray = drawn.codes[drawn.digit_offsets[:-1] + digits]
        if len(self.plan.single) == 0:
            return found
        shape = (len(digits),) + (1,) * (digits.ndim - 2) + digits.shape[-1:]
        return np.asarray(np.where(drawn.counts > 1, found, self.codes.reshape(shape)))

    def probabilities(self, marginals: Array) -> Array:
        """Marginals of all states (R, S) from those of the digits; one-hot where a variable is not free."""
        plan, offsets = self.plan, self.factors.state_offsets
        if plan.free_digits is None:
            return marginals
        answer = np.zeros((len(marginals), int(offsets[-1])))
        answer[:, plan.free_states] = marginals[:, plan.free_digits]
        single = plan.single
        possible = (self.log_z > -np.inf)[:, self.numbers.groups.of[single]].astype(np.float64)
        answer[np.arange(len(answer))[:, None], offsets[single] + self.codes[:, single]] = possible
        return answer

    def with_outside(self, cells: Array, cell_offsets: IntArray) -> Array:
        """Cells, with those of factors that have no free variable added: one at the codes of the row."""
        if len(self.plan.sketch.outside):
            places, possible = self._outside(cell_offsets)
            np.put_along_axis(cells, places, possible, axis=1)
        return cells

    def add_outside(self, cells: Array, cell_offsets: IntArray, row_weights: Array) -> None:
        """The same for cells (M,) that are sums over rows."""
        if len(self.plan.sketch.outside):
            places, possible = self._outside(cell_offsets)
            np.add.at(cells, places, possible * row_weights[:, None])

    def _outside(self, cell_offsets: IntArray) -> tuple[IntArray, Array]:
        """Where the codes of each row are in the cells of factors without a free variable, and 1 or 0: (R, .)."""
        outside = self.plan.sketch.outside
        starts = cell_offsets[outside] - self.factors.table_offsets[self.factors.table_of_factor[outside]]
        possible = (self.log_z > -np.inf)[:, self._groups(outside)].astype(np.float64)
        return self._entries(outside) + starts, possible
