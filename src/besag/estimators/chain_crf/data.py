"""Data of a chain CRF: vectorised in memory, or in files of a scratch folder; and the pairs that occur in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from besag.arrays import BoolArray, IntArray
from besag.data import dataset as unions
from besag.data.attributes import Attributes, Features, show_value
from besag.data.chains import ChainTemplates, chain_graph, csr_inputs
from besag.data.labels import Labels
from besag.data.sequences import Sequences, sequences_of
from besag.data.streamed import StreamedSequences, stream
from besag.errors import ModelError
from besag.estimators.chain_crf.schemes import Allowed
from besag.learn.objective import Instances
from besag.model.pattern import Pattern

BLOCK = 1 << 16  # tokens at a time
DENSE_PAIRS = 1 << 28  # up to so many (attribute, label) pairs, those seen are marked in an array of all pairs

Data: TypeAlias = Sequences | StreamedSequences


class Training(NamedTuple):
    """Vectorised sequences, in memory or in files."""

    attributes: Attributes
    labels: Labels
    data: Data

    def parts(self) -> Iterable[Sequences]:
        """All sequences, part by part."""
        return [self.data] if isinstance(self.data, Sequences) else (part.load() for part in self.data.shards())


@contextmanager
def training_data(X: Iterable[Any], y: Iterable[Any], weights: Any, scratch: Any) -> Iterator[Training]:
    """Sequences and labels as arrays; their files, if any, are removed at the end of the context."""
    if scratch is None:
        attributes, features = Attributes.fit(X)
        _refuse_empty(features)
        labels, codes = Labels.fit(y, features.lengths)
        yield Training(attributes, labels, sequences_of(features, codes, weights))
        return
    if not isinstance(scratch, (str, PathLike)) or not Path(scratch).is_dir():
        raise ModelError(f"scratch must be an existing folder, got {scratch!r}")
    with TemporaryDirectory(prefix="besag", dir=scratch) as folder:
        yield Training(*stream(X, y, Path(folder), weights))


def read_held_out(given: Any, attributes: Attributes, classes: tuple[Any, ...], allowed: Allowed | None) -> Sequences:
    """Sequences whose loss is watched, read as those to label are; ModelError if they are not (X, y)."""
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise ModelError(f"held_out must be a pair (X, y) of sequences and labels, got {show_value(given)}")
    try:
        features = attributes.transform(given[0])
        _refuse_empty(features)
        data = sequences_of(features, Labels(classes).transform(given[1], features.lengths))
        if allowed is not None:
            refuse_forbidden([data], allowed, classes)
    except ModelError as error:
        raise ModelError(f"held_out: {error}") from None
    return data


def _refuse_empty(features: Features) -> None:
    if not len(features.lengths):
        raise ModelError("X has no sequences")
    if features.lengths.min() == 0:
        raise ModelError(f"sequence {int(np.argmin(features.lengths))} is empty: leave it out of X and y")


def dataset_of(templates: ChainTemplates, data: Data) -> Instances:
    """Sequences in the form that the objective takes: second-order chains as a Graph."""
    if templates.triple is None:
        return data
    assert isinstance(data, Sequences)
    names = [str(k) for k in range(templates.state.shape[0])]
    inputs = csr_inputs(data.features, templates.state.n_inputs)
    graph = chain_graph(templates, names, data.features.lengths, inputs)
    return unions.Dataset(unions.Batch(graph, data.codes, data.weights))


def find_pairs(parts: Iterable[Sequences], n_attributes: int, n_labels: int) -> Pattern:
    """The (attribute, label) pairs that occur; a token with unknown label counts for every label."""
    dense = n_attributes * n_labels <= DENSE_PAIRS
    seen = np.zeros(n_attributes * n_labels if dense else 0, np.bool_)
    found = np.zeros(0, np.int64)
    for part in parts:
        for start in range(0, len(part.codes), BLOCK):
            pairs = _pairs_of(part, n_labels, start, min(start + BLOCK, len(part.codes)))
            if dense:
                seen[pairs] = True
            else:
                found = np.union1d(found, pairs)
    if dense:
        found = np.flatnonzero(seen)
    return Pattern(found // n_labels, found % n_labels)


def _pairs_of(part: Sequences, n_labels: int, start: int, stop: int) -> IntArray:
    """The pairs of tokens [start, stop), each as attribute K + label."""
    first = part.features.indptr[start : stop + 1]
    attributes = part.features.indices[first[0] : first[-1]].astype(np.int64)
    labels = np.repeat(part.codes[start:stop], np.diff(first))
    known = labels >= 0
    anywhere = np.unique(attributes[~known])
    every = (anywhere[:, None] * n_labels + np.arange(n_labels)).reshape(-1)
    return np.concatenate([attributes[known] * n_labels + labels[known], every])


def refuse_forbidden(parts: Iterable[Sequences], allowed: Allowed, classes: Sequence[Any]) -> None:
    """ModelError if the constraints rule out a label; unknown labels are possible."""
    before = 0
    for part in parts:
        where = _forbidden(allowed, part.codes, part.offsets)
        if where is not None:
            n, t = where
            labels = part.codes[part.offsets[n] : part.offsets[n + 1]].tolist()
            if t and labels[t - 1] >= 0 and not allowed.transitions[labels[t - 1], labels[t]]:
                place = f"after {classes[labels[t - 1]]!r}"
            else:
                place = "at the start" if t == 0 and not allowed.first[labels[0]] else "at the end"
            raise ModelError(
                f"sequence {before + n}, position {t}: the constraints rule out label {classes[labels[t]]!r} {place}"
            )
        before += len(part)


def _forbidden(allowed: Allowed, codes: IntArray, offsets: IntArray) -> tuple[int, int] | None:
    """The (sequence, position) of the first label that is ruled out."""
    wrong: BoolArray = np.zeros(len(codes), np.bool_)
    wrong[1:] = ~allowed.transitions[codes[:-1], codes[1:]] & (codes[:-1] >= 0) & (codes[1:] >= 0)
    first, last = offsets[:-1], offsets[1:] - 1
    wrong[first] = ~allowed.first[codes[first]] & (codes[first] >= 0)
    wrong[last] |= ~allowed.last[codes[last]] & (codes[last] >= 0)
    if not wrong.any():
        return None
    at = int(np.argmax(wrong))
    n = int(np.searchsorted(offsets, at, side="right")) - 1
    return n, at - int(offsets[n])
