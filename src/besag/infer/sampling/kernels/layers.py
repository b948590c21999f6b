"""A draw of one layer of binary variables, whose log-odds are a matrix product plus a field.

    p(y_v = 1 | the other layer) = 1 / (1 + exp(-f_v)),    f = field + product

Products stand in x (U, n), U = R rows x C chains, and become states; field (R, n). Numbers are float64 here, whatever
the product was made in, as those of the other samplers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from besag.arrays import AnyArray, Array
from besag.infer.sampling.kernels.binary import BLOCK, chances, uniforms
from besag.kernels.random import stream


def make_draw_layer() -> Callable[..., None]:
    """Kernel: units [first, last); sums (U, V) of the layer from column `start` on, where `keep`."""

    def draw_layer(
        field: Array,
        n_chains: int,
        key: int,
        start: int,
        first: int,
        last: int,
        keep: bool,
        x: AnyArray,
        sums: Array,
        scores: Array,
    ) -> None:
        odds, u, p = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
        for unit in range(first, last):
            own, fields, totals, seed, score = x[unit], field[unit // n_chains], sums[unit], stream(key, unit, 0), 0.0
            for begin in range(0, len(own), BLOCK):
                n = min(BLOCK, len(own) - begin)
                for i in range(n):
                    odds[i] = fields[begin + i] + own[begin + i]
                uniforms(1, n, seed, start + begin, u)
                chances(n, odds, p)
                for i in range(n):
                    one = u[i] < p[i]
                    own[begin + i] = one
                    score += odds[i] * one
                if keep:
                    for i in range(n):
                        totals[start + begin + i] += p[i]
            scores[unit] += score

    return draw_layer
