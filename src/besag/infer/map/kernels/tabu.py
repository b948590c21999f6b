"""Tabu search: the best flip again and again, also where it raises the energy; who was flipped rests for a while.

The variables that do not rest stand in a heap, the one whose best flip gains the most first (`descent`). A variable
rests for `tenure` flips; the best labelling on the way is kept.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from besag.arrays import Array, IntArray
from besag.infer.map.kernels.descent import Flips, most_states, wait
from besag.infer.map.kernels.scores import Axes, best_other, score_states
from besag.kernels.factors import Factors


def make_tabu() -> Callable[..., float]:
    """Kernel: so many flips; codes become the best labelling on the way. How much it gains over the first one.

    Neither factors nor base have hard zeros; the heap is empty before.
    """

    def tabu(
        factors: Factors, axes: Axes, base: Array, n_flips: int, tenure: int, flips: Flips, codes: IntArray
    ) -> float:
        n = most_states(factors)
        score, zeros = np.empty(n), np.empty(n, np.int64)
        seen, best = np.full(len(codes), -1, np.int64), codes.copy()
        rests, resting = np.zeros(len(codes), np.bool_), np.full(tenure, -1, np.int64)
        for v in range(len(codes)):
            n = score_states(factors, axes, v, base, codes, score, zeros)
            flips.targets[v], flips.reliefs[v], flips.gains[v] = best_other(n, codes[v], score, zeros)
            wait(flips, v, flips.targets[v] >= 0)
        total, kept = 0.0, 0.0
        for step in range(n_flips):
            slot = step % tenure
            if resting[slot] >= 0:
                rests[resting[slot]] = False
                wait(flips, resting[slot], True)
                resting[slot] = -1
            if flips.size[0] == 0:
                continue
            v = flips.heap[0]
            if flips.gains[v] <= 0.0 and total > kept:
                best[:] = codes
                kept = total
            total += flips.gains[v]
            codes[v] = flips.targets[v]
            rests[v] = True
            resting[slot] = v
            for j in range(axes.first[v], axes.first[v + 1] + 1):
                f = axes.owners[axes.entries[j]] if j < axes.first[v + 1] else -1
                start = factors.scope_offsets[f] if f >= 0 else 0
                stop = factors.scope_offsets[f + 1] if f >= 0 else 1
                for e in range(start, stop):
                    u = factors.scope_variables[e] if f >= 0 else v
                    if seen[u] != step:
                        seen[u] = step
                        n = score_states(factors, axes, u, base, codes, score, zeros)
                        flips.targets[u], flips.reliefs[u], flips.gains[u] = best_other(n, codes[u], score, zeros)
                        wait(flips, u, not rests[u] and flips.targets[u] >= 0)
        if total > kept:
            best[:] = codes
            kept = total
        codes[:] = best
        return kept

    return tabu
