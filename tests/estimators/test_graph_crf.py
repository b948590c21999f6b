"""GraphCRF and MultiLabelCRF held to enumeration, and to what users hand over."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import besag
from besag.errors import ModelError
from besag.estimators.graph_crf import GraphCRF
from besag.estimators.multi_label_crf import MultiLabelCRF, find_tree


def graphs(seed: int, n: int, groups: bool) -> tuple[list[Any], list[Any]]:
    """Rings of 3 to 5 nodes with edge features, and with a factor on three nodes."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for size in rng.integers(3, 6, size=n):
        edges = np.array([[i, (i + 1) % size] for i in range(size)])
        nodes = rng.normal(size=(size, 2))
        more = [([[0, 2, 1]], rng.normal(size=(1, 1))), ([[1, 0, 2]], None)] if groups else []
        X.append((nodes, edges, rng.normal(size=(size, 2)), more))
        y.append(rng.integers(3, size=size))
    return X, y


def exponent(crf: GraphCRF, instance: Any, labels: Any) -> float:
    nodes, edges, edge_features, groups = instance
    k = len(crf.classes_)
    total = sum(crf.intercept_[s] + crf.coef_[s] @ x for s, x in zip(labels, nodes, strict=True))
    for (i, j), x in zip(edges, edge_features, strict=True):
        total += np.array([1.0, *x]) @ crf.edge_coef_[:, labels[i], labels[j]]
    for number, (scopes, features) in enumerate(groups):
        tables = crf.model_.block(f"group{number}").reshape(-1, k, k, k)
        for row, scope in enumerate(scopes):
            inputs = np.array([1.0] if features is None else [1.0, *features[row]])
            total += inputs @ tables[(slice(None), *(labels[v] for v in scope))]
    return float(total)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("groups", [False, True])
def test_002_11_probabilities_are_those_of_the_formula(directed: bool, groups: bool) -> None:
    X, y = graphs(1, 4, groups)
    crf = GraphCRF(directed=directed, objective="likelihood", l2=0.1).fit(X, y)
    if not directed:
        assert_allclose(crf.edge_coef_, crf.edge_coef_.transpose(0, 2, 1))
    for instance, labels in zip(X[:2], y[:2], strict=True):
        every = list(itertools.product(range(3), repeat=len(labels)))
        scores = np.array([exponent(crf, instance, s) for s in every])
        p = np.exp(scores - np.logaddexp.reduce(scores))
        expected = sum(weight * np.eye(3)[list(s)] for weight, s in zip(p, every, strict=True))
        assert_allclose(crf.predict_marginals([instance])[0], expected, atol=1e-9)
        assert tuple(crf.predict([instance])[0]) == every[int(np.argmax(scores))]
        assert_allclose(crf.log_proba([instance], [labels]), np.log(p[every.index(tuple(labels))]), atol=1e-9)


def test_nodes_may_be_lists_of_attributes(tmp_path: Path) -> None:
    X = [([["w=a", "cap"], {"w=b": 2.0}, ["w=c"]], [[0, 1], [0, 2]]), ([["w=a"], ["w=c"]], [[0, 1]])]
    y = [["N", "V", None], ["N", "V"]]
    crf = GraphCRF(objective="likelihood").fit(X, y)
    assert crf.classes_ == ["N", "V"]
    assert crf.coef_.shape == (2, 4)
    assert crf.predict([([["w=a"], ["w=new"]], [[0, 1]])])[0].shape == (2,)
    crf.save(tmp_path / "crf.npz")
    again = besag.load(tmp_path / "crf.npz")
    assert_allclose(again.predict_marginals(X)[0], crf.predict_marginals(X)[0])


def test_graphs_without_edges_are_logistic_regression() -> None:
    rng = np.random.default_rng(0)
    nodes, labels = rng.normal(size=(40, 3)), rng.integers(2, size=40)
    crf = GraphCRF(objective="likelihood", l2=0.5, tol=1e-8).fit([(nodes,)], [labels])
    scores = nodes @ crf.coef_.T + crf.intercept_
    p = np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))
    gradient = nodes.T @ (p - np.eye(2)[labels]) + 2 * 0.5 * crf.coef_.T  # of the loss by the weights
    assert_allclose(gradient, 0, atol=1e-4)


