"""Kruskal's algorithm on factor graphs: sets of factors without cycles.

Factors are looked at in a given order, and one joins the set where all its variables are in different components of the
set so far (union by size, paths halved). Variables that are marked as fixed, because evidence leaves them one state, do
not count: no sum goes over them, so that a way through them closes no cycle.

    starts (G + 1,), variables (E,)   scopes of the factors     fixed (V,)     chosen (G,)   which factors joined
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from besag.arrays import BoolArray, IntArray
from besag.kernels.incidence import root_of


def make_grow() -> Callable[..., None]:
    """Kernel: chosen = the factors that join, in this order."""

    def grow(order: IntArray, starts: IntArray, variables: IntArray, fixed: BoolArray, chosen: BoolArray) -> None:
        n_variables = len(fixed)
        parents, sizes = np.arange(n_variables), np.ones(n_variables, np.int64)
        seen_by = np.full(n_variables, -1, np.int64)
        for g in order:
            chosen[g] = True
            for e in range(starts[g], starts[g + 1]):
                if not fixed[variables[e]]:
                    root = root_of(parents, variables[e])
                    if seen_by[root] == g:
                        chosen[g] = False
                    seen_by[root] = g
            if not chosen[g]:
                continue
            whole = -1
            for e in range(starts[g], starts[g + 1]):
                if not fixed[variables[e]]:
                    part = root_of(parents, variables[e])
                    if whole >= 0:
                        if sizes[part] > sizes[whole]:
                            part, whole = whole, part
                        parents[part] = whole
                        sizes[whole] += sizes[part]
                    else:
                        whole = part

    return grow
