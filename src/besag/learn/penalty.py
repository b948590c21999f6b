"""Penalties: what an objective adds for theta alone.

    sum_j l2_j theta_j^2 + sum_j l1_j |theta_j| + R(theta),      +inf outside of low <= theta <= high

l2 is lambda of 002 (1) with R of 002 (17): a Gaussian prior of variance 1 / (2 l2), 002 (18); CRFsuite's c2. l1 is
CRFsuite's c1; both together are the elastic net. Each is one number, or one for each template by name: the penalty of a
template that is not named is 0. R is a regulariser of the user's own, the box of bounds his too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from besag.arrays import Array, Rebuilt, dot, secure
from besag.errors import ModelError
from besag.learn.box import Box, Ends, box_of
from besag.learn.regulariser import Regulariser, ValueAndGradient
from besag.model.layout import Layout

Strength: TypeAlias = float | Mapping[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class Penalty(Rebuilt):
    """l1 and l2, (P,) each, or (1,) where they are the same for all parameters; R and the box, or None."""

    l1: Array
    l2: Array
    regulariser: Regulariser | None = None
    box: Box | None = None

    def __post_init__(self) -> None:
        for name in ("l1", "l2"):
            values = secure(np.atleast_1d(np.asarray(getattr(self, name), np.float64)))
            object.__setattr__(self, name, values)

    @property
    def is_smooth(self) -> bool:
        """Whether l1 is 0."""
        return not self.l1.any()

    def absolute(self, theta: Array) -> float:
        """The part of l1."""
        return 0.0 if self.is_smooth else float((self.l1 * np.abs(theta)).sum())

    def smooth(self, theta: Array) -> tuple[float, Array]:
        """The parts of l2 and R, and their gradient."""
        gradient = (2.0 * self.l2) * theta
        value = 0.5 * dot(gradient, theta)
        if self.regulariser is None:
            return value, gradient
        more, slope = self.regulariser(theta)
        return value + more, gradient + slope

    def pseudo_gradient(self, theta: Array, gradient: Array) -> Array:
        """The subgradient of least norm of f + l1 |.| in the box, where `gradient` is that of f.

        It is zero where theta_j = 0 is best, and where only a bound keeps theta_j from going on.
        """
        if not self.is_smooth:
            signs = np.sign(theta)
            least = np.clip(gradient, -self.l1, self.l1)
            np.negative(least, out=least)
            np.copyto(least, self.l1 * signs, where=signs != 0)
            least += gradient
            gradient = least
        return gradient if self.box is None else np.where(self.box.blocks(theta, gradient), 0.0, gradient)

    def hessian_vector(self, theta: Array) -> Callable[[Array], Array]:
        """Products with the Hessian of the same."""
        if self.regulariser is None:
            return lambda vector: 2.0 * self.l2 * vector
        curved = self.regulariser.hessian_vector(theta)
        return lambda vector: 2.0 * self.l2 * vector + curved(vector)


def penalty_of(
    layout: Layout,
    l1: Strength = 0.0,
    l2: Strength = 0.0,
    regulariser: ValueAndGradient | None = None,
    bounds: Ends | None = None,
) -> Penalty:
    """The penalty on the parameters of a layout.

    >>> from besag import Template
    >>> penalty = penalty_of(Layout([Template("a", (2,)), Template("b", (3,))]), l2={"b": 0.5})
    >>> penalty.l2
    array([0. , 0. , 0.5, 0.5, 0.5])
    """
    own = None if regulariser is None else Regulariser(regulariser)
    return Penalty(_strengths(layout, "l1", l1), _strengths(layout, "l2", l2), own, box_of(layout, bounds))


def _strengths(layout: Layout, name: str, given: Strength) -> Array:
    if not isinstance(given, Mapping):
        return np.array([_checked(name, given)])
    values = np.zeros(layout.n_parameters)
    for template, strength in given.items():
        values[layout[template]] = _checked(f"{name} of template {template!r}", strength)
    return values


def _checked(name: str, value: object) -> float:
    if isinstance(value, (int, float, np.integer, np.floating)) and 0 <= float(value) < math.inf:
        return float(value)
    raise ModelError(f"{name} must be a finite number from 0 on, got {value!r}")
