"""Shards of sequences, compiled for the kernel of chains: in memory, or in a file beside the sequences."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from besag.arrays import AnyArray, Array, IntArray, freeze
from besag.data.sequences import Sequences
from besag.data.streamed import StoredSequences
from besag.learn.losses.chains.occurrences import Occurrences, Singles, occurrences_of, singles_of
from besag.model.pattern import ProductPlan

Shard: TypeAlias = Sequences | StoredSequences
NOTHING = freeze(np.zeros(0, np.int64))
CHUNK = 1 << 16  # parameters whose slopes a thread subtracts at a time


class Phase(NamedTuple):
    """Sequences in the form that the kernel reads: occurrences, offsets (N + 1,), weights (N,), known labels or ()."""

    occurrences: Occurrences
    offsets: IntArray
    weights: Array
    known: IntArray


class ShardWork(NamedTuple):
    """The compiled data of a shard, kept between calls: all of its sequences, and those with unknown labels.

    singles (S,): its single parameters, sorted; cuts: where in them each CHUNK of all parameters begins.
    """

    free: Phase
    clamped: Phase | None
    singles: IntArray
    cuts: IntArray

    def load(self) -> ShardWork:
        """This object, which is in memory."""
        return self


class StoredWork(NamedTuple):
    """A shard's compiled sequences in a file."""

    path: Path

    def load(self) -> ShardWork:
        """Read it from the file."""
        with np.load(self.path, allow_pickle=False) as file:
            free, clamped = (_unpacked(file, prefix) for prefix in ("free", "clamped"))
            singles, cuts = (freeze(file[name]) for name in ("singles", "cuts"))
        assert free is not None
        return ShardWork(free, clamped, singles, cuts)


Kept: TypeAlias = ShardWork | StoredWork


def load_shard(shard: Shard) -> Sequences:
    """The sequences of a shard."""
    return shard if isinstance(shard, Sequences) else shard.load()


def compile_shard(shard: Shard, plan: ProductPlan, width: int) -> Kept:
    """A shard, compiled: in memory, or beside the file that its sequences are in."""
    work = _compiled(load_shard(shard), plan, width)
    if isinstance(shard, Sequences):
        return work
    path = shard.path.with_suffix(".compiled.npz")
    arrays = _packed("free", work.free) | _packed("clamped", work.clamped)
    np.savez(path, singles=work.singles, cuts=work.cuts, **arrays)  # type: ignore[arg-type]
    return StoredWork(path)


def _compiled(batch: Sequences, plan: ProductPlan, width: int) -> ShardWork:
    singles, hidden = singles_of(batch, plan), _with_unknown_labels(batch)
    clamped = None if hidden is None else _phase(hidden, plan, singles, width, hidden.codes)
    if clamped is not None:
        clamped = clamped._replace(weights=freeze(-clamped.weights))
    free = _phase(batch, plan, singles, width, NOTHING)
    return ShardWork(free, clamped, singles.which, cuts_of(singles.which, len(plan.elements)))


def cuts_of(which: IntArray, n: int) -> IntArray:
    """Where in sorted parameters, of n in all, each CHUNK begins, and where the last one ends."""
    return freeze(np.searchsorted(which, np.arange(0, n + CHUNK, CHUNK)))


def _phase(batch: Sequences, plan: ProductPlan, singles: Singles, width: int, known: IntArray) -> Phase:
    offsets = batch.offsets[batch.start : batch.stop + 1]
    weights = batch.weights[batch.start : batch.stop]
    occurrences = occurrences_of(batch, plan, singles, width)
    return Phase(occurrences, freeze(offsets - offsets[0]), freeze(weights), known)


def _with_unknown_labels(batch: Sequences) -> Sequences | None:
    """The sequences of a batch with unknown labels; None if there are none."""
    offsets = batch.offsets
    unknown = np.concatenate([[0], np.cumsum(batch.codes < 0)])
    count = unknown[offsets[1:]] - unknown[offsets[:-1]]
    found = np.flatnonzero(count[batch.start : batch.stop])
    return batch.batch(found) if len(found) else None


def _packed(prefix: str, phase: Phase | None) -> dict[str, AnyArray]:
    """The arrays of a phase by name."""
    if phase is None:
        return {}
    arrays = phase.occurrences._asdict() | {name: getattr(phase, name) for name in Phase._fields[1:]}
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def _unpacked(file: Any, prefix: str) -> Phase | None:
    if f"{prefix}.offsets" not in file.files:
        return None
    found = {name: freeze(file[f"{prefix}.{name}"]) for name in (*Occurrences._fields, *Phase._fields[1:])}
    occurrences = Occurrences(**{name: found.pop(name) for name in Occurrences._fields})
    return Phase(occurrences, **found)
