"""Negative conditional log-likelihood, 002 (14)-(16), summed over instances with weights w_n:

    L(theta)      = sum_n w_n (log Z_n(theta) - log Z_n(theta; labels))
    gradient      = moments(data) - moments(model)                                              002 (19), (20)
    Hessian       = Cov(phi) of the model, 002 (21), minus that of the hidden variables given the labels

If all labels are known, log Z_n(theta; labels) = -H(x_n, y_n) = -<theta, phi(x_n, y_n)>: the statistics of the data are
one vector, summed once. Unknown labels are summed out by inference with the known ones as evidence.

Products with the Hessian are central differences of the gradient: two more inferences each, with any engine. The whole
Hessian is exact, by covariances, where inference is and the instances are small (`has_covariance`).

With an engine that is not exact, value and gradient are those of its approximation, and `is_exact` becomes False. Those
of bp and trw begin where they were at the last theta. The error of the Bethe log Z is quadratic in that of messages, so
that bp need not settle better than ROUGH times what is left of the gradient: values and slopes agree as well as the
line search of that step asks. trw and mean_field have values that belong to their moments once they have settled.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, distinct_rows, dot, freeze
from besag.data.dataset import Batch
from besag.errors import ApproximationWarning, EvidenceError
from besag.graph.evidence import Evidence
from besag.graph.graph import Graph
from besag.graph.problem import Problem
from besag.infer.auto.engine import Auto
from besag.infer.bp.engine import BP
from besag.infer.engine import ENGINES, Engine, Want
from besag.infer.junction.outlook import FEW_FACTORS, is_easy
from besag.infer.result import Result
from besag.learn.losses.base import Loss, infer_whole
from besag.learn.losses.covariance import n_rows, summed_covariance
from besag.learn.objective import Objective

ROUGH = 1e-3
TOLERANCES = {"trw": 1e-9}  # unless its text has another
WARMED = ("bp", "trw")  # others might get stuck where they were, such as mean field at a saddle point
ROW_STATES = 1 << 20  # states of rows that approximate engines take at a time
ROWS_A_PARAMETER = 16  # rows of evidence that are worth a parameter's two differences, and more, as they are exact
WANT: frozenset[Want] = frozenset({"log_partition", "moments"})


class Carried(NamedTuple):
    """The state between calls on the same batch: the instances with unknown labels, and the last answers."""

    hidden: Batch | None
    free: Result | None
    clamped: tuple[Result | None, ...]


@dataclass(frozen=True, slots=True)
class LikelihoodOptions:
    """engine: the text of one, or an engine; it gives log Z and moments, or moments alone."""

    engine: str | Engine = "auto"

    def at_work(self, support: BoolArray | None, n_threads: int | None) -> Objective:
        """The loss for data of a model with these hard zeros."""
        from besag.learn.losses.sampled import SWEEPS, SampledLikelihood

        engine = ENGINES.read(self.engine, n_threads=n_threads)
        engine = ENGINES.read(self.engine, n_threads=n_threads, tolerance=TOLERANCES.get(ENGINES.name_of(engine)))
        if "log_partition" in engine.capabilities.wants:
            return Likelihood(engine, support)
        return SampledLikelihood(ENGINES.read(engine, n_samples=SWEEPS), support)


@dataclass(frozen=True, slots=True, eq=False)
class Likelihood(Loss):
    """The loss of theta by inference with an engine; support (P,): hard zeros of the model's tables."""

    engine: Engine
    support: BoolArray | None = None
    bounds: set[str] = field(default_factory=set)  # the kinds of bounds that the engine's answers were
    progress: list[float] = field(default_factory=lambda: [0.0])  # one number, the last that was told

    @property
    def is_exact(self) -> bool:
        """Whether all answers so far were exact."""
        return self.bounds <= {"exact"}

    @property
    def resolution(self) -> float:
        """The tolerance of an engine that settles."""
        exact = self.engine.capabilities.bound == "exact"
        return 0.0 if exact else float(getattr(self.engine, "tolerance", 0.0))

    def follow(self, progress: float) -> None:
        """For bp."""
        self.progress[0] = progress

    def _settled(self, problem: Problem, warm: Result | None) -> Result:
        """The answer of the engine; bp as rough as it may be, and anew with damping where it has not settled."""
        engine = self.engine
        if not isinstance(engine, BP) or engine.tolerance == 0:
            return infer_whole(engine, problem, WANT, warm=warm)
        rough = replace(engine, tolerance=max(engine.tolerance, ROUGH * self.progress[0]))
        result = infer_whole(rough, problem, WANT, warm=warm)
        if result.diagnostics["converged"] or engine.damping != 0.0:
            return result
        again = infer_whole(replace(rough, damping="adaptive"), problem, WANT)
        return again if again.diagnostics["converged"] else result

    def statistics(self, batch: Batch) -> Array:
        """(P,): the moments of the instances whose labels are all known."""
        complete = is_complete(batch)
        self._refuse_impossible(batch, complete)
        if complete.all():
            return label_moments(batch)
        if not complete.any():
            return np.zeros(batch.graph.layout.n_parameters)
        return label_moments(batch.take(np.flatnonzero(complete)))

    def _refuse_impossible(self, batch: Batch, complete: BoolArray) -> None:
        """EvidenceError if a completely labelled instance meets a hard zero; inference finds the others."""
        graph = batch.graph
        if self.support is None and not any(block.template.has_zeros for block in graph.blocks):
            return
        problem = graph.bind(np.zeros(graph.layout.n_parameters), support=self.support)
        labels = np.maximum(batch.labels, 0)
        wrong = complete & ~np.isfinite(problem.energy(labels if batch.is_rows else labels[0]))
        if batch.weights is not None:
            wrong &= batch.weights > 0
        if wrong.any():
            n = int(np.argmax(wrong))
            raise EvidenceError(impossible(n if batch.numbers is None else int(batch.numbers[n])))

    def value_and_grad(self, theta: Array, batch: Batch, state: Carried | None) -> tuple[float, Array, Carried]:
        """sum_n w_n log Z_n, minus that of the clamped phase if labels are unknown; its gradient (P,); the state."""
        hidden = hidden_part(batch) if state is None else state.hidden
        value, moments, free = self._phase(
            theta, batch.graph, phase_weights(batch), None, state and state.free, batch.numbers
        )
        gradient, clamped = np.negative(moments, out=moments), tuple[Result | None, ...]()
        if hidden is not None:
            known, moments, clamped = self.clamped(theta, hidden, () if state is None else state.clamped)
            value, gradient = value - known, gradient + moments
        return value, gradient, Carried(hidden, free, clamped)

    def has_covariance(self, batch: Batch) -> bool:
        """Whether the Hessian is to come from covariances: inference is exact, and instances are small."""
        engine = self.engine
        if engine.capabilities.bound != "exact" or "factors" not in engine.capabilities.wants:
            return False
        if isinstance(engine, Auto) and not _is_surely_exact(batch.graph):
            return False
        if batch.is_rows and not is_complete(batch).all():
            return False
        return n_rows(batch.graph) <= ROWS_A_PARAMETER * batch.graph.layout.n_parameters

    def covariance(self, theta: Array, batch: Batch) -> Array:
        """(P, P): the Hessian of L at theta, 002 (21), by exact inference."""
        of = partial(summed_covariance, theta=theta, engine=self.engine, support=self.support)
        total, hidden = of(batch.graph, weights=phase_weights(batch)), hidden_part(batch)
        if hidden is None:
            return total
        if not hidden.is_rows:
            return np.asarray(total - of(hidden.graph, weights=hidden.weights, known=hidden.labels[0]))
        weights = np.ones(len(hidden)) if hidden.weights is None else hidden.weights
        for row, weight in zip(hidden.labels, weights, strict=True):
            total -= weight * of(hidden.graph, known=row)
        return total

    def clamped(
        self, theta: Array, hidden: Batch, warm: tuple[Result | None, ...] = ()
    ) -> tuple[float, Array, tuple[Result | None, ...]]:
        """sum_n w_n log Z_n and its statistics with the known labels as evidence: 003's h(u) and its gradient.

        All rows at once: engines lay them side by side. Those that keep messages of every row get some at a time.
        """
        parts = [hidden]
        if hidden.is_rows and self.engine.capabilities.bound != "exact":
            size = max(1, ROW_STATES // int(hidden.graph.state_offsets[-1]))
            numbers = np.arange(len(hidden))
            parts = [hidden.take(numbers[start : start + size]) for start in range(0, len(hidden), size)]
        value, moments, kept = 0.0, np.zeros(len(theta)), list[Result | None]()
        for n, part in enumerate(parts):
            given = Evidence(part.labels, batched=part.is_rows)
            before = warm[n] if n < len(warm) else None
            own, statistics, after = self._phase(theta, part.graph, part.weights, given, before, part.numbers)
            value, moments = value + own, moments + statistics
            kept.append(after)
        return value, moments, tuple(kept)

    def free(self, theta: Array, batch: Batch) -> tuple[float, Array]:
        """sum_n w_n log Z_n and its statistics without labels: 003's g(u) and its gradient, for all instances."""
        value, moments, _ = self._phase(theta, batch.graph, phase_weights(batch), None, None, batch.numbers)
        return value, moments

    def _phase(
        self,
        theta: Array,
        graph: Graph,
        weights: Array | None,
        evidence: Evidence | None,
        warm: Result | None,
        numbers: IntArray | None,
    ) -> tuple[float, Array, Result | None]:
        problem = graph.bind(theta, evidence=evidence, weights=weights, support=self.support)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ApproximationWarning)  # the fit says it once
            result = self._settled(problem, warm if ENGINES.name_of(self.engine) in WARMED else None)
        self.bounds.add(result.bound)
        assert result.log_partitions is not None
        assert result.table_moments is not None
        if not np.isfinite(result.log_partitions).all():
            n = int(np.argmin(np.isfinite(result.log_partitions)))
            raise EvidenceError(impossible(n if numbers is None else int(numbers[n])))
        total = result.log_partitions.sum() if weights is None else dot(result.log_partitions, weights)
        kept = None if result.state is None else replace(result, table_moments=None, log_partitions=None)
        return float(total), graph.moments(result.table_moments), kept


