"""Pseudolikelihood and piecewise training: values from the definitions, gradients against finite differences."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.arrays import IntArray
from besag.errors import CapabilityError, EvidenceError
from besag.graph.problem import Problem
from tests.learn.losses.test_likelihood import differences, instances, model_of
from tests.oracle import Enumeration, log_sum
from tests.routes import Forced
from tests.strategies import examples, generators, models

SURROGATES = ("pseudolikelihood", "piecewise", "piecewise[pieces=trees]")


def by_variable(problem: Problem, row: Sequence[int]) -> float:
    """- sum_i log p(y_i | its neighbours), where all of these are known."""
    graph, total, labels = problem.graph, 0.0, np.array(row)
    for v in range(graph.n_variables):
        own = [f for f in range(graph.n_factors) if v in graph.scope(f)]
        if row[v] < 0 or any((labels[graph.scope(f)] < 0).any() for f in own):
            continue
        sums = []
        for k in range(int(graph.variables.cardinalities[v])):
            labels[v] = k
            sums.append(sum(float(problem.table(f)[tuple(labels[graph.scope(f)])]) for f in own))
        labels[v] = row[v]
        total += log_sum(np.array(sums)) - sums[row[v]]
    return total


def by_factor(problem: Problem, row: Sequence[int]) -> float:
    """- sum_f log p_f(y_f), where all of these are known."""
    total, labels = 0.0, np.array(row)
    for f in range(problem.graph.n_factors):
        own, table = labels[problem.graph.scope(f)], problem.table(f)
        if (own >= 0).all():
            total += log_sum(table.reshape(-1)) - float(table[tuple(own)])
    return total


DEFINITIONS = {"pseudolikelihood": by_variable, "piecewise": by_factor}


def drawn_rows(model: besag.Model, n: int, hidden: float, rng: np.random.Generator) -> IntArray:
    """Labellings that the model allows, some labels unknown."""
    whole = Enumeration(model)
    rows = whole.labels[rng.choice(len(whole.p), size=n, p=whole.p)].copy()
    rows[rng.random(rows.shape) < hidden] = -1
    return rows


@pytest.mark.parametrize("name", DEFINITIONS)
@examples(60)
@given(data=st.data(), rng=generators())
def test_values_are_those_of_the_definition(name: str, data: DataObject, rng: np.random.Generator) -> None:
    model = data.draw(models(max_labellings=200))
    rows, weights = drawn_rows(model, 4, data.draw(st.sampled_from([0.0, 0.3])), rng), rng.random(4)
    objective = besag.objective(name, model, rows, weights=weights)
    expected = sum(w * DEFINITIONS[name](model.problem, row) for w, row in zip(weights, rows, strict=True))
    assert objective.value_and_grad(model.theta)[0] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", SURROGATES)
@examples(40)
@given(data=st.data(), rng=generators())
def test_gradients_are_differences_of_values(name: str, data: DataObject, rng: np.random.Generator) -> None:
    model = data.draw(models(max_labellings=40))
    rows = drawn_rows(model, 3, data.draw(st.sampled_from([0.0, 0.3])), rng)
    objective = besag.objective(name, model, rows, weights=rng.random(3), l2=0.1)
    theta = model.theta + 0.3 * rng.normal(size=model.theta.shape)
    assert_allclose(objective.value_and_grad(theta)[1], differences(objective, theta), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", SURROGATES)
@pytest.mark.parametrize("hidden", [0.0, 0.3])
def test_a_union_is_the_sum_of_its_instances(name: str, hidden: float) -> None:
    data = [part for sparse in (False, True) for part in instances(1, 4, hidden=hidden, sparse=sparse)]
    rng = np.random.default_rng(0)
    for parts in (data[:4], data[4:]):
        model, weights = model_of(parts[0]), rng.random(4)
        theta = rng.normal(size=model.theta.shape)
        value, gradient = besag.objective(name, model, parts, weights=weights).value_and_grad(theta)
        alone = [
            besag.objective(name, model_of(part), part.labels[None], weights=[w]).value_and_grad(theta)
            for part, w in zip(parts, weights, strict=True)
        ]
        assert value == pytest.approx(sum(own[0] for own in alone), rel=1e-10)
        assert_allclose(gradient, sum(own[1] for own in alone), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", SURROGATES)
def test_shards_and_threads(name: str, forced: Forced) -> None:
    data = instances(3, 20)
    theta = np.random.default_rng(0).normal(size=data[0].layout.n_parameters)
    whole = besag.objective(name, model_of(data[0]), data).value_and_grad(theta)
    forced({"data.dataset.SHARD_VARIABLES": 8})
    one, two = (besag.objective(name, model_of(data[0]), data, n_threads=n).value_and_grad(theta) for n in (1, 2))
    assert one[0] == two[0] == pytest.approx(whole[0], rel=1e-12)
    assert_array_equal(one[1], two[1])
    assert_allclose(one[1], whole[1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", SURROGATES)
def test_mini_batches_are_unbiased(name: str) -> None:
    data = instances(4, 6, hidden=0.1)
    theta = np.random.default_rng(0).normal(size=data[0].layout.n_parameters)
    objective = besag.objective(name, model_of(data[0]), data, l2=0.1)
    value, gradient = objective.value_and_grad(theta)
    parts = [objective.sampled(theta, np.array([n])) for n in range(6)]
    assert np.mean([part[0] for part in parts]) == pytest.approx(value, rel=1e-12)
    assert_allclose(np.mean([part[1] for part in parts], axis=0), gradient, rtol=1e-9, atol=1e-9)


@examples(30)
@given(data=st.data(), rng=generators())
def test_trees_of_a_forest_are_the_likelihood(data: DataObject, rng: np.random.Generator) -> None:
    model = data.draw(models(forest=True, max_labellings=60))
    rows = drawn_rows(model, 3, data.draw(st.sampled_from([0.0, 0.4])), rng)
    theta = model.theta + 0.3 * rng.normal(size=model.theta.shape)
    trees = besag.objective("piecewise[pieces=trees]", model, rows).value_and_grad(theta)
    whole = besag.objective("likelihood[engine=tree]", model, rows).value_and_grad(theta)
    assert trees[0] == pytest.approx(whole[0], rel=1e-9, abs=1e-9)
    assert_allclose(trees[1], whole[1], atol=1e-9)


def test_trees_of_a_ring() -> None:
    """Three of four edges are a chain, the last one is a piece of its own; ends of both count half in each."""
    rng = np.random.default_rng(3)
    unary, tables, pairs = rng.normal(size=(4, 2)), rng.normal(size=(4, 2, 2)), [(0, 1), (1, 2), (2, 3), (3, 0)]
    factors: list[Any] = [((v,), unary[v]) for v in range(4)]
    factors += [(pair, table) for pair, table in zip(pairs, tables, strict=True)]
    model, row = besag.markov_network([2] * 4, factors), [0, 1, 1, 0]
    shares = np.array([0.5, 1.0, 1.0, 0.5])[:, None] * unary
    chain = [sum(shares[range(4), y]) + sum(tables[e][y[e], y[e + 1]] for e in range(3)) for y in bits(4)]
    last = [0.5 * unary[3][a] + 0.5 * unary[0][b] + tables[3][a, b] for a, b in bits(2)]
    expected = log_sum(np.array(chain)) + log_sum(np.array(last)) + float(model.problem.energy(np.array([row]))[0])
    value, _ = besag.objective("piecewise[pieces=trees]", model, [row]).value_and_grad(model.theta)
    assert value == pytest.approx(expected, rel=1e-12)


def bits(n: int) -> list[tuple[int, ...]]:
    return list(itertools.product((0, 1), repeat=n))


@pytest.mark.parametrize("name", ["piecewise", "piecewise[pieces=trees]"])
def test_pieces_bound_the_likelihood(name: str) -> None:
    data = instances(6, 8)
    theta = np.random.default_rng(1).normal(size=data[0].layout.n_parameters)
    above = besag.objective(name, model_of(data[0]), data).value_and_grad(theta)[0]
    assert above > besag.objective("likelihood", model_of(data[0]), data).value_and_grad(theta)[0]


def test_pseudolikelihood_without_pairs_is_logistic_regression() -> None:
    """Of scikit-learn, C = 1 / (2 l2) for the same penalty on all weights."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 5))
    y = (x @ rng.normal(size=5) + rng.logistic(size=300) > 0).astype(int)
    node = besag.Template("node", (2,), n_inputs=5, basis=np.array([[0.0, 1.0]]))
    data = besag.StructuredData([2] * 300, [besag.FactorGroup(node, np.arange(300)[:, None], inputs=x)], y)
    found = besag.fit(model_of(data), data, objective="pseudolikelihood", l2=0.5, optimizer="lbfgs[tolerance=1e-8]")
    other = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=1000).fit(x, y)
    assert_allclose(-found.theta, other.coef_[0], atol=1e-6)
    assert (found.surrogate, found.is_exact) == ("pseudolikelihood", True)


