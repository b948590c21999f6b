"""Line searches on functions of one variable: minima, brackets, walls, falling for ever, and failure."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose

from besag.learn.optimisers.line_search import CURVATURE, DECREASE, Ray, Trial, backtrack, exact, wolfe

Curve = Callable[[float], tuple[float, float]]


def ray(curve: Curve) -> tuple[Ray, list[float]]:
    """A curve as a ray, and the steps at which it was evaluated."""
    steps: list[float] = []

    def at(step: float) -> Trial:
        steps.append(step)
        value, slope = curve(step)
        return Trial(step, value, slope, np.array([step]), np.array([slope]))

    return at, steps


def parabola(t: float) -> tuple[float, float]:
    return (t - 3.0) ** 2, 2.0 * (t - 3.0)


def softplus(t: float) -> tuple[float, float]:
    """log(1 + e^t) - t / 10: nearly straight on both sides of its minimum, -log 9."""
    return math.log1p(math.exp(-abs(t))) + max(t, 0.0) - 0.1 * t, 0.4 + 0.5 * math.tanh(0.5 * t)


def walled(t: float) -> tuple[float, float]:
    """-log(1 - t) - 2 t, which ends at t = 1; the minimum is at 1/2."""
    return (-math.log(1.0 - t) - 2.0 * t, 1.0 / (1.0 - t) - 2.0) if t < 1 else (math.inf, math.nan)


def quartic(t: float) -> tuple[float, float]:
    return (t - 1.0) ** 4, 4.0 * (t - 1.0) ** 3


def moved(curve: Curve, by: float) -> Curve:
    return lambda t: curve(t + by)


@pytest.mark.parametrize("first", [1e-6, 0.1, 1.0, 1e3])
@pytest.mark.parametrize(
    ("curve", "minimum"),
    [
        (parabola, 3.0),
        (moved(parabola, 10.0), -7.0),
        (moved(softplus, 4.0), -4.0 - math.log(9.0)),
        (moved(softplus, -20.0), 20.0 - math.log(9.0)),
        (walled, 0.5),
        (quartic, 1.0),
    ],
)
def test_the_exact_minimum_on_either_side(curve: Curve, minimum: float, first: float) -> None:
    at, steps = ray(curve)
    start = at(0.0)
    found = exact(at, start, first, 1e-9)
    assert abs(found.slope) <= 1e-9 * abs(start.slope)
    assert_allclose(found.step, minimum, rtol=2e-3 if curve is quartic else 1e-7)
    assert len(steps) == len(set(steps)), "no point is evaluated twice"
    assert len(steps) < 70


def test_an_exact_search_is_quick_where_the_guess_is_good() -> None:
    at, steps = ray(parabola)
    assert exact(at, at(0.0), 2.5, 1e-9).step == pytest.approx(3.0)
    assert len(steps) <= 4


def test_a_ray_that_falls_for_ever_ends_far_away() -> None:
    at, _ = ray(lambda t: (-t, -1.0))
    assert exact(at, at(0.0), 1.0, 1e-6).step > 1e20


def test_a_level_start_is_its_own_minimum() -> None:
    at, steps = ray(parabola)
    start = at(3.0)
    assert exact(at, start, 1.0, 1e-6) is start
    assert steps == [3.0]


@pytest.mark.parametrize("first", [1e-4, 0.3, 1.0, 30.0, 1e4])
@pytest.mark.parametrize("curve", [parabola, moved(softplus, -20.0), walled, quartic])
def test_wolfe_conditions_hold(curve: Curve, first: float) -> None:
    at, steps = ray(curve)
    start = at(0.0)
    found = wolfe(at, start, first)
    assert found.value <= start.value + DECREASE * found.step * start.slope
    assert abs(found.slope) <= CURVATURE * abs(start.slope)
    assert len(steps) <= 20


def test_wolfe_takes_a_good_first_step() -> None:
    at, steps = ray(parabola)
    assert wolfe(at, at(0.0), 3.5).step == 3.5
    assert steps == [0.0, 3.5]


def test_wolfe_on_a_curve_with_many_valleys() -> None:
    at, _ = ray(lambda t: (0.1 * (t - 20) ** 2 + math.sin(3 * t), 0.2 * (t - 20) + 3 * math.cos(3 * t)))
    start = at(0.0)
    for first in (0.1, 1.0, 7.0, 50.0):
        found = wolfe(at, start, first)
        assert found.value <= start.value + DECREASE * found.step * start.slope
        assert abs(found.slope) <= CURVATURE * abs(start.slope)


def rising(t: float) -> tuple[float, float]:
    """Says that it falls, and rises."""
    return 1.0 + t, -1.0


def test_searches_that_fail_stay_where_they_are() -> None:
    at, _ = ray(rising)
    start = at(0.0)
    assert wolfe(at, start, 1.0) is start
    assert exact(at, start, 1.0, 1e-6) is start
    at, _ = ray(lambda t: (math.nan, math.nan))
    assert backtrack(at, start, 1.0, lambda trial: -trial.step) is start
    assert wolfe(at, start, 1.0) is start
    assert exact(at, start, 1.0, 1e-6) is start


def test_backtracking_takes_the_first_half_that_decreases_enough() -> None:
    at, steps = ray(parabola)
    start = at(0.0)
    found = backtrack(at, start, 16.0, lambda trial: trial.step * start.slope)
    assert steps == [0.0, 16.0, 8.0, 4.0]
    assert found.step == 4.0