def _is_surely_exact(graph: Graph) -> bool:
    """Whether `auto` is not even to wonder: forests, and instances of few factors."""
    return int(np.diff(graph.factor_offsets).max(initial=0)) <= FEW_FACTORS or is_easy(graph)


def impossible(n: int) -> str:
    """The message for an instance without a possible labelling."""
    return f"instance {n} has no labelling of positive probability: its labels meet hard zeros"


def phase_weights(batch: Batch) -> Array | None:
    """(N,): the weights of the free phase; all rows of one graph share one log Z."""
    if not batch.is_rows:
        return batch.weights
    return np.array([float(len(batch)) if batch.weights is None else batch.weights.sum()])


def is_complete(batch: Batch) -> BoolArray:
    """(N,): whether all labels of an instance are known."""
    if batch.is_rows:
        return np.asarray((batch.labels >= 0).all(axis=1))
    unknown = np.concatenate([[0], np.cumsum(batch.labels[0] < 0)])
    offsets = batch.graph.instance_offsets
    return np.asarray(unknown[offsets[1:]] == unknown[offsets[:-1]])


def instance_numbers(batch: Batch) -> IntArray:
    """(N,): which of all instances these are."""
    return np.arange(len(batch)) if batch.numbers is None else batch.numbers


def hidden_part(batch: Batch, *, merge: bool = True) -> Batch | None:
    """The instances with unknown labels; merge: equal rows into one, and none without weight."""
    wanted = ~is_complete(batch)
    if merge and batch.weights is not None:
        wanted &= batch.weights > 0
    if not wanted.any():
        return None
    hidden = batch.take(np.flatnonzero(wanted))
    return _merged(hidden) if hidden.is_rows and merge else hidden


