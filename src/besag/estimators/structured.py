"""What estimators on graphs share: labels of any shape in, a union of graphs, any objective, any engine.

An estimator reads its X as arrays (a `Data`) and says by a Form how these become a Graph: templates, and inputs of
their factors. Everything else is here: fit, predictions, scores, files.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from typing import Any, Protocol, Self

import numpy as np

from besag.arrays import AnyArray, Array, IntArray, Rebuilt, concatenate, secure
from besag.data.dataset import Batch, Dataset, check_weights
from besag.data.label_arrays import codes_of
from besag.errors import ApproximationWarning, CapabilityError, warn
from besag.estimators.base import check_choice
from besag.estimators.class_weights import ClassWeight, weights_of_classes
from besag.estimators.constants import warn_of_constants
from besag.estimators.held_out import reading_held_out
from besag.estimators.learner import Learner, check_file, check_labels_to_save, refuse_probabilities
from besag.graph.evidence import Evidence
from besag.graph.graph import Graph
from besag.infer.auto.engine import Auto
from besag.infer.engine import ENGINES, Engine, Want
from besag.infer.iterate import clear_interrupts
from besag.infer.result import Result
from besag.learn.curvature import measure_curvature
from besag.learn.history import OnIteration
from besag.learn.losses.base import read_objective
from besag.learn.objective import Total, thread_count
from besag.learn.penalty import penalty_of
from besag.metrics import accuracy
from besag.model.layout import Layout
from besag.query.run import warn_unconverged

SMALL = 32  # variables, up to which instances are one union for `auto`: as a union they fit, or not, together


class Data(Protocol):
    """Features of instances; the labels of each have a shape."""

    @property
    def shapes(self) -> list[tuple[int, ...]]: ...
    @property
    def offsets(self) -> IntArray: ...
    @property
    def nodes(self) -> Any:
        """(T, D): what intercepts stand beside."""


class Form(Protocol):
    """How features become a Graph."""

    @property
    def layout(self) -> Layout:
        """The templates; those whose names begin with `intercept` have no penalty."""

    def graph(self, data: Any, states: Sequence[str]) -> Graph:
        """The union of all instances."""


@dataclass(frozen=True, slots=True, eq=False)
class GraphModel(Rebuilt):
    """What was learnt: classes (K,), the form of graphs, and theta (P,)."""

    classes: tuple[Any, ...]
    form: Form
    theta: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "theta", secure(self.form.layout.check_theta(self.theta)))

    def block(self, name: str) -> Array:
        """The log-potentials, -theta, of a template: positive is more probable."""
        return np.negative(self.theta[self.form.layout[name]])

    def graph(self, data: Data) -> Graph:
        """The union of instances."""
        return self.form.graph(data, [str(label) for label in self.classes])


class StructuredCRF(Learner):
    """A conditional random field on graphs; subclasses read X and make the Form."""

    objective: str
    l1: float
    l2: float
    engine: str | Engine
    decode: str
    n_jobs: int | None
    class_weight: ClassWeight = None
    model_: GraphModel
    learnt_by_: str  # the objective

    def _ignored(self) -> Sequence[Any]:
        """Labels that count as unknown."""
        return ()

    def _check_parameters(self, checkpoint: Any = None) -> None:
        check_choice("decode", self.decode, ("map", "marginal"))
        ENGINES.read(self.engine)
        if checkpoint is not None:
            check_file(checkpoint)

    def _fit(
        self,
        classes: tuple[Any, ...],
        form: Form,
        data: Data,
        y: Any,
        sample_weight: Any,
        held_out: tuple[Data, Any] | None,
        checkpoint: str | PathLike[str] | None,
        on_step: OnIteration | None,
        objective: str | None = None,
        time_limit: float | None = None,
    ) -> Batch:
        """What was learnt from; objective and time_limit: in place of the parameters."""
        objective = self.objective if objective is None else objective
        if self.decode == "marginal":
            refuse_probabilities(objective)
        codes, states = self._codes(form, classes, data, y), [str(label) for label in classes]
        of_classes = weights_of_classes(self.class_weight, classes, codes)
        dataset, watched = _dataset(form.graph(data, states), codes, of_classes, sample_weight), None
        if held_out is not None:
            with reading_held_out(held_out):
                others = self._codes(form, classes, *held_out)
            watched = _dataset(form.graph(held_out[0], states), others, of_classes)
        if not self.l1 and not self.l2:
            warn_of_constants(data.nodes)
        loss = read_objective(objective, n_threads=1)
        every = not loss.is_smooth  # whose dual has no end where a parameter has no penalty
        penalised = {name for name in form.layout.templates if every or not name.startswith("intercept")}
        penalty = penalty_of(form.layout, dict.fromkeys(penalised, self.l1), dict.fromkeys(penalised, self.l2))
        if dataset.all.variable_weights is not None and not getattr(loss, "weighs_variables", False):
            raise CapabilityError(
                f"class_weight= weighs the terms of single variables, and objective {objective!r} has none; "
                'take "pseudolikelihood", "marginal_loss" or "max_margin", or sample_weight= for whole instances'
            )
        curvature = measure_curvature(dataset.all)
        total = Total(loss, dataset, penalty, n_threads=thread_count(self.n_jobs), curvature=curvature)
        theta = self._learn(total, watched, checkpoint, on_step, time_limit)
        self.model_, self.learnt_by_ = GraphModel(classes, form, theta), objective
        return dataset.all

    def _codes(self, form: Form, classes: Sequence[Any], data: Data, y: Any) -> IntArray:
        """The labels (V,) of all variables as codes."""
        return codes_of(y, data.shapes, classes, self._ignored())

    # What was learnt -------------------------------------------------------------------------------------------------

    @property
    def classes_(self) -> list[Any]:
        """The labels, sorted: the last axis of marginals."""
        self._check_fitted()
        return list(self.model_.classes)

    @property
    def coef_(self) -> Array:
        """(K, D): the weight of each node feature for each label; positive is more probable."""
        self._check_fitted()
        return self.model_.block("node").reshape(-1, len(self.model_.classes)).T

    @property
    def intercept_(self) -> Array:
        """(K,): of each label."""
        self._check_fitted()
        return self.model_.block("intercept")

    # Answers ---------------------------------------------------------------------------------------------------------

    def _answers(self, data: Data, want: Want, evidence: IntArray | None = None) -> list[Result]:
        """Answers about runs of instances, which together are all of them, in their order."""
        self._check_fitted()
        if want != "map":
            refuse_probabilities(self.learnt_by_)
        graph, theta = self.model_.graph(data), self.model_.theta
        engine = ENGINES.read(self.engine, n_threads=thread_count(self.n_jobs))
        offsets, results = data.offsets, list[Result]()
        with warnings.catch_warnings(), clear_interrupts():
            warnings.simplefilter("ignore", ApproximationWarning)
            for start, stop in runs(offsets) if isinstance(engine, Auto) else [(0, len(offsets) - 1)]:
                part = graph if (start, stop) == (0, len(offsets) - 1) else graph.take(np.arange(start, stop))
                known = None if evidence is None else Evidence(evidence[offsets[start] : offsets[stop]])
                problem = part.bind(theta, evidence=known)
                results.append(engine.infer(problem, frozenset({want}), rng=np.random.default_rng(0)))
        self._warn(results)
        return results

    def _warn(self, results: list[Result]) -> None:
        """Once, of what is an estimate and of what did not converge."""
        estimates = [result for result in results if not (result.bound == "exact" or _is_optimal(result))]
        if estimates and not isinstance(ENGINES.read(self.engine), Auto):
            return  # who names an engine knows what it is
        if estimates:
            count = sum(result.graph.n_instances for result in estimates)
            of = sum(result.graph.n_instances for result in results)
            used = ENGINES.name_of(ENGINES.read(self.engine))
            warn(
                ApproximationWarning(
                    f"inference by {used} was approximate for {count} of {of} instances, which are too large to be "
                    'exact; engine="exact" refuses such instances'
                )
            )
        unconverged = next((result for result in results if not result.diagnostics.get("converged", True)), None)
        if unconverged is not None:
            warn_unconverged(unconverged)

    def _predict(self, data: Data) -> list[AnyArray]:
        classes = np.array(self.classes_)
        if self.decode == "marginal":
            codes = self._marginals(data).argmax(axis=1)
        else:
            codes = np.concatenate([result.codes[0, 0] for result in self._answers(data, "map")])  # type: ignore[index]
        return split(classes[codes], data)

    def _marginals(self, data: Data) -> Array:
        """(V, K)."""
        found = [result.probabilities for result in self._answers(data, "variables")]
        return concatenate([p for p in found if p is not None], np.float64).reshape(-1, len(self.model_.classes))

    def _log_partitions(self, data: Data, evidence: IntArray | None = None) -> Array:
        """(N,)."""
        found = [result.log_partitions for result in self._answers(data, "log_partition", evidence)]
        return np.asarray(concatenate([values for values in found if values is not None], np.float64))

    def _log_proba(self, data: Data, y: Any) -> Array:
        """(N,): log p(y | x); unknown labels are summed out."""
        self._check_fitted()
        codes = self._codes(self.model_.form, self.model_.classes, data, y)
        free = self._log_partitions(data)
        if (codes >= 0).all():
            problem = self.model_.graph(data).bind(self.model_.theta)
            return np.asarray(-problem.energy(codes) - free)
        return self._log_partitions(data, codes) - free

    def _score(self, data: Data, y: Any, sample_weight: Any) -> float:
        """The share of variables that are labelled correctly; unknown labels do not count."""
        codes = self._codes(self.model_.form, self.model_.classes, data, y)
        found = [np.searchsorted(np.array(self.classes_), labels) for labels in self._predict(data)]
        return accuracy(split(codes, data), found, sample_weight=sample_weight)

    # Files -----------------------------------------------------------------------------------------------------------

    def _stored(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        check_labels_to_save(self.model_.classes)
        told, arrays = self._stored_history()
        form_told, form_arrays = self.model_.form.stored()  # type: ignore[attr-defined]
        told |= {"classes": list(self.model_.classes), "learnt_by": self.learnt_by_, **form_told}
        return told, arrays | {"theta": self.model_.theta, **form_arrays}

    @classmethod
    def _restored(cls, parameters: Mapping[str, Any], told: Mapping[str, Any], arrays: Mapping[str, Any]) -> Self:
        made = cls(**parameters)
        made._check_parameters()
        made.model_ = GraphModel(tuple(told["classes"]), cls._restored_form(told, arrays), arrays["theta"])
        made.learnt_by_ = told["learnt_by"]
        made._restore_history(told, arrays)
        return made

    @classmethod
    def _restored_form(cls, told: Mapping[str, Any], arrays: Mapping[str, Any]) -> Form:
        raise NotImplementedError


def _dataset(graph: Graph, codes: IntArray, of_classes: Array | None, weights: Any = None) -> Dataset:
    """Labels as codes (V,) of a union; weights: of its instances."""
    own = None if weights is None else check_weights(weights, graph.n_instances)
    of_variables = None if of_classes is None else np.append(of_classes, 1.0)[codes]
    return Dataset(Batch(graph, codes, own, variable_weights=of_variables))


def runs(offsets: IntArray) -> list[tuple[int, int]]:
    """Instances (start, stop) that `auto` is asked about together: small ones; each large one has an engine of its own.

    >>> runs(np.array([0, 3, 6, 600, 1200, 1203]))
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    large = np.diff(offsets) > SMALL
    cuts = np.flatnonzero(large[1:] | large[:-1]) + 1
    ends = [0, *cuts.tolist(), len(large)]
    return list(pairwise(ends))


def _is_optimal(result: Result) -> bool:
    return result.codes is not None and bool(np.all(result.optimal))


def split(values: AnyArray, data: Data) -> list[AnyArray]:
    """Values (V, ...) of all variables as an array for each instance, in the shape of its labels."""
    offsets = data.offsets
    return [
        values[start:stop].reshape(*shape, *values.shape[1:])
        for start, stop, shape in zip(offsets[:-1].tolist(), offsets[1:].tolist(), data.shapes, strict=True)
    ]
