"""KL of two models, and of labellings and a model; which of its answers, and of entropy, are exact."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import besag
from besag.errors import ModelError, TooLargeError
from besag.infer.iterate import Clock
from besag.infer.junction.engine import JunctionTree
from besag.model.model import Model
from besag.query import divergence
from tests.conformance.test_invariance import shuffled
from tests.oracle import Enumeration
from tests.strategies import evidence_for, examples, generators, models

RING = besag.ising([(0, 1), (1, 2), (2, 3), (0, 3)], 1.0)


def true_kl(p: Model, q: Model) -> float:
    """sum p log(p / q) by enumeration, the variables of q in the order of p."""
    one, two = Enumeration(p), Enumeration(q)
    names = [v.name for v in p.variables]
    order = np.argsort(np.ravel_multi_index([two.column(n) for n in names], p.variables.cardinalities.tolist()))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(one.p > 0, one.log_weights - one.log_z - (two.log_weights[order] - two.log_z), 0.0)
    return float(np.where(one.p > 0, one.p * ratio, 0.0).sum())


@examples(40)
@given(data=st.data(), rng=generators())
def test_004_kl_of_two_models(data: st.DataObject, rng: np.random.Generator) -> None:
    p = data.draw(models(max_labellings=200))
    q = shuffled(p, rng, rng.normal(size=p.n_factors))
    np.testing.assert_allclose(besag.kl(p, q), 0, atol=1e-9)
    conditioned = p.condition(data.draw(evidence_for(p)))
    np.testing.assert_allclose(besag.kl(conditioned, p), true_kl(conditioned, p), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(besag.kl(p, conditioned), true_kl(p, conditioned), rtol=1e-8, atol=1e-8)


@examples(25)
@given(model=models(max_labellings=200), rng=generators())
def test_004_kl_of_models_with_other_numbers(model: Model, rng: np.random.Generator) -> None:
    free = np.ones(model.theta.shape, bool) if model.support is None else model.support
    q = model.with_theta(np.where(free, model.theta + rng.normal(size=model.theta.shape), 0.0))
    np.testing.assert_allclose(besag.kl(model, q), true_kl(model, q), rtol=1e-8, atol=1e-8)


def test_kl_is_infinite_where_q_rules_out_what_p_allows() -> None:
    p = besag.bayesian_network("A -> B", cpts={"A": [0.5, 0.5]})
    q = p.with_cpt("B", [[1.0, 0.0], [0.5, 0.5]])
    assert besag.kl(p, q) == np.inf
    assert besag.kl(q, p) == pytest.approx(0.5 * np.log(2))
    assert besag.kl(p.with_cpt("A", [0.0, 1.0]), q) == pytest.approx(np.log(2))


@pytest.mark.parametrize(
    ("q", "match"),
    [
        ({"A": 2}, "p has 2, q has 1"),
        ({"A": 2, "B": 3}, "'B' differs"),
        ({"A": 2, "C": 2}, "'C' differs"),
        ({"A": 2, "B": ["1", "0"]}, "'B' differs"),
        ({"A": 2, "B": 2, "C": 2}, "'C' differs"),
    ],
)
def test_kl_needs_the_same_variables(q: Any, match: str) -> None:
    with pytest.raises(ModelError, match=f"kl needs models on the same variables.*{match}"):
        besag.kl(besag.markov_network({"A": 2, "B": 2}, []), besag.markov_network(q, []))


# How it is found -----------------------------------------------------------------------------------------------------


def on_the_variables_of(model: Model, factors: list[Any]) -> Model:
    return besag.markov_network({v.name: list(v.states) for v in model.variables}, factors)


@examples(25)
@given(model=models(max_labellings=200), rng=generators())
def test_scopes_that_p_does_not_have(model: Model, rng: np.random.Generator) -> None:
    names, sizes = [v.name for v in model.variables], model.variables.cardinalities
    scopes = [rng.permutation(len(names))[: rng.integers(1, min(4, len(names) + 1))] for _ in range(4)]
    q = on_the_variables_of(model, [([names[v] for v in s], rng.normal(size=sizes[s])) for s in scopes])
    for engine in ("auto", "brute"):
        found = besag.kl(model, q, engine=engine)
        assert found.bound == "exact"
        assert_allclose(found, true_kl(model, q), rtol=1e-8, atol=1e-8)


def test_p_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = besag.ising((5, 5), 0.4, 0.1)
    diagonals = [((f"{i},{j}", f"{i + 1},{j + 1}"), [[0.3, 0.0], [0.0, 0.3]]) for i in range(4) for j in range(4)]
    asked, infer = list[int](), JunctionTree.infer

    def counted(self: Any, problem: Any, want: Any, **options: Any) -> Any:
        asked.append(problem.graph.n_factors)
        return infer(self, problem, want, **options)

    monkeypatch.setattr(JunctionTree, "infer", counted)
    besag.kl(grid, besag.ising((5, 5), 0.3))
    assert asked == [65, 65]
    asked.clear()
    besag.kl(grid, on_the_variables_of(grid, diagonals))
    assert asked == [65 + 16, 16] or asked == [65 + 16]  # of q, diagonals alone, a forest


def test_scopes_are_asked_one_by_one_where_all_together_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    q = on_the_variables_of(RING, [(("0", "2"), [[0.5, 0.0], [0.0, 0.5]]), (("1", "3"), [[0.2, 0.0], [0.0, 0.3]])])
    expected = besag.kl(RING, q)

    def refuse(*_: Any) -> Any:
        raise TooLargeError("too large")

    monkeypatch.setattr(divergence, "_with_scopes", refuse)
    found = besag.kl(RING, q)
    assert found.bound == "exact"
    assert_allclose(found, expected)
    ticks = iter(range(100))
    monkeypatch.setattr(divergence, "Clock", lambda limit: Clock(limit, 0.0, lambda: float(next(ticks))))
    with pytest.raises(TooLargeError, match=r"kl takes the joint distribution of 2 scopes .* time_limit leaves"):
        besag.kl(RING, q, time_limit=5)


def test_a_grid_takes_no_longer_than_its_inference() -> None:
    """A joint query for each edge would take minutes."""
    one, other = besag.ising((16, 16), 0.4, 0.1), besag.ising((16, 16), 0.36, 0.1)
    found, moments = besag.kl(one, other), one.moments()
    difference = float((one.theta - other.theta) @ moments)
    assert_allclose(found, other.log_partition() - one.log_partition() - difference, rtol=1e-9)
    assert found.bound == "exact"


# Exact or estimate ---------------------------------------------------------------------------------------------------


def test_what_is_approximate_says_so() -> None:
    """001: loopy belief propagation on a ring of four finds another entropy."""
    exact, bethe = RING.entropy(), RING.entropy(engine="bp")
    assert (exact.bound, exact.standard_error) == ("exact", 0.0)
    assert (bethe.bound, bethe.standard_error) == ("estimate", None)
    assert_allclose(exact, Enumeration(RING).entropy())
    assert abs(bethe - exact) > 0.2
    assert repr(bethe).endswith("± ?")
    other = besag.ising([(0, 1), (1, 2), (2, 3), (0, 3)], 0.8, 0.2)
    assert besag.kl(RING, other).bound == "exact"
    for engine in ("bp", "mean_field", "trw"):
        assert besag.kl(RING, other, engine=engine).bound == "estimate"


def test_an_estimate_of_a_chain_by_belief_propagation_is_right() -> None:
    one, other = (besag.chain(np.zeros((5, 2)), c * np.eye(2)) for c in (1.0, 0.3))
    assert_allclose(besag.kl(one, other, engine="bp"), true_kl(one, other), atol=1e-6)


def test_a_large_model_is_estimated_within_the_time_limit() -> None:
    large = besag.ising((40, 40), 0.2, 0.1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = besag.kl(large, besag.ising((40, 40), 0.15, 0.1), time_limit=4)
    assert found.bound == "estimate"
    assert found > 0
    assert {w.category.__name__ for w in caught} <= {"ApproximationWarning", "ConvergenceWarning"}


# Labellings ----------------------------------------------------------------------------------------------------------


@examples(30)
@given(data=st.data())
def test_004_kl_of_the_empirical_distribution(data: st.DataObject) -> None:
    """KL(q || p) = sum_y q(y) ln q(y) - sum_y q(y) ln p(y), q the share of each labelling."""
    model = data.draw(models(max_labellings=100))
    frame = model.sample(12, seed=data.draw(st.integers(0, 99)))
    truth = Enumeration(model)
    found = besag.kl(frame, model)
    log_p = model.log_probability(frame)
    shares = frame.astype(str).value_counts(normalize=True).to_numpy()
    assert_allclose(found, (shares * np.log(shares)).sum() - np.mean(log_p), atol=1e-9)
    assert found.bound == "exact"
    assert found >= -1e-12
    assert truth.p.min() >= 0


def test_004_kl_of_all_labellings_in_proportion_is_zero() -> None:
    model = besag.bayesian_network("A -> B", cpts={"A": [0.5, 0.5], "B": [[0.25, 0.75], [0.5, 0.5]]})
    rows = [("0", "0")] + 3 * [("0", "1")] + 2 * [("1", "0")] + 2 * [("1", "1")]
    assert_allclose(besag.kl(pd.DataFrame(rows, columns=["A", "B"]), model), 0, atol=1e-12)


def test_kl_of_labellings_that_the_model_rules_out_is_infinite() -> None:
    model = besag.bayesian_network("A -> B", cpts={"A": [0.5, 0.5], "B": [[1.0, 0.0], [0.5, 0.5]]})
    assert besag.kl(pd.DataFrame({"A": ["0"], "B": ["1"]}), model) == np.inf


def test_labellings_must_be_complete() -> None:
    with pytest.raises(ModelError, match="row 1: a labelling must give every variable one state; '2' has none"):
        besag.kl(pd.DataFrame({"0": [1, 1], "1": [1, -1], "2": [1, None], "3": [1, 1]}), RING)
    with pytest.raises(ModelError, match="needs at least one row"):
        besag.kl(np.zeros((0, 4), np.int64), RING)
    with pytest.raises(ModelError, match="kl takes two models, or a frame of labellings and a model, got DataFrame"):
        besag.kl(RING, RING.sample(3))  # type: ignore[arg-type]
