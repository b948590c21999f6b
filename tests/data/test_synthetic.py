"""Random models: the same for the same seed, feasible, and of the promised shape."""

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest

import besag
from besag.data import random_model

KINDS = ["chain", "tree", "grid", "forest_factors", "markov_network", "bayesian_network", "polytree"]
DIRECTED = ["bayesian_network", "polytree"]


def factor_graph(model: besag.Model) -> Any:
    return model.to_networkx("factor")


def arities(model: besag.Model) -> set[int]:
    return {group.scopes.shape[1] for group in model.groups}


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_is_one_model(kind: str) -> None:
    one, same, other = (random_model(kind, 4, seed=seed, zeros=0.2) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one.theta, same.theta)
    assert [g.scopes.tolist() for g in one.groups] == [g.scopes.tolist() for g in same.groups]
    assert one.theta.shape != other.theta.shape or not np.array_equal(one.theta, other.theta)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("n_states", [1, 2, (1, 3)])
def test_some_labelling_is_feasible(kind: str, n: int, n_states: int | tuple[int, int]) -> None:
    for seed in range(5):
        model = random_model(kind, n, seed, zeros=0.9, n_states=n_states)
        assert np.isfinite(model.log_partition())
        assert len(model.variables) == (n * n if kind == "grid" else n)


@pytest.mark.parametrize("kind", KINDS)
def test_hard_zeros_are_there_when_asked_for(kind: str) -> None:
    assert random_model(kind, 5, zeros=0.0).support is None
    support = random_model(kind, 40, zeros=0.3).support
    assert support is not None
    assert 0.1 < 1 - support.mean() < 0.35  # below 0.3: the feasible entries are spared


@pytest.mark.parametrize("kind", KINDS)
def test_cardinalities_are_in_their_range(kind: str) -> None:
    assert set(random_model(kind, 30, n_states=(2, 5)).variables.cardinalities) == {2, 3, 4, 5}
    assert set(random_model(kind, 6, n_states=3).variables.cardinalities) == {3}


@pytest.mark.parametrize(("kind", "degree"), [("chain", 2), ("tree", None)])
def test_chains_and_trees(kind: str, degree: int | None) -> None:
    graph = random_model(kind, 60).to_networkx("moral")
    assert nx.is_tree(graph)
    assert degree is None or max(dict(graph.degree).values()) == degree


def test_grid() -> None:
    model = random_model("grid", 4, n_states=3)
    assert model.shape == (4, 4)
    assert model.n_factors == 16 + 2 * 12
    assert nx.is_isomorphic(model.to_networkx("moral"), nx.grid_2d_graph(4, 4))


def test_forest_factors() -> None:
    model = random_model("forest_factors", 200, seed=1)
    graph = factor_graph(model)
    assert nx.is_forest(graph)
    assert arities(model) == {1, 2, 3, 4}
    assert set(model.variables.cardinalities) == {2, 3, 4}
    assert model.support is not None
    assert sum(degree == 0 for _, degree in graph.degree) == 20
    assert arities(random_model("forest_factors", 50, max_arity=2)) == {1, 2}


def test_markov_network() -> None:
    model = random_model("markov_network", 50, seed=1)
    graph = factor_graph(model)
    assert nx.is_connected(graph)
    assert not nx.is_forest(graph)
    assert arities(model) == {1, 2, 3, 4}
    assert model.n_factors == 50 + 50 + 25


@pytest.mark.parametrize("kind", DIRECTED)
def test_directed_kinds(kind: str) -> None:
    model = random_model(kind, 80, seed=2, max_parents=2, n_states=(2, 3))
    assert model.is_bayesian_network
    counts = [len(model.parents(variable.name)) for variable in model.variables]
    assert max(counts) == 2
    skeleton = model.to_networkx("dag").to_undirected()
    assert nx.is_tree(skeleton) == (kind == "polytree")


@pytest.mark.parametrize("kind", DIRECTED)
def test_probabilities_of_directed_kinds_sum_to_one(kind: str) -> None:
    assert random_model(kind, 8, seed=4, zeros=0.4).log_partition() == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("kind", ["chain", "bayesian_network"])
def test_strength_moves_tables_from_uniform(kind: str) -> None:
    weak, strong = (random_model(kind, 8, strength=strength).entropy() for strength in (1e-3, 10.0))
    assert weak == pytest.approx(8 * np.log(2), abs=0.01)
    assert strong < 0.7 * weak


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: random_model("trees", 3), "'trees'; there are chain, tree, grid, forest_factors"),
        (lambda: random_model("tree", 0), "n must be at least 1, got 0"),
        (lambda: random_model("tree", 3, n_states=0), "n_states must be K or"),
        (lambda: random_model("tree", 3, n_states=(3, 2)), r"n_states must be .*\(3, 2\)"),
        (lambda: random_model("tree", 3, strength=0.0), "strength must be a positive number"),
        (lambda: random_model("tree", 3, zeros=1.0), "zeros is a fraction"),
        (lambda: random_model("forest_factors", 3, max_arity=1), "max_arity must be at least 2"),
        (lambda: random_model("polytree", 3, max_parents=0), "max_parents must be at least 1"),
    ],
)
def test_bad_arguments(make: Callable[[], besag.Model], match: str) -> None:
    with pytest.raises(besag.errors.ModelError, match=match):
        make()


def test_large_models_are_built_from_arrays() -> None:
    assert random_model("tree", 200_000).n_factors == 399_999
    assert random_model("grid", 300).n_factors == 90_000 + 2 * 300 * 299
