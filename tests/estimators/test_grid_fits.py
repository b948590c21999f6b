"""Fits of GridCRF: class weights, what ends them and what they go on from, threads, scikit-learn."""

import importlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from besag.errors import CapabilityError, ConvergenceWarning, DataWarning, IdentifiabilityWarning, ModelError
from besag.estimators.grid_crf import GridCRF
from tests.estimators.test_grid_crf import log_potential, pictures

importlib.import_module("numba")  # fits are compared to the last bit: none begins in plain Python
IMAGES, LABELS = pictures(20, [(4, 5), (5, 4), (3, 6)], n_labels=3)


def pseudolikelihood(crf: GridCRF, image: Any, labels: Any, weight: Any) -> float:
    """Minus the sum over pixels of w[y] log p(y_i | all others), by changing one label at a time."""
    total = 0.0
    for i, j in np.ndindex(labels.shape):
        scores = []
        for k in range(3):
            other = labels.copy()
            other[i, j] = k
            scores.append(log_potential(crf, image, other))
        total -= weight[labels[i, j]] * (scores[labels[i, j]] - np.logaddexp.reduce(scores))
    return total


@pytest.mark.parametrize("given", ["balanced", {0: 3.0, 2: 0.5}])
def test_class_weights_weigh_the_terms_of_pixels(given: Any) -> None:
    crf = GridCRF(class_weight=given, l2=0.3, tol=1e-8, optimizer="lbfgs").fit(IMAGES, LABELS)
    counts = np.bincount(np.concatenate([y.ravel() for y in LABELS]), minlength=3)
    weight = counts.sum() / (3 * counts) if given == "balanced" else [3.0, 1.0, 0.5]
    loss = sum(pseudolikelihood(crf, x, y, weight) for x, y in zip(IMAGES, LABELS, strict=True))
    penalised = np.concatenate([crf.coef_.ravel(), crf.model_.block("edge")])
    assert_allclose(crf.objective_, loss + 0.3 * (penalised**2).sum(), rtol=1e-9)
    plain = GridCRF(l2=0.3, tol=1e-8, optimizer="lbfgs").fit(IMAGES, LABELS)
    assert not np.allclose(plain.model_.theta, crf.model_.theta, atol=1e-2)
    ones = GridCRF(class_weight={0: 1.0}, l2=0.3, tol=1e-8, optimizer="lbfgs").fit(IMAGES, LABELS)
    assert_allclose(ones.model_.theta, plain.model_.theta, atol=1e-6)


def test_class_weights_go_with_mini_batches_and_unknown_labels() -> None:
    void = [np.where(np.arange(y.size).reshape(y.shape) % 5 == 0, -1, y) for y in LABELS]
    options: dict[str, Any] = {"class_weight": {1: 4.0}, "l2": 0.5, "tol": 1e-6}
    one = GridCRF(optimizer="lbfgs", **options).fit(IMAGES, void)
    other = GridCRF(optimizer="sgd[batch_size=1]", **options).fit(IMAGES, void)
    assert_allclose(one.model_.theta, other.model_.theta, atol=1e-3)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("balance", 'class_weight must be None, "balanced" or {label: weight}'),
        ({7: 1.0}, "class_weight names 7, which is no label in training: 0, 1, 2"),
        ({0: -1.0}, "class_weight must be finite numbers from 0 on"),
    ],
)
def test_class_weights_that_are_none(given: Any, expected: str) -> None:
    with pytest.raises(ModelError, match=expected):
        GridCRF(class_weight=given).fit(IMAGES, LABELS)


def test_held_out_pictures_are_weighed_as_those_in_training() -> None:
    crf, total = GridCRF(class_weight="balanced", max_iter=2), LABELS[0].size
    counts = np.bincount(LABELS[0].reshape(-1), minlength=3)
    by_hand = GridCRF(class_weight={k: total / (3 * counts[k]) for k in range(3)}, max_iter=2)
    for each in (crf, by_hand):
        with pytest.warns(ConvergenceWarning):
            each.fit(IMAGES[:1], LABELS[:1], held_out=(IMAGES[1:], LABELS[1:]))
    assert_allclose(crf.history_["held_out"], by_hand.history_["held_out"])


def test_scribbles_without_neighbours_are_told_to_say_nothing() -> None:
    apart = [np.where(np.indices(y.shape).sum(axis=0) % 3 == 0, y, -1) for y in LABELS]
    with pytest.warns(DataWarning, match=r"learns from 0 of \d+ labels, those whose neighbours are all known"):
        GridCRF().fit(IMAGES, apart)


@pytest.mark.parametrize("objective", ["likelihood", "piecewise"])
def test_class_weights_need_terms_of_pixels(objective: str) -> None:
    with pytest.raises(CapabilityError, match=f"objective '{objective}' has none; take .pseudolikelihood"):
        GridCRF(class_weight="balanced", objective=objective).fit(IMAGES, LABELS)


