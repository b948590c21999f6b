"""The negative log-likelihood of first-order chains, by one kernel from features to gradient.

`besag.learn.losses.likelihood` on a union of chains gives the same in half again the time: there, log-potentials,
marginals and gradients of all tokens are arrays of their own, here they exist only while their sequence is in the
cache. If the range of floating-point numbers does not suffice, a shard is evaluated by that general loss.

Each thread has a work space of its own, its Desk, for all that is read and written token by token: cache lines that two
threads write to cost them a third of their time. M parameters are in full rows, the same for all shards; a shard has S
single ones. Its gradient is a Slope of M + S numbers, and slopes are subtracted in the order of shards, so that the
result does not depend on the threads.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np

from besag.arrays import Array, IntArray, dot, freeze
from besag.data.chains import ChainTemplates, chain_graph, csr_inputs, windows
from besag.data.dataset import Batch
from besag.data.sequences import Sequences
from besag.infer.chains.kernels.gradient import make_gradient, pad_columns
from besag.infer.chains.kernels.parameters import make_counted, make_laid_out, make_taken_off
from besag.infer.engine import ENGINES
from besag.infer.trees.kernels.pair_passes import DELTA
from besag.kernels.compile import kernel_of, worth_compiling
from besag.kernels.threads import run_chunks
from besag.learn.losses.base import Loss
from besag.learn.losses.chains.shards import NOTHING, Kept, Phase, Shard, ShardWork, compile_shard, cuts_of, load_shard
from besag.learn.losses.likelihood import Likelihood
from besag.learn.objective import Product
from besag.learn.optimisers.hessian import hessian_product
from besag.model.pattern import Pattern, ProductPlan

Pooled = TypeVar("Pooled")


class Desk(NamedTuple):
    """Work space of a thread: log-potentials of full rows (R W,) and of single parameters; the gradient of rows."""

    weight_rows: Array
    weight_singles: Array
    rows: Array


class Slope(NamedTuple):
    """The gradient of sum_n w_n log Z_n of a shard by its log-potentials.

    room: for the parameters in rows (M,), then for the single ones (S,) of its ShardWork, with their cuts. pairs
    (W, W): for transitions.
    """

    room: Array
    singles: IntArray
    cuts: IntArray
    pairs: Array


@dataclass(frozen=True, slots=True, eq=False)
class Transitions:
    """exp(transition - shift) and its transpose, (2, W, W); log-potentials of ends, (2, W); the shift."""

    tables: Array
    ends: Array
    shift: float


@dataclass(frozen=True, slots=True, eq=False)
class ChainLikelihood(Loss):
    """An Objective on Sequences, for templates without triples whose pattern is sorted."""

    templates: ChainTemplates
    # Idle desks, and idle rooms (M + S,), kept for reuse: touching fresh pages takes as long as the work in them.
    desks: list[Desk] = field(default_factory=list)
    rooms: list[Array] = field(default_factory=list)

    @property
    def pattern(self) -> Pattern:
        """The (attribute, label) pairs that have a parameter."""
        assert self.templates.state.pattern is not None
        return self.templates.state.pattern

    @property
    def n_labels(self) -> int:
        """K."""
        return self.templates.state.shape[0]

    def statistics(self, batch: Shard) -> Array:
        """(P,): how often attributes and labels, and labels and next labels, occur together in complete sequences."""
        batch = load_shard(batch)
        k, layout, plan, features = self.n_labels, self.templates.layout(), self._plan(), batch.features
        offsets = batch.offsets[batch.start : batch.stop + 1]
        codes = batch.codes[offsets[0] : offsets[-1]]
        unknown = np.concatenate([[0], np.cumsum(codes < 0)])[offsets - offsets[0]]
        of_sequence = np.where(np.diff(unknown) == 0, batch.weights[batch.start : batch.stop], 0.0)
        of_token = np.repeat(of_sequence, np.diff(offsets))
        counts = np.zeros(layout.n_parameters)
        first = freeze(features.indptr[offsets[0] : offsets[-1] + 1])
        values = np.zeros(0) if features.values is None else features.values
        counted = kernel_of(make_counted, compile=worth_compiling(float(first[-1] - first[0])))
        given = (freeze(codes), freeze(of_token), plan.starts, plan.elements)
        counted(first, features.indices, freeze(values), *given, counts[layout["state"]])
        left, right = windows(offsets - offsets[0], 2).T
        together = np.maximum(codes[left], 0) * k + np.maximum(codes[right], 0)
        counts[layout["transition"]] = np.bincount(together, of_token[left], k * k)
        return counts

    def add(
        self,
        theta: Array,
        batches: Sequence[Shard],
        states: Sequence[Kept | None],
        gradient: Array,
        n_threads: int | None,
    ) -> tuple[list[float], list[Kept]]:
        """sum_n w_n log Z_n of each batch, minus that with the known labels if some are unknown, and the gradients."""
        kept, transitions = self._all_kept(batches, states, n_threads), self._transitions(theta)
        values, slopes = [math.nan] * len(kept), dict[int, Slope]()
        if transitions is not None:
            values, slopes = self._evaluated(theta, transitions, kept, n_threads)
        others = self._generally(theta, batches, values, n_threads)
        # If some were evaluated by the general loss, one by one, so that all are added in order.
        n_runs = len(kept) if others else 1
        for run in np.split(np.arange(len(kept)), n_runs):
            if run[0] in others:
                gradient += others[run[0]]
            elif transitions is not None:
                self._take_off([slopes[i] for i in run], transitions, gradient, n_threads)
        return values, kept

    def _evaluated(
        self, theta: Array, transitions: Transitions, kept: list[Kept], n_threads: int | None
    ) -> tuple[list[float], dict[int, Slope]]:
        """Value and slope of each shard; NaN if the range of numbers does not suffice."""
        own, order = freeze(theta[self.templates.layout()["state"]]), _folded(len(kept))
        values, slopes = [math.nan] * len(kept), dict[int, Slope]()
        desks = dict[int, Desk]()  # by thread

        def evaluate(chunk: int) -> None:
            i, thread = order[chunk], threading.get_ident()
            if thread not in desks:
                desks[thread] = self._desk(own)
            values[i], slopes[i] = self._evaluate(desks[thread], own, transitions, kept[i].load())

        run_chunks(evaluate, len(kept), n_threads)
        self.desks.extend(desks.values())
        return values, slopes

    def _desk(self, theta: Array) -> Desk:
        """A desk with the log-potentials of rows laid out."""
        plan, width = self._plan(), pad_columns(self.n_labels)
        desk = _taken(self.desks)
        if desk is None:
            n = plan.n_rows * width
            desk = Desk(np.zeros(n), np.zeros(len(self.pattern) - len(plan.kept)), np.zeros(n))
        self._laid_out(plan.kept, plan.places, theta, desk.weight_rows)
        return desk

    def _laid_out(self, which: IntArray, place: IntArray, theta: Array, out: Array) -> None:
        kernel_of(make_laid_out, compile=worth_compiling(float(len(which))))(which, place, theta, out)

    def _evaluate(self, desk: Desk, theta: Array, transitions: Transitions, work: ShardWork) -> tuple[float, Slope]:
        """The value of a shard, NaN if the range of numbers does not suffice, and its gradient."""
        plan, width, n_singles = self._plan(), pad_columns(self.n_labels), len(work.singles)
        room, n_rows = _taken(self.rooms), len(plan.kept)
        if room is None:
            room = np.empty(len(self.pattern))
        of_rows, of_singles, pairs = room[:n_rows], room[n_rows : n_rows + n_singles], np.zeros((1, width, width))
        self._laid_out(work.singles, NOTHING, theta, desk.weight_singles)
        desk.rows[...], of_singles[...], value = 0.0, 0.0, 0.0
        for phase in (work.free, work.clamped):
            if phase is not None:
                value += self._add_phase(desk, transitions, phase, of_singles, pairs)
        np.take(desk.rows, plan.places, out=of_rows, mode="clip")
        return value, Slope(room, work.singles, work.cuts, pairs[0])

    def _add_phase(self, desk: Desk, transitions: Transitions, phase: Phase, of_singles: Array, pairs: Array) -> float:
        """sum_n w_n log Z_n, NaN if the range does not suffice, with known labels as evidence; adds marginals."""
        k, log_z, tables = self.n_labels, np.zeros(len(phase.weights)), transitions.tables
        free = len(phase.known) == 0 and (tables[:, :k, :k] > 0).all() and (transitions.ends == 0).all()
        compile = worth_compiling(float(len(phase.occurrences.row) + phase.offsets[-1] * k) * k)
        weighted = len(phase.occurrences.row_value) + len(phase.occurrences.single_value) > 0
        kernel = kernel_of(make_gradient, k, int(weighted), int(not free), compile=compile)
        weights = (freeze(desk.weight_rows), freeze(desk.weight_singles))
        given = (*weights, transitions.ends, tables, phase.offsets, phase.weights, phase.known)
        if kernel(*phase.occurrences, *given, desk.rows, of_singles, pairs, log_z) >= 0:
            return math.nan
        log_z += transitions.shift * (np.diff(phase.offsets) - 1)
        return dot(log_z, phase.weights)

    def _take_off(
        self, slopes: Sequence[Slope], transitions: Transitions, gradient: Array, n_threads: int | None
    ) -> None:
        """Subtract slopes from the gradient by theta, minus that by log-potentials, and release their rooms."""
        k, layout, n, in_rows = self.n_labels, self.templates.layout(), len(self.pattern), self._plan().kept
        own = gradient[layout["state"]]
        cuts, parts = cuts_of(in_rows, n), list[tuple[IntArray, IntArray, Array]]()
        for slope in slopes:
            parts.append((in_rows, cuts, freeze(slope.room)))
            parts.append((slope.singles, slope.cuts, freeze(slope.room[len(in_rows) :])))
        kernel = kernel_of(make_taken_off, compile=worth_compiling(float(n)))

        def take_off(chunk: int) -> None:
            for which, cuts, values in parts:
                kernel(which, int(cuts[chunk]), int(cuts[chunk + 1]), values, own)

        run_chunks(take_off, len(cuts) - 1, n_threads)
        for slope in slopes:
            gradient[layout["transition"]] -= (slope.pairs * transitions.tables[0])[:k, :k].reshape(-1)
            self.rooms.append(slope.room)

    def _generally(
        self, theta: Array, batches: Sequence[Shard], values: list[float], n_threads: int | None
    ) -> dict[int, Array]:
        """Evaluate by the general loss the shards whose values are NaN: sets these, and returns the gradients."""
        failed, slopes = [i for i, value in enumerate(values) if math.isnan(value)], dict[int, Array]()

        def evaluate(n: int) -> None:
            i, general = failed[n], self._general()
            values[i], slopes[i], _ = general.value_and_grad(theta, self._batch(batches[i]), None)

        run_chunks(evaluate, len(failed), n_threads)
        return slopes

    def hessian_vector(self, theta: Array, batch: Shard) -> Product:
        """Products with the Hessian at theta."""
        work = self._kept(batch)

        def gradient(point: Array) -> Array:
            slope = np.zeros_like(point)
            self.add(point, [batch], [work], slope, 1)
            return slope

        sizes = self._sizes(load_shard(batch))
        return hessian_product(gradient, theta, lambda vector: float(np.abs(vector * sizes).max(initial=0.0)))

    def _sizes(self, batch: Sequences) -> Array | float:
        """(P,) or one number: the largest change of a log-potential by each parameter alone.

        The parameters of a token's attributes together may change it by more, but not by orders of magnitude.
        """
        values, layout = batch.features.values, self.templates.layout()
        if values is None:
            return 1.0
        of_attribute = np.zeros(self.templates.state.n_inputs)
        np.maximum.at(of_attribute, batch.features.indices, np.abs(values))
        sizes = np.ones(layout.n_parameters)
        sizes[layout["state"]] = of_attribute[self.pattern.rows]
        return sizes

    def _plan(self) -> ProductPlan:
        plan = self.pattern.plan(self.templates.state.n_inputs, pad_columns(self.n_labels))
        assert plan.order is None
        return plan

    def _all_kept(self, batches: Sequence[Shard], states: Sequence[Kept | None], n_threads: int | None) -> list[Kept]:
        kept = list(states)

        def compile(i: int) -> None:
            kept[i] = self._kept(batches[i]) if kept[i] is None else kept[i]

        run_chunks(compile, len(kept), n_threads if None in kept else 1)
        return [state for state in kept if state is not None]

    def _kept(self, batch: Shard) -> Kept:
        return compile_shard(batch, self._plan(), pad_columns(self.n_labels))

    def _transitions(self, theta: Array) -> Transitions | None:
        """The transitions at theta; None if the range of numbers does not suffice."""
        k, support = self.n_labels, self.templates.transition.support
        allowed = np.ones((k, k), np.bool_) if support is None else support
        logs = np.where(allowed, -theta[self.templates.layout()["transition"]].reshape(k, k), -np.inf)
        shift = float(logs.max()) if allowed.any() else 0.0
        weights = np.zeros((pad_columns(k), pad_columns(k)))
        with np.errstate(under="ignore"):
            weights[:k, :k] = np.exp(logs - shift)
        if not (weights[:k, :k][allowed] > DELTA).all():
            return None
        ends = np.zeros((2, pad_columns(k)))
        for row, template in enumerate((self.templates.begin, self.templates.end)):
            if template is not None and template.support is not None:
                ends[row, :k][~template.support] = -np.inf
        return Transitions(freeze(np.stack([weights, weights.T])), freeze(ends), shift)

    def _general(self) -> Likelihood:
        return Likelihood(ENGINES.read("tree", n_threads=1))

    def _batch(self, shard: Shard) -> Batch:
        """The shard as a Batch on a Graph, for the general loss."""
        batch = load_shard(shard)
        part = batch.batch(np.arange(len(batch)))
        names = [str(k) for k in range(self.n_labels)]
        inputs = csr_inputs(part.features, self.templates.state.n_inputs)
        graph = chain_graph(self.templates, names, part.features.lengths, inputs)
        first = shard.start if isinstance(shard, Sequences) else shard.first
        return Batch(graph, part.codes, part.weights, np.arange(first, first + len(batch)))


def _folded(n: int) -> list[int]:
    """0, n - 1, 1, n - 2, ..: balances the load, since late shards, whose attributes lie far apart, take longer."""
    return [n - 1 - i // 2 if i % 2 else i // 2 for i in range(n)]


def _taken(pool: list[Pooled]) -> Pooled | None:
    """The last item of a pool, taken out; None if it is empty."""
    try:
        return pool.pop()
    except IndexError:
        return None
