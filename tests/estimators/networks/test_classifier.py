"""BayesianNetworkClassifier against the formula of naive Bayes, in pipelines, and through scikit-learn's own checks."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import besag
from besag.errors import DataError, ModelError

ROWS = besag.data.bundled("asia").sample(600, seed=2)
X, Y = ROWS.drop(columns="bronc"), ROWS["bronc"]
EXCEPTIONS = {  # what scikit-learn's checks ask for, and why it is otherwise here
    "check_estimators_unfitted": "the error is besag's NotFittedError, since scikit-learn need not be installed",
    "check_n_features_in_after_fitting": "columns that are absent are missing cells",
    "check_sample_weight_equivalence_on_dense_data": "floats of few rows: a state that training never had is refused",
    "check_estimators_empty_data_messages": "another message",
    "check_estimators_pickle": "floats with missing cells",
    "check_classifiers_one_label_sample_weights": "one class is nothing to tell apart",
    "check_classifiers_regression_target": "numbers that are few are classes",
    "check_supervised_y_2d": "y of one column is taken without a warning",
    "check_non_transformer_estimators_n_iter": "no iterations where all cells are known",
    "check_fit2d_1sample": "another message",
}


def test_naive_is_categorical_naive_bayes() -> None:
    ours = besag.BayesianNetworkClassifier().fit(X, Y)
    codes = X.apply(lambda column: column.cat.codes)
    theirs = CategoricalNB(alpha=1.0, min_categories=2, class_prior=ours.model_.cpt("bronc"))
    theirs.fit(codes, Y.astype(str))
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(codes), atol=1e-12)
    assert ours.score(X, Y) == pytest.approx(theirs.score(codes, Y.astype(str)))
    assert ours.classes_.tolist() == ["no", "yes"]
    assert ours.n_features_in_ == 7


def test_missing_cells_are_summed_out() -> None:
    fitted = besag.BayesianNetworkClassifier().fit(X, Y)
    only = fitted.predict_proba(X[["dysp"]])
    blank = fitted.predict_proba(X.assign(**{name: None for name in X if name != "dysp"}))
    expected = np.stack([fitted.model_.marginals(evidence={"dysp": state})["bronc"] for state in X["dysp"][:20]])
    np.testing.assert_allclose(only[:20], expected, atol=1e-12)
    np.testing.assert_allclose(blank, only, atol=1e-12)


def test_a_given_graph() -> None:
    edges = [("smoke", "bronc"), ("bronc", "dysp"), ("either", "dysp"), ("asia", "tub"), ("lung", "xray")]
    fitted = besag.BayesianNetworkClassifier(edges).fit(X, Y)
    assert sorted(fitted.network_.edges_) == sorted(edges)
    network = besag.BayesianNetwork(edges, "laplace").fit(ROWS)
    np.testing.assert_allclose(fitted.predict_proba(X), network.predict_proba(ROWS, "bronc"), atol=1e-12)
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(X)), fitted.predict_proba(X))


def test_a_pipeline_from_floats() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=400), "b": rng.random(400)})
    target = (frame["a"] > 0.3).map({True: "high", False: "low"})
    pipeline = make_pipeline(besag.Discretizer("mdlp"), besag.BayesianNetworkClassifier())
    with pytest.warns(besag.errors.DataWarning):  # b tells nothing
        assert cross_val_score(pipeline, frame, target).mean() > 0.95
    with pytest.raises(DataError, match="'a' holds 400 distinct numbers"):
        besag.BayesianNetworkClassifier().fit(frame, target)


def test_files(tmp_path: Any) -> None:
    for structure in ("naive", [("bronc", name) for name in X]):
        fitted = besag.BayesianNetworkClassifier(structure).fit(X, Y)
        fitted.save(tmp_path / "classifier.npz")
        read = besag.load(tmp_path / "classifier.npz")
        assert np.array_equal(read.predict_proba(X), fitted.predict_proba(X))
        assert read.predict(X[:5]).tolist() == fitted.predict(X[:5]).tolist()


@pytest.mark.parametrize(
    ("options", "y", "match"),
    [
        ({}, Y[:5], "600 classes, one a row, got 5"),
        ({}, pd.Series(["no"] * 600), "two classes at least"),
        ({}, Y.where(Y == "no"), "the class of every row, and row"),
        ({"structure": "tan"}, Y, "every row has a missing cell"),
        ({"structure": "bushy"}, Y, "structure must be 'naive', 'tan' or a graph"),
    ],
)
def test_bad_input(options: Any, y: Any, match: str) -> None:
    rows = X.assign(asia=None) if options.get("structure") == "tan" else X
    with pytest.raises((DataError, ModelError), match=match):
        besag.BayesianNetworkClassifier(states={"asia": ["no", "yes"]}, **options).fit(rows, y)


def test_scikit_learns_checks() -> None:
    assert is_classifier(besag.BayesianNetworkClassifier())
    with pytest.warns(UserWarning, match="does not inherit"):
        results = check_estimator(besag.BayesianNetworkClassifier(), on_fail=None, on_skip=None)
    failed = {result["check_name"] for result in results if result["status"] == "failed"}
    assert failed <= set(EXCEPTIONS), failed - set(EXCEPTIONS)
    assert sum(result["status"] == "passed" for result in results) > 40
