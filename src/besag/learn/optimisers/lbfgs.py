"""L-BFGS and, with l1 > 0, OWL-QN (Andrew and Gao 2007).

The direction is -H g, where H is made of the last `memory` pairs s = change of theta, y = change of the gradient, and
of an initial metric gamma D^-1: D = 1, or the function's own `diagonal(theta)`, (P,) and positive, taken at the start.
In the variables D^1/2 theta the metric is gamma alone; pairs are stored in those. The two loops of Nocedal run on dot
products: with S g, Y g, S Y' and Y Y' at hand, they give the coefficients of

    H g = gamma g + sum_i a_i s_i + sum_i b_i y_i

so that an iteration reads the pairs twice: once for the products with the new s, y and g, once for this sum. Many
parameters have their pairs in single precision: H is then made of those, exactly, and g stays as it is.

With l1 > 0, g is the pseudo-gradient; a direction may not leave it, theta not the orthant in which it began the step:
what would change its sign becomes zero. y stays the change of the smooth part's gradient.

With bounds g is the projected gradient, steps go along the arc of projections onto the box, and a parameter within NEAR
of a bound that its slope leads to goes right there (two metrics, Bertsekas 1982). Where theta stays at a bound, y is
taken as zero: pairs speak of the free parameters, among which H becomes that of L-BFGS without bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from besag.arrays import AnyArray, Array, IntArray, dot, freeze, norm
from besag.errors import CapabilityError
from besag.kernels.compile import kernel_of, worth_compiling
from besag.kernels.secants import make_add_pair, make_combine
from besag.kernels.threads import run_chunks
from besag.learn.box import Box
from besag.learn.checkpoint import Kept
from besag.learn.history import Iteration
from besag.learn.objective import Function
from besag.learn.optimisers.base import OPTIMIZERS, Descending, Method, Point, pseudo_gradient
from besag.learn.optimisers.line_search import Ray, Trial, backtrack, ray_of, wolfe

METRICS = ("diagonal", "identity")
FLAT = {np.float64: 1e-12, np.float32: 1e-6}  # s'y / (||s|| ||y||) below which a pair says nothing of the curvature
SINGLE_FROM = 1 << 16  # parameters, from which pairs are in single precision: half the memory is half the time
PATIENCE = 5  # iterations without the least value or gradient so far, after which rounding is all that is left
NEAR = 1e-3  # of a bound; the norm of the projected gradient where that is less
CHUNK = 1 << 15  # columns of the pairs that one thread takes on


@dataclass(frozen=True, slots=True)
class LBFGS(Descending):
    """L-BFGS; OWL-QN with l1.

    memory: pairs kept. metric: "diagonal", where the function knows the diagonal of its Hessian, or "identity".
    relative_decrease: converged also where the last `period` iterations made the value smaller by less than this part
    of it, as CRFsuite stops; 0 for never.
    """

    memory: int = 10
    metric: str = "diagonal"
    max_iterations: int = 1000
    tolerance: float = 1e-5
    relative_decrease: float = 0.0
    period: int = 10

    def __post_init__(self) -> None:
        OPTIMIZERS.check_counts(self, "memory", "max_iterations", "period")
        OPTIMIZERS.check_numbers(self, "tolerance", "relative_decrease")
        OPTIMIZERS.check_choice(self, "metric", METRICS)

    def at_work(self, function: Function, n_parameters: int) -> Method:
        return _QuasiNewton(self, function, n_parameters)


class _Curvature:
    """The last pairs, in rows of one array: s, then y.

    There is room for one pair more than H is made of, so that a Point and the one after it can both be used. What a
    Point keeps of them: slots, the rows of its pairs, oldest first; dots, (2 R, 2 R), products of rows; projections,
    (2 R,), of rows with the gradient.
    """

    def __init__(self, memory: int, n_parameters: int, n_threads: int | None) -> None:
        self.memory, self.n_rows, self.n_threads = memory, memory + 1, n_threads
        self.n_chunks = math.ceil(n_parameters / CHUNK)
        self.precision: type[np.float32 | np.float64] = np.float32 if n_parameters >= SINGLE_FROM else np.float64
        self.rows: AnyArray = np.zeros((2 * self.n_rows, n_parameters), self.precision)
        self.root: Array | None = None  # of the diagonal D

    def nothing(self) -> dict[str, Kept]:
        """Without pairs."""
        size = 2 * self.n_rows
        return {"slots": np.zeros(0, np.int64), "dots": np.zeros((size, size)), "projections": np.zeros(size)}

    def direction(self, kept: Mapping[str, Any], gradient: Array) -> Array:
        """-H g, where kept has the projections of g."""
        gamma, coefficients = _two_loops(kept["slots"], kept["dots"], kept["projections"])
        result, root = np.empty_like(gradient), self._root()
        given = (freeze(-coefficients), -gamma, freeze(gradient), root, freeze(self.rows))
        combine = self._kernel(make_combine)
        self._in_chunks(lambda chunk, start, stop: combine(*given, start, stop, result))
        return result

    def added(
        self, kept: Mapping[str, Any], ends: tuple[Array, Array], slopes: tuple[Array, Array], gradient: Array
    ) -> dict[str, Kept]:
        """With one pair more, from theta and the smooth gradient before and after; gradient: (pseudo-), after."""
        slots, dots = kept["slots"], kept["dots"].copy()
        free = next(row for row in range(self.n_rows) if row not in slots)
        parts = np.zeros((self.n_chunks, len(self.rows), 3))
        given = (free, *(freeze(vector) for vector in (*ends, *slopes, gradient)), self._root())
        add_pair = self._kernel(make_add_pair)
        self._in_chunks(lambda chunk, start, stop: add_pair(*given, start, stop, self.rows, parts[chunk]))
        products = parts.sum(axis=0)  # (2 R, 3): every row with s, y and g
        for column, place in enumerate((free, free + self.n_rows)):
            dots[place, :] = dots[:, place] = products[:, column]
        sy = products[free, 1]
        if sy > FLAT[self.precision] * np.sqrt(products[free, 0] * products[free + self.n_rows, 1]):
            slots = np.append(slots, free)[-self.memory :]
        return {"slots": slots, "dots": dots, "projections": products[:, 2].copy()}

    def _root(self) -> Array:
        return freeze(np.zeros(0) if self.root is None else self.root)

    def _kernel(self, make_kernel: Callable[..., Callable[..., None]]) -> Callable[..., None]:
        return kernel_of(make_kernel, int(self.root is not None), compile=worth_compiling(float(self.rows.size)))

    def _in_chunks(self, work: Callable[[int, int, int], None]) -> None:
        n_columns = self.rows.shape[1]
        run_chunks(lambda c: work(c, c * CHUNK, min((c + 1) * CHUNK, n_columns)), self.n_chunks, self.n_threads)

    def packed(self, kept: Mapping[str, Any]) -> dict[str, Kept]:
        """For a checkpoint: all rows as they are, since a copy would be as large as all else together."""
        return {"rows": self.rows} if self.root is None else {"rows": self.rows, "root": self.root}

    def unpack(self, kept: Mapping[str, Any]) -> None:
        """The pairs of a checkpoint, in the rows where they were: sums in another order would round otherwise."""
        if len(kept["projections"]) != 2 * self.n_rows:
            had = len(kept["projections"]) // 2 - 1
            raise CapabilityError(f"resume is of lbfgs with memory={had}, got memory={self.memory}")
        self.rows[:] = kept["rows"]
        self.root = kept.get("root")


def _two_loops(slots: IntArray, dots: Array, projections: Array) -> tuple[float, Array]:
    """gamma, and (2 R,) the coefficient of each row in H g."""
    coefficients, count = np.zeros(len(dots)), len(slots)
    if not count:
        return 1.0, coefficients
    of_y = slots + len(dots) // 2
    sy, yy = dots[np.ix_(slots, of_y)], dots[np.ix_(of_y, of_y)]
    alpha, change = np.zeros(count), np.zeros(count)
    for i in reversed(range(count)):
        alpha[i] = (projections[slots[i]] - sy[i, i + 1 :] @ alpha[i + 1 :]) / sy[i, i]
    gamma = float(sy[-1, -1] / yy[-1, -1])
    after = gamma * (projections[of_y] - yy @ alpha)
    for i in range(count):
        change[i] = alpha[i] - (after[i] + sy[:i, i] @ change[:i]) / sy[i, i]
    coefficients[slots], coefficients[of_y] = change, -gamma * alpha
    return gamma, coefficients


class _QuasiNewton(Method):
    optimizer: LBFGS

    def __init__(self, optimizer: LBFGS, function: Function, n_parameters: int) -> None:
        Method.__init__(self, optimizer, function)
        self.pairs = _Curvature(optimizer.memory, n_parameters, getattr(function, "n_threads", None))

    def begin(self, theta: Array) -> Point:
        value, gradient = self.function.value_and_grad(theta)
        diagonal: Callable[[Array], Array] | None = getattr(self.function, "diagonal", None)
        if self.optimizer.metric == "diagonal" and diagonal is not None:
            self.pairs.root = np.sqrt(diagonal(theta))
        grad_norm = norm(pseudo_gradient(self.function, theta, gradient))
        value += self.function.penalty.absolute(theta)
        kept = {"gradient": gradient, "least": np.array((value, grad_norm)), "idle": 0, **self.pairs.nothing()}
        return Point(0, theta, value, grad_norm, 0.0, kept)

    def step(self, point: Point) -> Point:
        gradient: Array = point.kept["gradient"]
        slope: Array | None = point.kept.get("slope")
        if slope is None:  # after a checkpoint
            slope = pseudo_gradient(self.function, point.theta, gradient)
        found, kept = self._searched(point, slope), point.kept
        if found.step == 0 and len(point.kept["slots"]):
            kept = {**point.kept, **self.pairs.nothing()}
            found = self._searched(point._replace(kept=kept), slope)
        after = pseudo_gradient(self.function, found.theta, found.gradient)
        grad_norm = norm(after)
        least = np.minimum(point.kept["least"], (found.value, grad_norm))
        idle = 0 if (least < point.kept["least"]).any() else point.kept["idle"] + 1
        if found.step == 0 or idle > PATIENCE:
            return point._replace(iteration=point.iteration + 1, step=0.0)
        slopes = self._of_the_free(point.theta, found.theta, (gradient, found.gradient))
        more = self.pairs.added(kept, (point.theta, found.theta), slopes, after)
        kept = {"gradient": found.gradient, "slope": after, "least": least, "idle": idle, **more}
        return Point(point.iteration + 1, found.theta, found.value, grad_norm, found.step, kept)

    def _searched(self, point: Point, slope: Array) -> Trial:
        """Where the line search ends; at step 0 where there is no progress."""
        direction = self.pairs.direction(point.kept, slope)
        first = 1.0 if len(point.kept["slots"]) else 1.0 / max(norm(direction), 1e-300)
        if not self.function.penalty.is_smooth or self.function.penalty.box is not None:
            return self._searched_on_arc(point, slope, direction, first)
        start = Trial(0.0, point.value, dot(slope, direction), point.theta, slope)
        if not start.slope < 0:
            return start
        return wolfe(ray_of(self.function, point.theta, direction), start, first)

    def _searched_on_arc(self, point: Point, slope: Array, direction: Array, first: float) -> Trial:
        """The line search of l1, within an orthant, and of bounds, within the box."""
        penalty, orthant = self.function.penalty, None
        if not penalty.is_smooth:
            direction[direction * slope >= 0] = 0.0
            orthant = np.sign(point.theta)
            np.copyto(orthant, -np.sign(slope), where=orthant == 0)
        if penalty.box is not None:
            direction = self._steered(penalty.box, point, slope, direction)
        start = Trial(0.0, point.value, dot(slope, direction), point.theta, point.kept["gradient"])
        if not start.slope < 0:
            return start

        def expected(trial: Trial) -> float:
            change = dot(slope, trial.theta - point.theta)
            return change if change < 0 else -math.inf  # projected until nothing was left to gain

        return backtrack(_arc_of(self.function, point.theta, direction, orthant), start, first, expected)

    def _steered(self, box: Box, point: Point, slope: Array, direction: Array) -> Array:
        """A direction down the slope, in which parameters near a bound that is ahead go there."""
        near = box.blocks(point.theta, slope, min(NEAR, point.grad_norm))
        held = near | ((slope == 0) & ((point.theta == box.low) | (point.theta == box.high)))
        to_bound = np.where(near, box.ahead(slope) - point.theta, 0.0)
        steered = np.where(held, to_bound, direction)
        return steered if dot(slope, steered) < 0 else np.where(held, to_bound, -slope)

    def _of_the_free(self, before: Array, after: Array, slopes: tuple[Array, Array]) -> tuple[Array, Array]:
        """The gradients before and after, zero where theta has stayed at a bound."""
        box = self.function.penalty.box
        if box is None:
            return slopes
        stayed = (before == after) & ((after == box.low) | (after == box.high))
        return np.where(stayed, 0.0, slopes[0]), np.where(stayed, 0.0, slopes[1])

    def is_converged(self, point: Point, rows: list[Iteration]) -> bool:
        if Method.is_converged(self, point, rows):
            return True
        if not self.optimizer.relative_decrease or point.iteration < self.optimizer.period:
            return False
        before = rows[point.iteration - self.optimizer.period].value
        return before - point.value < self.optimizer.relative_decrease * abs(point.value)

    def packed(self, point: Point) -> dict[str, Kept]:
        kept = {name: value for name, value in point.kept.items() if name != "slope"}
        return {**kept, **self.pairs.packed(kept)}

    def unpacked(self, kept: Mapping[str, Kept]) -> Mapping[str, Kept]:
        self.pairs.unpack(kept)
        return {name: value for name, value in kept.items() if name not in ("rows", "root")}


def _arc_of(function: Function, theta: Array, direction: Array, orthant: Array | None) -> Ray:
    """The function with l1 along a direction, projected onto an orthant and the box; slopes are not needed there."""
    box = function.penalty.box

    def at(step: float) -> Trial:
        with np.errstate(over="ignore", invalid="ignore"):
            there = theta + step * direction
            if orthant is not None:
                there[there * orthant < 0] = 0.0
            there = there if box is None else box.clip(there)
            value, gradient = function.value_and_grad(there)
            return Trial(step, value + function.penalty.absolute(there), 0.0, there, gradient)

    return at
