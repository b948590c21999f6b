"""Truncated Newton: directions from conjugate gradients on the Newton equations, H d = -g, with products of H only.

The equations are solved to a residual of eta ||g||, with eta by Eisenstat and Walker's second choice,

    eta_k = 0.9 (||g_k|| / ||g_{k-1}||)^2,    not below 0.9 eta_{k-1}^2 where that is above 0.1,    at most 0.5

so that early steps cost little and late ones converge quadratically. Where H is not positive along a direction, what
was found before is taken, or the gradient. The step begins at 1 and is halved until the value decreases enough.
"""

from __future__ import annotations

from dataclasses import dataclass

from besag.arrays import Array, dot, norm
from besag.learn.objective import Function, Product
from besag.learn.optimisers.base import OPTIMIZERS, Descending, Method, Point, refuse_bounds, refuse_l1
from besag.learn.optimisers.line_search import Trial, backtrack, is_progress, ray_of

LARGEST_FORCING = 0.5


@dataclass(frozen=True, slots=True)
class NewtonCG(Descending):
    """Newton's method by conjugate gradients. max_products: with the Hessian, in one iteration."""

    max_iterations: int = 200
    tolerance: float = 1e-5
    max_products: int = 200

    def __post_init__(self) -> None:
        OPTIMIZERS.check_counts(self, "max_iterations", "max_products")
        OPTIMIZERS.check_numbers(self, "tolerance")

    def at_work(self, function: Function, n_parameters: int) -> Method:
        refuse_l1(self, function)
        refuse_bounds(self, function)
        return _TruncatedNewton(self, function)


class _TruncatedNewton(Method):
    optimizer: NewtonCG

    def begin(self, theta: Array) -> Point:
        point = Method.begin(self, theta)
        return point._replace(kept={**point.kept, "forcing": LARGEST_FORCING})

    def step(self, point: Point) -> Point:
        gradient, forcing = point.kept["gradient"], point.kept["forcing"]
        product = self.function.hessian_vector(point.theta)
        direction = _solved(product, gradient, forcing * point.grad_norm, self.optimizer.max_products)
        start = Trial(0.0, point.value, dot(gradient, direction), point.theta, gradient)
        at = ray_of(self.function, point.theta, direction)
        found = backtrack(at, start, 1.0, lambda trial: trial.step * start.slope)
        found = found if is_progress(found, start) else start
        grad_norm = norm(found.gradient)
        kept = {"gradient": found.gradient, "forcing": _forcing(forcing, point.grad_norm, grad_norm)}
        return Point(point.iteration + 1, found.theta, found.value, grad_norm, found.step, kept)


def _forcing(last: float, before: float, now: float) -> float:
    wanted, held = 0.9 * (now / before) ** 2, 0.9 * last**2
    return min(LARGEST_FORCING, max(wanted, held) if held > 0.1 else wanted)


def _solved(product: Product, gradient: Array, goal: float, max_products: int) -> Array:
    """d with ||H d + g|| <= goal, or as near as max_products bring it."""
    solution, residual = 0.0 * gradient, -gradient
    search, squared = residual.copy(), dot(residual, residual)
    for number in range(max_products):
        curved = product(search)
        curvature = dot(search, curved)
        if not curvature > 0:
            return solution if number else residual
        step = squared / curvature
        solution += step * search
        residual -= step * curved
        before, squared = squared, dot(residual, residual)
        if squared <= goal * goal:
            break
        search *= squared / before
        search += residual
    return solution
