"""Sweeps of simulated annealing: each variable in turn is drawn at a temperature, given all others.

    p(y_v = k | rest)  proportional to  exp(score(k) / T)        score as in `scores`, with penalties for hard zeros

Random numbers are indexed by (key of the sweep, variable), so that a run is the same in plain Python and compiled.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from besag.arrays import Array, IntArray
from besag.infer.map.kernels.descent import most_states
from besag.infer.map.kernels.scores import Axes, score_states
from besag.kernels.factors import Factors
from besag.kernels.random import pick, stream, uniform


def make_annealing() -> Callable[..., float]:
    """Kernel: a sweep at each of some temperatures, the first of them number `begin` of its run.

    total: -H of codes over that of the best labelling so far, which best becomes where a sweep ends above it; returns
    it as it is after the sweeps. Neither factors nor base have hard zeros.
    """

    def annealing(
        factors: Factors,
        axes: Axes,
        base: Array,
        temperatures: Array,
        key: int,
        begin: int,
        total: float,
        codes: IntArray,
        best: IntArray,
    ) -> float:
        most = most_states(factors)
        score, zeros, weights = np.empty(most), np.empty(most, np.int64), np.empty(most)
        for t in range(len(temperatures)):
            seed = stream(key, 0, begin + t)
            for v in range(len(codes)):
                n = score_states(factors, axes, v, base, codes, score, zeros)
                highest = score[0]
                for k in range(1, n):
                    highest = max(highest, score[k])
                mass = 0.0
                for k in range(n):
                    weights[k] = math.exp((score[k] - highest) / temperatures[t])
                    mass += weights[k]
                drawn = pick(weights, n, uniform(seed, v) * mass)
                total += score[drawn] - score[codes[v]]
                codes[v] = drawn
            if total > 0.0:
                best[:] = codes
                total = 0.0
        return total

    return annealing
