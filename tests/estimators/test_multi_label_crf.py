"""MultiLabelCRF held to enumeration, to logistic regression, and to what users hand over."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import besag
from besag.errors import ModelError
from besag.estimators.multi_label_crf import MultiLabelCRF, find_tree


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


def test_without_ties_each_label_is_logistic_regression() -> None:
    from sklearn.linear_model import LogisticRegression

    X, Y = rows(2, 60)
    crf = MultiLabelCRF(structure=[], l2=0.25, optimizer="lbfgs", tol=1e-9).fit(X, Y)
    for i in range(3):
        other = LogisticRegression(C=2.0, tol=1e-9).fit(X, Y[:, i])
        assert_allclose(crf.coef_[i], other.coef_[0], rtol=1e-4)
        assert_allclose(crf.intercept_[i], other.intercept_[0], rtol=1e-4, atol=1e-6)
        assert_allclose(crf.predict_marginals(X)[:, i], other.predict_proba(X)[:, 1], atol=1e-5)


def test_unknown_labels_are_summed_out_and_do_not_count() -> None:
    X, Y = rows(3, 20)
    crf = MultiLabelCRF(l2=0.1).fit(X, np.where(np.arange(60).reshape(20, 3) % 7 == 0, -1, Y))
    half = Y[:1].copy()
    half[0, 1] = -1
    both = [np.array([[Y[0, 0], k, Y[0, 2]]]) for k in (0, 1)]
    apart = [crf.log_proba(X[:1], y)[0] for y in both]
    assert_allclose(crf.log_proba(X[:1], half)[0], np.logaddexp(*apart), atol=1e-9)
    found = crf.predict(X[:1])[0]
    assert crf.score(X[:1], half) == np.mean(found[[0, 2]] == Y[0, [0, 2]])


def test_scikit_learn_selects_penalties_of_rows() -> None:
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV, cross_val_score

    X, Y = rows(4, 24)
    crf = MultiLabelCRF(structure="chow_liu", decode="marginal")
    assert clone(crf).get_params() == crf.get_params()
    search = GridSearchCV(crf, {"l2": [0.1, 10.0]}, cv=2).fit(X, Y)
    assert search.best_params_["l2"] in (0.1, 10.0)
    assert cross_val_score(crf, X, Y, cv=2).shape == (2,)


def test_weights_of_rows_are_repetitions() -> None:
    X, Y = rows(5, 12)
    times = np.arange(12) % 3
    crf = MultiLabelCRF(l2=0.3, optimizer="lbfgs", tol=1e-9)
    one = crf.fit(X, Y, sample_weight=times).model_.theta
    other = crf.fit(np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0)).model_.theta
    assert_allclose(one, other, atol=1e-5)