@pytest.mark.parametrize("pairwise", ["contrast", "table"])
def test_threads_and_chunks_change_nothing(pairwise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("data.dataset.SHARD_VARIABLES", "learn.losses.terms.CHUNK_TERMS"):
        monkeypatch.setattr(f"besag.{name}", 1)
    one, two = (GridCRF(pairwise=pairwise, n_jobs=n).fit(IMAGES, LABELS) for n in (1, 2))
    assert_array_equal(one.model_.theta, two.model_.theta)
    for engine in ("auto", "bp"):
        found = [crf.set_params(engine=engine).predict_marginals(IMAGES) for crf in (one, two)]
        for p, q in zip(*found, strict=True):
            assert_array_equal(p, q)


def test_a_fit_that_is_interrupted_goes_on_to_the_same_end(tmp_path: Path) -> None:
    whole = GridCRF(l2=0.1).fit(IMAGES, LABELS)
    parts, file, calls = GridCRF(l2=0.1), tmp_path / "fit.npz", iter(range(1000))

    def press(*_: Any) -> None:
        if next(calls) == 4:
            raise KeyboardInterrupt

    parts.fit(IMAGES, LABELS, checkpoint=file, on_step=press)
    assert parts.stopped_ == "interrupted"
    assert 0 < parts.n_iter_ < whole.n_iter_
    parts.fit(IMAGES, LABELS, checkpoint=file)
    assert_array_equal(parts.model_.theta, whole.model_.theta)
    assert parts.history_["value"].equals(whole.history_["value"])
    with pytest.raises(ModelError, match="other data or another penalty"):
        GridCRF(l2=0.2).fit(IMAGES, LABELS, checkpoint=file)


def test_a_limit_of_time_gives_the_best_so_far() -> None:
    crf = GridCRF(time_limit=0.0).fit(IMAGES, LABELS)
    assert crf.stopped_ == "time_limit"
    assert crf.predict(IMAGES)[0].shape == (4, 5)


def test_held_out_pictures_end_the_fit() -> None:
    others = pictures(21, [(4, 4), (5, 5)], n_labels=3)
    crf = GridCRF(l2=1e-4, pairwise="table").fit(IMAGES, LABELS, held_out=others)
    losses = crf.history_["held_out"]
    assert losses.iloc[-1] == losses.min()
    for given, expected in (
        ((others[0],), r"held_out must be a pair \(X, y\)"),
        (([x[..., :1] for x in others[0]], others[1]), "held_out: images must have 3 features"),
        (
            (others[0], [y + 9 for y in others[1]]),
            r"held_out: instance 0, position \(0, 0\): the label \d+ was not seen",
        ),
    ):
        with pytest.raises(ModelError, match=expected):
            GridCRF().fit(IMAGES, LABELS, held_out=given)


def test_verbose_tells_of_iterations_and_on_step_is_called_too(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[int] = []
    crf = GridCRF(verbose=True).fit(IMAGES, LABELS, on_step=lambda row, theta: rows.append(row.iteration))
    told = capsys.readouterr()
    assert told.out == ""
    assert f"GridCRF: iteration {crf.n_iter_}, " in told.err.splitlines()[-1]
    assert rows == crf.history_["iteration"].tolist()[1:]  # row 0 is where the fit began
    GridCRF().fit(IMAGES, LABELS)
    assert capsys.readouterr().err == ""


def test_scikit_learn_selects_penalties_of_pictures() -> None:
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV

    images, labels = pictures(22, [(4, 4)] * 6)
    crf = GridCRF(pairwise="potts", ignore_label=[255])
    assert clone(crf).get_params() == crf.get_params()
    search = GridSearchCV(crf, {"l2": [0.1, 100.0]}, cv=2).fit(images, labels)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    assert search.best_estimator_.predict(images)[0].shape == (4, 4)


def test_weights_of_pictures_are_repetitions() -> None:
    crf = GridCRF(optimizer="lbfgs", tol=1e-9, pairwise="potts")
    one = crf.fit(IMAGES, LABELS, sample_weight=[2, 0, 1]).model_.theta
    again = [IMAGES[0], IMAGES[0], IMAGES[2]], [LABELS[0], LABELS[0], LABELS[2]]
    assert_allclose(one, crf.fit(*again).model_.theta, atol=1e-5)


def test_a_constant_feature_beside_the_intercept_is_told_where_nothing_decides() -> None:
    images = [np.concatenate([x, np.ones((*x.shape[:2], 1))], axis=2) for x in IMAGES]
    with pytest.warns(IdentifiabilityWarning, match="the same everywhere: 3; without a penalty"):
        free = GridCRF(l2=0.0).fit(images, LABELS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GridCRF(l2=0.01).fit(images, LABELS)
        without = GridCRF(l2=0.0).fit(IMAGES, LABELS)
    assert_allclose(free.objective_, without.objective_, rtol=1e-4)


def test_what_is_given_in_a_wrong_form_is_said_so() -> None:
    with pytest.raises(ModelError, match=r"labels is a list of arrays \(H, W\), got one of shape \(4, 5\): write"):
        GridCRF().fit(IMAGES[0], LABELS[0])
    with pytest.raises(CapabilityError, match="no engine is named 'bq'"):
        GridCRF(engine="bq").fit(IMAGES, LABELS)
    crf = GridCRF().fit(IMAGES, LABELS)
    with pytest.raises(ModelError, match="images must have 3 features a pixel, as in training, got 1"):
        crf.decision_maps([x[..., :1] for x in IMAGES])
    with pytest.raises(ModelError, match="edge_features of image 0 must be numbers"):
        GridCRF().fit(IMAGES, LABELS, edge_features=[("a", "b")] * 3)


def test_a_large_picture_is_labelled() -> None:
    images, labels = pictures(23, [(6, 6)] * 4)
    crf = GridCRF(pairwise="potts").fit(images, labels)
    large = pictures(24, [(120, 130)])[0]
    p = crf.set_params(engine="bp[damping=0.3]").predict_marginals(large)[0]
    assert p.shape == (120, 130, 2)
    assert_allclose(p.sum(axis=2), 1.0)
    alone = crf.decision_maps(large)[0].argmax(axis=2)
    assert 0.5 < (p.argmax(axis=2) == alone).mean() < 1.0
