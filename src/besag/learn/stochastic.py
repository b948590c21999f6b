"""Stochastic methods: steps along gradients that are estimated from mini-batches.

    g              gradient estimate of a batch, divided by the number N of instances: steps do not depend on N
    sgd            theta := theta - eta g
    momentum       m := mu m + (1 - mu) g;  theta := theta - eta m / (1 - mu)
    adam           m, v := averages of g and g^2, without bias;  theta := theta - eta m / (sqrt(v) + epsilon)
    adagrad        v := v + g^2;  theta := theta - eta g / (sqrt(v) + epsilon)

Each is theta - eta direction / metric. For l1 the proximal step in the same metric follows: theta is moved towards 0
by eta l1 / (N metric), and not beyond; it is stationary where the objective is.

An iteration is an epoch: all instances in a new random order, cut into batches. Every batch is a step of its own to
Ctrl-C and to the time limit; a checkpoint has the order and the position within it. `averaging` is that of Polyak and
Ruppert: the mean of theta over all batches of the second half of max_iterations epochs; what was averaged is shown,
evaluated and returned. By default there is none with l1, whose zeros it would undo.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from besag.arrays import Array, norm
from besag.errors import CapabilityError
from besag.learn.checkpoint import Kept
from besag.learn.objective import Function
from besag.learn.optimizer import (
    Descending,
    Method,
    Point,
    check_choice,
    check_counts,
    check_numbers,
    check_positive,
    pseudo_gradient,
)
from besag.learn.schedules import SCHEDULES, scheduled

Moments: TypeAlias = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Stochastic(Descending):
    """What all have in common.

    step, schedule, decay: see `besag.learn.schedules`. max_iterations: epochs. seed: of the order of instances.
    evaluate_every: epochs from one evaluation of all data to the next; rows between have nan, the last one never has.
    """

    batch_size: int = 32
    step: float = 0.1
    schedule: str = "inverse_sqrt"
    decay: float = 1.0
    averaging: bool | None = None
    seed: int = 0
    max_iterations: int = 50
    tolerance: float = 1e-5
    evaluate_every: int = 1

    def __post_init__(self) -> None:
        check_counts(self, "batch_size", "max_iterations", "evaluate_every")
        check_positive(self, "step")
        check_counts(self, "seed", least=0)
        check_numbers(self, "decay", "tolerance")
        check_choice(self, "schedule", SCHEDULES)
        check_choice(self, "averaging", (None, True, False))
        self.check_own()

    def check_own(self) -> None:
        """Of the options that only one method has."""

    def moments(self, theta: Array) -> Moments:
        """What the method averages, at the start."""
        return {}

    def direction(self, gradient: Array, moments: Moments, count: int) -> tuple[Array, Array | float, Moments]:
        """Direction, metric and new moments of the update of this number, from 1."""
        return gradient, 1.0, {}

    def at_work(self, function: Function, n_parameters: int) -> Method:
        return _Process(self, function)


@dataclass(frozen=True, slots=True)
class SGD(Stochastic):
    """Stochastic gradient descent."""


@dataclass(frozen=True, slots=True)
class Momentum(Stochastic):
    """Stochastic gradient descent with momentum. momentum: mu, the weight of what was before."""

    step: float = 0.01
    momentum: float = 0.9

    def check_own(self) -> None:
        check_numbers(self, "momentum", below=1.0)

    def moments(self, theta: Array) -> Moments:
        return {"mean": np.zeros_like(theta)}

    def direction(self, gradient: Array, moments: Moments, count: int) -> tuple[Array, Array | float, Moments]:
        mean = self.momentum * moments["mean"] + (1.0 - self.momentum) * gradient
        return mean, 1.0 - self.momentum, {"mean": mean}


@dataclass(frozen=True, slots=True)
class Adam(Stochastic):
    """Adam (Kingma and Ba 2015). beta1, beta2: the weights of the past in the means of g and of g^2."""

    step: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def check_own(self) -> None:
        check_numbers(self, "beta1", "beta2", below=1.0)
        check_positive(self, "epsilon")

    def moments(self, theta: Array) -> Moments:
        return {"mean": np.zeros_like(theta), "square": np.zeros_like(theta)}

    def direction(self, gradient: Array, moments: Moments, count: int) -> tuple[Array, Array | float, Moments]:
        mean = self.beta1 * moments["mean"] + (1.0 - self.beta1) * gradient
        square = self.beta2 * moments["square"] + (1.0 - self.beta2) * gradient**2
        metric = np.sqrt(square / (1.0 - self.beta2**count)) + self.epsilon
        return mean / (1.0 - self.beta1**count), metric, {"mean": mean, "square": square}


@dataclass(frozen=True, slots=True)
class Adagrad(Stochastic):
    """Adagrad (Duchi, Hazan and Singer 2011); its own steps shrink already."""

    schedule: str = "constant"
    epsilon: float = 1e-8

    def check_own(self) -> None:
        check_positive(self, "epsilon")

    def moments(self, theta: Array) -> Moments:
        return {"square": np.zeros_like(theta)}

    def direction(self, gradient: Array, moments: Moments, count: int) -> tuple[Array, Array | float, Moments]:
        square = moments["square"] + gradient**2
        return gradient, np.sqrt(square) + self.epsilon, {"square": square}


class _Process(Method):
    optimizer: Stochastic

    def __init__(self, optimizer: Stochastic, function: Function) -> None:
        Method.__init__(self, optimizer, function)
        self.n_batches = math.ceil(function.n / optimizer.batch_size)
        self.averages = function.penalty.is_smooth if optimizer.averaging is None else optimizer.averaging

    def begin(self, theta: Array) -> Point:
        value, grad_norm = self._evaluated(theta)
        generator = json.dumps(np.random.default_rng(self.optimizer.seed).bit_generator.state)
        size = self.optimizer.batch_size
        kept = {"generator": generator, "order": np.zeros(0, np.int64), "position": 0, "n_averaged": 0, "size": size}
        return Point(0, theta, value, grad_norm, 0.0, {**kept, **self.optimizer.moments(theta)})

    def step(self, point: Point) -> Point:
        """One batch; with the last one of an epoch, its evaluation where that is due."""
        kept = dict(point.kept) if point.is_within else {**point.kept, **self._shuffled(point.kept["generator"])}
        position, size = kept["position"], self.optimizer.batch_size
        sampled, gradient = self.function.sampled(point.theta, kept["order"][position : position + size])
        if not math.isfinite(sampled):
            return point._replace(iteration=point.iteration + 1, step=0.0, kept={**kept, "position": 0})
        theta, step, moments = self._moved(point, gradient, position // size)
        kept.update(moments)
        kept.update(self._average(point, theta))
        kept["position"] = (position + size) % (self.n_batches * size)
        moved = point._replace(theta=theta, value=math.nan, grad_norm=math.nan, step=step, kept=kept)
        return moved if moved.is_within else self._ended(moved)

    def unpacked(self, kept: Mapping[str, Kept]) -> Mapping[str, Kept]:
        was, now = (len(np.asarray(kept["order"])), kept["size"]), (self.function.n, self.optimizer.batch_size)
        if kept["position"] and was != now:
            raise CapabilityError(
                f"resume is within an epoch of {was[0]} instances in batches of {was[1]}, got {now[0]} in batches of "
                f"{now[1]}; go on with the same"
            )
        return {**kept, "size": self.optimizer.batch_size}

    def _shuffled(self, generator: str) -> dict[str, Any]:
        """A new order of the instances, and the state of the generator after it."""
        rng = np.random.default_rng()
        rng.bit_generator.state = json.loads(generator)
        order = rng.permutation(self.function.n)
        return {"order": order, "generator": json.dumps(rng.bit_generator.state)}

    def _moved(self, point: Point, gradient: Array, batch: int) -> tuple[Array, float, Moments]:
        """Theta after the update, its step, and the moments."""
        chosen, n = self.optimizer, self.function.n
        epochs = point.iteration + batch / self.n_batches
        step = scheduled(chosen.schedule, chosen.step, chosen.decay, epochs, chosen.max_iterations)
        count = point.iteration * self.n_batches + batch + 1
        with np.errstate(over="ignore", invalid="ignore"):
            direction, metric, moments = chosen.direction(gradient / n, point.kept, count)
            theta = point.theta - step * direction / metric
            if not self.function.penalty.is_smooth:
                shrunk = np.abs(theta) - step * self.function.penalty.l1 / (n * metric)
                theta = np.sign(theta) * np.maximum(shrunk, 0.0)
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
        return self._evaluated(self.shown(point))

    def _evaluated(self, theta: Array) -> tuple[float, float]:
        with np.errstate(over="ignore", invalid="ignore"):
            value, gradient = self.function.value_and_grad(theta)
            return value + self.function.penalty.absolute(theta), norm(pseudo_gradient(self.function, theta, gradient))
