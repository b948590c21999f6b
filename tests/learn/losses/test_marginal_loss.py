"""Marginal loss: values from marginals, gradients against finite differences, converged and truncated."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.arrays import Array, IntArray
from besag.errors import ApproximationWarning, CapabilityError, EvidenceError
from tests.learn.losses.test_likelihood import differences, instances, model_of
from tests.learn.losses.test_surrogates import drawn_rows
from tests.routes import Forced
from tests.strategies import examples, generators, models

EXACT = ("marginal_loss[engine=tree]", "marginal_loss[engine=junction_tree]", "marginal_loss[engine=brute]")
TRUNCATED = ("marginal_loss[engine=bp,iterations=3]", "marginal_loss[engine=trw,iterations=4]")
LOOPY = ("marginal_loss[engine=bp]", "marginal_loss[engine=trw]", "marginal_loss[engine=mean_field[tolerance=1e-14]]")


def by_marginals(model: besag.Model, rows: IntArray, weights: Array, engine: str) -> float:
    """- sum_n w_n sum_v log b_v(y_v) with the marginals that a verb gives."""
    found, total = model.marginals(engine=engine), 0.0
    for row, weight in zip(rows, weights, strict=True):
        for v, k in enumerate(row):
            if k >= 0:
                total -= weight * np.log(found[model.variables.names[v]][k])
    return total


@pytest.mark.parametrize("engine", ["brute", "junction_tree", "bp[max_iterations=3,tolerance=0]"])
@examples(40)
@given(data=st.data(), rng=generators())
def test_values_are_those_of_marginals(engine: str, data: DataObject, rng: np.random.Generator) -> None:
    model = data.draw(models(max_labellings=60))
    rows, weights = drawn_rows(model, 3, data.draw(st.sampled_from([0.0, 0.4])), rng), rng.random(3)
    name = "marginal_loss[engine=bp,iterations=3]" if engine.startswith("bp") else f"marginal_loss[engine={engine}]"
    value, _ = besag.objective(name, model, rows, weights=weights).value_and_grad(model.theta)
    assert value == pytest.approx(by_marginals(model, rows, weights, engine), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", [*EXACT[1:], *TRUNCATED])
@examples(40)
@given(data=st.data(), rng=generators())
def test_gradients_are_differences_of_values(name: str, data: DataObject, rng: np.random.Generator) -> None:
    """Any arity, cardinalities, structured factors, hard zeros, weights, unknown labels."""
    model = data.draw(models(max_labellings=40))
    rows = drawn_rows(model, 3, data.draw(st.sampled_from([0.0, 0.3])), rng)
    objective = besag.objective(name, model, rows, weights=rng.random(3), l2=0.1)
    theta = model.theta + 0.3 * rng.normal(size=model.theta.shape)
    assert_allclose(objective.value_and_grad(theta)[1], differences(objective, theta), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("hidden", [0.0, 0.3])
@pytest.mark.parametrize("name", LOOPY)
def test_gradients_of_engines_that_settle(name: str, hidden: float) -> None:
    data = instances(5, 4, hidden=hidden, sparse=hidden > 0)
    rng = np.random.default_rng(0)
    theta = 0.5 * rng.normal(size=data[0].layout.n_parameters)
    objective = besag.objective(name, model_of(data[0]), data, weights=rng.random(4), l2=0.1)
    assert_allclose(objective.value_and_grad(theta)[1], differences(objective, theta), rtol=1e-5, atol=1e-5)


def ring_with_a_triple(seed: int, zeros: bool, scale: float = 1.0) -> besag.Model:
    """A ring of mixed cardinalities with a factor of three variables, all single states possible."""
    rng = np.random.default_rng(seed)
    cards = [2, 3, 2, 4, 3]
    factors: list[Any] = [
        ((v, (v + 1) % 5), scale * rng.normal(size=(k, cards[(v + 1) % 5]))) for v, k in enumerate(cards)
    ]
    factors += [((0, 2, 4), scale * rng.normal(size=(2, 2, 3))), ((3,), rng.normal(size=4))]
    if zeros:
        factors[0][1][1, 2] = factors[-2][1][0, 1, 1] = -np.inf
    return besag.markov_network(cards, factors)


@pytest.mark.parametrize("zeros", [False, True])
def test_iterations_are_those_of_the_engine(zeros: bool) -> None:
    model, rows = ring_with_a_triple(1, zeros), np.array([[0, 1, 0, 2, 1], [1, 0, -1, 3, 2]])
    for k in (1, 2, 3, 7):
        for engine in ("bp", "trw"):
            value, _ = besag.objective(f"marginal_loss[engine={engine},iterations={k}]", model, rows).value_and_grad(
                model.theta
            )
            options = f"max_iterations={k},tolerance=0"
            assert value == pytest.approx(by_marginals(model, rows, np.ones(2), f"{engine}[{options}]"), rel=1e-10)


@pytest.mark.parametrize("name", ["marginal_loss[engine=trw[damping=0.3],iterations=5]", *TRUNCATED])
@pytest.mark.parametrize("scale", [1.0, 400.0])
def test_back_propagation_is_exact(name: str, scale: float) -> None:
    """Also where sums of weights leave the range of numbers, and logarithms take over."""
    model, rows = ring_with_a_triple(2, zeros=True, scale=scale), np.array([[0, 1, 0, 2, 1], [1, 0, 0, 3, 2]])
    objective = besag.objective(name, model, rows)
    expected = differences(objective, model.theta)
    assert_allclose(objective.value_and_grad(model.theta)[1], expected, rtol=1e-7, atol=1e-7 * np.sqrt(scale))


@pytest.mark.parametrize("name", [*EXACT[1:2], *LOOPY, *TRUNCATED])
def test_a_union_is_the_sum_of_its_instances(name: str) -> None:
    data, rng = instances(1, 4, hidden=0.2), np.random.default_rng(0)
    weights, theta = rng.random(4), rng.normal(size=data[0].layout.n_parameters)
    value, gradient = besag.objective(name, model_of(data[0]), data, weights=weights).value_and_grad(theta)
    halves = [
        besag.objective(name, model_of(data[0]), data[part], weights=weights[part]).value_and_grad(theta)
        for part in (slice(0, 2), slice(2, 4))
    ]
    assert value == pytest.approx(sum(own[0] for own in halves), rel=1e-8)
    assert_allclose(gradient, sum(own[1] for own in halves), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [*LOOPY, *TRUNCATED])
def test_shards_threads_and_mini_batches(name: str, forced: Forced) -> None:
    data = instances(3, 12)
    theta = 0.5 * np.random.default_rng(0).normal(size=data[0].layout.n_parameters)
    whole = besag.objective(name, model_of(data[0]), data)
    expected = whole.value_and_grad(theta)
    parts = [whole.sampled(theta, np.arange(n, n + 4)) for n in (0, 4, 8)]
    assert np.mean([part[0] for part in parts]) == pytest.approx(expected[0], rel=1e-8)
    assert_allclose(np.mean([part[1] for part in parts], axis=0), expected[1], rtol=1e-5, atol=1e-5)
    forced({"data.dataset.SHARD_VARIABLES": 8})
    one, two = (besag.objective(name, model_of(data[0]), data, n_threads=n).value_and_grad(theta) for n in (1, 2))
    assert one[0] == two[0] == pytest.approx(expected[0], rel=1e-8)
    assert_array_equal(one[1], two[1])
    assert_allclose(one[1], expected[1], rtol=1e-5, atol=1e-5)


def test_labels_of_very_different_beliefs_are_perturbed_apart() -> None:
    """A label of belief 1e-9 does not spoil what the others say."""
    model = besag.markov_network([2, 2, 2], [((0, 1), [[0.0, 20.0], [1.0, 0.5]]), ((1, 2), [[0.0, 0.3], [0.5, 1.0]])])
    objective = besag.objective("marginal_loss[engine=tree]", model, [[0, 0, 1], [0, 1, 0]])
    truncated = besag.objective("marginal_loss[engine=bp,iterations=4]", model, [[0, 0, 1], [0, 1, 0]])
    assert_allclose(objective.value_and_grad(model.theta)[1], truncated.value_and_grad(model.theta)[1], atol=1e-5)
    assert model.marginals()["0"][1] < 1e-8


def test_without_edges_it_is_the_likelihood() -> None:
    model, rows = besag.markov_network([3, 2], [((0,), [0.1, 0.5, 1.0]), ((1,), [0.3, 0.0])]), [[0, 1], [2, 0]]
    expected = besag.objective("likelihood", model, rows).value_and_grad(model.theta)
    for name in (*EXACT, *LOOPY, *TRUNCATED):
        value, gradient = besag.objective(name, model, rows).value_and_grad(model.theta)
        assert value == pytest.approx(expected[0], rel=1e-10)
        assert_allclose(gradient, expected[1], atol=1e-8)


@pytest.mark.parametrize("name", ["marginal_loss[engine=exact]", *TRUNCATED])
def test_a_fit(name: str) -> None:
    """It ends at a minimum of its own loss, below that of the likelihood's theta."""
    truth, flat = besag.ising((3, 3), 0.3, 0.2), besag.ising((3, 3), 0.0, 0.0)
    rows = truth.sample(300, seed=1)
    likely = besag.fit(flat, rows, l2=0.1)
    if "iterations" in name:
        with pytest.warns(ApproximationWarning, match="inference was not exact"):
            found = besag.fit(flat, rows, l2=0.1, objective=name)
    else:
        found = besag.fit(flat, rows, l2=0.1, objective=name)
    assert (found.converged, found.surrogate, found.is_exact) == (True, "marginal_loss", "iterations" not in name)
    assert found.objective < besag.objective(name, flat, rows, l2=0.1).value(likely.theta)
    sparse = besag.objective(name, flat, rows, l1=3.0)
    assert np.isfinite(sparse.value(found.theta))


