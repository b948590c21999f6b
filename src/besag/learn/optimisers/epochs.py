"""Mini-batches, epoch by epoch: what stochastic methods do with their options.

An iteration is an epoch: all instances in a new random order, cut into batches. Every batch is a step of its own to
Ctrl-C and to the time limit; a checkpoint has the order and the position within it.

The state of an objective goes from batch to batch within the points. Where an objective has no value, the gradient norm
of an epoch is that of the mean of its batches' gradients, and nothing is evaluated besides.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from besag.arrays import Array, IntArray, norm
from besag.errors import CapabilityError
from besag.learn.checkpoint import Kept
from besag.learn.objective import Function
from besag.learn.optimisers.base import OPTIMIZERS, Method, Optimizer, Point, pseudo_gradient
from besag.learn.optimisers.schedules import scale_step

if TYPE_CHECKING:
    from besag.learn.optimisers.stochastic import Moments, Stochastic

MONITOR = "monitor."  # of what an objective's state tells of each epoch
PREFIX = "state."  # of what a checkpoint holds of an objective's state


class Shuffled(Optimizer, Protocol):
    """An optimiser whose epochs have random orders."""

    @property
    def seed(self) -> int:
        """Of the orders."""


class Epochs(Method):
    """What stochastic methods share; size: the number of instances of a batch. own: what only their points keep."""

    optimizer: Shuffled
    own = ""

    def __init__(self, optimizer: Shuffled, function: Function, size: int) -> None:
        Method.__init__(self, optimizer, function)
        self.size, self.n_batches = size, math.ceil(function.n / size)

    def beginning(self) -> dict[str, Any]:
        """What points keep, before the first epoch."""
        generator = json.dumps(np.random.default_rng(self.optimizer.seed).bit_generator.state)
        order = np.zeros(0, np.int64)
        return {"generator": generator, "order": order, "position": 0, "size": self.size, "state": None}

    def drawn(self, point: Point) -> dict[str, Any]:
        """What a point keeps; at the start of an epoch with a new order, and the generator's state after it."""
        if point.is_within:
            return dict(point.kept)
        rng = np.random.default_rng()
        rng.bit_generator.state = json.loads(point.kept["generator"])
        order = rng.permutation(self.function.n)
        return {**point.kept, "order": order, "generator": json.dumps(rng.bit_generator.state)}

    def batch(self, kept: Mapping[str, Any]) -> IntArray:
        """The instances of the batch that is next."""
        instances: IntArray = kept["order"][kept["position"] : kept["position"] + self.size]
        return instances

    def after(self, position: int) -> int:
        """The position after a batch, 0 after the last one."""
        return (position + self.size) % (self.n_batches * self.size)

    def shrunk(self, theta: Array, step: Array | float) -> Array:
        """The proximal step of l1, towards 0 by step l1 / N and not beyond, and that of bounds, into the box."""
        penalty = self.function.penalty
        if not penalty.is_smooth:
            left = np.abs(theta) - step * penalty.l1 / self.function.n
            theta = np.asarray(np.sign(theta) * np.maximum(left, 0.0))
        return theta if penalty.box is None else penalty.box.clip(theta)

    def evaluated(self, theta: Array) -> tuple[float, float, Array]:
        """Value, norm of the gradient, and the gradient of the smooth part."""
        with np.errstate(over="ignore", invalid="ignore"):
            value, gradient = self.function.value_and_grad(theta)
            slope = pseudo_gradient(self.function, theta, gradient)
            total = math.nan if value is None else value + self.function.penalty.absolute(theta)
            return total, norm(slope), gradient

    def monitors(self, point: Point) -> Mapping[str, float]:
        state: Mapping[str, Any] = point.kept["state"] or {}
        return {name.removeprefix(MONITOR): value for name, value in state.items() if name.startswith(MONITOR)}

    def packed(self, point: Point) -> dict[str, Kept]:
        kept = dict(point.kept)
        state: Mapping[str, Kept] = kept.pop("state") or {}
        return kept | {PREFIX + name: value for name, value in state.items()}

    def unpacked(self, kept: Mapping[str, Kept]) -> Mapping[str, Kept]:
        if self.own not in kept:
            name = OPTIMIZERS.name_of(self.optimizer)
            raise CapabilityError(f"resume is of {name} with other options for its steps; go on with the same")
        was, now = (len(np.asarray(kept["order"])), kept["size"]), (self.function.n, self.size)
        if kept["position"] and was != now:
            raise CapabilityError(
                f"resume is within an epoch of {was[0]} instances in batches of {was[1]}, got {now[0]} in batches of "
                f"{now[1]}; go on with the same"
            )
        state = {name.removeprefix(PREFIX): value for name, value in kept.items() if name.startswith(PREFIX)}
        others = {name: value for name, value in kept.items() if not name.startswith(PREFIX)}
        return {**others, "size": self.size, "state": state or None}  # type: ignore[dict-item]


