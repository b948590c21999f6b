"""Displacements on a grid and figures of parts: every engine against tables, and numbers that are known otherwise."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.errors import ModelError, TooLargeError
from besag.infer.engine import ENGINES
from besag.model.structured.displacement import Displacement
from tests.oracle import Enumeration

MADE = {
    "spring": besag.factors.displacement((2, 3), (0.3, -1.0), (1.0, 1.5)),
    "limited": besag.factors.displacement((2, 3), (-0.4, 1.0), 0.9, 0.8),
    "line": besag.factors.displacement(6, 1.5, 2.0),
    "repelling": besag.factors.displacement((2, 3), (-0.4, 0.8), 0.9, 1.2),
    "aside": besag.factors.displacement((2, 3), (0.0, 2.0), 0.8, 0.9),  # all that is not far lies on one side
}
WEIGHTS = {"spring": 0.8, "limited": 1.3, "line": -0.4, "repelling": -0.7, "aside": 0.9}
LIKELIHOOD = {"0": 0.0, "1": 1.0, "2": 0.5, "3": 2.0, "4": 0.1, "5": 0.0}
EVIDENCE = {"0": "4", "2": LIKELIHOOD}
each_kind = pytest.mark.parametrize("kind", MADE)
each_evidence = pytest.mark.parametrize("evidence", [None, EVIDENCE], ids=["free", "evidence"])
Forced = Callable[[dict[str, Any]], None]


def pair(kind: str, scopes: list[tuple[str, str]]) -> tuple[besag.Model, besag.Model]:
    """Four variables of six places with hard zeros, and the same with tables."""
    rng = np.random.default_rng(3)
    unary = rng.normal(size=(4, 6))
    unary[1, :2] = unary[3, 4:] = -np.inf
    alone = [(str(v), unary[v]) for v in range(4)]
    own = besag.markov_network([6] * 4, [*alone, *((scope, MADE[kind]) for scope in scopes)])
    table = -WEIGHTS[kind] * MADE[kind].dense()[0]
    plain = besag.markov_network([6] * 4, [*alone, *((scope, table) for scope in scopes)])
    return own.with_theta(np.append(own.theta[:-1], WEIGHTS[kind])), plain


TREE = [("0", "1"), ("2", "1"), ("1", "3")]
LOOP = [*TREE, ("3", "0")]


@each_kind
@each_evidence
@pytest.mark.parametrize("engine", ["tree", "bp", "trw", "junction_tree", "mean_field", "mean_field[family=tree]"])
def test_marginals_are_those_of_tables(kind: str, engine: str, evidence: Any) -> None:
    own, plain = (model.marginals(evidence=evidence, engine=engine) for model in pair(kind, TREE))
    assert_allclose(own.array, plain.array, atol=1e-6)
    assert_allclose(own.log_partition, plain.log_partition, atol=1e-6)
    assert_allclose(own.factor(5), plain.factor(5), atol=1e-6)


@each_kind
@pytest.mark.parametrize("engine", ["bp[damping=0.5]", "trw"])
def test_cycles_too(kind: str, engine: str) -> None:
    own, plain = (model.marginals(evidence=EVIDENCE, engine=engine) for model in pair(kind, LOOP))
    assert_allclose(own.array, plain.array, atol=1e-6)
    assert_allclose(own.log_partition, plain.log_partition, atol=1e-6)


@each_kind
@pytest.mark.parametrize("compiled", [False, True])
def test_a_tree_is_exact(kind: str, compiled: bool, forced: Forced) -> None:
    forced(
        {"kernels.compile.worth_compiling": lambda _: compiled, "infer.trees.sums.worth_compiling": lambda *_: compiled}
    )
    own, plain = pair(kind, TREE)
    truth = Enumeration(plain, EVIDENCE)
    found = own.marginals(evidence=EVIDENCE, engine="tree")
    assert_allclose(found.log_partition, truth.log_z, rtol=1e-12)
    for v in range(4):
        assert_allclose(found[str(v)], truth.marginal(str(v)), atol=1e-12)
    best = own.map(evidence=EVIDENCE, engine="tree")
    assert_allclose(best.energy, -truth.log_weights.max(), rtol=1e-12)
    assert_allclose(plain.energy(best.assignment), own.energy(best.assignment), rtol=1e-12)


@each_kind
@pytest.mark.parametrize("engine", ["bp", "icm", "local_search", "junction_tree", "trws", "dual"])
def test_labellings_have_the_energies_of_tables(kind: str, engine: str) -> None:
    own, plain = pair(kind, TREE)
    found = own.map(engine=engine)
    assert_allclose(plain.energy(found.assignment), found.energy, atol=1e-12)
    if engine != "icm":
        assert_allclose(found.energy, plain.map(engine="exact").energy, atol=1e-12)


@each_kind
@pytest.mark.parametrize("engine", ["tree", "bp"])
def test_moments_are_the_expected_costs(kind: str, engine: str) -> None:
    own, plain = pair(kind, TREE)
    result = ENGINES.read(engine).infer(own.problem, frozenset({"moments"}))
    truth = Enumeration(plain)
    places = np.array([[int(name) for name in scope] for scope in TREE])
    costs = MADE[kind].features(truth.labels[:, places])[..., 0].sum(axis=1)
    expected = np.exp(truth.log_weights - truth.log_z) @ costs
    assert_allclose(own.graph.moments(result.table_moments)[-1], expected, atol=1e-7)


@each_kind
def test_samples_follow_the_model(kind: str) -> None:
    own, _ = pair(kind, TREE)
    exact = own.marginals(engine="tree").array
    found = own.marginals(engine="gibbs[n_samples=4000,burn_in=200]", seed=0).array
    assert np.abs(found - exact).max() < 0.06
    drawn = own.sample(4000, engine="tree", seed=0)
    shares = drawn["1"].value_counts(normalize=True).sort_index().to_numpy()
    assert np.abs(shares - exact[1]).max() < 0.06


@each_kind
def test_files_keep_it(kind: str, tmp_path: Path) -> None:
    own, _ = pair(kind, TREE)
    besag.save(own, tmp_path / "a.json")
    twin = besag.load(tmp_path / "a.json")
    assert twin.groups[-1].template.basis == MADE[kind]
    assert_array_equal(twin.problem.log_potentials, own.problem.log_potentials)


def test_a_weight_is_learnt() -> None:
    spring = besag.factors.displacement((2, 3), (0.0, 1.0), 1.0)
    model = besag.markov_network([6, 6], [(("0", "1"), spring)])
    fit = besag.fit(model.with_theta(np.zeros(1)), model.sample(4000, seed=1), l2=0.0)
    assert_allclose(fit.theta, 1.0, atol=0.06)


def figure(side: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    rng = np.random.default_rng(0)
    scores = {name: 3.0 * rng.normal(size=(side, side + 1)) for name in ("head", "body", "hand")}
    return scores, {"body": ("head", (side / 3, 0.5), 1.5), "hand": ("body", (-1.0, side / 4), (2.0, 0.7))}


@pytest.mark.parametrize("limit", [None, 3.0])
def test_messages_over_many_places_are_those_of_tables(limit: float | None) -> None:
    """Of compiled kernels, where Gaussians are too small for weights and parabolas are many."""
    scores, springs = figure(12)
    own = besag.factors.parts_model(scores, springs, limit)
    alone = [((name,), score.ravel()) for name, score in scores.items()]
    terms = {c: besag.factors.displacement((12, 13), *spring[1:], limit) for c, spring in springs.items()}
    tables = [((springs[c][0], c), -term.dense()[0]) for c, term in terms.items()]
    plain = besag.markov_network(dict.fromkeys(scores, 156), [*alone, *tables])
    one, other = (model.marginals(engine="tree") for model in (own, plain))
    assert one.diagnostics["domain"] == ("log" if limit is None else "linear")
    assert_allclose(one.log_partition, other.log_partition, rtol=1e-12)
    for name in scores:
        assert_allclose(one[name], other[name], rtol=1e-10)
    best = own.map(engine="tree")
    assert_allclose(best.energy, plain.map(engine="tree").energy, rtol=1e-12)


def test_a_far_spring_keeps_every_entry() -> None:
    """Marginals that are too small for weights: a chain of two Gaussians in closed form, up to its borders."""
    n, scale = 400, 2.0
    spring = besag.factors.displacement(n, 0.0, scale)
    model = besag.markov_network([n, n], [(("0", "1"), spring)])
    found = model.marginals(evidence={"0": "0"}, engine="bp")
    expected = -0.5 * (np.arange(n) / scale) ** 2
    expected -= np.logaddexp.reduce(expected)
    seen = expected > -700.0
    assert_allclose(np.log(found["1"][seen]), expected[seen], rtol=1e-12, atol=1e-12)


def test_where_a_part_is() -> None:
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(12)).reshape(3, 4)
    place = besag.factors.place_of(p.ravel(), (3, 4))
    ys, xs = np.indices((3, 4))
    assert place.mode == np.unravel_index(p.argmax(), p.shape)
    assert_allclose(place.mean, [(p * ys).sum(), (p * xs).sum()])
    both = (p * (ys - place.mean[0]) * (xs - place.mean[1])).sum()
    assert_allclose(place.covariance[0, 1], both)
    assert_allclose(place.covariance[1, 1], (p * xs**2).sum() - place.mean[1] ** 2)
    assert_allclose(place.entropy, -(p * np.log(p)).sum())


def test_what_does_not_go_is_refused() -> None:
    with pytest.raises(ModelError, match=r"shape is \(H, W\), or the length of a line, got \(2, 3, 4\)"):
        besag.factors.displacement((2, 3, 4))
    with pytest.raises(ModelError, match="sides of a grid are from 1"):
        besag.factors.displacement((0, 3))
    with pytest.raises(ModelError, match="scale must be above 0"):
        besag.factors.displacement((2, 3), scale=(1.0, 0.0))
    with pytest.raises(ModelError, match="offset is a number for each of 2 axes, or one, got"):
        besag.factors.displacement((2, 3), offset=(1.0, 0.0, 2.0))
    with pytest.raises(ModelError, match="offset is a finite number for each axis"):
        Displacement(2, 3, np.array([np.nan, 0.0]), np.ones(2), 1.0)
    with pytest.raises(ModelError, match="limit must be a positive number, or None for none"):
        besag.factors.displacement((2, 3), limit=0.0)
    with pytest.raises(
        TooLargeError, match=r"displacement: a table of 2 variables with 1.6e\+09 entries would take 1.28e\+10 bytes"
    ):
        besag.factors.displacement((200, 200)).dense()
    with pytest.raises(ModelError, match="needs the scores of one part or more"):
        besag.factors.parts_model({}, {})
    with pytest.raises(ModelError, match=r"scores of every part are one \(H, W\), got \(2, 3\) for 'b'"):
        besag.factors.parts_model({"a": np.zeros((2, 2)), "b": np.zeros((2, 3))}, {})
    with pytest.raises(ModelError, match="the spring of 'b' names 'c', which has no scores"):
        besag.factors.parts_model({"a": np.zeros((2, 2)), "b": np.zeros((2, 2))}, {"b": ("c", (0, 0), 1)})
    with pytest.raises(ModelError, match=r"a grid \(2, 2\) has 4 places, got 3 numbers"):
        besag.factors.place_of(np.ones(3), (2, 2))
