"""EM as a Method: an iteration is an M-step and the E-step after it, so that a Point has h and mu of its own theta.

    value = W g - h - log prior = -(log-likelihood + log prior)        g = log Z,  h: sums over instances of log Z(x)
    dual  = h*(mu) - (W g)*(mu), the DC dual of 003, between the values before and after the step from mu

with u = -theta. mu = grad h(u), so that h*(mu) = <mu, u> - h(u); after an exact M-step mu = W grad g(u'), so that
g*(mu) = <mu, u'> - W g(u'). Prior counts belong to h: they add <prior, u>.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from besag.arrays import Array, dot, norm
from besag.errors import CapabilityError, ModelError
from besag.learn.checkpoint import Checkpoint, Kept
from besag.learn.hidden.steps import EStep, MStep, Numbers, Visible
from besag.learn.history import History, Iteration
from besag.learn.optimisers.base import Method, Point
from besag.learn.penalty import Penalty, penalty_of
from besag.registry import is_number, is_whole

COLUMNS = ("log_likelihood", "g", "h", "dual")
PREFIX = "column."  # of what points keep of the history


@dataclass(frozen=True, slots=True)
class EM:
    """When EM ends. tolerance: converged where the last step gained less than this part of the log-likelihood."""

    max_iterations: int = 200
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        if not is_whole(self.max_iterations) or self.max_iterations < 0:
            raise CapabilityError(f"max_iterations must be a whole number from 0 on, got {self.max_iterations!r}")
        if not is_number(self.tolerance) or not 0 <= self.tolerance < math.inf:
            raise CapabilityError(f"tolerance must be a number from 0 on, got {self.tolerance!r}")

    def minimize(self, *_: Any, **__: Any) -> Any:
        """Of optimisers: EM has steps of its own."""
        raise NotImplementedError


class Marginal:
    """What is minimised, as `besag.learn.optimisers.base` wants to know of it."""

    def __init__(self, visible: Visible, has_value: bool) -> None:
        self.penalty: Penalty = penalty_of(visible.model.layout)
        self.n, self.has_value = len(visible.batch), has_value


class Rounds(Method):
    """E-step and M-step in turn. prior (P,): counts, or None."""

    compares_values = False

    def __init__(
        self, options: EM, visible: Visible, steps: tuple[EStep, MStep], start: Numbers, prior: Array | None, seed: int
    ) -> None:
        self.visible, (self.e_step, self.m_step), self.start = visible, steps, start
        self.options, self.prior, self.seed, self.is_exact = options, prior, seed, True
        Method.__init__(self, options, Marginal(visible, has_value=True))  # type: ignore[arg-type]

    def begin(self, theta: Array) -> Point:
        point = self._point(0, Numbers(theta, self.start.support), math.nan, {})
        self.function.has_value = not math.isnan(point.value)
        return point

    def step(self, point: Point) -> Point:
        before = numbers_at(point)
        asked = self._with_prior(point.kept["moments"])
        after = self.m_step.maximise(before, asked, np.random.default_rng([self.seed, point.iteration, 1]))
        if after is None:
            return self._point(point.iteration + 1, before, math.nan, point.kept)._replace(step=0.0)
        h = point.kept["h"] + self._log_prior(before)
        dual = dot(asked, after.theta - before.theta) - h  # <mu, u> - <mu, u'> - h, and W g(u') to come
        return self._point(point.iteration + 1, after, dual, point.kept)

    def _point(self, iteration: int, numbers: Numbers, dual: float, before: Mapping[str, Any]) -> Point:
        rng = np.random.default_rng([self.seed, iteration, 0])
        found = self.e_step.expect(numbers, rng)
        partition, rest = self.m_step.look(numbers, self._with_prior(found.moments), rng)
        self.is_exact &= found.is_exact and self.m_step.is_exact
        h = math.nan if found.value is None else found.value
        g = math.nan if partition is None else partition
        likelihood, weight = h - g, self.visible.weight
        row = dict(zip(COLUMNS, (likelihood, g / weight, h / weight, (dual + g) / weight), strict=True))
        kept: dict[str, Any] = {"moments": found.moments, "h": h}
        if numbers.support is not None:
            kept["support"] = numbers.support.astype(np.uint8)
        for name, value in row.items():
            kept[PREFIX + name] = np.append(before.get(PREFIX + name, np.zeros(0)), value)
        value = -(likelihood + self._log_prior(numbers))
        return Point(iteration, numbers.theta, value, norm(rest), float(iteration > 0), kept)

    def _with_prior(self, moments: Array) -> Array:
        return moments if self.prior is None else moments + self.prior

    def _log_prior(self, numbers: Numbers) -> float:
        """sum of prior counts times log p."""
        return 0.0 if self.prior is None else -dot(self.prior, numbers.theta)

    def is_converged(self, point: Point, rows: list[Iteration]) -> bool:
        if len(rows) < 2 or self.m_step.draws or point.step == 0 or not math.isfinite(point.value):
            return False
        gain = rows[-2].value - point.value
        return abs(gain) <= self.options.tolerance * max(1.0, abs(point.value))

    def check(self, resume: Checkpoint) -> None:
        """ModelError where a checkpoint is of other data, or of another model."""
        kept = self.unpacked(resume.kept)
        if resume.theta.shape != self.start.theta.shape or math.isnan(was := resume.rows[-1].value):
            return
        point = Point(resume.iteration, resume.theta, math.nan, math.nan, 0.0, kept)
        now = self._point(resume.iteration, numbers_at(point), math.nan, {}).value
        if not np.isclose(was, now, rtol=1e-9, atol=1e-9):
            raise ModelError(f"resume is of other data or another model: the value there was {was}, now it is {now}")

    def unpacked(self, kept: Mapping[str, Kept]) -> Mapping[str, Kept]:
        if not {"moments", "h"} <= set(kept):
            raise CapabilityError("resume must be a checkpoint of EM")
        self.function.has_value = not math.isnan(np.asarray(kept[PREFIX + COLUMNS[0]])[-1])
        return kept


def numbers_at(point: Point) -> Numbers:
    """Theta and the hard zeros of a point."""
    support = point.kept.get("support")
    return Numbers(point.theta, None if support is None else np.asarray(support, np.bool_))


def add_columns(history: History, kept: Mapping[str, Any]) -> None:
    """The columns that a point keeps, as those of the history."""
    n = len(history.rows)
    for name in COLUMNS:
        values = np.asarray(kept[PREFIX + name], np.float64)[:n].tolist()
        if not all(math.isnan(value) for value in values):
            history.columns[name] = values + [math.nan] * (n - len(values))
