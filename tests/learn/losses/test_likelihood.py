"""The negative log-likelihood: values and gradients of random data, against enumeration and finite differences."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

import besag
from besag.arrays import Array
from besag.data.dataset import Batch
from besag.errors import ApproximationWarning, CapabilityError, EvidenceError, ModelError
from tests.routes import Forced


def instances(seed: int, n: int, *, hidden: float = 0.0, sparse: bool = False) -> list[besag.StructuredData]:
    """Small graphs with cycles, dense or sparse inputs on the nodes, a shared table and a basis on the edges."""
    rng = np.random.default_rng(seed)
    node = besag.Template(
        "node", (3,), n_inputs=4, pattern=besag.Pattern([3, 0, 0, 2], [0, 1, 2, 0]) if sparse else None
    )
    edge = besag.Template("edge", (3, 3))
    bend = besag.Template("bend", (3, 3), n_inputs=2, basis=rng.normal(size=(2, 3, 3)))
    made = []
    for _ in range(n):
        size = int(rng.integers(3, 6))
        ring = np.stack([np.arange(size), np.roll(np.arange(size), -1)], axis=1)
        x = rng.normal(size=(size, 4)) * (rng.random((size, 4)) < 0.6)
        groups = (
            besag.FactorGroup(node, np.arange(size)[:, None], inputs=csr_array(x) if sparse else x),
            besag.FactorGroup(edge, ring),
            besag.FactorGroup(bend, ring[:2], inputs=rng.normal(size=(2, 2))),
        )
        labels = np.where(rng.random(size) < hidden, -1, rng.integers(3, size=size))
        made.append(besag.StructuredData([3] * size, groups, labels))
    return made


def model_of(data: besag.StructuredData, theta: Array | None = None) -> besag.Model:
    n = data.layout.n_parameters
    return besag.Model(data.variables, data.groups, np.zeros(n) if theta is None else theta)


def log_likelihood(data: list[besag.StructuredData], theta: Array, weights: Array) -> float:
    """By enumeration of each instance, unknown labels summed out."""
    total = 0.0
    for part, weight in zip(data, weights, strict=True):
        model = model_of(part, theta)
        known = {model.variables.names[v]: str(k) for v, k in enumerate(part.labels) if k >= 0}
        total += weight * (model.log_partition(evidence=known, engine="brute") - model.log_partition(engine="brute"))
    return total


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("hidden", [0.0, 0.4, 1.0])
def test_value_and_gradient_of_a_union(hidden: float, sparse: bool) -> None:
    data = instances(1, 5, hidden=hidden, sparse=sparse)
    rng = np.random.default_rng(2)
    weights, theta = rng.random(5) + 0.5, rng.normal(size=data[0].layout.n_parameters)
    objective = besag.objective("likelihood", model_of(data[0]), data, l2=0.3, weights=weights, engine="exact")
    value, gradient = objective.value_and_grad(theta)
    assert value == pytest.approx(-log_likelihood(data, theta, weights) + 0.3 * theta @ theta, rel=1e-10)
    assert_allclose(gradient, differences(objective, theta), rtol=1e-6, atol=1e-6)


def differences(objective: Any, theta: Array) -> Array:
    steps = 1e-5 * np.eye(len(theta))
    values = [(objective.value_and_grad(theta + h)[0], objective.value_and_grad(theta - h)[0]) for h in steps]
    return np.array([(ahead - behind) / 2e-5 for ahead, behind in values])


@pytest.mark.parametrize("hidden", [False, True])
def test_value_and_gradient_of_rows(hidden: bool) -> None:
    model = besag.data.random_model("grid", 6, seed=3)
    codes = model.sample(20, seed=1).apply(lambda column: column.cat.codes).to_numpy(np.int64).copy()
    if hidden:
        codes[np.random.default_rng(0).random(codes.shape) < 0.3] = -1
    weights, theta = np.linspace(0.5, 2, 20), np.random.default_rng(1).normal(size=model.theta.shape)
    objective = besag.objective("likelihood", model, codes, weights=weights)
    value, gradient = objective.value_and_grad(theta)
    fitted, names = model.with_theta(theta), [model.variables.names[v] for v in range(len(model.variables))]
    rows = [{n: str(model.variable(n).states[k]) for n, k in zip(names, row, strict=True) if k >= 0} for row in codes]
    expected = sum(w * fitted.log_probability(row) for w, row in zip(weights, rows, strict=True))
    assert value == pytest.approx(-expected, rel=1e-10)
    assert_allclose(gradient, differences(objective, theta), rtol=1e-6, atol=1e-6)


def test_rows_may_be_a_frame_of_states() -> None:
    model = besag.data.bundled("asia")
    frame = model.sample(30, seed=1)
    codes = frame.apply(lambda column: column.cat.codes).to_numpy(np.int64)
    one = besag.objective("likelihood", model, frame).value_and_grad(model.theta)
    two = besag.objective("likelihood", model, codes).value_and_grad(model.theta)
    assert one[0] == two[0]
    assert_array_equal(one[1], two[1])
    assert one[0] == pytest.approx(-float(np.sum(model.log_probability(frame))), rel=1e-9)


def test_the_hessian_is_a_covariance() -> None:
    """002 (21): N times the covariance of the features, plus the penalty's 2 l2."""
    model = besag.data.random_model("tree", 4, seed=5)
    objective = besag.objective("likelihood", model, np.zeros((7, 4), int), l2=0.5)
    covariance = np.asarray(model.covariance())
    assert_allclose(objective.hessian(model.theta), 7 * covariance + np.eye(len(model.theta)), rtol=1e-5, atol=1e-7)


