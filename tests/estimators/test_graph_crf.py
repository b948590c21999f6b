"""GraphCRF held to enumeration, and to what users hand over."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import besag
from besag.errors import ModelError
from besag.estimators.graph_crf import GraphCRF


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


def typed(seed: int, n: int) -> tuple[list[Any], list[Any]]:
    """A chain of words, each N or V, all tied to a topic, which is news or sport; and a group of three."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for size in rng.integers(2, 4, size=n):
        edges = [[i, i + 1] for i in range(size - 1)] + [[size, i] for i in range(size)]
        groups = [([[0, 1, size]], None)]
        types = ["word"] * size + ["topic"]
        X.append((rng.normal(size=(size + 1, 2)), edges, rng.normal(size=(len(edges), 1)), groups, types))
        y.append([*rng.choice(["N", "V"], size), rng.choice(["news", "sport"])])
    return X, y


def typed_exponent(crf: GraphCRF, instance: Any, labels: Any) -> float:
    nodes, edges, edge_features, groups, types = instance
    codes = [crf.classes_.index(label) for label in labels]
    total = sum(crf.intercept_[t][k] + crf.coef_[t][k] @ x for t, k, x in zip(types, codes, nodes, strict=True))
    for (i, j), x in zip(edges, edge_features, strict=True):
        kind = (types[i], types[j])
        flip = kind not in crf.edge_coef_
        tables = crf.edge_coef_[kind[::-1] if flip else kind]
        k, m = (codes[j], codes[i]) if flip else (codes[i], codes[j])
        total += np.array([1.0, *x]) @ tables[:, k, m]
    for scopes, _ in groups:
        tables = crf.model_.block("group0:word-word-topic").reshape(4, 4, 4)
        total += sum(tables[tuple(codes[v] for v in scope)] for scope in scopes)
    return float(total)


@pytest.mark.parametrize("directed", [False, True])
def test_types_of_nodes_have_weights_and_labels_of_their_own(directed: bool, tmp_path: Path) -> None:
    X, y = typed(3, 8)
    crf = GraphCRF(directed=directed, objective="likelihood", l2=0.1).fit(X, y)
    assert crf.classes_ == ["N", "V", "news", "sport"]
    assert set(crf.edge_coef_) == {("word", "word"), ("topic", "word")}
    crf.save(tmp_path / "crf.npz")
    again = besag.load(tmp_path / "crf.npz")
    for instance, labels in zip(X[:3], y[:3], strict=True):
        n = len(labels) - 1
        every = [(*s, t) for s in itertools.product("NV", repeat=n) for t in ("news", "sport")]
        scores = np.array([typed_exponent(crf, instance, s) for s in every])
        p = np.exp(scores - np.logaddexp.reduce(scores))
        onehot = np.array([[[label == c for c in crf.classes_] for label in s] for s in every], float)
        expected = np.einsum("s,svk->vk", p, onehot)
        assert_allclose(again.predict_marginals([instance])[0], expected, atol=1e-9)
        assert tuple(crf.predict([instance])[0]) == every[int(np.argmax(scores))]
        assert_allclose(crf.log_proba([instance], [labels]), np.log(p[every.index(tuple(labels))]), atol=1e-9)


@pytest.mark.parametrize("objective", ["pseudolikelihood", "piecewise", "piecewise[pieces=trees]"])
def test_each_objective_keeps_the_labels_of_types_apart(objective: str) -> None:
    X, y = typed(4, 6)
    crf = GraphCRF(objective=objective).fit(X, y)
    for instance, found in zip(X, crf.predict(X), strict=True):
        assert {"N", "V"} >= set(found[:-1])
        assert found[-1] in ("news", "sport")
        assert (crf.predict_marginals([instance])[0][:-1, 2:] == 0).all()


def test_types_that_cannot_be_are_refused_by_name() -> None:
    X, y = typed(5, 4)
    with pytest.raises(ModelError, match="instance 1 has no types of nodes: give them in all instances"):
        GraphCRF().fit([X[0], X[1][:4], *X[2:]], y)
    with pytest.raises(ModelError, match=r"instance 0: types must be texts or integers of shape \((3|4),\)"):
        GraphCRF().fit([(*X[0][:4], ["word"]), *X[1:]], y)
    crf = GraphCRF().fit(X, y)
    with pytest.raises(ModelError, match="instance 0: type 'verb' was not seen in training"):
        crf.predict([(*X[0][:4], ["verb", *X[0][4][1:]])])
    n = len(y[0])
    with pytest.raises(
        ModelError, match=rf"instance 0, position {n - 1}: a node of type 'topic' has one of the labels"
    ):
        crf.log_proba(X[:1], [[*y[0][:-1], "N"]])
    both = (np.zeros((2, 2)), [[0, 1]], np.zeros((1, 1)), [(np.zeros((0, 3), int), None)], ["topic", "topic"])
    with pytest.raises(ModelError, match="instance 0: edges on nodes of types topic, topic were not seen in training"):
        crf.predict([both])
    with pytest.raises(ModelError, match="no node of type 'topic' has a label that is known"):
        GraphCRF().fit(X, [[*labels[:-1], None] for labels in y])


def test_class_weights_are_those_of_logistic_regression_where_there_are_no_edges() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    labels = (rng.random(200) < 0.2).astype(int)
    nodes = labels[:, None] + rng.normal(size=(200, 1))
    for weight in (None, "balanced", {1: 3.0}):
        crf = GraphCRF(l2=0.5, class_weight=weight, tol=1e-9, optimizer="lbfgs").fit([(nodes,)], [labels])
        other = LogisticRegression(C=2.0, class_weight=weight, tol=1e-9).fit(nodes, labels)
        assert_allclose(crf.coef_[1] - crf.coef_[0], other.coef_[0], rtol=1e-4)
        assert_allclose(crf.intercept_[1] - crf.intercept_[0], other.intercept_[0], rtol=1e-4)
