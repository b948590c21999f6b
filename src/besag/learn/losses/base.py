"""Losses: how objectives are named, what they share, and how a user gives one of their own.

An objective is a frozen dataclass of options, named by text in OBJECTIVES: "piecewise[pieces=trees]". `at_work` makes
a Loss of it for one model: the `besag.learn.objective.Objective` that is summed over data.

An objective of a user's is any object with one method, for the loss L of the instances of a Batch:

    value_and_grad(theta, batch, state) -> (L(theta) or None, its gradient (P,), the next state)

`batch.graph`, `batch.labels` and `batch.weights` are what there is to know; `batch.graph.bind(theta)` makes numbers,
`batch.graph.moments` is the adjoint. L has to be a sum over instances. For `state` and for losses without a value, see
`besag.learn.objective`. A value of +inf or nan is too far for a step. The object may also have the attributes of a
Loss, whose values are assumed where it has none.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from besag.arrays import Array, BoolArray
from besag.data.dataset import Batch
from besag.errors import CapabilityError, ModelError
from besag.graph.graph import Graph
from besag.graph.problem import Problem
from besag.infer.engine import Engine, Want
from besag.infer.result import Result
from besag.learn.objective import Objective, Product, State, add_each
from besag.learn.optimisers.hessian import hessian_product
from besag.registry import Registry


class OwnObjective(Protocol):
    """An objective of a user's, see the module."""

    def value_and_grad(self, theta: Array, batch: Batch, state: State) -> tuple[float | None, Array, State]:
        """The loss of a batch, its gradient (P,), and the next state."""


class ObjectiveOptions(Protocol):
    """What every objective that has a name offers."""

    def at_work(self, support: BoolArray | None, n_threads: int | None) -> Objective:
        """The loss for data of a model; support (P,): its hard zeros. n_threads: in one batch."""


OBJECTIVES: Registry[ObjectiveOptions] = Registry(
    "objective",
    "at_work",
    "pseudolikelihood",
    {
        "contrastive_divergence": ("besag.learn.losses.contrastive", "ContrastiveDivergenceOptions"),
        "likelihood": ("besag.learn.losses.likelihood", "LikelihoodOptions"),
        "marginal_loss": ("besag.learn.losses.marginal_loss", "MarginalLossOptions"),
        "max_margin": ("besag.learn.losses.max_margin", "MaxMarginOptions"),
        "pcd": ("besag.learn.losses.contrastive", "PCDOptions"),
        "piecewise": ("besag.learn.losses.piecewise", "PiecewiseOptions"),
        "pseudolikelihood": ("besag.learn.losses.pseudolikelihood", "PseudolikelihoodOptions"),
    },
)


class Loss:
    """What losses share; `value_and_grad` is the one method that each has to have.

    surrogate: the name of what stands in for the likelihood. is_exact: whether inference inside of it was. has_value:
    whether it has a value besides the gradient. is_smooth: whether it has no
    kinks. weighs_variables: whether it is a sum over single variables, each of
    which may have a weight, `Batch.variable_weights`.
    """

    __slots__ = ()
    surrogate: str | None = None
    has_value: bool = True
    is_smooth: bool = True
    weighs_variables: bool = False

    @property
    def is_exact(self) -> bool:
        """Unless a loss says otherwise."""
        return True

    @property
    def resolution(self) -> float:
        """None that is known of."""
        return 0.0

    def follow(self, progress: float) -> None:
        """Inference is what it is."""

    def statistics(self, batch: Any) -> Array:
        """(P,): nothing is split off."""
        return np.zeros(batch.graph.layout.n_parameters)

    def warn_of(self, batches: Sequence[Any]) -> None:
        """They say all they can."""

    def value_and_grad(self, theta: Array, batch: Any, state: State) -> tuple[float | None, Array, State]:
        """The rest of the loss of a batch, its gradient (P,), and the next state."""
        raise NotImplementedError

    def add(
        self, theta: Array, batches: Sequence[Any], states: Sequence[State], gradient: Array, n_threads: int | None
    ) -> tuple[Sequence[float | None], Sequence[State]]:
        """Values and gradients of some batches."""
        return add_each(partial(self.value_and_grad, theta), batches, states, gradient, n_threads)

    def hessian_vector(self, theta: Array, batch: Any) -> Product:
        """Products with the Hessian at theta, by differences."""
        state, reach = self.value_and_grad(theta, batch, None)[2], partial(largest_change, batch.graph)
        return hessian_product(lambda point: self.value_and_grad(point, batch, state)[1], theta, reach)


