"""`besag.fit` and `besag.objective`: theta of any model from labelled data.

    theta = argmin of  sum_n L_n(theta) + l2 ||theta||^2 + l1 ||theta||_1 + R(theta), within bounds      002 (1), (17)

Data are a Dataset, a list of StructuredData, or rows of labels on the graph of the model: a DataFrame of states, or int
codes (N, V) with -1 = unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from besag.arrays import Array, IntArray
from besag.data.dataset import Batch, Dataset, graph_of
from besag.data.structured import StructuredData
from besag.errors import ApproximationWarning, CapabilityError, ConvergenceWarning, ModelError, warn
from besag.foreign import hinting
from besag.infer.engine import Engine
from besag.infer.iterate import clear_interrupts
from besag.learn.box import Ends
from besag.learn.checkpoint import Checkpoint
from besag.learn.curvature import measure_curvature
from besag.learn.hidden.noisy import refuse_noisy
from besag.learn.history import History, OnIteration
from besag.learn.losses.base import OwnObjective, read_objective
from besag.learn.losses.likelihood import Likelihood
from besag.learn.losses.projection import Projection
from besag.learn.moments import read_moments
from besag.learn.objective import Objective, Total, thread_count
from besag.learn.optimisers.base import OPTIMIZERS, Optimizer
from besag.learn.penalty import Penalty, Strength, penalty_of
from besag.learn.polytope import at_an_end, boundary_text, refuse_outside, still_moving
from besag.learn.prediction import log_proba, predict, predict_marginals
from besag.learn.progress import FitProgress, ended
from besag.learn.regulariser import ValueAndGradient
from besag.learn.training import Minimum, Resume, minimum, usual_optimizer, warn_of_end
from besag.markup import Markup, make_card
from besag.model.model import Model
from besag.query.run import Options

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """What was learnt: the model with theta, the value of the objective there, and how it came about.

    objective: None where it has a gradient only. stopped: converged, max_iterations, time_limit, interrupted,
    no_progress, early_stopping, or unbounded, where the moments asked for have their optimum at infinity. is_exact:
    False where inference was approximate, and with it value and gradient. surrogate: the name of what stood in for the
    likelihood, None where nothing did. checkpoint: what `resume=` goes on from; `checkpoint.save(path)` keeps it in a
    file.
    """

    model: Model
    theta: Array
    objective: float | None
    converged: bool
    stopped: str
    is_exact: bool
    surrogate: str | None
    log: History
    checkpoint: Checkpoint

    def predict(self, data: Any, **options: Unpack[Options]) -> Any:
        """argmax_y p(y | x, theta), 002 (22) and 004's F(x; theta), as int codes: see `besag.learn.prediction`.

        >>> import besag
        >>> model = besag.markov_network({"A": 2, "B": 2}, [(("A", "B"), [[0.0, 0.0], [0.0, 0.0]])])
        >>> besag.fit(model, [[0, 1], [1, 0], [0, 1]], l2=0.1).predict([[0, -1], [1, -1]])
        array([[0, 1],
               [1, 0]])
        """
        return predict(self.model, data, options)

    def predict_marginals(self, data: Any, **options: Unpack[Options]) -> Any:
        """p(y_v | x, theta), 002 (24): (V, K) of an instance, 0 for states that a variable does not have."""
        self._refuse_probabilities()
        return predict_marginals(self.model, data, options)

    def log_proba(self, data: Any, **options: Unpack[Options]) -> Any:
        """log p(y | x, theta) of labelled data, 002 (11): (N,), unknown labels summed out."""
        self._refuse_probabilities()
        return log_proba(self.model, data, options)

    def _refuse_probabilities(self) -> None:
        if self.surrogate == "max_margin":
            raise CapabilityError("max_margin learns which labelling is best, and no probabilities: ask for predict")

    @property
    def history(self) -> pd.DataFrame:
        """Columns iteration, seconds, value, grad_norm, step, held_out, gap; without those of which there are none."""
        return self.log.to_frame()

    def __repr__(self) -> str:
        value = self.objective if self.objective is None else f"{self.objective:.6g}"
        about = f"objective={value}, stopped={self.stopped!r} after {self.log.n_iterations} iterations"
        return f"Fit({len(self.theta)} parameters, {about})"

    def _repr_html_(self) -> str:
        value = "no value" if self.objective is None else f"objective {self.objective:.6g}"
        ended = "converged" if self.converged else f"not converged: {self.stopped}"
        rounds = f"{self.log.n_iterations} iterations in {self.log.seconds:.2g} s"
        how = "" if self.is_exact else "inference was approximate"
        facts = (value, f"{ended}, {rounds}", f"surrogate: {self.surrogate}" if self.surrogate else "", how)
        return make_card(f"Fit of {len(self.theta)} parameters", facts, Markup(self.model._repr_html_()))


def objective(
    name: str | Objective | OwnObjective,
    model: Model,
    data: Any = None,
    *,
    moments: Any = None,
    l1: Strength = 0.0,
    l2: Strength = 0.0,
    engine: str | Engine | None = None,
    weights: Any = None,
    regulariser: ValueAndGradient | None = None,
    bounds: Ends | None = None,
    n_threads: int | None = None,
) -> Total:
    """The function of theta that `fit` minimises: value_and_grad(theta), hessian(theta), standard_errors(theta).

    name: of an objective, with options in the text: "marginal_loss[engine=bp]", "piecewise[pieces=trees]"; or an object
    with value_and_grad(theta, batch, state), see `besag.learn.losses.base`. engine: of likelihood, "auto" unless
    given. l1 is not in its value: the function is smooth, and optimisers deal with l1.

    >>> import besag
    >>> model = besag.markov_network({"A": 2}, [(("A",), [0.0, 0.0])])
    >>> value, gradient = besag.objective("likelihood", model, [[0], [0], [1]]).value_and_grad(model.theta)
    >>> print(f"{value:.4f}", gradient)
    2.0794 [ 0.5 -0.5]
    """
    if (data is None) == (moments is None):
        raise ModelError("give either data to learn from, or moments= that the model shall have")
    dataset = read_data(model, data, weights) if moments is None else _unlabelled(model, weights)
    alone = dataset.all.is_rows or len(dataset) == 1  # else threads have a shard each
    threads = thread_count(n_threads) if alone else 1
    loss = read_objective(name, model.support, engine, threads)
    if moments is not None:
        loss = _projection(model, loss, moments, threads)
    penalty = penalty_of(model.layout, l1, l2, regulariser, bounds)
    return Total(loss, dataset, penalty, n_threads=n_threads, curvature=measure_curvature(dataset.all))


@hinting
def fit(
    model: Model,
    data: Any = None,
    *,
    moments: Any = None,
    objective: str | Objective | OwnObjective = "likelihood",
    optimizer: str | Optimizer | None = None,
    l1: Strength = 0.0,
    l2: Strength = 0.0,
    engine: str | Engine | None = None,
    weights: Any = None,
    regulariser: ValueAndGradient | None = None,
    bounds: Ends | None = None,
    theta: Any = None,
    held_out: Any = None,
    time_limit: float | None = None,
    n_threads: int | None = None,
    progress: bool = False,
    on_step: OnIteration | None = None,
    resume: Resume | None = None,
) -> Fit:
    """Learns theta, beginning at zeros or at `theta`, and gives the model with it.

    optimizer: "lbfgs" unless one is given, "frank_wolfe" for max_margin. held_out: data on which the loss is watched;
    the fit ends when it grows, and gives the theta where it was least. progress: tell on stderr how far it has come.
    on_step is called with each row of the history and theta, and ends the fit by returning True. resume: the
    checkpoint of an earlier fit, or the file that `checkpoint.save(path)` wrote. regulariser: R, a function of theta
    (P,) that gives its value and gradient. moments: in place of data, those that the model shall have, (P,), or another
    Model that has them: M-projection. bounds: {name of a template: (low, high)} or one pair for all, None for no bound.

    >>> import besag
    >>> model = besag.markov_network({"A": 2}, [(("A",), [0.0, 0.0])])
    >>> besag.fit(model, [[0], [0], [1]]).model.marginals()["A"].round(4)
    array([0.6667, 0.3333])
    """
    refuse_noisy(model)
    penalised: dict[str, Any] = {"l1": l1, "l2": l2, "regulariser": regulariser, "bounds": bounds}
    given: dict[str, Any] = {"moments": moments, "engine": engine, "weights": weights, "n_threads": n_threads}
    total = _total(objective, model, data, **given, **penalised)
    start = _start(model, total.penalty, theta)
    method = OPTIMIZERS.read(usual_optimizer(total) if optimizer is None else optimizer)
    if held_out is not None and moments is not None:
        raise ModelError("held_out= watches the loss on other data; moments have none")
    others = None if held_out is None else read_data(model, held_out, None)
    shown = FitProgress("fit", on_step, method.max_iterations, time_limit) if progress else None
    told = on_step if shown is None else shown.told
    with clear_interrupts(), ended(shown):
        found = minimum(total, method, start, held_out=others, time_limit=time_limit, on_step=told, resume=resume)
    if total.has_value and found.history.rows[0].value == math.inf:
        raise ModelError("the objective has no finite value at the start; give another one by theta=")
    endless = _endless(model, total, found, method.tolerance)
    if len(endless):
        found.history.stopped = "unbounded"
    result = Fit(
        model.with_theta(found.theta),
        found.theta,
        found.history.value if total.has_value else None,
        found.history.converged,
        found.history.stopped or "",
        total.objective.is_exact,
        total.objective.surrogate,
        found.history,
        found.checkpoint,
    )
    if not _was_told_how_many(result, method):
        _warn(result, OPTIMIZERS.name_of(method))
    if len(endless):
        warn(ConvergenceWarning(boundary_text(model, endless)))
    return result


_total = objective  # `fit` has an argument of the same name


def _start(model: Model, penalty: Penalty, theta: Any) -> Array:
    """The given theta, or the one within bounds that is nearest to zeros; R must have a value there."""
    box, start = penalty.box, np.zeros(model.layout.n_parameters)
    if theta is not None:
        start = model.layout.check_theta(theta)
        if box is not None and not box.contains(start):
            at = int(np.argmax((start < box.low) | (start > box.high)))
            raise ModelError(f"theta[{at}] = {start[at]} is not within its bounds, {box.low[at]} to {box.high[at]}")
    elif box is not None:
        start = box.clip(start)
    if penalty.smooth(start)[0] == np.inf:
        raise ModelError("the regulariser has no finite value at the start; give another one by theta=")
    return start


def _unlabelled(model: Model, weights: Any) -> Dataset:
    """One instance of the model, whose moments are given."""
    if weights is not None:
        raise ModelError("weights are those of instances; moments have none")
    return Dataset(Batch(graph_of(model), np.full((1, len(model.variables)), -1)))


def _projection(model: Model, loss: Objective, moments: Any, n_threads: int | None) -> Projection:
    """The loss of moments, with the engine of a likelihood."""
    if type(loss) is not Likelihood:
        raise CapabilityError("moments are matched by the likelihood, with an engine that gives log Z")
    mu = read_moments(model, moments, loss.engine, n_threads)
    refuse_outside(model, mu)
    return Projection(loss.engine, model.support, moments=mu)


def _endless(model: Model, total: Total, found: Minimum, tolerance: float) -> IntArray:
    """The statistics towards which theta goes on for ever, where moments are matched that no theta has."""
    projection = total.objective
    if not isinstance(projection, Projection):
        return np.zeros(0, np.int64)
    assert projection.moments is not None
    at_end = at_an_end(model, total, projection.moments)
    if len(at_end) or not found.history.converged:
        return at_end
    return still_moving(total, found.theta, tolerance)


def _was_told_how_many(result: Fit, method: Optimizer) -> bool:
    """Whether the fit ended after the iterations that were asked for: without a tolerance there is no other end."""
    return result.is_exact and method.tolerance == 0 and result.stopped == "max_iterations" and not result.log.went_back


def _warn(result: Fit, optimizer: str) -> None:
    """Once, where inference was not exact or the optimiser did not converge on its own terms."""
    if not result.is_exact:
        warn(
            ApproximationWarning(
                "inference was not exact: value and gradient are those of an approximation; "
                'engine="exact" gives exact ones, or refuses'
            )
        )
    if result.objective is not None:  # without values nothing is seen to converge
        more = f"give it more, as in {optimizer}[max_iterations={2 * max(result.log.n_iterations, 1)}]"
        warn_of_end("the optimiser", result.log, more, is_exact=result.is_exact)


def read_data(model: Model, data: Any, weights: Any) -> Dataset:
    """What a user gives as data, for the layout of a model."""
    if isinstance(data, Dataset):
        if weights is not None:
            raise ModelError("a Dataset has weights of its own; give them there")
        _check_layout(model, data)
        if (data.all.labels < 0).all():
            raise ModelError("no instance has a label to learn from; fit.predict(data) gives labels")
        return data
    if isinstance(data, StructuredData):
        data = [data]
    elif isinstance(data, Iterator):
        data = list(data)
    if isinstance(data, Sequence) and data and isinstance(data[0], StructuredData):
        for n, part in enumerate(data):
            if not isinstance(part, StructuredData):
                raise ModelError(f"instance {n} must be StructuredData like the first one, got {type(part).__name__}")
            if part.labels is None:
                raise ModelError(f"instance {n} has no labels to learn from; leave it out, or fit.predict(data)")
        dataset = Dataset.union(data, weights, layout=model.layout)
        _check_layout(model, dataset)
        return dataset
    return Dataset.rows(model, data, weights)


def _check_layout(model: Model, data: Dataset) -> None:
    if list(data.layout.templates) != list(model.layout.templates):
        raise ModelError(
            f"the data have templates {list(data.layout.templates)}, the model has {list(model.layout.templates)}; "
            "they must be the same, in the same order"
        )
    for name, template in data.layout.templates.items():
        if not template.same_as(model.layout.templates[name]):
            raise ModelError(f"template {name!r} of the data differs from that of the model")
