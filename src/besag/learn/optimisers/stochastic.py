"""Stochastic methods: steps along gradients that are estimated from mini-batches.

    g              gradient estimate of a batch, divided by the number N of instances: steps do not depend on N
    sgd            theta := theta - eta g; without a step or schedule of yours, `besag.learn.optimisers.svrg`
    momentum       m := mu m + (1 - mu) g;  theta := theta - eta m / (1 - mu)
    adam           m, v := averages of g and g^2, without bias;  theta := theta - eta m / (sqrt(v) + epsilon)
    adagrad        v := v + g^2;  theta := theta - eta g / (sqrt(v) + epsilon)

Each is theta - eta direction / metric. For l1 the proximal step in the same metric follows: theta is moved towards 0
by eta l1 / (N metric), and not beyond; it is stationary where the objective is.

An iteration is an epoch, as `besag.learn.optimisers.epochs` makes them. `averaging` is that of Polyak and Ruppert: the
mean of theta over all batches of the second half of max_iterations epochs; what was averaged is shown, evaluated and
returned. By default there is none with l1, whose zeros it would undo, nor where steps go down to 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from besag.arrays import Array
from besag.learn.objective import Function
from besag.learn.optimisers.base import OPTIMIZERS, Descending, Method
from besag.learn.optimisers.epochs import Scheduled
from besag.learn.optimisers.schedules import SCHEDULES, Schedule
from besag.learn.optimisers.svrg import Anchored

Moments: TypeAlias = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Stochastic(Descending):
    """What all have in common.

    step, schedule, decay: see `besag.learn.optimisers.schedules`; None: the usual ones of the method. max_iterations:
    epochs. batch_size: None for 32, or a twentieth of the instances where that is less. seed: of the order of
    instances. evaluate_every: epochs from one evaluation of all data to the next; rows between have nan, the last one
    never has.
    """

    batch_size: int | None = None
    step: float | None = None
    schedule: Schedule | None = None
    decay: float = 1.0
    averaging: bool | None = None
    seed: int = 0
    max_iterations: int = 200
    tolerance: float = 1e-5
    evaluate_every: int = 1

    usual: ClassVar[tuple[str, float]] = ("inverse_sqrt", 0.1)

    def __post_init__(self) -> None:
        OPTIMIZERS.check_counts(self, "max_iterations", "evaluate_every", "batch_size")
        OPTIMIZERS.check_positive(self, "step")
        OPTIMIZERS.check_counts(self, "seed", least=0)
        OPTIMIZERS.check_numbers(self, "decay", "tolerance")
        OPTIMIZERS.check_choice(self, "schedule", (None, *SCHEDULES))
        OPTIMIZERS.check_choice(self, "averaging", (None, True, False))
        self.check_own()

    @property
    def steps(self) -> tuple[str, float]:
        """Schedule and step."""
        schedule, step = self.usual
        return self.schedule or schedule, self.step or step

    def size(self, n: int) -> int:
        """How many of n instances make a batch."""
        return max(1, min(32, n // 20)) if self.batch_size is None else self.batch_size

    def check_own(self) -> None:
        """Of the options that only one method has."""

    def moments(self, theta: Array) -> Moments:
        """What the method averages, at the start."""
        return {}

    def direction(self, gradient: Array, moments: Moments, count: int) -> tuple[Array, Array | float, Moments]:
        """Direction, metric and new moments of the update of this number, from 1."""
        return gradient, 1.0, {}

    def at_work(self, function: Function, n_parameters: int) -> Method:
        return Scheduled(self, function, self.size(function.n))


@dataclass(frozen=True, slots=True)
class SGD(Stochastic):
    """Stochastic gradient descent: anchored, until step, schedule, averaging or evaluate_every is given."""

    def at_work(self, function: Function, n_parameters: int) -> Method:
        is_told = any(option is not None for option in (self.step, self.schedule, self.averaging))
        kind = Scheduled if is_told or self.evaluate_every > 1 else Anchored
        return kind(self, function, self.size(function.n))


@dataclass(frozen=True, slots=True)
class Momentum(Stochastic):
    """Stochastic gradient descent with momentum. momentum: mu, the weight of what was before."""

    momentum: float = 0.9

    usual: ClassVar[tuple[str, float]] = ("cosine", 0.01)

    def check_own(self) -> None:
        OPTIMIZERS.check_numbers(self, "momentum", below=1.0)

    def moments(self, theta: Array) -> Moments:
        return {"mean": np.zeros_like(theta)}

    def direction(self, gradient: Array, moments: Moments, count: int) -> tuple[Array, Array | float, Moments]:
        mean = self.momentum * moments["mean"] + (1.0 - self.momentum) * gradient
        return mean, 1.0 - self.momentum, {"mean": mean}


@dataclass(frozen=True, slots=True)
class Adam(Stochastic):
    """Adam (Kingma and Ba 2015). beta1, beta2: the weights of the past in the means of g and of g^2."""

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    usual: ClassVar[tuple[str, float]] = ("cosine", 0.05)

    def check_own(self) -> None:
        OPTIMIZERS.check_numbers(self, "beta1", "beta2", below=1.0)
        OPTIMIZERS.check_positive(self, "epsilon")

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

    epsilon: float = 1e-8

    usual: ClassVar[tuple[str, float]] = ("constant", 0.5)

    def check_own(self) -> None:
        OPTIMIZERS.check_positive(self, "epsilon")

    def moments(self, theta: Array) -> Moments:
        return {"square": np.zeros_like(theta)}

    def direction(self, gradient: Array, moments: Moments, count: int) -> tuple[Array, Array | float, Moments]:
        square = moments["square"] + gradient**2
        return gradient, np.sqrt(square) + self.epsilon, {"square": square}
