"""Exact inference on forests of factors of any arity: arrays in, arrays out.

The functions here prepare the numbers, run the kernels of `passes` and `assign` over chunks of the forest and blocks of
rows, and return

    log Z per row and component       variable marginals             factor marginals
    moments, d (sum of w log Z) / d log-potentials                   the best labelling
    samples

Rows. base has R rows, independent queries on the same forest; compiled, they are taken LANES at a time, row index
innermost, so that one table entry meets a vector of rows.

Domain. Sums are tried in the SUM domain, and done again in LOG_SUM if SUM is too narrow (see `besag.kernels.semiring`);
the domain used is part of the answer. If no table has hard zeros, a message varies by no more than its table, whatever
base is; if that times the most factors of a variable is at most SAFE_RANGE, SUM cannot fail and is not checked.

Shapes: R rows, V variables, S states of all variables, F factors, T tables, L entries of all tables, C components, M
entries of all messages to parents. `Factors` and `Forest` may be shared by threads: nothing here keeps state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from besag import recycled
from besag.arrays import Array, IntArray, Semiring, freeze, offsets_of
from besag.infer.trees.base import DomainTables, prepare_base, prepare_tables
from besag.infer.trees.kernels.assign import make_decode, make_sample
from besag.infer.trees.kernels.passes import FlatFactors, ForestLinks, PassWork, Sizes, Span, make_downward, make_upward
from besag.infer.trees.plan import Forest, accumulators
from besag.kernels.compile import kernel_of
from besag.kernels.factors import Factors
from besag.kernels.threads import run_chunks

__all__ = [
    "Best",
    "Factors",
    "Marginals",
    "Samples",
    "max_product",
    "sample",
    "sum_product",
    "worth_compiling",
]

LANES = 8
TASK_BYTES = 1 << 20  # work arrays of one task: they should stay in the L2 cache
SLAB_BYTES = 1 << 28  # work arrays held at a time
COMPILE_ABOVE = 20_000  # table entries x rows; below this Python is faster than loading numba
SAMPLES_PER_TASK = 1024
TABULATE_FROM = 32  # samples from which tabulating weights may pay
TABULATE_TO = 1 << 24  # most table entries that are tabulated


@dataclass(frozen=True, slots=True, eq=False)
class Marginals:
    """Answers of a sum over labellings; rows and components without a labelling have log Z = -inf and zeros."""

    log_partition: Array  # (R, C)
    variables: Array | None  # (R, S)
    moments: (
        Array | None
    )  # (L,) expected table entries, summed over factors and rows with weights; of structured factors the feature
    factors: (
        Array | None
    )  # (R, .) row-major tables at factor_offsets; those of factors of one variable are left to the caller
    semiring: Semiring


@dataclass(frozen=True, slots=True, eq=False)
class Best:
    """A heaviest labelling: log of its weight, (R, C), and its labels, (R, V)."""

    log_weight: Array
    labels: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Independent labellings, (R, n, V), and log Z, (R, C)."""

    log_partition: Array
    samples: IntArray


def worth_compiling(forest: Forest, n_rows: int) -> bool:
    """Whether the work pays for loading numba, which takes about a second in a fresh process."""
    return forest.work * n_rows > COMPILE_ABOVE


def sum_product(
    factors: Factors,
    forest: Forest,
    base: Array,
    *,
    want_variables: bool = True,
    want_moments: bool = False,
    factor_offsets: IntArray | None = None,
    row_weights: Array | None = None,
    weights: Array | None = None,
    semiring: Semiring | None = None,
    n_threads: int | None = None,
    compile: bool | None = None,
) -> Marginals:
    """log Z (R, C) from base (R, S), and the other answers that are wanted.

    factor_offsets (F + 1,) asks for all factor marginals. Moments are weighted by row_weights (R,) and weights (V,),
    which must agree on a component; both default to 1. semiring: SUM or LOG_SUM, tried in this order if None; a SUM
    asked for that turns out too narrow raises ArithmeticError.
    """
    base = _rows(base)
    wants = _Wants(
        want_variables,
        freeze(np.ones(len(base)) if row_weights is None else row_weights),
        freeze(np.ones(len(factors.state_offsets) - 1) if weights is None else weights),
        *_moment_slots(factors, forest, want_moments),
        len(factors.log_potentials),
        factor_offsets,
    )
    for domain in (Semiring.SUM, Semiring.LOG_SUM) if semiring is None else (semiring,):
        answer = _marginals(_Passes(factors, forest, base, domain, n_threads, compile), wants)
        if answer is not None:
            return answer
    raise ArithmeticError("the SUM domain is too narrow for this problem; use LOG_SUM")


def max_product(
    factors: Factors, forest: Forest, base: Array, *, n_threads: int | None = None, compile: bool | None = None
) -> Best:
    """A heaviest labelling for each row of base (R, S); of equal ones, the lowest states from the root outwards."""
    run = _Passes(factors, forest, _rows(base), Semiring.MAX, n_threads, compile)
    labels = np.zeros((len(run.log_z), len(factors.state_offsets) - 1), np.int64)
    decode = kernel_of(make_decode, run.lanes, compile=run.compile)

    def finish(span: Span, work: PassWork, _: int) -> bool:
        decode(*run.problem, span, work.up, labels)
        return False

    run.blocks(finish)
    return Best(run.log_z, labels)


