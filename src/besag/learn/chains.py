"""The negative log-likelihood of first-order chains, by one kernel from features to gradient.

`besag.learn.likelihood` on a union of chains says the same in half again the time: there, log-potentials, marginals and
gradients of all tokens are arrays of their own, here they live as long as their sequence is in the cache. Where the
range of floating-point numbers does not suffice, a shard goes through the general way.
"""

from __future__ import annotations

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
from besag.kernels.compile import kernel_of, worth_compiling
from besag.kernels.pair_passes import DELTA
from besag.learn.differences import hessian_product
from besag.learn.likelihood import Likelihood
from besag.learn.objective import Product
from besag.learn.occurrences import Occurrences, occurrences_of
from besag.model.pattern import Pattern, Plan

Shard: TypeAlias = Sequences | StoredSequences
NOTHING = frozen(np.zeros(0, np.int64))


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


class Room(NamedTuple):
    """Room for a gradient: full rows, single parameters, transitions (1, W, W)."""

    rows: Array
    singles: Array
    pairs: Array


@dataclass(frozen=True, slots=True, eq=False)
class ChainLikelihood:
    """An Objective on Sequences, for templates without triples."""

    templates: ChainTemplates
    rooms: list[Room] = field(default_factory=list)  # that no thread is in

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

    def value_and_grad(
        self, theta: Array, batch: Shard, state: Work | StoredWork | None
    ) -> tuple[float, Array, Work | StoredWork]:
        """sum_n w_n log Z_n, less that of the known labels where some are unknown; its gradient; the compiled data."""
        state = self._kept(batch) if state is None else state
        work = state if isinstance(state, Work) else state.load()
        try:
            value, gradient = self._evaluated(theta, work.free)
            if work.clamped is not None:
                known, slope = self._evaluated(theta, work.clamped)
                value, gradient = value - known, gradient - slope
        except FloatingPointError:
            value, gradient, _ = self._general().value_and_grad(theta, self._batch(_loaded(batch)), None)
        return value, gradient, state

    def hessian_vector(self, theta: Array, batch: Shard) -> Product:
        """Products with the Hessian at theta."""
        work = self._kept(batch)
        return hessian_product(lambda point: self.value_and_grad(point, batch, work)[1], theta)

    def _plan(self) -> Plan:
        return self.pattern.plan(self.templates.state.n_inputs, padded(self.n_labels))

    def _work(self, batch: Sequences) -> Work:
        hidden = _with_unknown_labels(batch)
        clamped = None if hidden is None else self._phase(hidden, hidden.codes)
        return Work(self._phase(batch, NOTHING), clamped)

    def _kept(self, batch: Shard) -> Work | StoredWork:
        """Compiled sequences: in memory, or beside the file that the sequences are in."""
        work = self._work(_loaded(batch))
        if isinstance(batch, Sequences):
            return work
        path = batch.path.with_suffix(".compiled.npz")
        np.savez(path, **_packed("free", work.free), **_packed("clamped", work.clamped))  # type: ignore[arg-type]
        return StoredWork(path)

    def _room(self) -> Room:
        """Zeros, in arrays that were used before where there are some: fresh pages take as long as their use."""
        try:
            room = self.rooms.pop()
        except IndexError:
            plan, width = self._plan(), padded(self.n_labels)
            return Room(np.zeros(plan.n_rows * width), np.zeros(len(self.pattern)), np.zeros((1, width, width)))
        for array in room:
            array[:] = 0.0
        return room

    def _phase(self, batch: Sequences, known: IntArray) -> Phase:
        offsets = batch.offsets[batch.start : batch.stop + 1]
        weights = batch.weights[batch.start : batch.stop]
        return Phase(occurrences_of(batch, self._plan()), frozen(offsets - offsets[0]), frozen(weights), known)

    def _evaluated(self, theta: Array, phase: Phase) -> tuple[float, Array]:
        """sum_n w_n log Z_n and its gradient (P,), with known labels as evidence."""
        k, layout = self.n_labels, self.templates.layout()
        prepared = self.pattern.prepared(-theta[layout["state"]], self.templates.state.n_inputs, padded(k))
        tables, ends, shift = self._tables(theta[layout["transition"]])
        room, log_z = self._room(), np.zeros(len(phase.weights))
        checked = int(len(phase.known) > 0 or not (tables[:, :k, :k] > 0).all() or not (ends == 0).all())
        compile = worth_compiling(float(len(phase.occurrences.row) + phase.offsets[-1] * k) * k)
        weighted = len(phase.occurrences.row_value) + len(phase.occurrences.single_value) > 0
        kernel = kernel_of(make_gradient, k, int(weighted), checked, compile=compile)
        given = (prepared.rows, prepared.theta, ends, tables, phase.offsets, phase.weights, phase.known)
        if kernel(*phase.occurrences, *given, *room, log_z) >= 0:
            raise FloatingPointError
        log_z += shift * (np.diff(phase.offsets) - 1)
        gradient = self._gradient(room, tables[0])
        self.rooms.append(room)
        return dot(log_z, phase.weights), gradient

    def _tables(self, theta: Array) -> tuple[Array, Array, float]:
        """exp(transition - shift) and its transpose, (2, W, W); the log-potentials of ends, (2, W); the shift."""
        k, support = self.n_labels, self.templates.transition.support
        allowed = np.ones((k, k), np.bool_) if support is None else support
        logs = np.where(allowed, -theta.reshape(k, k), -np.inf)
        shift = float(logs.max()) if allowed.any() else 0.0
        weights = np.zeros((padded(k), padded(k)))
        with np.errstate(under="ignore"):
            weights[:k, :k] = np.exp(logs - shift)
        if not (weights[:k, :k][allowed] > DELTA).all():
            raise FloatingPointError
        ends = np.zeros((2, padded(k)))
        for row, template in enumerate((self.templates.begin, self.templates.end)):
            if template is not None and template.support is not None:
                ends[row, :k][~template.support] = -np.inf
        return frozen(np.stack([weights, weights.T])), frozen(ends), shift

    def _gradient(self, room: Room, table: Array) -> Array:
        plan, k = self._plan(), self.n_labels
        room.singles[plan.kept] = room.rows[plan.places]
        return np.negative(self._vector(room.singles, (room.pairs[0] * table)[:k, :k].reshape(-1)))

    def _general(self) -> Likelihood:
        return Likelihood(make_engine("tree", n_threads=1))

    def _batch(self, batch: Sequences) -> Batch:
        """The same on a Graph."""
        part = batch.batch(np.arange(len(batch)))
        names = [str(k) for k in range(self.n_labels)]
        inputs = csr_inputs(part.features, self.templates.state.n_inputs)
        return Batch(chain_graph(self.templates, names, part.features.lengths, inputs), part.codes, part.weights)


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
