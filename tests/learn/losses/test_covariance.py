"""Hessians of the likelihood: covariances of the model, exactly, against enumeration and differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import besag
from besag.arrays import Array
from besag.errors import ModelError
from besag.learn.losses.covariance import n_rows
from besag.learn.losses.likelihood import ROWS_A_PARAMETER
from tests.learn.losses.test_likelihood import instances, model_of
from tests.oracle import Enumeration
from tests.routes import Forced


def by_enumeration(data: list[besag.StructuredData], theta: Array, weights: Array) -> Array:
    """sum_n w_n (Cov_n(phi) - Cov_n(phi | labels))."""
    total = np.zeros((len(theta), len(theta)))
    for part, weight in zip(data, weights, strict=True):
        model = model_of(part, theta)
        known = {model.variables.names[v]: str(k) for v, k in enumerate(part.labels) if k >= 0}
        total += weight * (Enumeration(model).covariance() - Enumeration(model, known).covariance())
    return total


@pytest.mark.parametrize("engine", ["auto", "exact", "junction_tree"])
@pytest.mark.parametrize("hidden", [0.0, 0.4])
def test_the_hessian_of_a_union_is_the_covariance_002_21(hidden: float, engine: str) -> None:
    """002 (21), 004: sums over instances with graphs of their own, dense inputs, a basis, unknown labels."""
    data, rng = instances(3, 6, hidden=hidden), np.random.default_rng(0)
    theta, weights = rng.normal(size=data[0].layout.n_parameters), rng.random(6) + 0.5
    given = {"l2": 0.3, "weights": weights, "engine": engine}
    total = besag.objective("likelihood", model_of(data[0]), data, **given)
    expected = by_enumeration(data, theta, weights) + 0.6 * np.eye(len(theta))
    assert_allclose(total.hessian(theta, by="covariance"), expected, atol=1e-11)
    assert_allclose(total.hessian(theta, by="differences"), expected, atol=1e-6)


def test_sparse_inputs_and_patterns_002_21() -> None:
    data = instances(3, 4, sparse=True)
    theta = np.random.default_rng(0).normal(size=data[0].layout.n_parameters)
    total = besag.objective("likelihood", model_of(data[0]), data)
    assert_allclose(total.hessian(theta, by="covariance"), by_enumeration(data, theta, np.ones(4)), atol=1e-11)


@pytest.mark.parametrize("hidden", [False, True])
def test_the_hessian_of_rows_004(hidden: bool, forced: Forced) -> None:
    forced({"learn.losses.covariance.CHUNK": 1})
    rng, ring = np.random.default_rng(3), [(0, 1), (1, 2), (2, 3), (3, 0)]
    model = besag.markov_network([2, 2, 2, 2], [(pair, rng.normal(size=(2, 2))) for pair in ring])
    codes = model.sample(8, seed=1).apply(lambda column: column.cat.codes).to_numpy(np.int64).copy()
    codes[0, 0] = -1 if hidden else codes[0, 0]
    total = besag.objective("likelihood", model, codes)
    names = [v.name for v in model.variables]
    expected = 8 * Enumeration(model).covariance()
    for row in codes:
        known = {name: model.variable(name).states[k] for name, k in zip(names, row, strict=True) if k >= 0}
        expected -= Enumeration(model, known).covariance()
    assert not hidden or total.hessian_by == "differences"
    assert_allclose(total.hessian(model.theta, by="covariance"), expected, atol=1e-10)


def test_hard_zeros_have_no_curvature_002_21() -> None:
    model = besag.markov_network({"A": 2, "B": 2}, [(("A", "B"), [[0.0, -np.inf], [0.3, 1.0]]), ("B", [0.1, 0.2])])
    mu = model.moments()
    total = besag.objective("likelihood", model, moments=mu)
    assert_allclose(total.hessian(model.theta, by="covariance"), Enumeration(model).covariance(), atol=1e-12)


def test_hard_zeros_of_structured_factors_count_for_nothing() -> None:
    one = besag.factors.count([-np.inf, 0.0, 0.5, -np.inf])
    model = besag.markov_network({"A": 2, "B": 2, "C": 2}, [(["A"], [0, 0.3]), (["A", "B", "C"], one)])
    whole = Enumeration(model)
    counts = whole.labels.sum(axis=1)
    features = np.stack([whole.labels[:, 0] == 0, whole.labels[:, 0] == 1, np.where(counts == 2, -0.5, 0.0)])
    assert_allclose(model.covariance(), np.cov(features.astype(float), aweights=whole.p, ddof=0), atol=1e-12)
    hessian = besag.objective("likelihood", model, [[0, 0, 1]]).hessian(model.theta)
    assert_allclose(hessian, model.covariance(), atol=1e-9)


def test_one_is_told_which_002_21(forced: Forced) -> None:
    forced({"learn.losses.likelihood.ROWS_A_PARAMETER": ROWS_A_PARAMETER})
    data = instances(3, 4)
    model = model_of(data[0])
    assert besag.objective("likelihood", model, data, engine="bp").hessian_by == "differences"
    assert besag.objective("likelihood", model, data, engine="exact").hessian_by == "covariance"
    edge, side = besag.Template("edge", (2, 2)), 30
    pairs = [[i, i + 1] for i in range(side - 1)]
    chain = besag.StructuredData([2] * side, [besag.FactorGroup(edge, pairs)], np.zeros(side, int))
    long = besag.objective("likelihood", besag.Model(chain.variables, chain.groups, np.zeros(4)), chain)
    assert long.hessian_by == "differences"  # 116 rows of evidence for 4 parameters
    assert n_rows(chain_graph := long.shards[0].graph) == 4 * (side - 1)
    assert chain_graph.n_instances == 1
    theta = np.array([0.1, 0.4, 0.3, 0.0])
    assert_allclose(long.hessian(theta, by="covariance"), long.hessian(theta), atol=1e-6)
    with pytest.raises(ModelError, match=r"by must be one of .*, got 'hand'"):
        long.hessian(theta, by="hand")


def test_standard_errors_of_logistic_regression_by_either() -> None:
    data = instances(3, 10)
    total = besag.objective("likelihood", model_of(data[0]), data, l2=0.2)
    theta = np.zeros(data[0].layout.n_parameters)
    errors = np.sqrt(np.diag(np.linalg.inv(total.hessian(theta, by="differences"))))
    assert_allclose(total.standard_errors(theta), errors, rtol=1e-6)