def sample(
    factors: Factors,
    forest: Forest,
    base: Array,
    n_samples: int,
    key: int,
    *,
    n_threads: int | None = None,
    compile: bool | None = None,
) -> Samples:
    """n_samples independent labellings for each row of base (R, S); the same key gives the same ones."""
    base = _rows(base)
    compile = worth_compiling(forest, len(base) * (1 + n_samples)) if compile is None else compile
    key = (int(key) + 2**63) % 2**64 - 2**63  # a signed word
    samples = np.zeros((len(base), n_samples, len(factors.state_offsets) - 1), np.int64)
    run = _Passes(factors, forest, base, Semiring.SUM, n_threads, compile, lanes=1)
    if not _draw(run, key, samples):
        run = _Passes(factors, forest, base, Semiring.LOG_SUM, n_threads, compile, lanes=1)
        _draw(run, key, samples)
    return Samples(run.log_z, samples)


def _rows(base: Array) -> Array:
    return np.atleast_2d(np.asarray(base, np.float64))


class _Wants(NamedTuple):
    """What a caller of sum_product wants; source is None if moments are not wanted."""

    variables: bool
    row_weights: Array  # (R,)
    weights: Array  # (V,)
    slots: IntArray  # (G,) where the sums of each position of order start
    source: IntArray | None  # (A,) the entry of log_potentials that each sum belongs to
    n_entries: int  # L
    factor_offsets: IntArray | None


def _moment_slots(factors: Factors, forest: Forest, wanted: bool) -> tuple[IntArray, IntArray | None]:
    if not wanted:
        return freeze(np.zeros(len(forest.order), np.int64)), None
    slot, table = accumulators(forest, factors.table_of_factor, len(factors.table_offsets) - 1)
    sizes = np.diff(factors.table_offsets)[table]
    starts = offsets_of(sizes)
    source = np.arange(starts[-1]) + np.repeat(factors.table_offsets[table] - starts[:-1], sizes)
    return freeze(starts[slot]), source


def _marginals(run: _Passes, wants: _Wants) -> Marginals | None:
    """Run both passes in one domain; None if it is too narrow."""
    downward = kernel_of(make_downward, int(run.semiring), run.lanes, compile=run.compile)
    n_rows, offsets, source = len(run.log_z), wants.factor_offsets, wants.source
    variables = np.empty((n_rows, int(run.graph.state_offsets[-1])) if wants.variables else (0, 0))
    cells = recycled.empty((0, 0) if offsets is None else (n_rows, int(offsets[-1])))
    sums = np.zeros((run.slab, 0 if source is None else len(source)))
    moments = np.zeros(wants.n_entries)
    weights = (wants.row_weights, wants.weights, wants.slots)
    starts = freeze(np.zeros(1, np.int64) if offsets is None else offsets)

    def finish(span: Span, work: PassWork, number: int) -> bool:
        return downward(*run.problem, span, *run.base, work, variables, *weights, sums[number], starts, cells)

    def add_up(_: object) -> None:
        if source is not None:
            for row in sums:  # in a fixed order, whichever thread ran a block
                moments[:] += np.bincount(source, row, len(moments))
            sums[:] = 0.0

    wanted = wants.variables or source is not None or offsets is not None
    if not run.blocks(finish if wanted else None, add_up):
        return None
    return Marginals(
        run.log_z,
        variables if wants.variables else None,
        None if source is None else moments,
        None if offsets is None else cells,
        run.semiring,
    )


