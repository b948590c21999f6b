"""Line searches: how far to go along a ray, phi(t) = f(theta + t direction), where phi'(0) < 0.

    exact      the t at which phi'(t) = 0, to |phi'(t)| <= tolerance |phi'(0)|, over all real t: a ray that rises is
               walked the other way. Doubling brackets it, then regula falsi (Illinois) with bisection
    wolfe      phi(t) <= phi(0) + DECREASE t phi'(0) and |phi'(t)| <= CURVATURE |phi'(0)|: algorithms 3.5 and 3.6 of
               Nocedal and Wright as one loop, with cubic interpolation
    backtrack  the first of t, t/2, t/4, ... that decreases enough

Values closer than ROUNDING times their size are taken for equal: near the minimum slopes still tell what values no
longer can. What is not finite counts as too far. A Trial carries theta and the gradient, so that nothing is evaluated
again at the point that is chosen. A search that fails returns the trial at t = 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from besag.arrays import Array, dot, norm
from besag.learn.objective import Function

DECREASE = 1e-4
CURVATURE = 0.9
ROUNDING = 1e-13
WOLFE_TRIALS = 30
HALVINGS = 50
EXACT_TRIALS = 200
FARTHEST = 2.0**100  # beyond which a ray is taken to fall for ever


class Trial(NamedTuple):
    """phi(step), phi'(step), and where that is: theta and gradient, (P,)."""

    step: float
    value: float
    slope: float
    theta: Array
    gradient: Array

    @property
    def is_finite(self) -> bool:
        """Whether it can be used."""
        return math.isfinite(self.value) and math.isfinite(self.slope)


Ray: TypeAlias = Callable[[float], Trial]


def ray_of(function: Function, theta: Array, direction: Array) -> Ray:
    """The function along a direction."""

    def at(step: float) -> Trial:
        with np.errstate(over="ignore", invalid="ignore"):
            there = theta + (direction if step == 1.0 else step * direction)
            value, gradient = function.value_and_grad(there)
            return Trial(step, value, dot(gradient, direction), there, gradient)

    return at


def is_progress(trial: Trial, start: Trial) -> bool:
    """Whether a trial has a smaller value than the start or, where rounding hides that, a smaller gradient."""
    if trial.step == 0 or not trial.is_finite:
        return False
    return trial.value < start.value or norm(trial.gradient) < norm(start.gradient)


def is_no_larger(value: float, other: float) -> bool:
    """Whether a value is at most the other, but for rounding."""
    return value <= other + _slack(other)


def _slack(value: float) -> float:
    return ROUNDING * abs(value)


def exact(at: Ray, start: Trial, first: float, tolerance: float) -> Trial:
    """The minimum of a convex phi; a local one else. first: the |t| to try first."""
    if start.slope == 0:
        return start
    side = 1.0 if start.slope < 0 else -1.0
    goal, ceiling = tolerance * abs(start.slope), start.value + _slack(start.value)

    def is_beyond(trial: Trial) -> bool:
        return not trial.is_finite or side * trial.slope >= 0 or trial.value > ceiling

    def is_minimum(trial: Trial) -> bool:
        return trial.is_finite and abs(trial.slope) <= goal and trial.value <= ceiling

    near, far = start, at(side * first)
    while not (is_beyond(far) or is_minimum(far) or abs(far.step) > FARTHEST):
        near, far = far, at(2.0 * far.step)
    found = _root(at, near, far, is_beyond, is_minimum) if is_beyond(far) else far
    return found if is_minimum(found) or found.value < start.value else start


def _root(
    at: Ray, near: Trial, far: Trial, is_beyond: Callable[[Trial], bool], is_minimum: Callable[[Trial], bool]
) -> Trial:
    """Where the slope changes its sign, between a near point that falls and a far one that is beyond."""
    trial, near_slope, far_slope, was_beyond = far, near.slope, far.slope, True
    for number in range(EXACT_TRIALS):
        if is_minimum(trial):
            return trial
        step = _between(near, near_slope, far, far_slope, halve=number % 4 == 3)
        if step in (near.step, far.step):
            break
        trial, last = at(step), was_beyond
        was_beyond = is_beyond(trial)
        if was_beyond:
            far, far_slope, near_slope = trial, trial.slope, near_slope * (0.5 if last else 1.0)
        else:
            near, near_slope, far_slope = trial, trial.slope, far_slope * (1.0 if last else 0.5)
    return near


def _between(near: Trial, near_slope: float, far: Trial, far_slope: float, *, halve: bool) -> float:
    """The root of the line through two slopes; the middle where there is none, and now and then to be safe."""
    if halve or not far.is_finite or near_slope * far_slope >= 0:
        return 0.5 * (near.step + far.step)
    return near.step + (far.step - near.step) * near_slope / (near_slope - far_slope)


def wolfe(at: Ray, start: Trial, first: float) -> Trial:
    """A step that satisfies the strong Wolfe conditions."""
    before, low, high = start, start, None
    step, slack = first, _slack(start.value)
    for _ in range(WOLFE_TRIALS):
        trial = at(step)
        limit = start.value + DECREASE * step * start.slope + slack
        if not trial.is_finite or trial.value > limit or (low is not start and trial.value > low.value + slack):
            high = trial
        elif abs(trial.slope) <= CURVATURE * abs(start.slope):
            return trial
        else:
            if trial.slope * ((math.inf if high is None else high.step) - low.step) >= 0:
                high = low
            before, low = low, trial
        step = _beyond(before, low) if high is None else _inside(low, high)
        if step == low.step or (high is not None and step == high.step):
            break
    return low if low.value < start.value else start


def _beyond(one: Trial, two: Trial) -> float:
    """From 2 to 10 times as far as the second point, where the cubic through both has its minimum."""
    found = _cubic(one, two)
    return min(max(found, 2.0 * two.step), 10.0 * two.step) if found > two.step else 10.0 * two.step


def _inside(low: Trial, high: Trial) -> float:
    """Between two points, a tenth away from either at least."""
    width = high.step - low.step
    found = (_cubic(low, high) - low.step) / width if high.is_finite else math.nan
    return low.step + width * (min(max(found, 0.1), 0.9) if math.isfinite(found) else 0.5)


def _cubic(one: Trial, two: Trial) -> float:
    """The minimum of the cubic with these values and slopes, Nocedal and Wright (3.59); nan where there is none."""
    width = two.step - one.step
    bend = one.slope + two.slope - 3.0 * (two.value - one.value) / width
    under = bend * bend - one.slope * two.slope
    if not under >= 0:
        return math.nan
    root = math.copysign(math.sqrt(under), width)
    below = two.slope - one.slope + 2.0 * root
    return two.step - width * (two.slope + root - bend) / below if below != 0 else math.nan


def backtrack(at: Ray, start: Trial, first: float, expected: Callable[[Trial], float]) -> Trial:
    """The first trial of halved steps that gains DECREASE times what was expected, a number below 0, of it."""
    step, slack = first, _slack(start.value)
    for _ in range(HALVINGS):
        trial = at(step)
        if trial.is_finite and trial.value <= start.value + DECREASE * expected(trial) + slack:
            return trial
        step *= 0.5
    return start