def test_pseudolikelihood_finds_the_truth() -> None:
    """The error of theta goes down as 1 / sqrt(N); of 32 draws at each size, the slope is known to 0.03."""
    truth, flat, errors = besag.ising((3, 3), 0.3, 0.2), besag.ising((3, 3), 0.0, 0.0), []
    sizes = (200, 2000, 20_000)
    for n in sizes:
        found = [besag.fit(flat, truth.sample(n, seed=seed), objective="pseudolikelihood") for seed in range(32)]
        errors.append(np.linalg.norm([fit.theta - truth.theta for fit in found]))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.1)


@pytest.mark.parametrize("name", ["pseudolikelihood", "piecewise"])
def test_labels_that_meet_hard_zeros_are_refused(name: str) -> None:
    model = besag.markov_network({"A": 2, "B": 2}, [(("A", "B"), [[0.0, 1.0], [-np.inf, 0.0]])])
    besag.objective(name, model, [[1, -1], [1, 1], [0, 0]])
    with pytest.raises(EvidenceError, match=r"instance 2 has labels of probability zero"):
        besag.objective(name, model, [[1, 1], [0, 0], [1, 0]])


def test_options_and_engines_of_objectives() -> None:
    model = besag.markov_network({"A": 2}, [(("A",), [0.0, 0.0])])
    with pytest.raises(CapabilityError, match=r"no objective is named 'pseudo_likelihood'.*did you mean"):
        besag.objective("pseudo_likelihood", model, [[0]])
    with pytest.raises(CapabilityError, match=r"piecewise: pieces must be one of 'factors', 'trees', got 'leaves'"):
        besag.objective("piecewise[pieces=leaves]", model, [[0]])
    with pytest.raises(CapabilityError, match="objective 'pseudolikelihood' does not take an engine; leave out"):
        besag.fit(model, [[0]], objective="pseudolikelihood", engine="bp")
    with pytest.raises(CapabilityError, match="standard errors are read off the Hessian of a likelihood"):
        besag.objective("pseudolikelihood", model, [[0]]).standard_errors(np.zeros(2))
    named = besag.objective("likelihood[engine=bp[damping=0.5]]", model, [[0]], engine="tree").objective
    assert named.engine == besag.infer.BP(damping=0.5)  # type: ignore[attr-defined]