def test_standard_errors_of_a_coin() -> None:
    """Of the log-odds they are 1 / sqrt(N p (1 - p)); theta can be told as (log-odds, -log-odds) / 2."""
    model = besag.markov_network({"A": 2}, [(("A",), [0.0, 0.0])])
    data = np.repeat([[0], [1]], [30, 70], axis=0)
    found = besag.fit(model, data, optimizer="lbfgs[tolerance=1e-10]")
    errors = besag.objective("likelihood", model, data).standard_errors(found.theta)
    assert_allclose(errors, np.full(2, 0.5 / np.sqrt(100 * 0.3 * 0.7)), rtol=1e-4)


def test_an_engine_that_is_not_exact_is_told() -> None:
    model = besag.data.random_model("grid", 9, seed=1)
    codes = model.sample(30, seed=1).apply(lambda column: column.cat.codes).to_numpy(np.int64)
    with pytest.warns(ApproximationWarning, match="value and gradient are those of an approximation"):
        loose = besag.fit(model, codes, engine="bp[damping=0.5]", l2=1.0)
    exact = besag.fit(model, codes, l2=1.0)
    assert exact.is_exact
    assert not loose.is_exact
    assert loose.objective == pytest.approx(exact.objective, rel=0.02)


def test_threads_and_shards_change_no_bit(forced: Forced) -> None:
    forced({"data.dataset.SHARD_VARIABLES": 8})
    data = instances(3, 20)
    theta = np.random.default_rng(0).normal(size=data[0].layout.n_parameters)
    answers = [
        besag.objective("likelihood", model_of(data[0]), data, n_threads=n).value_and_grad(theta) for n in (1, 2, 3)
    ]
    for value, gradient in answers[1:]:
        assert value == answers[0][0]
        assert_array_equal(gradient, answers[0][1])
    forced({"data.dataset.SHARD_VARIABLES": 1 << 14})
    whole = besag.objective("likelihood", model_of(data[0]), data).value_and_grad(theta)
    assert whole[0] == pytest.approx(answers[0][0], rel=1e-12)


def test_mini_batches_are_unbiased() -> None:
    data = instances(4, 6)
    theta = np.random.default_rng(0).normal(size=data[0].layout.n_parameters)
    objective = besag.objective("likelihood", model_of(data[0]), data, l2=0.1)
    value, gradient = objective.value_and_grad(theta)
    parts = [objective.sampled(theta, np.array([n])) for n in range(6)]
    assert np.mean([part[0] for part in parts]) == pytest.approx(value, rel=1e-12)
    assert_allclose(np.mean([part[1] for part in parts], axis=0), gradient, rtol=1e-9, atol=1e-9)


