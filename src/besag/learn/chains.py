"""The negative log-likelihood of first-order chains, by one kernel from features to gradient.

`besag.learn.likelihood` on a union of chains says the same in half again the time: there, log-potentials, marginals and
gradients of all tokens are arrays of their own, here they live as long as their sequence is in the cache. Where the
range of floating-point numbers does not suffice, a shard goes through the general way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from besag.arrays import AnyArray, Array, IntArray, dot, frozen
from besag.data.chains import ChainTemplates, chain_graph, csr_inputs, windows
from besag.data.dataset import Batch
from besag.data.sequences import Sequences
from besag.data.streamed import StoredSequences
from besag.infer.engine import make_engine
from besag.kernels.chain_gradient import make_gradient, padded
from besag.kernels.chain_parameters import make_collected, make_laid_out
from besag.kernels.compile import kernel_of, worth_compiling
from besag.kernels.pair_passes import DELTA
from besag.kernels.threads import run_chunks
from besag.learn.differences import hessian_product
from besag.learn.likelihood import Likelihood
from besag.learn.objective import Product
from besag.learn.occurrences import Occurrences, occurrences_of
from besag.model.pattern import Pattern, Plan

Shard: TypeAlias = Sequences | StoredSequences
NOTHING = frozen(np.zeros(0, np.int64))
CHUNK = 1 << 15  # parameters that a thread lays out or collects at a time


class Phase(NamedTuple):
    """Sequences as the kernel reads them: occurrences, offsets (N + 1,), weights (N,), and known labels or ()."""

    occurrences: Occurrences
    offsets: IntArray
    weights: Array
    known: IntArray


class Work(NamedTuple):
    """What a shard keeps between calls: all of its sequences, and those with unknown labels."""

    free: Phase
    clamped: Phase | None


class StoredWork(NamedTuple):
    """A shard's compiled sequences in a file."""

    path: Path

    def load(self) -> Work:
        """From the file."""
        with np.load(self.path, allow_pickle=False) as file:
            phases = [_unpacked(file, prefix) for prefix in ("free", "clamped")]
        assert phases[0] is not None
        return Work(phases[0], phases[1])


class Desk(NamedTuple):
    """Room for log-potentials, and for G gradients: full rows, single parameters, transitions (G, 1, W, W)."""

    weight_rows: Array
    weight_singles: Array
    rows: Array
    singles: Array
    pairs: Array


Kept: TypeAlias = Work | StoredWork


@dataclass(frozen=True, slots=True, eq=False)
class Transitions:
    """exp(transition - shift) and its transpose, (2, W, W); the log-potentials of ends, (2, W); the shift."""

    tables: Array
    ends: Array
    shift: float


