"""Labelled sequences for chains that share their transitions: sparse features, codes, batches and shards.

No Graph is made: the features of token t are row t of a sparse matrix, sequence n has tokens offsets[n] to
offsets[n + 1], and a shard is a range of sequences in the same arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from besag.arrays import Array, IntArray, Rebuilt, freeze, offsets_of, secure
from besag.data.attributes import Features
from besag.data.dataset import check_weights

SHARD_TOKENS = 1 << 13
MOST_TOKENS = 1 << 17  # of a shard, which is compiled as a whole
FEW_SHARDS = 4  # as long as their size allows, since each makes a gradient of all parameters


@dataclass(frozen=True, slots=True, eq=False)
class Sequences(Rebuilt):
    """Sequences [start, stop) of these: features of all tokens, codes (T,) with -1 = unknown, weights (N,)."""

    features: Features
    codes: IntArray
    weights: Array
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def offsets(self) -> IntArray:
        """(N + 1,): where sequences begin."""
        return self.features.offsets

    def shards(self) -> list[Sequences]:
        """Contiguous parts with about as many tokens each."""
        offsets = self.offsets
        first, last = int(offsets[self.start]), int(offsets[self.stop])
        n_tokens = last - first
        n_shards = max(1, min(FEW_SHARDS, n_tokens // SHARD_TOKENS), n_tokens // MOST_TOKENS)
        aims = np.linspace(first, last, n_shards + 1)[1:-1]
        cuts = np.unique([self.start, *np.searchsorted(offsets, aims).tolist(), self.stop]).tolist()
        return [replace(self, start=start, stop=stop) for start, stop in pairwise(cuts)]

    def batch(self, instances: IntArray) -> Sequences:
        """Some sequences by number, gathered into arrays of their own."""
        chosen = np.asarray(instances, np.int64) + self.start
        lengths, offsets = self.features.lengths[chosen], self.offsets
        tokens = ranges(offsets[chosen], lengths)
        counts = np.diff(self.features.indptr)[tokens]
        entries = ranges(self.features.indptr[tokens], counts)
        values = self.features.values
        features = Features(
            offsets_of(counts), self.features.indices[entries], None if values is None else values[entries], lengths
        )
        return Sequences(features, freeze(self.codes[tokens]), freeze(self.weights[chosen]), 0, len(chosen))


def join_sequences(parts: list[Sequences]) -> Sequences:
    """Concatenate parts that have all of their sequences."""
    counts = np.concatenate([np.diff(part.features.indptr) for part in parts])
    weighted = any(part.features.values is not None for part in parts)
    features = Features(
        offsets_of(counts),
        np.concatenate([part.features.indices for part in parts]),
        np.concatenate([_values(part.features) for part in parts]) if weighted else None,
        np.concatenate([part.features.lengths for part in parts]),
    )
    codes, weights = (np.concatenate([getattr(part, name) for part in parts]) for name in ("codes", "weights"))
    return Sequences(features, freeze(codes), freeze(weights), 0, len(features.lengths))


def _values(features: Features) -> Array:
    return np.ones(len(features.indices)) if features.values is None else features.values


def ranges(starts: IntArray, counts: IntArray) -> IntArray:
    """Concatenated ranges: for each start and count, start, start + 1, ..., start + count - 1."""
    ends = np.cumsum(counts)
    return np.asarray(np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(starts - (ends - counts), counts))


def sequences_of(features: Features, codes: IntArray, weights: Any = None) -> Sequences:
    """All sequences; weights (N,) or None = all one."""
    n = len(features.lengths)
    own = np.ones(n) if weights is None else check_weights(weights, n)
    return Sequences(features, secure(codes), secure(own), 0, n)
