"""How much each label counts in training.

None          all alike
"balanced"    V / (K count_k): labels that are rare count as much as frequent ones
a dict        {label: weight}; what is not named has weight 1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from besag.arrays import Array, IntArray
from besag.errors import ModelError
from besag.text import shorten

ClassWeight: TypeAlias = Mapping[Any, float] | str | None


def weights_of_classes(given: ClassWeight, classes: Sequence[Any], codes: IntArray) -> Array | None:
    """The weight of each class, (K,), from the labels in training as codes (V,), -1 where unknown; None: all alike.

    >>> weights_of_classes("balanced", ["a", "b"], np.array([0, 0, 0, 1, -1])).round(2).tolist()
    [0.67, 2.0]
    """
    if given is None:
        return None
    if isinstance(given, str) and given == "balanced":
        counts = np.bincount(codes[codes >= 0], minlength=len(classes))
        return np.asarray(counts.sum() / (len(classes) * np.maximum(counts, 1)))
    if not isinstance(given, Mapping):
        raise ModelError(f'class_weight must be None, "balanced" or {{label: weight}}, got {given!r}')
    unknown = [label for label in given if label not in classes]
    if unknown:
        raise ModelError(
            f"class_weight names {unknown[0]!r}, which is no label in training: {shorten([str(c) for c in classes])}"
        )
    weights: list[Any] = [given.get(label, 1.0) for label in classes]
    if not all(isinstance(w, (int, float, np.number)) and 0 <= w < np.inf for w in weights):
        raise ModelError(f"class_weight must be finite numbers from 0 on, got {dict(given)!r}")
    return np.array(weights, np.float64)
