"""Mini-batches with an anchor: stochastic gradients whose error goes to zero (Johnson and Zhang 2013).

    g = g_B(theta) - g_B(anchor) + G(anchor)          theta := theta - eta g / N          eta = 1 / (2 L)

The anchor is theta at the start of an epoch, where the gradient G of all data is known, because epochs end with their
evaluation; g_B is its estimate from a batch. As theta and anchor come close to the minimum and to each other, the error
of g vanishes, and steps need not shrink: the way to the minimum is linear. For l1 the proximal step follows (Xiao and
Zhang 2014).

L is the largest curvature met, ||g_B(theta) - g_B(anchor)|| / (N ||theta - anchor||), at no cost; it is forgotten
slowly, by FORGET an epoch. At the start it is that between theta and a point down the gradient. An epoch that ends
higher than it began, or no lower and no flatter, is taken back, and L is doubled.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import Array, norm
from besag.learn.objective import Function
from besag.learn.optimisers.base import Point
from besag.learn.optimisers.epochs import Epochs
from besag.learn.optimisers.line_search import is_no_larger

if TYPE_CHECKING:
    from besag.learn.optimisers.stochastic import Stochastic

FORGET = 0.7
PROBE = 1e-3  # how far down the gradient the first curvature is taken, where theta is of the size of 1
PATIENCE = 20  # epochs in a row that are taken back


class Anchored(Epochs):
    """Points keep: anchor (P,), its gradient `slope` (P,), value and norm, L, and how many epochs were taken back."""

    own = "anchor"

    def __init__(self, optimizer: Stochastic, function: Function, size: int) -> None:
        Epochs.__init__(self, optimizer, function, size)
        self._measured: tuple[Point, tuple[float, float]] | None = None  # the point at which the fit ends

    def begin(self, theta: Array) -> Point:
        value, grad_norm, gradient = self.evaluated(theta)
        met = self._first_curvature(theta, gradient) if math.isfinite(value) else 1.0
        kept = {**self.beginning(), **_anchor(theta, value, grad_norm, gradient), "curvature": met, "taken_back": 0}
        return Point(0, theta, value, grad_norm, 0.0, kept)

    def _first_curvature(self, theta: Array, gradient: Array) -> float:
        length = norm(gradient)
        if not 0.0 < length < math.inf:
            return 1.0
        far = PROBE * max(1.0, norm(theta))
        change = self.evaluated(theta - far / length * gradient)[2] - gradient
        return _positive(norm(change) / (far * self.function.n))

    def step(self, point: Point) -> Point:
        """One batch; with the last one of an epoch, its evaluation."""
        kept = self.drawn(point)
        with np.errstate(over="ignore", invalid="ignore"):
            change = self._change(point, kept) if point.is_within else None
            step = 0.5 / kept["curvature"]
            gradient = kept["slope"] if change is None else kept["slope"] + change
            theta = self.shrunk(point.theta - step * gradient / self.function.n, step)
        if not np.isfinite(theta).all():
            return self._taken_back(point._replace(kept=kept))
        kept["position"] = self.after(kept["position"])
        moved = point._replace(theta=theta, value=math.nan, grad_norm=math.nan, step=step, kept=kept)
        return moved if moved.is_within else self._ended(moved)

    def _change(self, point: Point, kept: dict[str, Any]) -> Array:
        """g_B(theta) - g_B(anchor); kept["curvature"] is raised to what it shows."""
        batch, distance = self.batch(kept), norm(point.theta - kept["anchor"])
        here, there = (self.function.sampled(theta, batch)[1] for theta in (point.theta, kept["anchor"]))
        change = here - there
        if distance > 0:
            met = norm(change) / (distance * self.function.n)
            kept["curvature"] = max(kept["curvature"], met if math.isfinite(met) else 0.0)
        return np.asarray(change)

    def _ended(self, point: Point) -> Point:
        """The end of an epoch: theta is the next anchor, or the epoch is taken back."""
        value, grad_norm, gradient = self.evaluated(point.theta)
        before, length = point.kept["value"], point.kept["grad_norm"]
        if not (value < before or (is_no_larger(value, before) and grad_norm < length)):
            return self._taken_back(point)
        curvature = _positive(FORGET * point.kept["curvature"])
        kept = {**point.kept, **_anchor(point.theta, value, grad_norm, gradient)}
        kept.update(curvature=curvature, taken_back=0)
        return point._replace(iteration=point.iteration + 1, value=value, grad_norm=grad_norm, kept=kept)

    def _taken_back(self, point: Point) -> Point:
        """At the anchor again; at step 0 where that does not help any more."""
        count, curvature = point.kept["taken_back"] + 1, 2.0 * point.kept["curvature"]
        kept = {**point.kept, "curvature": curvature, "taken_back": count, "position": 0}
        value, grad_norm = point.kept["value"], point.kept["grad_norm"]
        step = 0.0 if count > PATIENCE else 0.5 / curvature
        return Point(point.iteration + 1, point.kept["anchor"], value, grad_norm, step, kept)

    def measured(self, point: Point) -> tuple[float, float]:
        if self._measured is None or self._measured[0] is not point:
            value, grad_norm, _ = self.evaluated(point.theta)
            self._measured = point, (value, grad_norm)
        return self._measured[1]

    def answer(self, point: Point) -> Array:
        anchor: Array = point.kept["anchor"]
        return point.theta if self.elsewhere(point) is None else anchor

    def elsewhere(self, point: Point) -> tuple[float, float] | None:
        """The anchor, where an epoch that was not ended has led higher so far."""
        if not point.is_within or self.measured(point)[0] < point.kept["value"]:
            return None
        return point.kept["value"], point.kept["grad_norm"]


def _anchor(theta: Array, value: float, grad_norm: float, gradient: Array) -> dict[str, Any]:
    return {"anchor": theta, "value": value, "grad_norm": grad_norm, "slope": gradient}


def _positive(curvature: float) -> float:
    return curvature if 1e-300 < curvature < math.inf else 1.0
