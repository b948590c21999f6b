"""Agreement of labellings: scikit-learn's numbers, labels that are not known, weights, and what is refused."""

from typing import Any

import numpy as np
import pytest
from sklearn import metrics as theirs

from besag import metrics
from besag.errors import ModelError

RNG = np.random.default_rng(0)
TRUE, FOUND, WEIGHTS = RNG.integers(0, 4, 200), RNG.integers(0, 5, 200), RNG.random(200)
NAMES = np.array(["a", "b", "c", "d", "e"])


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("names", [np.arange(5), NAMES, NAMES.astype(object)])
def test_numbers_are_those_of_scikit_learn(weights: Any, names: Any) -> None:
    true, found = names[TRUE], names[FOUND]
    assert metrics.accuracy(true, found, sample_weight=weights) == pytest.approx(
        theirs.accuracy_score(true, found, sample_weight=weights)
    )
    assert metrics.hamming_loss(true, found, sample_weight=weights) == pytest.approx(
        theirs.hamming_loss(true, found, sample_weight=weights)
    )
    expected = theirs.jaccard_score(true, found, average=None, sample_weight=weights)
    by_class = metrics.class_iou(true, found, sample_weight=weights)
    assert list(by_class) == names.tolist()
    np.testing.assert_allclose(list(by_class.values()), expected)
    assert metrics.mean_iou(true, found, sample_weight=weights) == pytest.approx(expected.mean())


def test_many_labels_of_each_instance() -> None:
    true, found, weights = RNG.integers(0, 2, (50, 6)), RNG.integers(0, 2, (50, 6)), RNG.random(50)
    ours = metrics.hamming_loss(true, found, sample_weight=weights)
    assert ours == pytest.approx(theirs.hamming_loss(true, found, sample_weight=weights))


def test_images_of_different_shapes() -> None:
    true = [TRUE[:60].reshape(6, 10), TRUE[60:200].reshape(10, 14)]
    found = [FOUND[:60].reshape(6, 10), FOUND[60:200].reshape(10, 14)]
    assert metrics.accuracy(true, found) == metrics.accuracy(TRUE, FOUND)
    assert metrics.class_iou(true, found) == metrics.class_iou(TRUE, FOUND)
    pixels = [WEIGHTS[:60].reshape(6, 10), WEIGHTS[60:200].reshape(10, 14)]
    weighted = metrics.mean_iou(TRUE, FOUND, sample_weight=WEIGHTS)
    assert metrics.mean_iou(true, found, sample_weight=pixels) == pytest.approx(weighted)
    each = metrics.accuracy(TRUE, FOUND, sample_weight=np.repeat([3.0, 0.5], [60, 140]))
    assert metrics.accuracy(true, found, sample_weight=[3.0, 0.5]) == pytest.approx(each)


def test_arrays_and_lists_are_one() -> None:
    true, found = TRUE[:20].reshape(4, 5), FOUND[:20].reshape(4, 5)
    expected = metrics.accuracy(true, found)
    assert metrics.accuracy(true.tolist(), found) == expected
    assert metrics.accuracy(list(true), tuple(map(tuple, found.tolist()))) == expected


@pytest.mark.parametrize("ignore", [255, [255, -1], {255}, (-1, 255), np.array([255, -1])])
def test_void_labels_count_nowhere(ignore: Any) -> None:
    true = TRUE.copy()
    true[::3] = 255
    known = true != 255
    assert metrics.accuracy(true, FOUND, ignore=ignore) == metrics.accuracy(TRUE[known], FOUND[known])
    assert metrics.class_iou(true, FOUND, ignore=ignore) == metrics.class_iou(TRUE[known], FOUND[known])
    weighted = metrics.accuracy(true, FOUND, ignore=ignore, sample_weight=WEIGHTS)
    assert weighted == pytest.approx(metrics.accuracy(TRUE[known], FOUND[known], sample_weight=WEIGHTS[known]))


def test_labels_that_are_missing() -> None:
    assert metrics.accuracy([["N", None], ["V", "N"]], [["N", "N"], ["N", "N"]]) == pytest.approx(2 / 3)
    assert metrics.accuracy(np.array([0.0, np.nan, 1.0]), np.array([0, 1, 0])) == 0.5
    assert metrics.accuracy([0, -1], [0, -1], ignore=None) == 1.0
    assert metrics.accuracy([0, -1], [0, 0], ignore=None) == 0.5


def test_a_void_prediction_is_wrong() -> None:
    assert metrics.accuracy([0, 1], [0, -1]) == 0.5
    assert metrics.class_iou([0, 1, 1], [0, -1, 1]) == {0: 1.0, 1: 0.5}


def test_classes_of_neither_are_left_out() -> None:
    assert metrics.class_iou([0, 2], [0, 2], labels=[0, 1, 2]) == {0: 1.0, 2: 1.0}
    assert metrics.class_iou([0, 0], [0, 2], labels=[0, 1, 2]) == {0: 0.5, 2: 0.0}


@pytest.mark.parametrize(
    ("true", "found", "options", "match"),
    [
        ([0, 1], [0], {}, r"y_true has 2 instances, and y_pred has 1"),
        ([[0, 1], [0]], [[0, 1], [0, 1]], {}, r"instance 1: expected y_pred of shape \(1,\).*got \(2,\)"),
        (np.zeros((2, 3), int), np.zeros((3, 2), int), {}, "y_true has 2 instances, and y_pred has 3"),
        ([0, 1], [[0], [1]], {}, r"instance 0: expected y_pred of shape \(\)"),
        ("NV", "NV", {}, "y_true must be an array, or a list"),
        ([[0], 1], [[0], [1]], {}, "y_true must be all labels or all instances"),
        ([-1, -1], [0, 1], {}, "nothing to score"),
        ([], [], {}, "nothing to score"),
        ([0, 1], [0, 1], {"sample_weight": [0, 0]}, "nothing to score"),
        ([0, 1], [0, 1], {"sample_weight": [1]}, r"weights must have shape \(2,\)"),
        ([0, 1], [0, 1], {"sample_weight": [1, -1]}, "weights must be finite numbers from 0 on"),
        ([[0, 1]], [[0, 1]], {"sample_weight": [[1, 1, 1]]}, r"expected sample_weight of shape \(2,\)"),
        ([0, 1], [0.3, 0.7], {}, "a label must be a text or a whole number, got 0.3; log_loss"),
        (["a", "b"], [0, 1], {}, "labels must be of one type, got int and str"),
        ([[[0], [1, 2]]], [[[0], [1, 2]]], {}, "a label must be a text or a whole number, got"),
    ],
)
def test_bad_input(true: Any, found: Any, options: dict[str, Any], match: str) -> None:
    with pytest.raises(ModelError, match=match):
        metrics.accuracy(true, found, **options)


def test_labels_outside_are_named() -> None:
    with pytest.raises(ModelError, match="instance 1 of y_pred: the label 7 is none of 0, 1"):
        metrics.class_iou([[0, 1], [1, 255]], [[0, 0], [1, 7]], labels=[0, 1], ignore=255)
    with pytest.raises(ModelError, match="instance 0 of y_true: the label 255 is none of 0, 1"):
        metrics.mean_iou([[0, 255]], [[0, 0]], labels=[0, 1])