class OwnLoss(Loss):
    """An objective of a user's."""

    __slots__ = ("has_value", "is_smooth", "own", "surrogate")

    def __init__(self, own: Any) -> None:
        self.own = own
        self.surrogate: str | None = getattr(own, "surrogate", None)
        self.has_value: bool = getattr(own, "has_value", True)
        self.is_smooth: bool = getattr(own, "is_smooth", True)

    @property
    def is_exact(self) -> bool:
        """As the object says."""
        return bool(getattr(self.own, "is_exact", True))

    def value_and_grad(self, theta: Array, batch: Batch, state: State) -> tuple[float | None, Array, State]:
        """The answer of the object; ModelError where it is none."""
        answer = self.own.value_and_grad(theta, batch, state)
        name = type(self.own).__name__
        if not isinstance(answer, tuple) or len(answer) != 3:
            raise ModelError(f"objective {name} must give a value, a gradient and a state, got {answer!r}")
        value, gradient, following = answer
        if (value is None) is self.has_value:
            wanted = "has_value = False, because it gives None" if self.has_value else "None in place of a value"
            raise ModelError(f"objective {name} must have {wanted}, or give values")
        try:
            number, slope = 0.0 if value is None else float(value), np.asarray(gradient, np.float64)
        except (TypeError, ValueError):
            raise ModelError(f"objective {name} must give numbers, got {answer!r}") from None
        if slope.shape != theta.shape:
            raise ModelError(f"objective {name} must give a gradient of shape {theta.shape}, got {slope.shape}")
        if math.isnan(number) or number == math.inf:
            return math.inf, np.zeros_like(slope), following
        if not (math.isfinite(number) and np.isfinite(slope).all()):
            raise ModelError(f"objective {name} must have a finite gradient where its value is finite, got {answer!r}")
        return None if value is None else number, slope, following


def read_objective(
    given: Any, support: BoolArray | None = None, engine: Any = None, n_threads: int | None = None
) -> Objective:
    """The loss for data of a model, from text or an object; engine: for objectives that take one and name none."""
    if not isinstance(given, (str, type)) and callable(getattr(given, "value_and_grad", None)):
        _refuse_engine(type(given).__name__, engine)
        _check_call(given)
        return given if isinstance(given, Loss) else OwnLoss(given)
    options = OBJECTIVES.read(given, engine=engine)
    if not hasattr(options, "engine"):
        _refuse_engine(OBJECTIVES.name_of(options), engine)
    return options.at_work(support, n_threads)


def _check_call(given: Any) -> None:
    try:
        inspect.signature(given.value_and_grad).bind("theta", "batch", "state")
    except TypeError:
        name = type(given).__name__
        raise CapabilityError(f"objective {name} must have a method value_and_grad(theta, batch, state)") from None


def _refuse_engine(name: str, engine: Any) -> None:
    if engine is not None:
        raise CapabilityError(f"objective {name!r} does not take an engine; leave out engine={engine!r}")


def infer_whole(engine: Engine, problem: Problem, want: frozenset[Want], **options: Any) -> Result:
    """The answer of an engine; where Ctrl-C has cut it short it is none, and the fit ends where it was."""
    result = engine.infer(problem, want, **options)
    if result.diagnostics.get("stopped") == "interrupted":
        raise KeyboardInterrupt
    return result


def largest_change(graph: Graph, theta: Array) -> float:
    """The largest change of a log-potential of a graph by theta; those that are ruled out do not change."""
    logs = np.abs(graph.bind(theta).log_potentials)
    return float(logs.max(initial=0.0, where=logs < np.inf))