@dataclass(frozen=True, slots=True, eq=False)
class ChainLikelihood:
    """An Objective on Sequences, for templates without triples."""

    templates: ChainTemplates
    desks: list[Desk] = field(default_factory=list)  # that nobody sits at

    @property
    def pattern(self) -> Pattern:
        """Which (attribute, label) pairs have a parameter."""
        assert self.templates.state.pattern is not None
        return self.templates.state.pattern

    @property
    def n_labels(self) -> int:
        """K."""
        return self.templates.state.shape[0]

    def statistics(self, batch: Shard) -> Array:
        """(P,): how often attributes and labels, and labels and labels, are seen together, in complete sequences."""
        batch = _loaded(batch)
        k, plan, phase = self.n_labels, self._plan(), self._phase(batch, NOTHING)
        codes = batch.codes[batch.offsets[batch.start] : batch.offsets[batch.stop]]
        unknown = np.concatenate([[0], np.cumsum(codes < 0)])[phase.offsets]
        of_token = np.repeat(np.where(np.diff(unknown) == 0, phase.weights, 0.0), np.diff(phase.offsets))
        states = phase.occurrences.statistics(plan, padded(k), np.maximum(codes, 0), of_token)
        left, right = windows(phase.offsets, 2).T
        pairs = np.bincount(np.maximum(codes[left], 0) * k + np.maximum(codes[right], 0), of_token[left], k * k)
        return self._vector(states, pairs.astype(np.float64))

    def _vector(self, states: Array, pairs: Array) -> Array:
        """(P,), from parameters of states in the plan's order and of transitions."""
        layout, plan = self.templates.layout(), self._plan()
        vector = np.empty(layout.n_parameters)
        if plan.order is None:
            vector[layout["state"]] = states
        else:
            vector[layout["state"]][plan.order] = states
        vector[layout["transition"]] = pairs
        return vector

    def add(
        self,
        theta: Array,
        batches: Sequence[Shard],
        states: Sequence[Kept | None],
        gradient: Array,
        n_threads: int | None,
    ) -> tuple[list[float], list[Kept]]:
        """sum_n w_n log Z_n of each batch, less that of the known labels where some are unknown, and the gradients."""
        kept, desk = self._all_kept(batches, states, n_threads), self._desk(len(batches))
        transitions, values = self._transitions(theta), [math.nan] * len(batches)
        order = _folded(len(batches))
        if transitions is not None:
            self._lay_out(theta, desk, n_threads)

            def evaluate(chunk: int) -> None:
                i = order[chunk]
                values[i] = self._evaluated(desk, i, transitions, kept[i])

            run_chunks(evaluate, len(batches), n_threads)
        slopes = self._generally(theta, batches, values, n_threads)
        n_runs = len(batches) if slopes else 1  # one by one where some went the general way: all are added in order
        for run in np.split(np.arange(len(batches)), n_runs):
            if run[0] in slopes:
                gradient += slopes[run[0]]
            elif transitions is not None:
                self._collect(desk, frozen(run), transitions, gradient, n_threads)
        self.desks.append(desk)
        return values, kept

    def _generally(
        self, theta: Array, batches: Sequence[Shard], values: list[float], n_threads: int | None
    ) -> dict[int, Array]:
        """The gradients of shards for which the range of numbers did not suffice; their values, NaN before."""
        failed, slopes = [i for i, value in enumerate(values) if math.isnan(value)], dict[int, Array]()

        def evaluate(n: int) -> None:
            i, general = failed[n], self._general()
            values[i], slopes[i], _ = general.value_and_grad(theta, self._batch(batches[i]), None)

        run_chunks(evaluate, len(failed), n_threads)
        return slopes

    def _in_chunks(self, make: Callable[[], Callable[..., None]], n_threads: int | None, *given: Any) -> None:
        """A kernel of `besag.kernels.chain_parameters` on all parameters of states."""
        plan, n = self._plan(), len(self.pattern)
        chunks = [(start, min(start + CHUNK, n)) for start in range(0, n, CHUNK)]
        kernel = kernel_of(make, compile=worth_compiling(float(n)))
        order = NOTHING if plan.order is None else plan.order
        run_chunks(lambda c: kernel(order, plan.place, *chunks[c], *given), len(chunks), n_threads)

    def _lay_out(self, theta: Array, desk: Desk, n_threads: int | None) -> None:
        own = frozen(theta[self.templates.layout()["state"]])
        self._in_chunks(make_laid_out, n_threads, own, desk.weight_rows, desk.weight_singles)

    def _collect(
        self, desk: Desk, used: IntArray, transitions: Transitions, gradient: Array, n_threads: int | None
    ) -> None:
        """The gradient less what is in the used rooms."""
        layout, k = self.templates.layout(), self.n_labels
        given = (used, frozen(desk.rows), frozen(desk.singles), gradient[layout["state"]])
        self._in_chunks(make_collected, n_threads, *given)
        for i in used:
            gradient[layout["transition"]] -= (desk.pairs[i, 0] * transitions.tables[0])[:k, :k].reshape(-1)

    def hessian_vector(self, theta: Array, batch: Shard) -> Product:
        """Products with the Hessian at theta."""
        work = self._kept(batch)

        def gradient(point: Array) -> Array:
            slope = np.zeros_like(point)
            self.add(point, [batch], [work], slope, 1)
            return slope

        sizes = self._sizes(_loaded(batch))
        return hessian_product(gradient, theta, lambda vector: float(np.abs(vector * sizes).max(initial=0.0)))

    def _sizes(self, batch: Sequences) -> Array | float:
        """(P,) or one number: the largest change of a log-potential by each parameter alone.

        Those of the attributes of a token add up: all together may change it by more, but not by orders of magnitude.
        """
        values, layout = batch.features.values, self.templates.layout()
        if values is None:
            return 1.0
        of_attribute = np.zeros(self.templates.state.n_inputs)
        np.maximum.at(of_attribute, batch.features.indices, np.abs(values))
        sizes = np.ones(layout.n_parameters)
        sizes[layout["state"]] = of_attribute[self.pattern.rows]
        return sizes

    def _plan(self) -> Plan:
        return self.pattern.plan(self.templates.state.n_inputs, padded(self.n_labels))

    def _work(self, batch: Sequences) -> Work:
        hidden = _with_unknown_labels(batch)
        clamped = None if hidden is None else self._phase(hidden, hidden.codes)
        if clamped is not None:
            clamped = clamped._replace(weights=frozen(-clamped.weights))
        return Work(self._phase(batch, NOTHING), clamped)

    def _all_kept(self, batches: Sequence[Shard], states: Sequence[Kept | None], n_threads: int | None) -> list[Kept]:
        kept = list(states)

        def compile(i: int) -> None:
            kept[i] = self._kept(batches[i]) if kept[i] is None else kept[i]

        run_chunks(compile, len(kept), n_threads if None in kept else 1)
        return [state for state in kept if state is not None]

    def _kept(self, batch: Shard) -> Kept:
        """Compiled sequences: in memory, or beside the file that the sequences are in."""
        work = self._work(_loaded(batch))
        if isinstance(batch, Sequences):
            return work
        path = batch.path.with_suffix(".compiled.npz")
        np.savez(path, **_packed("free", work.free), **_packed("clamped", work.clamped))  # type: ignore[arg-type]
        return StoredWork(path)

    def _desk(self, n: int) -> Desk:
        """Room for n gradients; where there is some from before, the same: fresh pages take as long as their use."""
        try:
            desk = self.desks.pop()
        except IndexError:
            desk = None
        if desk is not None and len(desk.rows) >= n:
            return desk
        n_rows, n_singles, width = self._plan().n_rows, len(self.pattern), padded(self.n_labels)
        weights = np.zeros(n_rows * width), np.zeros(n_singles)
        rooms = np.zeros((n, n_rows * width)), np.zeros((n, n_singles)), np.zeros((n, 1, width, width))
        return Desk(*weights, *rooms)

    def _phase(self, batch: Sequences, known: IntArray) -> Phase:
        offsets = batch.offsets[batch.start : batch.stop + 1]
        weights = batch.weights[batch.start : batch.stop]
        return Phase(occurrences_of(batch, self._plan()), frozen(offsets - offsets[0]), frozen(weights), known)

    def _evaluated(self, desk: Desk, i: int, transitions: Transitions, kept: Kept) -> float:
        """The value of a shard, whose gradient goes into room i; NaN where numbers do not suffice."""
        room, value = (desk.rows[i], desk.singles[i], desk.pairs[i]), 0.0
        for array in room:
            array[...] = 0.0
        work = kept if isinstance(kept, Work) else kept.load()
        for phase in (work.free, work.clamped):
            value += 0.0 if phase is None else self._add_phase(desk, room, transitions, phase)
        return value

    def _add_phase(self, desk: Desk, room: tuple[Array, ...], transitions: Transitions, phase: Phase) -> float:
        """sum_n w_n log Z_n, NaN where numbers do not suffice, with known labels as evidence; marginals to the room."""
        k, log_z, tables = self.n_labels, np.zeros(len(phase.weights)), transitions.tables
        free = len(phase.known) == 0 and (tables[:, :k, :k] > 0).all() and (transitions.ends == 0).all()
        compile = worth_compiling(float(len(phase.occurrences.row) + phase.offsets[-1] * k) * k)
        weighted = len(phase.occurrences.row_value) + len(phase.occurrences.single_value) > 0
        kernel = kernel_of(make_gradient, k, int(weighted), int(not free), compile=compile)
        weights = (frozen(desk.weight_rows), frozen(desk.weight_singles))
        given = (*weights, transitions.ends, tables, phase.offsets, phase.weights, phase.known)
        if kernel(*phase.occurrences, *given, *room, log_z) >= 0:
            return math.nan
        log_z += transitions.shift * (np.diff(phase.offsets) - 1)
        return dot(log_z, phase.weights)

    def _transitions(self, theta: Array) -> Transitions | None:
        """None where numbers do not suffice."""
        k, support = self.n_labels, self.templates.transition.support
        allowed = np.ones((k, k), np.bool_) if support is None else support
        logs = np.where(allowed, -theta[self.templates.layout()["transition"]].reshape(k, k), -np.inf)
        shift = float(logs.max()) if allowed.any() else 0.0
        weights = np.zeros((padded(k), padded(k)))
        with np.errstate(under="ignore"):
            weights[:k, :k] = np.exp(logs - shift)
        if not (weights[:k, :k][allowed] > DELTA).all():
            return None
        ends = np.zeros((2, padded(k)))
        for row, template in enumerate((self.templates.begin, self.templates.end)):
            if template is not None and template.support is not None:
                ends[row, :k][~template.support] = -np.inf
        return Transitions(frozen(np.stack([weights, weights.T])), frozen(ends), shift)

    def _general(self) -> Likelihood:
        return Likelihood(make_engine("tree", n_threads=1))

    def _batch(self, shard: Shard) -> Batch:
        """The same on a Graph."""
        batch = _loaded(shard)
        part = batch.batch(np.arange(len(batch)))
        names = [str(k) for k in range(self.n_labels)]
        inputs = csr_inputs(part.features, self.templates.state.n_inputs)
        graph = chain_graph(self.templates, names, part.features.lengths, inputs)
        first = shard.start if isinstance(shard, Sequences) else shard.first
        return Batch(graph, part.codes, part.weights, np.arange(first, first + len(batch)))