class Scheduled(Epochs):
    """Steps by a schedule, and averages of theta."""

    optimizer: Stochastic
    own = "n_averaged"
    compares_values = False

    def __init__(self, optimizer: Stochastic, function: Function, size: int) -> None:
        Epochs.__init__(self, optimizer, function, size)
        settles = optimizer.steps[0] == "cosine" or not function.penalty.is_smooth
        self.averages = not settles if optimizer.averaging is None else optimizer.averaging

    def begin(self, theta: Array) -> Point:
        value, grad_norm, _ = self.evaluated(theta)
        kept = {**self.beginning(), "n_averaged": 0, **self.optimizer.moments(theta)}
        return Point(0, theta, value, grad_norm, 0.0, kept)

    def step(self, point: Point) -> Point:
        """One batch; with the last one of an epoch, its evaluation where that is due."""
        kept = self.drawn(point)
        sampled, gradient, kept["state"] = self.function.sampled(point.theta, self.batch(kept), kept["state"])
        if not (np.isfinite(gradient).all() if sampled is None else math.isfinite(sampled)):
            return point._replace(iteration=point.iteration + 1, step=0.0, kept={**kept, "position": 0})
        theta, step, moments = self._moved(point, gradient, kept["position"] // self.size)
        kept.update(moments)
        kept.update(self._average(point, theta))
        if not self.function.has_value:
            kept["slopes"] = gradient + (kept["slopes"] if point.is_within else 0.0)
        kept["position"] = self.after(kept["position"])
        moved = point._replace(theta=theta, value=math.nan, grad_norm=math.nan, step=step, kept=kept)
        return moved if moved.is_within else self._ended(moved)

    def _moved(self, point: Point, gradient: Array, batch: int) -> tuple[Array, float, Moments]:
        """Theta after the update, its step, and the moments."""
        chosen = self.optimizer
        epochs = point.iteration + batch / self.n_batches
        step = scale_step(*chosen.steps, chosen.decay, epochs, chosen.max_iterations)
        count = point.iteration * self.n_batches + batch + 1
        with np.errstate(over="ignore", invalid="ignore"):
            direction, metric, moments = chosen.direction(gradient / self.function.n, point.kept, count)
            theta = self.shrunk(point.theta - step * direction / metric, step / metric)
        return theta, step, moments

    def _average(self, point: Point, theta: Array) -> dict[str, Any]:
        if not self.averages or 2 * point.iteration < self.optimizer.max_iterations:
            return {}
        count = point.kept["n_averaged"] + 1
        before: Array = point.kept.get("average", theta)
        return {"average": before + (theta - before) / count, "n_averaged": count}

    def _ended(self, point: Point) -> Point:
        """The end of an epoch."""
        done = point._replace(iteration=point.iteration + 1)
        if done.iteration % self.optimizer.evaluate_every:
            return done
        value, grad_norm = self.measured(done)
        return done._replace(value=value, grad_norm=grad_norm)

    def shown(self, point: Point) -> Array:
        shown: Array = point.kept.get("average", point.theta)
        return shown

    def measured(self, point: Point) -> tuple[float, float]:
        if not self.function.has_value:
            return math.nan, self._mean_norm(point)
        value, grad_norm, _ = self.evaluated(self.shown(point))
        return value, grad_norm

    def _mean_norm(self, point: Point) -> float:
        """The norm of the mean gradient of the batches of an epoch so far."""
        if "slopes" not in point.kept:
            return point.grad_norm
        n_batches = point.kept["position"] // self.size or self.n_batches
        return norm(pseudo_gradient(self.function, point.theta, point.kept["slopes"] / n_batches))
