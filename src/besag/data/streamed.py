"""Sequences that do not fit into memory: vectorised in parts, each in a file that is read whenever it is needed.

    part n     indptr, indices, values, lengths of Features; numbers (T,) of the labels in the order of their appearance

Classes are sorted once all parts have been written; `code_of_number` turns numbers of labels into codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from besag.arrays import Array, IntArray, freeze, offsets_of
from besag.data.attributes import Attributes, Features, GrowingAttributes, iterate_sequences
from besag.data.dataset import check_weights
from besag.data.labels import GrowingLabels, Labels
from besag.data.sequences import Sequences, join_sequences
from besag.errors import ModelError

PART_TOKENS = 1 << 17


class StreamedSequences:
    """A dataset in files: each working thread has only one part in memory."""

    def __init__(self, parts: list[Path], sizes: list[int], code_of_number: IntArray, weights: Any) -> None:
        self.parts, self.code_of_number = parts, code_of_number
        self.first = offsets_of(np.array(sizes, np.int64))
        self.weights: Array = np.ones(len(self)) if weights is None else check_weights(weights, len(self))

    def __len__(self) -> int:
        return int(self.first[-1])

    def part(self, number: int) -> Sequences:
        """The sequences of a file."""
        with np.load(self.parts[number], allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        features = Features(arrays["indptr"], arrays["indices"], arrays.get("values"), arrays["lengths"])
        codes = self.code_of_number[arrays["numbers"]]
        weights = self.weights[self.first[number] : self.first[number + 1]]
        return Sequences(features, freeze(codes), freeze(weights), 0, len(features.lengths))

    def shards(self) -> list[StoredSequences]:
        """The parts, to be read when they are needed."""
        return [StoredSequences(self, number) for number in range(len(self.parts))]

    def batch(self, instances: IntArray) -> Sequences:
        """Some sequences by number."""
        of_part = np.searchsorted(self.first, instances, side="right") - 1
        chosen = [(int(p), instances[of_part == p] - self.first[p]) for p in np.unique(of_part)]
        return join_sequences([self.part(p).batch(numbers) for p, numbers in chosen])


class StoredSequences(NamedTuple):
    """A part of a dataset in files."""

    data: StreamedSequences
    number: int

    @property
    def path(self) -> Path:
        """Its file."""
        return self.data.parts[self.number]

    @property
    def first(self) -> int:
        """The number of its first sequence in the dataset."""
        return int(self.data.first[self.number])

    def load(self) -> Sequences:
        """The sequences themselves."""
        return self.data.part(self.number)


def stream(
    X: Iterable[Any], y: Iterable[Any], folder: Path, weights: Any
) -> tuple[Attributes, Labels, StreamedSequences]:
    """Sequences and their labels, vectorised into files in a folder."""
    attributes, labels = GrowingAttributes(), GrowingLabels()
    items, answers = iterate_sequences(X), iterate_sequences(y)
    parts: list[Path] = []
    sizes: list[int] = []
    while len((features := attributes.add(_some(items))).lengths):
        numbers = labels.add(islice(answers, len(features.lengths)), features.lengths)
        if features.lengths.min() == 0:
            empty = sum(sizes) + int(np.argmin(features.lengths))
            raise ModelError(f"sequence {empty} is empty: leave it out of X and y")
        arrays = {"indptr": features.indptr, "indices": features.indices, "lengths": features.lengths}
        if features.values is not None:
            arrays["values"] = features.values
        parts.append(folder / f"part{len(parts)}.npz")
        sizes.append(len(features.lengths))
        np.savez(parts[-1], numbers=numbers, **arrays)  # type: ignore[arg-type]
    if any(True for _ in answers):
        raise ModelError(f"X has {sum(sizes)} sequences, and y has more")
    if not parts:
        raise ModelError("X has no sequences")
    made, code_of_number = labels.done()
    return attributes.done(), made, StreamedSequences(parts, sizes, code_of_number, weights)


def _some(items: Iterator[Any]) -> Iterator[Any]:
    """The next sequences, of about PART_TOKENS tokens together; none is kept here."""
    n_tokens = 0
    for sequence in items:
        once = hasattr(sequence, "__iter__") and not hasattr(sequence, "__len__") and not hasattr(sequence, "tocsr")
        listed = list(sequence) if once else sequence
        n_tokens += listed.shape[0] if hasattr(listed, "shape") else len(listed) if hasattr(listed, "__len__") else 0
        yield listed
        if n_tokens >= PART_TOKENS:
            return