def _folded(n: int) -> list[int]:
    """0, n - 1, 1, n - 2, ..: threads take neighbours, and late shards, whose attributes lie far apart, take longer."""
    return [n - 1 - i // 2 if i % 2 else i // 2 for i in range(n)]


def _loaded(batch: Shard) -> Sequences:
    return batch if isinstance(batch, Sequences) else batch.load()


def _packed(prefix: str, phase: Phase | None) -> dict[str, AnyArray]:
    """The arrays of a phase by name."""
    if phase is None:
        return {}
    arrays = phase.occurrences._asdict() | {name: getattr(phase, name) for name in Phase._fields[1:]}
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def _unpacked(file: Any, prefix: str) -> Phase | None:
    if f"{prefix}.offsets" not in file.files:
        return None
    found = {name: frozen(file[f"{prefix}.{name}"]) for name in (*Occurrences._fields, *Phase._fields[1:])}
    occurrences = Occurrences(**{name: found.pop(name) for name in Occurrences._fields})
    return Phase(occurrences, **found)


def _with_unknown_labels(batch: Sequences) -> Sequences | None:
    """The sequences of a batch with unknown labels; None where there is none."""
    offsets = batch.offsets
    unknown = np.concatenate([[0], np.cumsum(batch.codes < 0)])
    count = unknown[offsets[1:]] - unknown[offsets[:-1]]
    found = np.flatnonzero(count[batch.start : batch.stop])
    return batch.batch(found) if len(found) else None
