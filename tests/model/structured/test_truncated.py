"""Costs of distances: every engine against the same model with tables, with hard zeros, evidence and both signs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import besag
from besag.errors import ModelError
from besag.infer.engine import ENGINES
from besag.model.structured.truncated import TruncatedLinear, TruncatedQuadratic

MADE = {
    "potts": besag.potts(6),
    "linear": besag.truncated_linear(6, 2.5),
    "far": besag.truncated_linear(6),
    "quadratic": besag.truncated_quadratic(6, 10),
}
LIKELIHOOD = {"0": 0.0, "1": 1.0, "2": 0.5, "3": 2.0, "4": 0.1, "5": 0.0}
EVIDENCE = {"0,0": "4", "1,2": ["2", "3", "5"], "0,2": LIKELIHOOD}
each_kind = pytest.mark.parametrize("kind", MADE)


def pair(kind: str, shape: tuple[int, int] = (2, 3), *, hard: bool = True) -> tuple[besag.Model, besag.Model]:
    """A grid with weights of both signs, and the same with tables."""
    rng, (h, w) = np.random.default_rng(3), shape
    unary = rng.normal(size=(h, w, 6))
    if hard:
        unary[rng.random(unary.shape) < 0.3] = -np.inf
        unary[..., 2:4] = rng.normal(size=(h, w, 2))
        unary[0, 0, 4] = 0.0
    weights = tuple(rng.normal(size=size) for size in ((h, w - 1), (h - 1, w)))
    basis = MADE[kind].dense()[0]
    tables = tuple(-weight[..., None, None] * basis for weight in weights)
    return (
        besag.grid(shape, 6, unary, MADE[kind], weights=weights),
        besag.grid(shape, 6, unary, tables),
    )


@each_kind
@pytest.mark.parametrize("engine", ["junction_tree", "bp[damping=0.5]", "trw", "mean_field", "mean_field[family=tree]"])
@pytest.mark.parametrize("evidence", [None, EVIDENCE], ids=["free", "evidence"])
def test_marginals_are_those_of_tables(kind: str, engine: str, evidence: dict[str, object] | None) -> None:
    own, plain = (model.marginals(evidence=evidence, engine=engine) for model in pair(kind))
    assert_allclose(own.array, plain.array, atol=1e-6)
    assert_allclose(own.log_partition, plain.log_partition, atol=1e-6)
    assert_allclose(own.factor(7), plain.factor(7), atol=1e-6)


@each_kind
@pytest.mark.parametrize("call", ["marginals", "map"])
def test_compiled_messages_are_those_of_tables(kind: str, call: str, forced: Callable[[dict[str, Any]], None]) -> None:
    forced({"infer.bp.passing.WORTH_A_KERNEL": 0, "kernels.compile.worth_compiling": lambda _: True})
    own, plain = (getattr(model, call)(engine="bp[damping=0.5,max_iterations=30,tolerance=0]") for model in pair(kind))
    if call == "map":
        assert_allclose(own.energy, plain.energy, atol=1e-12)
    else:
        assert_allclose(own.array, plain.array, atol=1e-6)
        assert_allclose(own.log_partition, plain.log_partition, atol=1e-6)


@each_kind
def test_a_tree_is_exact(kind: str) -> None:
    own, plain = (model.marginals(evidence=EVIDENCE_OF_CHAIN, engine="tree") for model in pair(kind, (1, 5)))
    assert_allclose(own.array, plain.array, atol=1e-12)
    assert_allclose(own.log_partition, plain.log_partition, atol=1e-12)
    best = [model.map(evidence=EVIDENCE_OF_CHAIN, engine="tree") for model in pair(kind, (1, 5))]
    assert_allclose(best[0].energy, best[1].energy, atol=1e-12)
    assert_array_equal(best[0].labels, best[1].labels)


EVIDENCE_OF_CHAIN = {"0,0": "4", "0,4": LIKELIHOOD}


@each_kind
@pytest.mark.parametrize("engine", ["tree", "bp"])
def test_moments_are_the_expected_costs(kind: str, engine: str) -> None:
    own, _ = pair(kind, (1, 5))
    result = ENGINES.read(engine).infer(own.problem, frozenset({"moments", "factors"}))
    expected = [float((result.factor(5 + e) * MADE[kind].dense()[0]).sum()) for e in range(4)]
    found = own.graph.moments(result.table_moments)
    weights = np.concatenate([w.ravel() for w in pair_weights(kind)])
    assert_allclose(found[-1], np.dot(weights, expected), atol=1e-6)


def pair_weights(kind: str) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    rng.normal(size=(1, 5, 6))
    rng.random((1, 5, 6))
    rng.normal(size=(1, 5, 2))
    return [rng.normal(size=size) for size in ((1, 4), (0, 5))]


@each_kind
def test_the_best_labelling_is_that_of_tables(kind: str) -> None:
    own, plain = pair(kind)
    best = own.map(engine="exact")
    assert_allclose(best.energy, plain.map(engine="exact").energy, atol=1e-12)
    assert_allclose(plain.energy(best.assignment), best.energy, atol=1e-12)
    approximate = own.map(engine="bp[damping=0.3]")
    assert_allclose(plain.energy(approximate.assignment), approximate.energy, atol=1e-12)


@each_kind
def test_samples_follow_the_model(kind: str) -> None:
    own, _ = pair(kind, (1, 3))
    exact = own.marginals(engine="exact").array
    found = own.marginals(engine="gibbs[n_samples=4000,burn_in=200]", seed=0).array
    assert np.abs(found - exact).max() < 0.06


@each_kind
def test_files_keep_it(kind: str, tmp_path: Path) -> None:
    own, _ = pair(kind)
    besag.save(own, tmp_path / "grid.json")
    twin = besag.load(tmp_path / "grid.json")
    assert twin.groups[1].template.basis == MADE[kind]
    assert_array_equal(twin.problem.log_potentials, own.problem.log_potentials)


def test_the_limit_is_at_most_the_largest_cost() -> None:
    assert besag.truncated_linear(4) == TruncatedLinear(4, 3.0) == TruncatedLinear(4, 17)
    assert besag.truncated_quadratic(4) == TruncatedQuadratic(4, 9.0)
    assert TruncatedQuadratic(9, 5).extent == 3


@pytest.mark.parametrize("make", [besag.truncated_linear, besag.truncated_quadratic])
def test_arguments_are_checked(make: type) -> None:
    with pytest.raises(ModelError, match="at least one state, got 0"):
        make(0, 1)
    for limit in (0, -1, float("nan")):
        with pytest.raises(ModelError, match="limit must be a positive number, or inf for none"):
            make(3, limit)


def test_a_weight_is_learnt() -> None:
    model = besag.grid((1, 6), 5, pairwise=besag.truncated_linear(5, 2), weights=0.8)
    data = model.sample(4000, seed=1)
    start = besag.grid((1, 6), 5, pairwise=besag.truncated_linear(5, 2), weights=0.0)
    fit = besag.fit(start, data, l2=0.0)
    assert_allclose(fit.theta[-1], 0.8, atol=0.05)