NODES = np.zeros((3, 2))
BROKEN: list[tuple[Any, str]] = [
    ([(NODES, [[0, 3]])], "instance 0: edges, row 0: there is no node 3 of 3"),
    ([(NODES, [[0, 1]]), (NODES, [[1, 1]])], r"instance 1: edges, row 0 names a node twice: \[1, 1\]"),
    ([(NODES, [[0, 1]], np.zeros((2, 1)))], "instance 0: edges are 1, and their features 2; expected as many"),
    ([(NODES, [[0, 1]], [[np.nan]])], "instance 0: features of edges must be finite, got nan in row 0, column 0"),
    ([(NODES, [[0, 1]], [[1.0]]), (NODES, [[0, 1]])], "edges have 0 features on 2 nodes in instance 1, 1 on 2"),
    ([(NODES,), (NODES[:, :1],)], r"instance 1: node features must be \(n, 2\)"),
    ([NODES], "instance 0 must be a tuple .node_features, edges"),
]


@pytest.mark.parametrize(("X", "expected"), BROKEN)
def test_what_cannot_be_is_refused_by_name(X: Any, expected: str) -> None:
    with pytest.raises(ModelError, match=expected):
        GraphCRF(objective="likelihood").fit(X, [[0, 1, 0]] * len(X))


def rows(seed: int, n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    first = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    return X, np.stack([first, (first + (rng.random(n) < 0.2)) % 2, (X[:, 1] > 0).astype(int)], axis=1)


@pytest.mark.parametrize("structure", ["full", "chow_liu", [(0, 2)]])
def test_labels_of_rows_have_the_probabilities_of_the_formula(structure: Any, tmp_path: Path) -> None:
    X, Y = rows(0, 30)
    crf = MultiLabelCRF(structure=structure, l2=0.1).fit(X, Y)
    every = np.array(list(itertools.product(range(2), repeat=3)))
    for x, y in zip(X[:3], Y[:3], strict=True):
        scores = every @ (crf.intercept_ + crf.coef_ @ x)
        scores = scores + sum(w * every[:, i] * every[:, j] for (i, j), w in crf.pair_coef_.items())
        p = np.exp(scores - np.logaddexp.reduce(scores))
        assert_allclose(crf.predict_marginals([x])[0], p @ every, atol=1e-9)
        assert_allclose(crf.predict([x])[0], every[int(np.argmax(scores))])
        assert_allclose(crf.log_proba([x], [y])[0], np.log(p[int(y @ [4, 2, 1])]), atol=1e-9)
    crf.save(tmp_path / "crf.npz")
    assert_allclose(besag.load(tmp_path / "crf.npz").predict_marginals(X), crf.predict_marginals(X))


def test_the_tree_of_labels_ties_those_that_depend_on_each_other() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(2, size=(2, 2000))
    noise = (rng.random((3, 2000)) < 0.1).astype(int)
    labels = np.stack([a, b, a ^ noise[0], b ^ noise[1], a ^ noise[0] ^ noise[2]], axis=1)
    assert {(0, 2), (1, 3), (2, 4)} <= set(find_tree(labels))


def test_rows_that_cannot_be_are_refused_by_name() -> None:
    X, Y = rows(1, 5)
    with pytest.raises(ModelError, match="Y must be 0, 1, or -1 = unknown, got 2 in row 3, column 1"):
        MultiLabelCRF().fit(X, np.where(np.arange(15).reshape(5, 3) == 10, 2, Y))
    with pytest.raises(ModelError, match="X has 4 rows and Y has 5"):
        MultiLabelCRF().fit(X[:4], Y)
    with pytest.raises(ModelError, match=r"structure must be pairs of labels from 0 to 2, each once, got \[\(0, 3\)\]"):
        MultiLabelCRF(structure=[(0, 3)]).fit(X, Y)
    crf = MultiLabelCRF().fit(X, Y)
    with pytest.raises(ModelError, match="rows must have 2 features and 3 labels, as in training, got 1 and 3"):
        crf.predict(X[:, :1])
