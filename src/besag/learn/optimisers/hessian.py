"""Products with a Hessian by central differences of the gradient: two gradients for each product.

    H v = (g(theta + h v) - g(theta - h v)) / 2h + O(h^2)

right to about 1e-8 of its size where g is exact. What curves is log Z as a function of log-potentials, on a scale of
one: with `reach` the largest change of a log-potential that a vector makes, h reach(v) = STEP, and more where
log-potentials are large and rounded accordingly. So inputs of any size do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from besag.arrays import Array
from besag.errors import ModelError

if TYPE_CHECKING:
    from besag.learn.objective import Product

STEP = 6e-6  # cube root of the rounding error: where both errors together are least


def hessian_product(gradient: Product, theta: Array, reach: Callable[[Array], float]) -> Product:
    """v -> H v at theta, for a function with this gradient."""
    scale = STEP * max(1.0, float(np.cbrt(reach(theta))))

    def product(vector: Array) -> Array:
        if np.shape(vector) != theta.shape:
            raise ModelError(f"the vector must have shape {theta.shape}, as theta has, got {np.shape(vector)}")
        size = reach(vector)
        if size == 0:
            return np.zeros_like(theta)
        step = scale / size
        return (gradient(theta + step * vector) - gradient(theta - step * vector)) / (2 * step)

    return product