def _merged(batch: Batch) -> Batch:
    """Equal rows merged into one, with their weights added up."""
    first, which = distinct_rows(batch.labels)
    weights = np.bincount(which, weights=batch.weights).astype(np.float64)
    return Batch(batch.graph, batch.labels[first], weights, None if batch.numbers is None else batch.numbers[first])


def label_moments(batch: Batch) -> Array:
    """(P,): sum_n w_n phi(x_n, y_n) of instances whose labels are all known."""
    if not batch.is_rows:
        return batch.graph.moments(batch.labels[0], weights=batch.weights)
    graph, weights = batch.graph, np.ones(len(batch)) if batch.weights is None else batch.weights
    total = np.zeros(graph.layout.n_parameters)
    for block in graph.blocks:
        counts = _counts(batch.labels, block.scopes, block.template.shape, weights)
        total[graph.layout[block.template.name]] += block.template.moments(block.inputs, counts)
    return total


def _counts(rows: IntArray, scopes: IntArray, shape: tuple[int, ...], weights: Array) -> Array:
    """(F, *shape): how often each configuration of each scope is seen."""
    size = int(np.prod(shape))
    counts = np.empty((len(scopes), size))
    for f, scope in enumerate(scopes):
        config = np.ravel_multi_index(tuple(rows[:, scope].T), shape)
        counts[f] = np.bincount(config, weights=weights, minlength=size)
    return np.asarray(freeze(counts.reshape(-1, *shape)))
