"""Optimisers: what makes a Function small, how they are named, and what they share.

An optimiser is a frozen dataclass of options, named by text in OPTIMIZERS. At work it is a Method, which goes from
Point to Point; `descend` drives it, keeps the history, shows each iteration to whoever watches, and says why it ended:

    converged        ||gradient|| <= tolerance max(1, ||theta||), or as the method says; or where it is no more than the
                     function's noise; also where no step helps any more and the gradient is TINY times what it was at
                     the start, or AMPLIFIED times the noise
    no_progress      no step makes the value smaller, or the value is no number
    early_stopping   on_step has returned True
    max_iterations   so many iterations were made, those before a checkpoint counted
    time_limit       so many seconds have passed in this call
    interrupted      Ctrl-C: the work of the iteration under way is dropped

A Point is never changed, so that one is whole whenever Ctrl-C comes. A Function must hand out its gradients for good.
With l1 > 0 the value is f(theta) + sum_j l1_j |theta_j|, and the gradient is the element of least norm of the
subdifferential, `pseudo_gradient`. With bounds it is the projected gradient, and every theta lies within them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from besag.arrays import Array, norm
from besag.errors import CapabilityError
from besag.infer.iterate import Clock, Stopped, clear_interrupts, drive
from besag.learn.checkpoint import Checkpoint, Kept
from besag.learn.history import History, Iteration, OnIteration
from besag.learn.objective import Function
from besag.registry import Registry, is_number

TINY = 1e-7
AMPLIFIED = 100.0  # how much farther from their end slow iterations may be than their last step was


class Optimizer(Protocol):
    """What every optimiser offers."""

    @property
    def max_iterations(self) -> int:
        """Of all parts of a resumed fit together."""

    @property
    def tolerance(self) -> float:
        """See the module."""

    def minimize(
        self,
        function: Function,
        theta: Array,
        *,
        time_limit: float | None = None,
        on_step: OnIteration | None = None,
        resume: Checkpoint | None = None,
    ) -> tuple[Array, History, Checkpoint]:
        """The best theta so far, how it was reached, and from where to go on; `resume` takes the place of theta."""


class Descending:
    """What makes an optimiser of a Method: `at_work` is the method for a function of so many parameters."""

    __slots__ = ()

    def at_work(self, function: Function, n_parameters: int) -> Method:
        """The method, at its start."""
        raise NotImplementedError

    def minimize(
        self,
        function: Function,
        theta: Array,
        *,
        time_limit: float | None = None,
        on_step: OnIteration | None = None,
        resume: Checkpoint | None = None,
    ) -> tuple[Array, History, Checkpoint]:
        """See the module."""
        return descend(self.at_work(function, len(theta)), theta, time_limit, on_step, resume)


OPTIMIZERS: Registry[Optimizer] = Registry(
    "optimizer",
    "minimize",
    "lbfgs",
    {
        "adagrad": ("besag.learn.optimisers.stochastic", "Adagrad"),
        "adam": ("besag.learn.optimisers.stochastic", "Adam"),
        "frank_wolfe": ("besag.learn.optimisers.frank_wolfe", "FrankWolfe"),
        "gradient_descent": ("besag.learn.optimisers.gradient_descent", "GradientDescent"),
        "lbfgs": ("besag.learn.optimisers.lbfgs", "LBFGS"),
        "momentum": ("besag.learn.optimisers.stochastic", "Momentum"),
        "newton_cg": ("besag.learn.optimisers.newton_cg", "NewtonCG"),
        "sgd": ("besag.learn.optimisers.stochastic", "SGD"),
        "steepest_descent": ("besag.learn.optimisers.steepest_descent", "SteepestDescent"),
    },
)


def refuse_l1(optimizer: object, function: Function) -> None:
    """CapabilityError where the function is not smooth."""
    if not function.penalty.is_smooth:
        raise CapabilityError(
            f"optimizer {OPTIMIZERS.name_of(optimizer)!r} cannot minimise with l1 > 0; lbfgs and sgd can"
        )


def refuse_bounds(optimizer: object, function: Function) -> None:
    """CapabilityError where theta has bounds."""
    if function.penalty.box is not None:
        raise CapabilityError(
            f"optimizer {OPTIMIZERS.name_of(optimizer)!r} cannot minimise within bounds; lbfgs, gradient_descent, sgd, "
            "momentum, adam and adagrad can"
        )


def pseudo_gradient(function: Function, theta: Array, gradient: Array) -> Array:
    """What is 0 at a minimum, where `gradient` is that of the smooth part: see `Penalty.pseudo_gradient`."""
    return function.penalty.pseudo_gradient(theta, gradient)


class Point(NamedTuple):
    """Where a method stands.

    iteration: how many are done; the method is within the next one where kept["position"] says so. value, grad_norm:
    at theta, nan where they were not evaluated. step: that led here, 0 where there was none to take. kept: all else.
    """

    iteration: int
    theta: Array
    value: float
    grad_norm: float
    step: float
    kept: Mapping[str, Any]

    @property
    def is_within(self) -> bool:
        """Whether an iteration is under way."""
        return bool(self.kept.get("position", 0))


class Method:
    """An optimiser at work on one function; what most methods share. compares_values: whether it cannot do without."""

    compares_values = True

    def __init__(self, optimizer: Optimizer, function: Function) -> None:
        self.optimizer, self.function, self.ends_where_stuck = optimizer, function, True
        if self.compares_values and not function.has_value:
            raise CapabilityError(
                f"optimizer {OPTIMIZERS.name_of(optimizer)!r} compares values, and this objective has a gradient only: "
                "take adam, momentum, adagrad or sgd[step=0.1]"
            )
        if self.compares_values and not function.is_smooth:
            raise CapabilityError(
                f"optimizer {OPTIMIZERS.name_of(optimizer)!r} needs a smooth function, and this objective has kinks: "
                "take frank_wolfe, or adam, momentum, adagrad or sgd[step=0.1]"
            )

    def begin(self, theta: Array) -> Point:
        """The point to start at, evaluated."""
        value, gradient = self.function.value_and_grad(theta)
        grad_norm = norm(pseudo_gradient(self.function, theta, gradient))
        return Point(0, theta, value, grad_norm, 0.0, {"gradient": gradient})

    def step(self, point: Point) -> Point:
        """One iteration, or a part of one."""
        raise NotImplementedError

    def is_converged(self, point: Point, rows: list[Iteration]) -> bool:
        """Whether to stop, content."""
        limit = max(self.optimizer.tolerance * max(1.0, norm(point.theta)), self.function.noise)
        return math.isfinite(point.value) and point.grad_norm <= limit < math.inf

    def shown(self, point: Point) -> Array:
        """The theta that a row of the history speaks of."""
        return point.theta

    def answer(self, point: Point) -> Array:
        """The theta to return."""
        return self.shown(point)

    def elsewhere(self, point: Point) -> tuple[float, float] | None:
        """Value and norm of the gradient at the answer, where that is not the theta of the last row."""
        return None

    def monitors(self, point: Point) -> Mapping[str, float]:
        """What else a row of the history tells, by name of the column."""
        return {}

    def noted(self, point: Point, value: float) -> Mapping[str, float]:
        """The same of a last row that was evaluated late."""
        return {}

    def measured(self, point: Point) -> tuple[float, float]:
        """Value and norm of the gradient, evaluated where that was left out."""
        return point.value, point.grad_norm

    def packed(self, point: Point) -> dict[str, Kept]:
        """What a checkpoint has to hold besides theta."""
        return dict(point.kept)

    def unpacked(self, kept: Mapping[str, Kept]) -> Mapping[str, Kept]:
        """What `packed` was made from."""
        return kept


class Descent:
    """How far a Method has come: its last whole Point, and the history."""

    def __init__(
        self, method: Method, theta: Array, clock: Clock, on_step: OnIteration | None, resume: Checkpoint | None
    ) -> None:
        self.method, self.clock, self.on_step = method, clock, on_step
        self.history, self.point = _started(method, theta) if resume is None else _resumed(method, theta, resume)
        is_lost = method.function.has_value and not math.isfinite(self.point.value)
        self.is_stuck, self.is_ended = is_lost and resume is None, False

    def advance(self) -> Stopped | None:
        """Why to stop here; None after one more step."""
        reason = self._reason()
        if reason is None:
            self._step()
        return reason

    def _step(self) -> None:
        before, self.point = self.point.iteration, self.method.step(self.point)
        self.is_stuck, self.is_ended, point = False, False, self.point
        if point.iteration > before:
            self.is_stuck = point.step == 0 and self.method.ends_where_stuck
            row = self.history.add(point.value, point.grad_norm, point.step)
            self.history.note(self.method.monitors(point))
            self.is_ended = self.on_step is not None and bool(self.on_step(row, self.method.shown(point)))

    def _reason(self) -> Stopped | None:
        point, rows = self.point, self.history.rows
        if not point.is_within:
            if self.method.is_converged(point, rows):
                return "converged"
            if self.is_stuck:
                least = max(TINY * rows[0].grad_norm, AMPLIFIED * self.method.function.noise)
                small = math.isfinite(point.grad_norm) and point.grad_norm <= least
                return "converged" if small else "no_progress"
            if self.is_ended:
                return "early_stopping"
            if point.iteration >= self.method.optimizer.max_iterations:
                return "max_iterations"
        return "time_limit" if self.clock.left <= 0 else None


def descend(
    method: Method,
    theta: Array,
    time_limit: float | None = None,
    on_step: OnIteration | None = None,
    resume: Checkpoint | None = None,
) -> tuple[Array, History, Checkpoint]:
    """The answer of a method when it has converged or a limit is reached; see the module."""
    _check_time_limit(time_limit)
    if on_step is not None and not callable(on_step):
        raise CapabilityError(f"on_step must be a function of a row of the history and theta, got {on_step!r}")
    descent = Descent(method, theta, Clock(time_limit), on_step, resume)
    history = descent.history
    history.stopped = drive(descent.advance)
    point = descent.point
    _complete(method, point, history)
    rows = tuple(history.rows[: point.iteration + 1])
    name = OPTIMIZERS.name_of(method.optimizer)
    checkpoint = Checkpoint(name, point.theta, point.iteration, history.seconds, rows, method.packed(point))
    return method.answer(point), history, checkpoint


def _check_time_limit(given: Any) -> None:
    if given is None or (is_number(given) and given >= 0):
        return
    raise CapabilityError(f"time_limit must be a number of seconds, at least 0, or None, got {given!r}")


def _started(method: Method, theta: Array) -> tuple[History, Point]:
    box, start = method.function.penalty.box, np.array(theta, np.float64)
    history = History(has_value=method.function.has_value)
    point = method.begin(start if box is None else box.clip(start))
    history.add(point.value, point.grad_norm, 0.0)
    return history, point


def _resumed(method: Method, theta: Array, resume: Checkpoint) -> tuple[History, Point]:
    name = OPTIMIZERS.name_of(method.optimizer)
    if resume.optimizer != name:
        raise CapabilityError(f"resume must be a checkpoint of {name!r}, got one of {resume.optimizer!r}")
    if resume.theta.shape != np.shape(theta):
        raise CapabilityError(f"resume is of {len(resume.theta)} parameters, expected {len(theta)}")
    began, has_value = time.perf_counter() - resume.seconds, method.function.has_value
    history = History(list(resume.rows), began=began, has_value=has_value)
    last = resume.rows[-1]
    kept = method.unpacked(resume.kept)
    return history, Point(resume.iteration, resume.theta, last.value, last.grad_norm, last.step, kept)


def _complete(method: Method, point: Point, history: History) -> None:
    """A last row that speaks of the answer, where a part of an iteration or one without its value was the last.

    Where the answer was left behind, the way back to it is one more row, of step 0.
    """
    number = point.iteration + point.is_within
    try:
        with clear_interrupts():
            answer = method.elsewhere(point)
            if answer is not None:
                history.go_back(*answer)
            if len(history.rows) > number and not math.isnan(history.rows[number].value):
                return
            value, grad_norm = method.measured(point)
    except KeyboardInterrupt:  # pressed again: whoever does so will not wait for an evaluation
        value, grad_norm = math.nan, math.nan
    history.rows[number:] = [Iteration(number, history.seconds, value, grad_norm, point.step)]
    history.note(method.noted(point, value))
