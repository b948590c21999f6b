"""Log loss, Brier score and calibration: scikit-learn's numbers, direct formulas, and what is refused."""

from typing import Any

import numpy as np
import pytest
from sklearn import metrics as theirs
from sklearn.calibration import calibration_curve

from besag import metrics
from besag.errors import ModelError

RNG = np.random.default_rng(1)
T, K = 300, 4
CHANCES = RNG.dirichlet(np.ones(K), T)
TRUE, WEIGHTS = RNG.integers(0, K, T), RNG.random(T)
NAMES = np.array(["d", "a", "c", "b"])  # columns in an order of their own


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_log_loss_is_that_of_scikit_learn(weights: Any) -> None:
    expected = theirs.log_loss(TRUE, CHANCES, sample_weight=weights)
    assert metrics.log_loss(TRUE, CHANCES, sample_weight=weights) == pytest.approx(expected)
    named = metrics.log_loss(NAMES[TRUE], CHANCES, labels=NAMES, sample_weight=weights)
    assert named == pytest.approx(expected)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_brier_score_is_the_formula(weights: Any) -> None:
    each = ((CHANCES - np.eye(K)[TRUE]) ** 2).sum(axis=1)
    assert metrics.brier_score(TRUE, CHANCES, sample_weight=weights) == pytest.approx(np.average(each, weights=weights))


def test_brier_score_of_two_labels_is_twice_that_of_scikit_learn() -> None:
    p = RNG.random(T)
    true = (RNG.random(T) < p).astype(int)
    ours = metrics.brier_score(true, np.stack([1 - p, p], axis=1))
    assert ours == pytest.approx(2 * theirs.brier_score_loss(true, p))


@pytest.mark.parametrize("n_bins", [1, 5, 10])
def test_calibration_of_a_label_is_that_of_scikit_learn(n_bins: int) -> None:
    curve = metrics.calibration_curve(TRUE, CHANCES, label=2, n_bins=n_bins)
    true, said = calibration_curve(TRUE == 2, CHANCES[:, 2], n_bins=n_bins)
    np.testing.assert_allclose(curve.said, said)
    np.testing.assert_allclose(curve.true, true)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_calibration_error_is_the_formula(weights: Any) -> None:
    w = np.ones(T) if weights is None else weights
    confidence, right = CHANCES.max(axis=1), CHANCES.argmax(axis=1) == TRUE
    total = 0.0
    for low, high in ((b / 10, (b + 1) / 10) for b in range(10)):
        inside = (confidence > low) & (confidence <= high)
        total += abs(float(w[inside] @ (confidence - right)[inside]))
    ours = metrics.expected_calibration_error(TRUE, CHANCES, sample_weight=weights)
    assert ours == pytest.approx(total / w.sum())
    curve = metrics.calibration_curve(TRUE, CHANCES, sample_weight=weights)
    assert curve.error == pytest.approx(ours)
    assert curve.weight.sum() == pytest.approx(1)
    assert not curve.said.flags.writeable


def test_perfect_calibration() -> None:
    true = np.repeat([0, 1, 0], [3, 1, 4])
    chances = np.repeat([[0.75, 0.25], [1.0, 0.0]], [4, 4], axis=0)
    assert metrics.expected_calibration_error(true, chances) == 0


@pytest.mark.parametrize("score", [metrics.log_loss, metrics.brier_score, metrics.expected_calibration_error])
def test_sequences_images_and_labels_that_are_not_known(score: Any) -> None:
    true = TRUE.copy()
    true[::7] = -1
    chances = CHANCES.copy()
    chances[::7] = np.nan  # not looked at
    known = true >= 0
    expected = score(TRUE[known], CHANCES[known])
    assert score(true, chances) == pytest.approx(expected)
    assert score([true[:100], true[100:]], [chances[:100], chances[100:].tolist()]) == pytest.approx(expected)
    assert score(true.reshape(15, 20), chances.reshape(15, 20, K)) == pytest.approx(expected)
    weights = np.where(known, WEIGHTS, 5.0)
    weighted = score(true.reshape(15, 20), chances.reshape(15, 20, K), sample_weight=weights.reshape(15, 20))
    assert weighted == pytest.approx(score(TRUE[known], CHANCES[known], sample_weight=WEIGHTS[known]))


def test_what_was_impossible_costs_infinitely_much() -> None:
    assert metrics.log_loss([0, 1], [[1.0, 0.0], [1.0, 0.0]]) == np.inf
    assert metrics.log_loss([0, 1], [[1.0, 0.0], [1.0, 0.0]], sample_weight=[1, 0]) == 0


def test_single_precision_sums_to_one() -> None:
    assert np.isfinite(metrics.log_loss(TRUE, CHANCES.astype(np.float32)))


@pytest.mark.parametrize(
    ("true", "chances", "options", "match"),
    [
        ([0, 1], [[0.5, 0.5]], {}, "y_true has 2 instances, and probabilities has 1"),
        ([0, 1], [0.5, 0.5], {}, r"instance 0: expected probabilities of shape"),
        ([[0, 1], [1]], [[[0.5, 0.5]] * 2] * 2, {}, r"instance 1: expected probabilities of shape \(1, 2\).*\(2, 2\)"),
        ([0, 1], [[0.5, 0.5], [0.5, 0.6]], {}, r"instance 1: probabilities .* sum to one, got \[0.5, 0.6\].*1.1"),
        ([-1, 1], [[0.5, 0.5], [1.5, -0.5]], {}, "instance 1: probabilities must be from 0 on"),
        ([0, 1], [[0.5, 0.5], [np.nan, 0.5]], {}, "instance 1: probabilities"),
        ([0, 2], [[0.5, 0.5]] * 2, {}, "instance 1 of y_true: the label 2 has no column .* 0, 1; .*labels="),
        (
            ["N", "X"],
            [[0.5, 0.5]] * 2,
            {"labels": ["N", "V"]},
            "the label 'X' has no column .* 'N', 'V'; ignore= leaves it out",
        ),
        ([0, 1], [[0.5, 0.5]] * 2, {"labels": [0, 1, 2]}, r"expected probabilities of shape \(3,\)"),
        ([0, 1], [["a", "b"]] * 2, {}, "probabilities must be numbers"),
        ([-1], [[0.5, 0.5]], {}, "nothing to score"),
        ([], [], {}, "nothing to score"),
    ],
)
def test_bad_input(true: Any, chances: Any, options: dict[str, Any], match: str) -> None:
    with pytest.raises(ModelError, match=match):
        metrics.log_loss(true, chances, **options)


def test_bad_options_of_a_curve() -> None:
    with pytest.raises(ModelError, match="n_bins must be a whole number from 1 on, got 0"):
        metrics.calibration_curve([0], [[1.0]], n_bins=0)
    with pytest.raises(ModelError, match="label must be one of 0, 1, got 'a'"):
        metrics.calibration_curve([0], [[0.5, 0.5]], label="a")
