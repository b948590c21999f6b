"""Several engines or models side by side: compare, kl."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import besag
from besag.errors import CapabilityError, ModelError
from besag.infer.brute import Brute
from besag.model.model import Model
from tests.conformance.test_invariance import shuffled
from tests.oracle import Enumeration
from tests.strategies import evidence_for, examples, generators, models

LOOP = besag.ising((2, 2), 0.5, 0.1)


def test_compare() -> None:
    frame = besag.compare(LOOP, ["brute", "exact", Brute(memory_limit=10**6)], evidence={"0,0": 1})
    assert frame.index.tolist() == ["brute", "exact", "brute[memory_limit=1000000]"]
    assert set(frame.columns) == {"log_partition", "bound", "error", "seconds", "converged"}
    assert frame["bound"].tolist() == ["exact"] * 3
    np.testing.assert_allclose(frame["log_partition"], Enumeration(LOOP, {"0,0": 1}).log_z)
    np.testing.assert_allclose(frame["error"], 0, atol=1e-12)
    assert frame["converged"].all()
    assert (frame["seconds"] >= 0).all()


# kl ------------------------------------------------------------------------------------------------------------------


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
def test_kl(data: st.DataObject, rng: np.random.Generator) -> None:
    p = data.draw(models(max_labellings=200))
    q = shuffled(p, rng, rng.normal(size=p.n_factors))
    np.testing.assert_allclose(besag.kl(p, q), 0, atol=1e-9)
    conditioned = p.condition(data.draw(evidence_for(p)))
    np.testing.assert_allclose(besag.kl(conditioned, p), true_kl(conditioned, p), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(besag.kl(p, conditioned), true_kl(p, conditioned), rtol=1e-8, atol=1e-8)


@examples(25)
@given(model=models(max_labellings=200), rng=generators())
def test_kl_of_models_with_other_numbers(model: Model, rng: np.random.Generator) -> None:
    free = np.ones(model.theta.shape, bool) if model.support is None else model.support
    q = model.with_theta(np.where(free, model.theta + rng.normal(size=model.theta.shape), 0.0))
    np.testing.assert_allclose(besag.kl(model, q), true_kl(model, q), rtol=1e-8, atol=1e-8)


def test_compare_takes_one_engine_and_looks_at_all_names_before_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    model = besag.bayesian_network("A -> B")
    assert besag.compare(model, "bp").index.tolist() == ["bp"]
    assert besag.compare(model, besag.infer.BP(damping=0.5)).index.tolist() == ["bp[damping=0.5]"]
    asked = list[Any]()
    monkeypatch.setattr("besag.query.compare.marginals", lambda *given: asked.append(given))
    with pytest.raises(CapabilityError, match="no engine is named 'nope'"):
        besag.compare(model, ["bp", "nope"])
    assert asked == []


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
