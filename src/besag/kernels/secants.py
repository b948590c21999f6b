"""The vectors of L-BFGS, streamed through the cache block by block: all products with a new pair, and a combination.

    rows (2 R, P)    s of R pairs and y of R pairs, in the variables root * theta, in single or double precision
    root (P,)        the square root of the initial metric of L-BFGS; () for none

Kernels work on columns [start, stop), without the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from besag.arrays import AnyArray, Array
from besag.kernels.compile import at

BLOCK = 1024  # columns of all rows that fit into the L2 cache together


def make_add_pair(scaled: int) -> Callable[..., None]:
    """Kernel: write s and y to slot `free`; add to `products` (2 R, 3) those of all rows with s, y and the gradient.

    The products are with s and y as stored, so that rounding changes the pair itself, and nothing else.
    """

    def add_pair(
        free: int,
        theta: Array,
        next_theta: Array,
        slope: Array,
        next_slope: Array,
        gradient: Array,
        root: Array,
        start: int,
        stop: int,
        rows: AnyArray,
        products: Array,
    ) -> None:
        own_s, own_y = rows[free], rows[free + len(rows) // 2]
        s, y, g = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
        for begin in range(start, stop, BLOCK):
            n = min(BLOCK, stop - begin)
            for i in range(n):
                j = at(begin + i)
                scale = root[j] if scaled else 1.0
                own_s[j] = (next_theta[j] - theta[j]) * scale
                own_y[j] = (next_slope[j] - slope[j]) / scale
                g[i] = gradient[j] / scale
            for i in range(n):
                s[i], y[i] = own_s[at(begin + i)], own_y[at(begin + i)]
            for r in range(len(rows)):
                row, with_s, with_y, with_g = rows[r], 0.0, 0.0, 0.0
                for i in range(n):
                    value = row[at(begin + i)]
                    with_s += value * s[i]
                    with_y += value * y[i]
                    with_g += value * g[i]
                products[r, 0] += with_s
                products[r, 1] += with_y
                products[r, 2] += with_g

    return add_pair


def make_combine(scaled: int) -> Callable[..., None]:
    """Kernel: result = (gamma gradient / root + sum over rows of coefficient times row) / root."""

    def combine(
        coefficients: Array,
        gamma: float,
        gradient: Array,
        root: Array,
        rows: AnyArray,
        start: int,
        stop: int,
        result: Array,
    ) -> None:
        for begin in range(start, stop, BLOCK):
            end = min(begin + BLOCK, stop)
            for i in range(begin, end):
                result[at(i)] = gamma * gradient[at(i)] / (root[at(i)] if scaled else 1.0)
            for r in range(len(coefficients)):
                if coefficients[r] != 0.0:
                    row, weight = rows[r], coefficients[r]
                    for i in range(begin, end):
                        result[at(i)] += weight * row[at(i)]
            if scaled:
                for i in range(begin, end):
                    result[at(i)] /= root[at(i)]

    return combine