@pytest.mark.parametrize("pairwise", [np.zeros((3, 3)), besag.potts(3)])
@pytest.mark.parametrize("most", [4096, 16, 2])
def test_patterns_change_no_value(pairwise: Any, most: int, forced: Forced) -> None:
    """Also where there are too many of them, and links stay what they are."""
    rng = np.random.default_rng(0)
    model = besag.grid((4, 5), 3, unary=rng.normal(size=(4, 5, 3)), pairwise=pairwise)
    theta, rows = rng.normal(size=model.theta.shape), rng.integers(3, size=(6, 20))
    forced({"learn.losses.terms.MOST_PATTERNS": most})
    objective = besag.objective("pseudolikelihood", model, rows)
    value, gradient = objective.value_and_grad(theta)
    fitted = model.with_theta(theta)
    assert value == pytest.approx(sum(by_variable(fitted.problem, row) for row in rows), rel=1e-12)
    assert_allclose(gradient, differences(objective, theta), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["pseudolikelihood", "piecewise"])
@pytest.mark.parametrize("form", ["shared", "potts", "each", "scaled"])
def test_chunks_and_threads_within_a_picture(name: str, form: str, forced: Forced) -> None:
    """Also where edges have tables of their own, which terms of two chunks add to."""
    rng = np.random.default_rng(0)
    each = (rng.normal(size=(6, 4, 2, 2)), rng.normal(size=(5, 5, 2, 2)))
    weights = (rng.normal(size=(6, 4)), rng.normal(size=(5, 5)))
    pairwise = {"shared": np.eye(2), "potts": besag.potts(2), "each": each, "scaled": np.array([[0, 1.0], [2, 0]])}
    unary, scale = rng.normal(size=(6, 5, 2)), weights if form in ("potts", "scaled") else None
    model = besag.grid((6, 5), 2, unary=unary, pairwise=pairwise[form], weights=scale)
    row = rng.integers(2, size=(1, 30))
    whole = besag.objective(name, model, row).value_and_grad(model.theta)
    for size in (1, 4, 7):
        forced({"learn.losses.terms.CHUNK_TERMS": size})
        one, two = (besag.objective(name, model, row, n_threads=n).value_and_grad(model.theta) for n in (1, 2))
        assert one[0] == two[0] == pytest.approx(whole[0], rel=1e-12)
        assert_array_equal(one[1], two[1])
        assert_allclose(one[1], whole[1], atol=1e-12)


