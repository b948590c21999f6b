"""Moments against finite differences of log Z: by theta, and by every number that a Problem holds."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from numpy.testing import assert_allclose

import besag
from besag.graph.evidence import Evidence
from besag.graph.problem import Problem
from tests.conformance.engines import Case, each_engine
from tests.strategies import evidence_for, examples, generators

STEP = 1e-5
TOLERANCE = 1e-7  # rounding of log Z over the step, and the third derivative times its square: both far below


def gradient(function: Callable[[np.ndarray], float], at: np.ndarray) -> np.ndarray:
    """Central differences by every finite entry; zero at the others."""
    found = np.zeros(at.shape)
    for i in np.flatnonzero(np.isfinite(at)):
        step = np.zeros(at.shape)
        step[i] = STEP
        found[i] = (function(at + step) - function(at - step)) / (2 * STEP)
    return found


def weighted_log_partition(case: Case, problem: Problem) -> float:
    """sum_n w_n log Z_n."""
    values = np.atleast_1d(case.infer(problem, "log_partition").log_partition)
    weights = np.ones(len(values)) if problem.weights is None else problem.weights
    possible = values > -np.inf  # rows without a labelling have no moments
    return float(weights[possible] @ values[possible])


@each_engine("log_partition", "moments", exact=True)
@examples(12)
@given(data=st.data())
def test_moments_are_minus_the_gradient_by_theta(case: Case, data: DataObject) -> None:
    model = data.draw(case.models(max_labellings=40))
    evidence = data.draw(evidence_for(model))
    free = np.ones(model.theta.shape, np.bool_) if model.support is None else model.support

    def log_partition(theta: np.ndarray) -> float:
        return case.ask(model.with_theta(np.where(free, theta, 0.0)), evidence, "log_partition").log_partition

    moments = model.moments(evidence, engine=case.engine)
    assert_allclose(moments[free], -gradient(log_partition, model.theta)[free], atol=TOLERANCE)


@each_engine("log_partition", "moments", exact=True)
@examples(12)
@given(data=st.data())
def test_moments_are_the_gradient_by_every_number_of_a_problem(case: Case, data: DataObject) -> None:
    model = data.draw(case.models(max_labellings=40))
    check_gradient(case, model.problem)


@each_engine("log_partition", "moments", exact=True)
@examples(10)
@given(data=st.data(), rng=generators())
def test_moments_of_a_weighted_union_are_a_gradient(case: Case, data: DataObject, rng: np.random.Generator) -> None:
    model = data.draw(case.models(max_labellings=24))
    graph = besag.compile_graph(model, model, model)
    check_gradient(case, graph.bind(model.theta, support=model.support, weights=rng.normal(size=3)))


@each_engine("log_partition", "moments", exact=True)
@examples(10)
@given(data=st.data(), rng=generators())
def test_moments_of_weighted_rows_are_a_gradient(case: Case, data: DataObject, rng: np.random.Generator) -> None:
    model = data.draw(case.models(max_labellings=24))
    codes = rng.integers(-1, model.variables.cardinalities, size=(data.draw(st.integers(2, 20)), len(model.variables)))
    problem = model.problem.with_evidence(Evidence(codes, batched=True))
    check_gradient(case, replace(problem, weights=rng.normal(size=len(codes))))


def check_gradient(case: Case, problem: Problem) -> None:
    def log_partition(numbers: np.ndarray) -> float:
        # other numbers are no conditional distributions any more
        return weighted_log_partition(case, replace(problem, log_potentials=numbers, children=None))

    found = gradient(log_partition, np.asarray(problem.log_potentials))
    assert_allclose(case.infer(problem, "moments").moments, found, atol=TOLERANCE)
