"""The k most probable labellings of one chain, by the junction tree's search for the k best."""

from __future__ import annotations

from typing import Any

import numpy as np

from besag.data.attributes import Features
from besag.errors import ModelError
from besag.estimators.chain_model import ChainModel, labels_of
from besag.infer.engine import make_engine


def best_labellings(model: ChainModel, features: Features, k: Any) -> list[tuple[list[Any], float]]:
    """(labels, probability) of the k best, best first; fewer where there are fewer."""
    if not isinstance(k, (int, np.integer)) or k < 1:
        raise ModelError(f"k must be a whole number of at least 1, got {k!r}")
    if not features.lengths[0]:
        return [([], 1.0)]
    problem = model.graph(features).bind(model.theta)
    found = make_engine("junction_tree", k=int(k)).infer(problem, frozenset({"map", "log_partition"}))
    assert found.codes is not None
    assert found.energies is not None
    assert found.log_partitions is not None
    pairs = zip(found.codes[0], found.energies[0], strict=True)
    log_z = float(found.log_partitions[0])
    if log_z == -np.inf:
        raise ModelError("the sequence has no labelling that the constraints allow")
    return [(labels_of(model.classes, codes), float(np.exp(-h - log_z))) for codes, h in pairs if np.isfinite(h)]