def test_products_with_the_hessian() -> None:
    data = instances(2, 4)
    theta = np.random.default_rng(0).normal(size=data[0].layout.n_parameters)
    for name in SURROGATES:
        objective = besag.objective(name, model_of(data[0]), data, l2=0.5)
        hessian, steps = objective.hessian(theta), 1e-5 * np.eye(len(theta))
        slopes = [objective.value_and_grad(theta + h)[1] - objective.value_and_grad(theta - h)[1] for h in steps]
        assert_allclose(hessian, np.array(slopes) / 2e-5, atol=1e-6)
        assert np.linalg.eigvalsh(hessian).min() > 0.99  # convex


@pytest.mark.parametrize("name", ["likelihood", *SURROGATES])
@pytest.mark.parametrize("label", [1, -1])
def test_an_instance_without_weight_may_have_impossible_labels(name: str, label: int) -> None:
    both = (["A", "B"], [[1.0, 1.0], [1.0, 0.0]])
    model = besag.markov_network(
        {"A": 2, "B": 2, "C": 2}, [both, (["B", "C"], [[1.0, 0.0], [1.0, 2.0]])], given="weight"
    )
    rows = np.array([[1, 1, label], [0, 0, 0], [0, 1, 1], [1, 0, 0]])
    theta, weights = np.linspace(-0.5, 0.5, len(model.theta)), np.array([0.0, 1.0, 2.0, 1.0])
    value, slope = besag.objective(name, model, rows, weights=weights).value_and_grad(theta)
    rest = besag.objective(name, model, rows[1:], weights=weights[1:]).value_and_grad(theta)
    assert value == pytest.approx(rest[0])
    assert_allclose(slope, rest[1], atol=1e-12)
    with pytest.raises(EvidenceError, match="instance 0 has"):
        besag.objective(name, model, rows).value_and_grad(theta)


@pytest.mark.parametrize("name", ["likelihood", *SURROGATES])
@pytest.mark.parametrize(
    ("factor", "bad"),
    [
        (besag.factors.count([-np.inf, 0.0, 0.5, -np.inf]), [1, 1, 1]),
        (besag.factors.parity(3), [1, 1, 1]),
        (besag.factors.any_of(2), [0, 1, 0]),
        (besag.factors.noisy_or([0.8, 0.3]), [0, 0, 1]),
    ],
)
def test_hard_zeros_of_structured_factors(name: str, factor: Any, bad: list[int]) -> None:
    fields = [([v], field) for v, field in zip("ABC", ([0, 0.3], [0, -0.5], [0, 0.1]), strict=True)]
    model = besag.markov_network(dict.fromkeys("ABC", 2), [*fields, (list("ABC"), factor)])
    rows, theta = drawn_rows(model, 6, 0.0, np.random.default_rng(0)), model.theta * np.linspace(0.5, 1.5, 7)
    objective, problem = besag.objective(name, model, rows), model.with_theta(theta).problem
    value, slope = objective.value_and_grad(theta)
    if name in DEFINITIONS:
        assert value == pytest.approx(sum(DEFINITIONS[name](problem, row) for row in rows.tolist()))
    assert_allclose(slope, differences(objective, theta), rtol=1e-6, atol=1e-6)
    with pytest.raises(EvidenceError, match="instance 1 has"):
        besag.objective(name, model, [rows[0].tolist(), bad]).value_and_grad(theta)