def _draw(run: _Passes, key: int, samples: IntArray) -> bool:
    """Fill samples; False if the domain is too narrow."""
    draw = kernel_of(make_sample, int(run.semiring), compile=run.compile)
    n_samples = samples.shape[1]
    n_parts = -(-n_samples // SAMPLES_PER_TASK)

    # A table of running sums pays if a task draws more samples than parents have states, and if it fits into memory.
    tabulate = n_samples >= TABULATE_FROM and run.forest.work <= TABULATE_TO
    n_entries = run.forest.work if tabulate else 0

    def draw_all(items: list[tuple[Span, PassWork]]) -> None:
        def part(number: int) -> None:
            (span, work), first = items[number // n_parts], number % n_parts * SAMPLES_PER_TASK
            last = min(first + SAMPLES_PER_TASK, n_samples)
            draw(*run.problem, span, work.up, key, first, last, n_entries, samples)

        run_chunks(part, len(items) * n_parts, run.n_threads)

    return run.blocks(None, draw_all)


class _Passes:
    """One domain of one problem: the prepared numbers, and the upward pass over blocks of rows and chunks."""

    def __init__(
        self,
        factors: Factors,
        forest: Forest,
        base: Array,
        semiring: Semiring,
        n_threads: int | None,
        compile: bool | None,
        lanes: int | None = None,
    ) -> None:
        self.forest, self.semiring, self.n_threads = forest, semiring, n_threads
        self.compile = worth_compiling(forest, len(base)) if compile is None else compile
        self.lanes = lanes or (LANES if self.compile and len(base) > LANES // 2 else 1)
        tables = prepare_tables(factors, forest, semiring)
        numbers = prepare_base(base, factors.state_offsets, semiring, tables.delta, forest.max_arity)
        self.narrow = tables.narrow or numbers.narrow
        self.graph = _graph(factors, tables)
        self.problem = (self.graph, _links(forest), _sizes(factors, forest, tables))
        self.base = (numbers.values, numbers.scale)
        self.upward = kernel_of(make_upward, int(semiring), self.lanes, compile=self.compile)
        self.log_z = np.empty((len(base), len(forest.roots)))
        # A task has enough rows to outweigh the cost of its calls, and few enough to leave tasks for all threads.
        block_bytes = 8 * self.lanes * (2 * int(factors.state_offsets[-1]) + int(forest.message_offsets[-1]) + 1)
        n_blocks = -(-len(base) // self.lanes)
        self.task_rows = self.lanes * max(1, min(n_blocks // 16, TASK_BYTES // block_bytes))
        self.n_tasks = -(-len(base) // self.task_rows)
        self.slab = max(1, min(self.n_tasks, SLAB_BYTES // (block_bytes * self.task_rows // self.lanes)))

    def blocks(
        self,
        finish: Callable[[Span, PassWork, int], bool] | None,
        after: Callable[[list[tuple[Span, PassWork]]], None] | None = None,
    ) -> bool:
        """Run upward, then finish(span, work, number in the slab), everywhere; False if SUM is too narrow.

        Rows are done in slabs, which bounds the memory for messages; after(items) is called after each slab.
        """
        if self.narrow:
            return False
        for first in range(0, self.n_tasks, self.slab):
            works = [self._work(finish is not None) for _ in range(min(self.slab, self.n_tasks - first))]
            spans = [self._span(first + b, h) for b in range(len(works)) for h in range(self.forest.n_chunks)]
            items = [(span, works[number // self.forest.n_chunks]) for number, span in enumerate(spans)]
            if self._slab(items, finish):
                return False
            if after is not None:
                after(items)
        return True

    def _slab(self, items: list[tuple[Span, PassWork]], finish: Callable[[Span, PassWork, int], bool] | None) -> bool:
        narrow = np.zeros(len(items), np.bool_)

        def task(number: int) -> None:
            span, work = items[number]
            narrow[number] = self.upward(*self.problem, span, *self.base, work, self.log_z)
            if finish is not None and not narrow[number]:
                narrow[number] = finish(span, work, number // self.forest.n_chunks)

        run_chunks(task, len(items), self.n_threads)
        return bool(narrow.any())

    def _span(self, number: int, chunk: int) -> Span:
        forest, row = self.forest, number * self.task_rows
        return Span(
            first_variable=int(forest.chunk_variables[chunk]),
            last_variable=int(forest.chunk_variables[chunk + 1]),
            first_root=int(forest.chunk_roots[chunk]),
            last_root=int(forest.chunk_roots[chunk + 1]),
            first_factor=int(forest.chunk_factors[chunk]),
            last_factor=int(forest.chunk_factors[chunk + 1]),
            first_row=row,
            n_rows=min(self.task_rows, len(self.log_z) - row),
        )

    def _work(self, both: bool) -> PassWork:
        n_states, n_variables = int(self.graph.state_offsets[-1]), len(self.graph.state_offsets) - 1
        up = (n_states, n_variables, int(self.forest.message_offsets[-1]), len(self.forest.order))
        down = (n_states, n_variables) if both else (0, 0)
        return PassWork(*(np.empty((self.task_rows // self.lanes, n, self.lanes)) for n in up + down))


def _graph(factors: Factors, tables: DomainTables) -> FlatFactors:
    return FlatFactors(
        freeze(factors.state_offsets),
        freeze(factors.scope_offsets),
        freeze(factors.scope_variables),
        freeze(factors.kinds),
        freeze(factors.table_of_factor),
        tables.offsets,
        tables.values,
        tables.shifts,
    )


def _links(forest: Forest) -> ForestLinks:
    return ForestLinks(
        forest.variables,
        forest.child_factors,
        forest.roots,
        forest.order,
        forest.parent_axis,
        forest.message_offsets,
    )


def _sizes(factors: Factors, forest: Forest, tables: DomainTables) -> Sizes:
    most = int(np.diff(factors.state_offsets).max(initial=1))
    return Sizes(
        max_arity=forest.max_arity,
        max_states=forest.max_arity * most,
        max_siblings=max(most, int(np.diff(forest.message_offsets[forest.child_factors]).max(initial=0))),
        max_settings=max(most, int(np.diff(factors.table_offsets).max(initial=1))),
        delta=tables.delta,
        window=tables.window,
    )
