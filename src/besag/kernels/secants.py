"""The vectors of L-BFGS, streamed through the cache block by block: all products with a new pair, and a combination.

    rows (2 R + 1, P)    s of R pairs, y of R pairs, and the gradient, in the variables root * theta
    root (P,)            the square root of the metric that L-BFGS begins with; () for none

Kernels work on columns [start, stop), without the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Callable

from besag.arrays import Array
from besag.kernels.compile import at

BLOCK = 1024  # columns of all rows that are in the second cache together


def make_add_pair(scaled: int) -> Callable[..., None]:
    """s and y of slot `free` and the gradient are written, and `products` (2 R + 1, 3) of all rows with them added."""

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
        rows: Array,
        products: Array,
    ) -> None:
        n_rows = len(rows)
        s, y, g = rows[free], rows[free + n_rows // 2], rows[n_rows - 1]
        for begin in range(start, stop, BLOCK):
            end = min(begin + BLOCK, stop)
            for i in range(begin, end):
                scale = root[at(i)] if scaled else 1.0
                s[at(i)] = (next_theta[at(i)] - theta[at(i)]) * scale
                y[at(i)] = (next_slope[at(i)] - slope[at(i)]) / scale
                g[at(i)] = gradient[at(i)] / scale
            for r in range(n_rows):
                row, with_s, with_y, with_g = rows[r], 0.0, 0.0, 0.0
                for i in range(begin, end):
                    with_s += row[at(i)] * s[at(i)]
                    with_y += row[at(i)] * y[at(i)]
                    with_g += row[at(i)] * g[at(i)]
                products[r, 0] += with_s
                products[r, 1] += with_y
                products[r, 2] += with_g

    return add_pair


def make_combine(scaled: int) -> Callable[..., None]:
    """result = (gamma gradient / root + sum over rows of coefficient times row) / root; the last row is left out."""

    def combine(
        coefficients: Array,
        gamma: float,
        gradient: Array,
        root: Array,
        rows: Array,
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
