"""Sweeps of two layers as matrix products: the same law as factor by factor, and as enumeration."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.errors import ApproximationWarning, ConvergenceWarning
from besag.infer.prepared import Prepared
from besag.infer.sampling.layers import Layers, layers_in
from besag.infer.sampling.single_site import single_site
from besag.learn.rbm.as_model import model_of
from besag.learn.rbm.machine import Machine
from besag.model.structured.kernels.rules import KINDS
from tests.routes import Forced

NAMES = ["a", "b", "c", "d", "e"]


def model(seed: int = 0, n_hidden: int = 4) -> besag.Model:
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(5, n_hidden)), rng.normal(size=5), rng.normal(size=n_hidden), np.zeros(5)
    return model_of(Machine(*numbers, np.arange(6), True), NAMES, [("0", "1")] * 5)


@pytest.fixture(autouse=True)
def products(forced: Forced) -> None:
    forced({"infer.sampling.layers.LEAST_FACTORS": 0})


def test_the_layers_are_found() -> None:
    m = model()
    setting = Prepared(m.problem, KINDS, None)
    assert isinstance(single_site(setting, 3, "chromatic", 1), Layers)
    assert not isinstance(single_site(setting, 3, "random", 1), Layers)
    pair = layers_in(m.graph)
    assert pair is not None
    assert_array_equal(pair.left, np.arange(5))
    assert_array_equal(pair.right, np.arange(5, 9))
    assert layers_in(besag.grid((2, 2), 2, pairwise=besag.potts(2)).graph) is None


def test_marginals_under_evidence() -> None:
    m = model()
    for evidence in ({}, {"a": "1", "h2": "0"}, {"b": {"0": 0.2, "1": 0.9}}):
        exact = m.marginals(evidence=evidence, engine="brute").probabilities
        for dtype in ("float32", "float64"):
            found = m.marginals(evidence=evidence, engine=f"gibbs[n_samples=4000,dtype={dtype}]")
            assert_allclose(found.probabilities, exact, atol=0.02)
    rows = [[-1] * 9, [1, 0, -1, -1, -1, -1, -1, -1, 0]]
    batch = m.marginals(evidence=besag.Evidence(np.array(rows), batched=True), engine="gibbs[n_samples=4000]")
    exact = m.marginals(evidence=besag.Evidence(np.array(rows), batched=True), engine="brute")
    assert_allclose(batch.probabilities, exact.probabilities, atol=0.02)


def test_samples_and_moments() -> None:
    m = model()
    drawn = m.sample(20_000, engine="gibbs[n_chains=50]", seed=1)
    every = m.to_frame()
    share = drawn.value_counts(normalize=True)
    joint = every.set_index(list(drawn.columns))["p"]
    found = share.reindex(joint.index).fillna(0.0)
    assert (np.abs(found - joint) < 6 * np.sqrt(joint * (1 - joint) / 5000) + 1e-3).all()
    assert_allclose(m.moments(engine="gibbs[n_samples=5000]"), m.moments(engine="brute"), atol=0.04)


def test_annealing() -> None:
    m = model()
    exact = float(m.log_partition(engine="brute"))
    result = m.marginals(engine="ais[n_chains=300,n_temperatures=300]")
    assert_allclose(m.log_partition(engine="ais[n_chains=300,n_temperatures=300]"), exact, atol=0.06)
    assert_allclose(result.probabilities, m.marginals(engine="brute").probabilities, atol=0.1)
    given = {"a": "1", "h0": "1"}
    clamped = m.log_partition(evidence=given, engine="ais[n_chains=300,n_temperatures=300]")
    assert_allclose(clamped, m.log_partition(evidence=given, engine="brute"), atol=0.06)


def test_answers_do_not_depend_on_threads(forced: Forced) -> None:
    forced({"infer.sampling.layers.WORTH_THREADS": 0, "infer.sampling.layers.CHUNK": 1})
    with pytest.warns(ConvergenceWarning):
        one, two = (model().marginals(engine=f"gibbs[n_samples=50,n_threads={n}]") for n in (1, 2))
    assert_array_equal(one.probabilities, two.probabilities)


def test_contrastive_divergence_runs_on_it() -> None:
    m = model()
    rows: Any = m.sample(200, seed=0)[NAMES]
    with pytest.warns(ApproximationWarning):
        fit = besag.fit(m, rows, objective="pcd", optimizer="sgd[max_iterations=3,step=0.1]", theta=m.theta)
    assert {"moved", "energy_gap"} <= set(fit.history)