def test_labels_that_meet_hard_zeros_are_impossible() -> None:
    model = besag.markov_network({"A": 2, "B": 2}, [(("A", "B"), [[0.0, 1.0], [-np.inf, 0.0]])])
    objective = besag.objective("likelihood", model, [[1, -1], [1, 1]])
    assert np.isfinite(objective.value_and_grad(model.theta)[0])
    with pytest.raises(EvidenceError, match=r"instance 1.*hard zeros"):
        besag.objective("likelihood", model, [[1, 1], [1, 0]])


def test_bad_data() -> None:
    model = besag.markov_network({"A": 2, "B": 3}, [(("A", "B"), np.zeros((2, 3)))])
    with pytest.raises(ModelError, match="row 1: 'B' has codes 0 to 2 and -1 = unknown, got 3"):
        besag.fit(model, [[0, 0], [1, 3]])
    with pytest.raises(ModelError, match="rows must have 2 columns"):
        besag.fit(model, [[0, 0, 0]])
    with pytest.raises(ModelError, match="int codes with -1 = unknown"):
        besag.fit(model, [[0.5, 0.1]])
    with pytest.raises(EvidenceError, match="no variable is named 'C'"):
        besag.fit(model, pd.DataFrame({"C": ["0"]}))
    with pytest.raises(CapabilityError, match="no objective is named 'margin'"):
        besag.objective("margin", model, [[0, 0]])
    with pytest.raises(ModelError, match=r"weights must have shape \(1,\)"):
        besag.fit(model, [[0, 0]], weights=[1, 2])
    with pytest.raises(ModelError, match=r"from 0 on, got -1\.0 for instance 0"):
        besag.fit(model, [[0, 0]], weights=[-1.0])
    with pytest.raises(ModelError, match="l2 must be a finite number"):
        besag.fit(model, [[0, 0]], l2=-1)
    data = instances(1, 2)
    with pytest.raises(ModelError, match="they must be the same"):
        besag.fit(model, data)
    unlabelled = besag.StructuredData(data[0].variables, data[0].groups)
    with pytest.raises(ModelError, match="instance 1 has no labels"):
        besag.fit(model_of(data[0]), [data[0], unlabelled])
    with pytest.raises(ModelError, match="the label of '0' must be from 0 to 2, or -1 = unknown, got 5"):
        besag.StructuredData([3, 3], [], labels=np.array([5, 0]))
    with pytest.raises(ModelError, match="rows of labels need a graph of one instance"):
        Batch(besag.Dataset.union(data).all.graph, np.zeros((2, besag.Dataset.union(data).all.graph.n_variables), int))


def test_rows_that_are_none() -> None:
    model = besag.markov_network({"A": 2, "B": 3}, [(("A", "B"), np.zeros((2, 3)))])
    with pytest.raises(ModelError, match="at least one row"):
        besag.fit(model, np.zeros((0, 2), int))
    with pytest.raises(ModelError, match="rows must have one length"):
        besag.fit(model, [[0], [0, 1]])
    with pytest.raises(ModelError, match="sets of states and likelihoods are evidence"):
        besag.fit(model, pd.DataFrame({"A": ["0", "1"], "B": [["0", "1"], "2"]}))
    with pytest.raises(ModelError, match="threads must be"):
        besag.objective("likelihood", model, [[0, 0]], n_threads=0)
    with pytest.raises(ModelError, match="instance 1 must be StructuredData"):
        besag.fit(model, [besag.StructuredData([2], [], labels=[-1]), 3])


def test_impossible_instances_are_named_by_their_own_number() -> None:
    same = np.where(np.eye(2) > 0, 0.0, -np.inf)
    model = besag.markov_network([2, 2, 2], [((0, 1), same), ((1, 2), same)])
    rows = [[0, 0, 0], [1, 1, 1], [0, 0, 0], [0, -1, 1]]
    with pytest.raises(EvidenceError, match="instance 3 has no labelling"):
        besag.fit(model, rows)


def test_structured_data_print_in_a_line() -> None:
    first = instances(2, 1)[0]
    about = f"StructuredData({len(first.variables)} variables, {first.n_factors} factors, "
    assert repr(first) == about + f"{len(first.variables)} labels known)"
    assert repr(besag.StructuredData(first.variables, first.groups)) == about + "unlabelled)"
