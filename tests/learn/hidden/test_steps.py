"""The steps of EM by name, on the field of Example 1 of 003: each comes to where the exact likelihood is stationary."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import besag
from besag.data.dataset import Dataset
from besag.errors import CapabilityError, EvidenceError
from besag.infer.engine import ENGINES
from besag.learn.hidden.completions import draw_hidden
from besag.learn.hidden.steps import Numbers, Visible
from besag.learn.losses.likelihood import Likelihood

pytestmark = [
    pytest.mark.filterwarnings("ignore:EM stopped"),
    pytest.mark.filterwarnings("ignore:a step of EM was not exact"),
]


def field() -> besag.Model:
    return besag.data.bundled("field_003")


def sample(n: int = 300) -> pd.DataFrame:
    """x of draws from other parameters; s1 and s2 are hidden."""
    other = field().with_theta(0.6 * np.random.default_rng(4).normal(size=len(field().theta)))
    return other.sample(n, seed=2)[["x1", "x2", "x3"]]


def slope(model: besag.Model, data: Any) -> float:
    """The norm of the gradient of the mean exact marginal log-likelihood."""
    gradient = besag.objective("likelihood", model, data).value_and_grad(model.theta)[1]
    return float(np.linalg.norm(gradient)) / len(data)


# e_step, m_step, iterations, and the norm of the gradient that is left: that of an estimate from so many sweeps
ROUTES = [
    ("exact", "exact", 40, 0.003),
    ("bp", "exact", 40, 0.003),  # the posterior of s1 and s2 is a tree
    ("gibbs[n_samples=50]", "exact", 25, 0.02),
    ("exact", "gibbs[n_samples=40,n_chains=100,max_steps=10]", 25, 0.03),
    ("exact", "pcd[n_chains=1000,max_steps=20]", 25, 0.1),
    ("exact", "contrastive_divergence[k=5,n_chains=1000,max_steps=20]", 25, 0.1),
    ("exact", "pseudolikelihood", 15, 0.1),
    ("mean_field", "exact", 20, 0.05),  # s1 and s2 meet in a factor
    ("gibbs[n_samples=20]", "pcd[n_chains=4000,max_steps=20]", 15, 0.1),
]


@pytest.mark.parametrize(("e_step", "m_step", "iterations", "left"), ROUTES)
def test_every_route_ends_where_the_exact_likelihood_is_stationary(
    e_step: str, m_step: str, iterations: int, left: float
) -> None:
    data = sample()
    found = besag.em(field(), data, e_step, m_step, max_iterations=iterations, tolerance=0.0)
    assert slope(field(), data) > 0.3
    assert slope(found.model, data) < left
    best = besag.em(field(), data, max_iterations=40, tolerance=0.0).objective
    assert -found.log_proba(data).sum() < best + 300 * left
    again = besag.em(field(), data, e_step, m_step, max_iterations=2, tolerance=0.0)
    other = besag.em(field(), data, e_step, m_step, max_iterations=2, tolerance=0.0, n_threads=1)
    np.testing.assert_array_equal(again.theta, other.theta)


def test_bp_in_the_inner_loop_matches_the_moments_of_bp() -> None:
    data = sample(50)
    step = "bp[epsilon=1e-6,max_steps=2000]"
    found = besag.em(field(), data, "exact", step, max_iterations=1, tolerance=0.0)
    mu = field().moments(evidence=data) / 50
    bp = ENGINES.read("bp[tolerance=1e-10]").infer(found.model.problem, frozenset({"moments"}))
    assert_allclose(found.model.graph.moments(bp.moments), mu, atol=2e-6)


def test_the_history_of_random_steps_has_what_is_known() -> None:
    found = besag.em(field(), sample(50), "gibbs[n_samples=5]", "exact", max_iterations=2)
    assert found.objective is None
    assert "log_likelihood" not in found.history
    assert {"g", "grad_norm"} <= set(found.history)
    found = besag.em(field(), sample(50), "exact", "pcd[max_steps=2]", max_iterations=2)
    exact = found.model.log_probability(sample(50)).sum()
    assert found.history["log_likelihood"].iloc[-1] == pytest.approx(exact)
    assert not found.is_exact


def test_moments_that_no_model_has_end_it() -> None:
    """Belief propagation may find moments outside of the marginal polytope: on a loop of hidden variables."""
    strong = 4.0 * (np.eye(2) - 0.5)
    loop = [(("a", "b"), strong), (("b", "c"), strong), (("c", "a"), -strong), (("x", "a"), 0.1 * strong)]
    model = besag.markov_network({"a": 2, "b": 2, "c": 2, "x": 2}, loop)
    data = pd.DataFrame({"x": [0, 0, 1]})
    with pytest.warns(besag.errors.ApproximationWarning, match="no model has the moments"):
        found = besag.em(model, data, "bp", max_iterations=20)
    assert found.stopped == "no_progress"
    assert np.abs(found.theta).max() < 100


def test_completions_have_the_posterior_of_the_rows() -> None:
    data = np.array([[0, 1, 0, -1, -1], [1, -1, 1, -1, 2]])
    model = field()
    drawn = draw_hidden(model.graph, data, Numbers(model.theta, None), 4000, np.random.default_rng(0))
    assert drawn.shape == (2, 4000, 5)
    for row, own in zip(data, drawn, strict=True):
        known = row >= 0
        assert (own[:, known] == row[known]).all()
        names = [variable.name for variable in model.variables]
        given = {name: model.variable(name).states[c] for name, c in zip(names, row, strict=True) if c >= 0}
        for v in np.flatnonzero(~known):
            expected = model.marginals(evidence=given)[names[v]]
            assert_allclose(np.bincount(own[:, v], minlength=len(expected)) / 4000, expected, atol=0.03)


def test_where_hidden_variables_do_not_meet_the_posterior_is_a_product_found_by_itself() -> None:
    """Of a bipartite graph the exact engine is left with single variables: tables of 3 entries each, not of 9."""
    apart = field().with_tables({"E2:s1s2": np.zeros((3, 3))})
    rng = np.random.default_rng(0)
    machine = besag.markov_network(
        {**{f"v{i}": 2 for i in range(6)}, **{f"h{j}": 2 for j in range(12)}},
        [((f"v{i}", f"h{j}"), rng.normal(size=(2, 2))) for i in range(6) for j in range(12)],
    )
    codes = np.full((5, 18), -1)
    codes[:, :6] = rng.integers(2, size=(5, 6))
    visible = Visible(machine, Dataset.rows(machine, codes).all, Likelihood(ENGINES.read("exact")))
    assert visible.hidden is not None
    rows = besag.Evidence(visible.hidden.labels, batched=True)
    found = ENGINES.read("exact").infer(machine.problem.with_evidence(rows), frozenset({"log_partition", "moments"}))
    assert found.diagnostics["entries"] == 12 * 2
    assert len(apart.variables) == 5


def test_samplers_that_find_no_start_say_so() -> None:
    """x = 1 rules out both states of s."""
    zero = -np.inf
    tables = [(("s", "x"), [[0.1, zero], [0.3, zero]]), (("s", "t"), [[0.0, 1.0], [1.0, 0.5]])]
    model = besag.markov_network({"s": 2, "t": 2, "x": 2}, tables)
    data = pd.DataFrame({"x": [0, 1]})
    with pytest.raises(EvidenceError, match="the sampler found no labelling of instance 1"):
        besag.em(model, data, "gibbs", max_iterations=2)
    for objective in ("pcd", "contrastive_divergence"):
        with pytest.raises(EvidenceError, match="the sampler found no labelling of instance 1"):
            besag.fit(model, data, objective=objective, optimizer="sgd[max_iterations=1,step=0.1]", theta=model.theta)


@pytest.mark.parametrize("step", ["gibbs[n_samples=0]", "pcd[k=0]", "gibbs[step=-1]", "bp[max_steps=0]"])
def test_options_of_steps_are_checked(step: str) -> None:
    with pytest.raises(CapabilityError):
        besag.em(field(), sample(5), "exact", step)
