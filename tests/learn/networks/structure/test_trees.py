"""Trees and branchings held to all of them, and what classifiers are made of."""

from itertools import product

import networkx as nx
import numpy as np
import pytest

from besag.errors import ModelError
from besag.graph.directed.pdag import PDAG
from besag.learn.networks.structure import learn_structure
from besag.learn.networks.structure.chow_liu import branching, smoothed_informations, spanning_tree
from besag.learn.networks.structure.counter import Counter
from besag.learn.networks.structure.criteria import CRITERIA
from besag.learn.networks.structure.scores import FamilyScores
from tests.dags import all_dags, dependent_rows
from tests.routes import Forced

SIZES = np.array([2, 3, 2, 4])
CODES = dependent_rows(SIZES, 200, seed=1)
NAMES = ("A", "B", "C", "D")


def test_chow_liu_has_the_highest_likelihood_of_all_trees() -> None:
    scores = FamilyScores(Counter(CODES, SIZES), CRITERIA.read("log_likelihood"))
    trees = [dag for dag in all_dags(4) if dag.sum() == 3 and dag.sum(axis=0).max() == 1]
    best = max(scores.total([np.flatnonzero(column).tolist() for column in dag.T]) for dag in trees)
    found = learn_structure(CODES, SIZES, names=NAMES, method="chow_liu", criterion="log_likelihood")
    assert found.score == pytest.approx(best, rel=1e-12)
    rooted = learn_structure(CODES, SIZES, names=NAMES, method="chow_liu[root=D]", criterion="log_likelihood")
    assert rooted.score == pytest.approx(best, rel=1e-12)
    assert rooted.parents[3] == ()
    assert sum(map(len, rooted.parents)) == 3


def test_tan_has_the_highest_likelihood_of_its_kind() -> None:
    scores = FamilyScores(Counter(CODES, SIZES), CRITERIA.read("log_likelihood"))
    trees = [dag for dag in all_dags(3) if dag.sum() == 2 and dag.sum(axis=0).max() == 1]
    others = [0, 1, 3]
    totals = []
    for dag in trees:
        parents: list[list[int]] = [[] for _ in range(4)]
        for i, child in enumerate(others):
            parents[child] = [2, *(others[p] for p in np.flatnonzero(dag[:, i]))]
        totals.append(scores.total(parents))
    found = learn_structure(CODES, SIZES, names=NAMES, method="tan", criterion="log_likelihood", target="C")
    assert found.score == pytest.approx(max(totals), rel=1e-12)
    naive = learn_structure(CODES, SIZES, names=NAMES, method="naive", target="C")
    assert naive.parents == ((2,), (2,), (), (2,))


@pytest.mark.parametrize("seed", range(6))
def test_a_spanning_tree_is_the_largest(seed: int) -> None:
    weights = np.random.default_rng(seed).random((7, 7))
    weights += weights.T
    np.fill_diagonal(weights, 0.0)
    parents = spanning_tree(weights, 3)
    graph = nx.from_numpy_array(weights)
    expected = nx.maximum_spanning_tree(graph).size(weight="weight")
    assert sum(weights[p, v] for v, p in enumerate(parents) if p >= 0) == pytest.approx(expected)
    assert parents.index(-1) == 3


@pytest.mark.parametrize("seed", range(12))
def test_a_branching_is_the_best_with_the_fewest_roots(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = np.where(rng.random((5, 5)) < 0.6, rng.random((5, 5)), -np.inf)
    np.fill_diagonal(weights, -np.inf)
    best = (0, -np.inf)
    for parents in product(range(-1, 5), repeat=5):
        arrows = [(p, v) for v, p in enumerate(parents) if p >= 0]
        if all(weights[a] > -np.inf for a in arrows) and nx.is_directed_acyclic_graph(nx.DiGraph(arrows)):
            best = max(best, (len(arrows), sum(weights[a] for a in arrows)))
    found = [(p, v) for v, p in enumerate(branching(weights, np.zeros((5, 5), np.bool_))) if p >= 0]
    assert nx.is_directed_acyclic_graph(nx.DiGraph(found))
    assert len(found) == best[0]
    assert sum(weights[a] for a in found) == pytest.approx(best[1])


def test_trees_within_constraints() -> None:
    found = learn_structure(CODES, SIZES, names=NAMES, method="chow_liu", required=[("D", "A")], forbidden=[("A", "B")])
    assert 3 in found.parents[0]
    assert 0 not in found.parents[1]
    assert max(map(len, found.parents)) == 1
    with pytest.raises(ModelError, match="'A' has several required ones"):
        learn_structure(CODES, SIZES, names=NAMES, method="chow_liu", required=[("D", "A"), ("B", "A")])
    with pytest.raises(ModelError, match="constraints forbid it to be a parent of 'A'"):
        learn_structure(CODES, SIZES, names=NAMES, method="tan", target="C", forbidden=[("C", "A")])
    with pytest.raises(ModelError, match="root 'X' is not among"):
        learn_structure(CODES, SIZES, names=NAMES, method="chow_liu[root=X]")


def test_undirected_edges_that_must_be_there() -> None:
    scores = FamilyScores(Counter(CODES, SIZES), CRITERIA.read("log_likelihood"))
    lines, must = PDAG.from_edges([("B", "A")], [("A", "C"), ("A", "D")]), [(0, 2), (0, 3)]
    trees = [dag for dag in all_dags(4) if dag.sum(axis=0).max() == 1 and dag[1, 0]]
    trees = [dag for dag in trees if all(dag[i, j] or dag[j, i] for i, j in must)]
    best = max(scores.total([np.flatnonzero(column).tolist() for column in dag.T]) for dag in trees)
    found = learn_structure(CODES, SIZES, names=NAMES, method="chow_liu", criterion="log_likelihood", partial=lines)
    assert found.score == pytest.approx(best, rel=1e-12)
    with pytest.raises(ModelError, match="no tree within the constraints has all edges that must be there; drop D - A"):
        learn_structure(
            CODES, SIZES, names=NAMES, method="chow_liu", partial=lines, forbidden=[("A", "D")], required=[("B", "A")]
        )


@pytest.mark.parametrize("most_marked", [0, 32])
@pytest.mark.parametrize("weighted", [False, True])
def test_counts_of_pairs(weighted: bool, most_marked: int, forced: Forced) -> None:
    forced({"learn.networks.structure.counter.MOST_MARKED": most_marked})
    weights = np.random.default_rng(0).random(200) if weighted else None
    counts = Counter(CODES, SIZES, weights).pairs(1, np.array([3, 0, 1]))
    assert counts.shape == (3, 4 + 2 + 3)
    for state in range(3):
        given = (np.ones(200) if weights is None else weights) * (CODES[1] == state)
        expected = np.concatenate([np.bincount(CODES[v], given, minlength=SIZES[v]) for v in (3, 0, 1)])
        assert counts[state] == pytest.approx(expected)


def test_informations_of_smoothed_tables() -> None:
    weights = np.random.default_rng(0).integers(1, 4, 200).astype(float)
    found = smoothed_informations(Counter(CODES, SIZES, weights), 0.5)
    for x in range(4):
        for y in range(x):
            joint = np.full((SIZES[x], SIZES[y]), 0.5)
            np.add.at(joint, (CODES[x], CODES[y]), weights)
            joint /= joint.sum()
            independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
            assert found[x, y] == pytest.approx(float((joint * np.log(joint / independent)).sum()))
    plain = learn_structure(CODES, SIZES, method="chow_liu")
    nearly = learn_structure(CODES, SIZES, method="chow_liu[pseudocount=1e-9]")
    assert plain.parents == nearly.parents
