"""Products with a Hessian by central differences of the gradient: two gradients for each product.

H v = (g(theta + h v) - g(theta - h v)) / 2h + O(h^2),    right to about 1e-9 of its size where g is exact
"""

from __future__ import annotations

import numpy as np

from besag.arrays import Array, norm
from besag.learn.objective import Product

STEP = 6e-6  # cube root of the rounding error: where both errors together are least


def hessian_product(gradient: Product, theta: Array) -> Product:
    """v -> H v at theta, for a function with this gradient."""
    scale = STEP * max(1.0, norm(theta))

    def product(vector: Array) -> Array:
        size = norm(vector)
        if size == 0:
            return np.zeros_like(vector)
        step = scale / size
        return (gradient(theta + step * vector) - gradient(theta - step * vector)) / (2 * step)

    return product
