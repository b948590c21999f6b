"""Regularisers of the user's own: R of 002 (1) as a function that gives value and gradient.

    R(theta), dR / dtheta (P,)      from one call, theta (P,) read-only; strength lambda and all else are its own affair

A value of +inf or nan counts as too far, so that barriers do. Products with the Hessian of R are differences of its
gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from besag.arrays import Array, freeze
from besag.errors import ModelError
from besag.learn.optimisers.hessian import hessian_product

ValueAndGradient: TypeAlias = Callable[[Array], tuple[float, Array]]


@dataclass(frozen=True, slots=True)
class Regulariser:
    """A function of theta that is looked at whenever it is called."""

    function: ValueAndGradient

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ModelError(
                f"regulariser must be a function of theta that gives value and gradient, got {self.function!r}"
            )

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """R and its gradient; +inf where R is no number."""
        value, gradient = self._parts(self.function(freeze(theta)))
        if gradient.shape != theta.shape:
            raise ModelError(f"the gradient of the regulariser must have shape {theta.shape}, got {gradient.shape}")
        if math.isnan(value) or value == math.inf:
            return math.inf, np.zeros_like(theta)
        if not (math.isfinite(value) and np.isfinite(gradient).all()):
            raise ModelError(f"the regulariser must have finite gradients where it is finite; its value was {value}")
        return value, gradient

    @staticmethod
    def _parts(found: Any) -> tuple[float, Array]:
        try:
            value, gradient = found
            return float(value), np.asarray(gradient, np.float64)
        except (TypeError, ValueError):
            raise ModelError(f"the regulariser must give a pair (value, gradient), got {found!r}") from None

    def hessian_vector(self, theta: Array) -> Callable[[Array], Array]:
        """Products with the Hessian of R at theta."""
        return hessian_product(lambda point: self(point)[1], theta, lambda vector: float(np.abs(vector).max(initial=0)))
