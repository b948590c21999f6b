"""Exact inference on forests of factors of any arity: arrays in, arrays out.

The functions here prepare the numbers, run the kernels of `passes` and `assign` over chunks of the forest and blocks of
rows, and give back

    log Z per row and component       variable marginals             factor marginals
    moments, d (sum of w log Z) / d log-potentials                   the best labelling
    samples                           all messages

Rows. base has R rows, independent queries on the same forest; compiled, they are taken LANES at a time, row index innermost,
so that one table entry meets a vector of rows.

Domain. Sums are tried in the SUM domain, and done again in LOG_SUM where SUM is too narrow (see `semiring`); what was used
is part of the answer. Where no table has hard zeros, a message varies by no more than its table, whatever base is; if that
times the most factors of a variable is at most SAFE_RANGE, SUM cannot fail and is not checked.

Shapes: R rows, V variables, S states of all variables, F factors, T tables, L entries of all tables, C components, M entries
of all messages to parents. Sharing of `Factors` and `Forest` between threads is fine: nothing here keeps state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from besag.arrays import Array, IntArray, Semiring, frozen, offsets_of
from besag.kernels.assign import make_decode, make_sample
from besag.kernels.compile import kernel_of
from besag.kernels.forest import Forest, accumulators
from besag.kernels.passes import Graph, Links, Sizes, Span, Work, make_downward, make_upward
from besag.kernels.prepare import Factors, prepare_base, prepare_tables
from besag.kernels.threads import run_chunks

LANES = 8
SLAB_BYTES = 1 << 28  # work arrays held at a time
COMPILE_ABOVE = 20_000  # table entries x rows; below this Python is faster than loading numba
SAMPLES_PER_TASK = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Marginals:
    """What was wanted of a sum over labellings; rows and components without a labelling have log Z -inf and zeros."""

    log_partition: Array  # (R, C)
    variables: Array | None  # (R, S)
    moments: (
        Array | None
    )  # (L,) expected table entries, summed over factors and rows with weights; Potts: expected [i != j]
    factors: Array | None  # (R, .) row-major tables at factor_offsets; those of factors of one variable are left 0
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


@dataclass(frozen=True, slots=True, eq=False)
class Messages:
    """Logarithms of all messages, unnormalised: products and sums of base and tables as they are.

    to_parent (R, M): that of order[k] starts at message_offsets[k]. to_child (R, S): the message that a variable gets from its
    parent factor; 0 for roots. from_child (R, S): base times all messages from below, what the variable sends to that factor.
    """

    log_partition: Array  # (R, C)
    beliefs: Array  # (R, S) marginals; for MAX the logarithm of the largest weight of a labelling with this state
    to_parent: Array
    to_child: Array
    from_child: Array


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
    """log Z (R, C) from base (R, S), and what else is wanted.

    factor_offsets (F + 1,) asks for all factor marginals. Moments are weighted by row_weights (R,) and weights (V,), which
    must agree on a component; both default to 1. semiring: SUM or LOG_SUM, tried in this order if None; a SUM asked for
    that turns out too narrow raises ArithmeticError.
    """
    base = np.atleast_2d(base)
    shape = (len(base), int(factors.state_offsets[-1]))
    row_weights = np.ones(len(base)) if row_weights is None else row_weights
    weights = np.ones(len(factors.state_offsets) - 1) if weights is None else weights
    slots, source = _moment_slots(factors, forest) if want_moments else (np.zeros(len(forest.order), np.int64), None)
    for domain in (Semiring.SUM, Semiring.LOG_SUM) if semiring is None else (semiring,):
        run = _Run(factors, forest, base, domain, n_threads, compile)
        downward = kernel_of(make_downward, int(domain), run.lanes, compile=run.compile)
        variables = np.zeros(shape if want_variables else (0, 0))
        tables = np.zeros((0, 0) if factor_offsets is None else (len(base), int(factor_offsets[-1])))
        inputs = (frozen(row_weights), frozen(weights), frozen(slots))
        offsets = frozen(np.zeros(1, np.int64) if factor_offsets is None else factor_offsets)
        sums = np.zeros((run.slab, 0 if source is None else len(source)))
        moments = np.zeros(len(factors.log_potentials))

        def finish(span: Span, work: Work, number: int) -> bool:
            return downward(
                run.graph,
                run.links,
                run.sizes,
                span,
                *run.base,
                work,
                variables,
                *inputs,
                sums[number],
                offsets,
                tables,
            )

        def add_up(_: object) -> None:
            if source is not None:
                for row in sums:  # in a fixed order, whoever ran which block
                    moments[:] += np.bincount(source, row, len(moments))
                sums[:] = 0.0

        wanted = want_variables or want_moments or factor_offsets is not None
        if run.blocks(finish if wanted else None, add_up):
            return Marginals(
                run.log_z,
                variables if want_variables else None,
                moments if want_moments else None,
                None if factor_offsets is None else tables,
                domain,
            )
    raise ArithmeticError("the SUM domain is too narrow for this problem; use LOG_SUM")


def max_product(
    factors: Factors, forest: Forest, base: Array, *, n_threads: int | None = None, compile: bool | None = None
) -> Best:
    """A heaviest labelling for each row of base (R, S); of equal ones, the lowest states from the root outwards."""
    run = _Run(factors, forest, np.atleast_2d(base), Semiring.MAX, n_threads, compile)
    labels = np.zeros((len(run.log_z), len(factors.state_offsets) - 1), np.int64)
    decode = kernel_of(make_decode, run.lanes, compile=run.compile)

    def finish(span: Span, work: Work, _: int) -> bool:
        decode(run.graph, run.links, run.sizes, span, work.up, labels)
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
    """n_samples independent labellings for each row of base (R, S); the same key (an int64) gives the same ones."""
    base = np.atleast_2d(base)
    compile = worth_compiling(forest, len(base) * (1 + n_samples)) if compile is None else compile
    for domain in (Semiring.SUM, Semiring.LOG_SUM):
        run = _Run(factors, forest, base, domain, n_threads, compile, lanes=1)
        samples = np.zeros((len(base), n_samples, len(factors.state_offsets) - 1), np.int64)
        draw = kernel_of(make_sample, int(domain), compile=compile)

        def draw_all(items: list[tuple[Span, Work]]) -> None:
            n_parts = -(-n_samples // SAMPLES_PER_TASK)

            def part(number: int) -> None:
                (span, work), first = items[number // n_parts], number % n_parts * SAMPLES_PER_TASK
                last = min(first + SAMPLES_PER_TASK, n_samples)
                draw(run.graph, run.links, run.sizes, span, work.up, key, first, last, samples)

            run_chunks(part, len(items) * n_parts, n_threads)

        if run.blocks(None, draw_all):
            return Samples(run.log_z, samples)
    raise AssertionError("LOG_SUM is never too narrow")


def messages(
    factors: Factors,
    forest: Forest,
    base: Array,
    semiring: Semiring = Semiring.LOG_SUM,
    *,
    n_threads: int | None = None,
    compile: bool | None = None,
) -> Messages:
    """All messages in both directions, for looking at, in LOG_SUM or MAX; with MAX the max-marginals, too."""
    base = np.atleast_2d(base)
    run = _Run(factors, forest, base, semiring, n_threads, compile, lanes=1)
    downward = kernel_of(make_downward, int(semiring), 1, compile=run.compile)
    beliefs = np.zeros((len(base), int(factors.state_offsets[-1])))
    to_parent = np.zeros((len(base), int(forest.message_offsets[-1])))
    to_child, from_child = np.zeros_like(beliefs), np.zeros_like(beliefs)
    nothing = (frozen(np.ones(len(base))), frozen(np.ones(len(factors.state_offsets) - 1)))
    slots, offsets = frozen(np.zeros(len(forest.order), np.int64)), frozen(np.zeros(1, np.int64))

    def finish(span: Span, work: Work, _: int) -> bool:
        outputs = (np.zeros(0), offsets, np.zeros((0, 0)))
        return downward(run.graph, run.links, run.sizes, span, *run.base, work, beliefs, *nothing, slots, *outputs)

    def collect(items: list[tuple[Span, Work]]) -> None:
        n_states = np.diff(factors.state_offsets)
        for span, work in items:
            row = span.first_row
            scale = np.repeat(work.message_scale[:, 0], np.diff(forest.message_offsets))
            to_parent[row] = work.messages[:, 0] + scale
            to_child[row] = work.down[:, 0] + np.repeat(work.down_scale[:, 0], n_states)
            from_child[row] = work.up[:, 0] + np.repeat(work.up_scale[:, 0], n_states)

    run.blocks(finish, collect)
    return Messages(run.log_z, beliefs, to_parent, to_child, from_child)


def _moment_slots(factors: Factors, forest: Forest) -> tuple[IntArray, IntArray]:
    """Where the sums of each position of order start, (G,), and the entry of log_potentials of each sum, (A,)."""
    slot, table = accumulators(forest, factors.table_of_factor, len(factors.table_offsets) - 1)
    sizes = np.diff(factors.table_offsets)[table]
    starts = offsets_of(sizes)
    source = np.arange(starts[-1]) + np.repeat(factors.table_offsets[table] - starts[:-1], sizes)
    return starts[slot], source


class _Run:
    """One domain of one problem: the numbers made ready, and the upward pass over blocks of rows and chunks."""

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
        self.forest, self.n_threads = forest, n_threads
        self.compile = worth_compiling(forest, len(base)) if compile is None else compile
        self.lanes = lanes or (LANES if self.compile and len(base) > LANES // 2 else 1)
        structure = (frozen(array) for array in factors[:-1])
        tables = prepare_tables(factors, forest, semiring)
        numbers = prepare_base(base, factors.state_offsets, semiring, tables.delta)
        self.narrow = tables.narrow or numbers.narrow
        self.graph = Graph(*structure, tables.values, tables.shifts)
        self.base = (numbers.values, numbers.scale)
        self.links = Links(
            forest.variables,
            forest.child_factors,
            forest.roots,
            forest.order,
            forest.parent_axis,
            forest.message_offsets,
        )
        self.sizes = _sizes(factors, forest, tables.delta, tables.window)
        self.upward = kernel_of(make_upward, int(semiring), self.lanes, compile=self.compile)
        self.log_z = np.empty((len(base), len(forest.roots)))
        self.n_blocks = -(-len(base) // self.lanes)
        self.shape = (int(factors.state_offsets[-1]), len(factors.state_offsets) - 1)
        self.slab = min(self.n_blocks, max(1, SLAB_BYTES // (8 * self.lanes * 4 * (1 + self.shape[0]))))

    def blocks(
        self,
        finish: Callable[[Span, Work, int], bool] | None,
        after: Callable[[list[tuple[Span, Work]]], None] | None = None,
    ) -> bool:
        """Run upward, then finish(span, work, number in the slab) on every block and chunk; False where SUM is too narrow.

        Blocks are done in slabs, which bounds the memory for messages; after(items) is called once a slab is done.
        """
        if self.narrow:
            return False
        for first in range(0, self.n_blocks, self.slab):
            n_blocks = min(self.slab, self.n_blocks - first)
            works = [self._work(finish is not None) for _ in range(n_blocks)]
            items = [(self._span(first + b, h), works[b]) for b in range(n_blocks) for h in range(self.forest.n_chunks)]
            narrow = np.zeros(len(items), np.bool_)

            def task(number: int) -> None:
                span, work = items[number]
                narrow[number] = self.upward(self.graph, self.links, self.sizes, span, *self.base, work, self.log_z)
                if finish is not None and not narrow[number]:
                    narrow[number] = finish(span, work, number // self.forest.n_chunks)

            run_chunks(task, len(items), self.n_threads)
            if narrow.any():
                return False
            if after is not None:
                after(items)
        return True

    def _span(self, block: int, chunk: int) -> Span:
        forest, row = self.forest, block * self.lanes
        bounds = (forest.chunk_variables, forest.chunk_roots, forest.chunk_factors)
        ends = [int(end) for offsets in bounds for end in offsets[chunk : chunk + 2]]
        return Span(*ends, row, min(self.lanes, len(self.log_z) - row))

    def _work(self, both: bool) -> Work:
        n_states, n_variables = self.shape
        up = (n_states, n_variables, int(self.forest.message_offsets[-1]), len(self.forest.order))
        down = (n_states, n_variables) if both else (0, 0)
        return Work(*(np.empty((n, self.lanes)) for n in up + down))


def _sizes(factors: Factors, forest: Forest, delta: float, window: float) -> Sizes:
    cardinalities = np.diff(factors.state_offsets)
    max_states = int(cardinalities.max(initial=1))
    siblings = np.diff(forest.message_offsets[forest.child_factors]).max(initial=0)
    settings = np.diff(factors.table_offsets).max(initial=1)
    return Sizes(
        forest.max_arity,
        forest.max_arity * max_states,
        max(int(siblings), max_states),
        max(int(settings), max_states),
        delta,
        window,
    )
