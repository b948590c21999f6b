"""Gradient descent with a constant step tau, 004: theta := theta - tau gradient of f at theta.

Below 2 over the largest curvature of f each step makes f smaller; with a larger tau values may rise. Where no tau is
given, it is 1 over the largest curvature at the start, by power iterations on the Hessian. No step is refused: the
theta of the smallest value is returned, the last one where values differ by rounding only, and where it is not the last
one, the last row of the history goes back to it. Where the value is no number any more, it ends. With bounds theta is
projected onto them after each step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from besag.arrays import Array, norm
from besag.learn.objective import Function
from besag.learn.optimisers.base import OPTIMIZERS, Descending, Method, Point, pseudo_gradient, refuse_l1
from besag.learn.optimisers.line_search import is_no_larger

POWERS = 20


@dataclass(frozen=True, slots=True)
class GradientDescent(Descending):
    """Constant steps. step: tau, which scales the gradient of the sum over all instances; None: see the module."""

    step: float | None = None
    max_iterations: int = 1000
    tolerance: float = 1e-5

    def __post_init__(self) -> None:
        OPTIMIZERS.check_counts(self, "max_iterations")
        OPTIMIZERS.check_numbers(self, "tolerance")
        OPTIMIZERS.check_positive(self, "step")

    def at_work(self, function: Function, n_parameters: int) -> Method:
        refuse_l1(self, function)
        return _ConstantSteps(self, function)


class _ConstantSteps(Method):
    optimizer: GradientDescent

    def begin(self, theta: Array) -> Point:
        point = Method.begin(self, theta)
        best = {"best_theta": theta, "best_value": point.value, "best_norm": point.grad_norm}
        tau = self.optimizer.step or 1.0 / self._largest_curvature(theta, point.kept["gradient"])
        return point._replace(kept={**point.kept, **best, "tau": tau})

    def _largest_curvature(self, theta: Array, gradient: Array) -> float:
        product, vector, size = self.function.hessian_vector(theta), gradient, norm(gradient)
        for _ in range(POWERS):
            if not 0.0 < size < math.inf:
                return 1.0  # flat, or no number: nothing to go by
            vector = product(vector / size)
            size = norm(vector)
        return size

    def step(self, point: Point) -> Point:
        kept = dict(point.kept)
        with np.errstate(over="ignore", invalid="ignore"):
            theta = self._projected(point.theta - kept["tau"] * kept["gradient"])
            value, gradient = self.function.value_and_grad(theta)
        if not math.isfinite(value):
            return point._replace(iteration=point.iteration + 1, step=0.0)
        kept["gradient"], grad_norm = gradient, norm(pseudo_gradient(self.function, theta, gradient))
        if is_no_larger(value, kept["best_value"]):
            best_value = min(value, kept["best_value"])
            kept.update(best_theta=theta, best_value=best_value, best_norm=grad_norm)
        return Point(point.iteration + 1, theta, value, grad_norm, kept["tau"], kept)

    def _projected(self, theta: Array) -> Array:
        box = self.function.penalty.box
        return theta if box is None else box.clip(theta)

    def answer(self, point: Point) -> Array:
        best: Array = point.kept["best_theta"]
        return best

    def elsewhere(self, point: Point) -> tuple[float, float] | None:
        if np.array_equal(point.kept["best_theta"], point.theta):
            return None
        return point.kept["best_value"], point.kept["best_norm"]
