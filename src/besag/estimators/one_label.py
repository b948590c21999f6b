"""Neighbours that count so much that one label everywhere is more probable than the labels that were learnt from.

Pseudolikelihood and piecewise training may end so: each pixel is explained by its true neighbours, which nobody knows
at prediction. With the energies H of the model that was learnt, all pictures have  min_k H(x, k everywhere) < H(x, y).
"""

from __future__ import annotations

import numpy as np

from besag.arrays import IntArray
from besag.errors import DataWarning, warn
from besag.graph.problem import Problem


def prefers_one_label(problem: Problem, codes: IntArray, offsets: IntArray) -> bool:
    """Whether one label everywhere is more probable than the labels, codes (V,), of every whole picture.

    offsets (N + 1,) are those of pictures. Pictures with unknown labels, and those of one label, tell nothing.
    """
    starts = offsets[:-1]
    low, high = np.minimum.reduceat(codes, starts), np.maximum.reduceat(codes, starts)
    telling = (low >= 0) & (low < high)
    if not telling.any():
        return False
    n_classes = int(problem.graph.variables.cardinalities[0])
    constant = np.min([problem.energy(np.full_like(codes, k)) for k in range(n_classes)], axis=0)
    return bool((constant < problem.energy(np.maximum(codes, 0)))[telling].all())


def warn_of_one_label(objective: str) -> None:
    """The DataWarning for a model that this objective has learnt."""
    warn(
        DataWarning(
            f"by the model that {objective} has learnt, one label everywhere is more probable than the true labels "
            "of each picture: neighbours count too much, features too little. Compare predict with pixels alone, "
            'decision_maps; try objective="likelihood[engine=bp]", which is slower, or pairwise="table"'
        )
    )
