"""Steepest descent with exact line search, algorithm 1 of 000, for f = lambda R + L:

    repeat
        d := gradient of f at theta
        eta := argmin over eta' of f(theta - eta' d)
        theta := theta - eta d
        if ||d|| < epsilon, return theta

epsilon is `tolerance`; with 0 it goes on for max_iterations, at the minimum with eta = 0. Row k of the history has eta
as `step`; the ||d|| of its iteration is the grad_norm of the row before, as the column holds the norm at the theta of
its own row.
"""

from __future__ import annotations

from dataclasses import dataclass

from besag.arrays import norm
from besag.learn.history import Iteration
from besag.learn.objective import Function
from besag.learn.optimisers.base import OPTIMIZERS, Descending, Method, Point, refuse_bounds, refuse_l1
from besag.learn.optimisers.line_search import Trial, exact, ray_of


@dataclass(frozen=True, slots=True)
class SteepestDescent(Descending):
    """Algorithm 1 of 000. line_tolerance: on |phi'(eta)| / |phi'(0)|, phi the function along the line."""

    max_iterations: int = 1000
    tolerance: float = 1e-5
    line_tolerance: float = 1e-6

    def __post_init__(self) -> None:
        OPTIMIZERS.check_counts(self, "max_iterations")
        OPTIMIZERS.check_numbers(self, "tolerance")
        OPTIMIZERS.check_positive(self, "line_tolerance")

    def at_work(self, function: Function, n_parameters: int) -> Method:
        refuse_l1(self, function)
        refuse_bounds(self, function)
        return _ExactSteps(self, function)


class _ExactSteps(Method):
    optimizer: SteepestDescent

    def __init__(self, optimizer: SteepestDescent, function: Function) -> None:
        Method.__init__(self, optimizer, function)
        self.ends_where_stuck = optimizer.tolerance > 0

    def step(self, point: Point) -> Point:
        if point.kept.get("at_rest"):
            return point._replace(iteration=point.iteration + 1)
        gradient = point.kept["gradient"]
        start = Trial(0.0, point.value, -(point.grad_norm**2), point.theta, gradient)
        at = ray_of(self.function, point.theta, -gradient)
        first = point.step if point.step > 0 else 1.0 / max(point.grad_norm, 1e-300)
        found = exact(at, start, first, self.optimizer.line_tolerance)
        at_rest = found.step == 0 and point.step == 0  # no line search from here finds anything
        kept = {"gradient": found.gradient, "direction_norm": point.grad_norm, "at_rest": int(at_rest)}
        return Point(point.iteration + 1, found.theta, found.value, norm(found.gradient), found.step, kept)

    def is_converged(self, point: Point, rows: list[Iteration]) -> bool:
        return point.iteration > 0 and point.kept["direction_norm"] < self.optimizer.tolerance
