"""The k most probable labellings of chains: by their own kernel, or by the junction tree's search for the k best.

The kernel keeps k paths to each label of each token. Second-order chains, and sequences that would need more than MOST
paths, go through the junction tree, which keeps only what it needs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from besag.arrays import Array, IntArray
from besag.data.attributes import Features
from besag.errors import ModelError
from besag.estimators.chain_crf.inference import ChainModel, labels_of
from besag.infer.chains.best import best_of_chain
from besag.infer.engine import ENGINES

MOST = 1 << 26  # paths kept for one sequence, 8 bytes each


def best_labellings(model: ChainModel, features: Features, k: Any) -> list[list[tuple[list[Any], float]]]:
    """(labels, probability) of the k best labellings of each sequence, best first; all if there are fewer."""
    if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 1:
        raise ModelError(f"k must be a whole number of at least 1, got {k!r}")
    if not features.lengths.any():
        return [[([], 1.0)] for _ in features.lengths]
    log_z, unary = model.log_partitions(features), model.unary(features)
    answers = []
    for n, length in enumerate(features.lengths.tolist()):
        most = min(int(k), model.n_labels**length)
        if model.templates.triple is None and length * model.n_labels * most <= MOST:
            own = unary[features.offsets[n] : features.offsets[n + 1]]
            codes, scores = best_of_chain(own, model.transition_weights, most)
        else:
            codes, scores = _searched(model, _only(features, n), most)
        chances = np.exp(scores - log_z[n]).tolist()
        answers.append([(labels_of(model.classes, own), p) for own, p in zip(codes, chances, strict=True)])
    return answers


def _only(features: Features, n: int) -> Features:
    """The features of sequence n alone."""
    start, stop = features.offsets[n : n + 2]
    first, last = features.indptr[[start, stop]]
    values = None if features.values is None else features.values[first:last]
    return Features(
        features.indptr[start : stop + 1] - first, features.indices[first:last], values, features.lengths[n : n + 1]
    )


def _searched(model: ChainModel, features: Features, k: int) -> tuple[IntArray, Array]:
    """Codes (n, T) and the logarithms of their weights (n,), by the junction tree."""
    if not features.lengths[0]:
        return np.zeros((1, 0), np.int64), np.zeros(1)
    problem = model.graph(features).bind(model.theta)
    found = ENGINES.read("junction_tree", k=k).infer(problem, frozenset({"map"}))
    assert found.codes is not None
    assert found.energies is not None
    possible = np.isfinite(found.energies[0])
    return found.codes[0][possible], -found.energies[0][possible]
