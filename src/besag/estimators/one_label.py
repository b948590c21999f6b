"""Neighbours that count so much that one label everywhere is more probable than the labels that were learnt from.

Pseudolikelihood and piecewise training may end so: each pixel is explained by its true neighbours, which nobody knows
at prediction. With the energies H of the model that was learnt, all pictures have  min_k H(x, k everywhere) < H(x, y).
"""

from __future__ import annotations

import numpy as np

from besag.arrays import IntArray
from besag.errors import DataWarning, warn
from besag.graph.problem import Problem


def warn_of_one_label(problem: Problem, codes: IntArray, offsets: IntArray, objective: str) -> None:
    """A DataWarning where one label everywhere is more probable than the labels, codes (V,), of every whole picture.

    offsets (N + 1,) are those of pictures. Pictures with unknown labels, and those of one label, tell nothing.
    """
    starts = offsets[:-1]
    low, high = np.minimum.reduceat(codes, starts), np.maximum.reduceat(codes, starts)
    telling = (low >= 0) & (low < high)
    if not telling.any():
        return
    n_classes = int(problem.graph.variables.cardinalities[0])
    constant = np.min([problem.energy(np.full_like(codes, k)) for k in range(n_classes)], axis=0)
    if (constant < problem.energy(np.maximum(codes, 0)))[telling].all():
        warn(
            DataWarning(
                f"by the model that {objective} has learnt, one label everywhere is more probable than the true labels "
                "of each picture: neighbours count too much, features too little. Compare predict with pixels alone, "
                'decision_maps; try objective="likelihood[engine=bp]", which is slower, or pairwise="table"'
            )
        )
