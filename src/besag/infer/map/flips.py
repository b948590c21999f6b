"""Room for the best flip of each variable, which ICM and tabu search keep up to date."""

from __future__ import annotations

import numpy as np

from besag.infer.map.kernels.descent import Flips


def no_flips(n_variables: int) -> Flips:
    """Room for the best flip of each variable."""
    targets, reliefs, gains = np.empty(n_variables, np.int64), np.empty(n_variables, np.int64), np.empty(n_variables)
    heap, places_in = np.empty(n_variables, np.int64), np.full(n_variables, -1, np.int64)
    return Flips(targets, reliefs, gains, heap, places_in, np.zeros(1, np.int64))