def test_impossible_labels_and_options() -> None:
    model = besag.markov_network({"A": 2, "B": 2}, [(("A",), [0.0, -np.inf]), (("A", "B"), [[0.0, 1.0], [0.0, 0.0]])])
    for name in ("marginal_loss[engine=tree]", "marginal_loss[iterations=2]"):
        with pytest.raises(EvidenceError, match="instance 1 has labels of probability zero"):
            besag.objective(name, model, [[0, 0], [1, -1]])
        assert np.isfinite(besag.objective(name, model, [[0, 0], [-1, -1]]).value(model.theta))
    flat = besag.markov_network({"A": 2}, [(("A",), [0.0, 0.0])])
    for text, match in {
        "marginal_loss[engine=gibbs]": "takes marginals of brute, bp, .*, not of 'gibbs'",
        "marginal_loss[engine=trw[optimise=true]]": "leave out optimise=true",
        "marginal_loss[engine=tree,iterations=3]": "iterations= are those of bp or trw, 'tree' is no such engine",
        "marginal_loss[engine=bp[damping=0.5],iterations=3]": "iterations of bp are synchronous, without damping",
        "marginal_loss[iterations=0]": "iterations must be a whole number of at least 1, got 0",
    }.items():
        with pytest.raises(CapabilityError, match=match):
            besag.objective(text, flat, [[0]])
