"""How far two labellings agree: with weights w_t of the labels t whose truth y_t is known, and predictions z_t,

accuracy        sum_t w_t [y_t = z_t] / sum_t w_t
Hamming loss    1 - accuracy
IoU of k        sum_t w_t [y_t = k and z_t = k] / sum_t w_t [y_t = k or z_t = k]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from besag.metrics.labels import Ignored, compare_labels


def accuracy(y_true: Any, y_pred: Any, *, ignore: Ignored = -1, sample_weight: Any = None) -> float:
    """The share of labels that are right, sum_t w_t [y_t = z_t] / sum_t w_t.

    >>> from besag import metrics
    >>> metrics.accuracy([[0, 1, 1], [1, -1]], [[0, 1, 0], [1, 1]])  # two sequences; one label is not known
    0.75
    """
    truth, predicted, weights, _ = compare_labels(y_true, y_pred, ignore=ignore, sample_weight=sample_weight)
    return float(weights @ (truth == predicted) / weights.sum())


def hamming_loss(y_true: Any, y_pred: Any, *, ignore: Ignored = -1, sample_weight: Any = None) -> float:
    """The share of labels that are wrong: what a labelling by the largest marginals makes least of.

    >>> from besag import metrics
    >>> metrics.hamming_loss([[1, 0, 0, 1], [0, 0, 1, 0]], [[1, 0, 0, 0], [0, 0, 1, 0]])  # (N, L): L labels of each
    0.125
    """
    return 1 - accuracy(y_true, y_pred, ignore=ignore, sample_weight=sample_weight)


def class_iou(
    y_true: Any, y_pred: Any, *, labels: Iterable[Any] | None = None, ignore: Ignored = -1, sample_weight: Any = None
) -> dict[Any, float]:
    """Intersection over union, by class: where both have it, over where one has it, summed over all instances.

    A class that neither has is left out. `labels` are the classes there may be; any other is an error.

    >>> from besag import metrics
    >>> metrics.class_iou([[0, 0, 255], [1, 1, 1]], [[0, 1, 1], [1, 1, 1]], ignore=255)
    {0: 0.5, 1: 0.75}
    """
    truth, predicted, weights, classes = compare_labels(
        y_true, y_pred, ignore=ignore, sample_weight=sample_weight, labels=labels
    )
    both, known = truth == predicted, predicted >= 0
    hits, ours, theirs = (
        np.bincount(codes[chosen], weights[chosen], len(classes))
        for codes, chosen in ((truth, both), (truth, slice(None)), (predicted, known))
    )
    union = ours + theirs - hits
    return {classes[k]: float(hits[k] / union[k]) for k in np.flatnonzero(ours + theirs)}


def mean_iou(
    y_true: Any, y_pred: Any, *, labels: Iterable[Any] | None = None, ignore: Ignored = -1, sample_weight: Any = None
) -> float:
    """The mean over classes of intersection over union; classes that neither has are left out.

    >>> from besag import metrics
    >>> metrics.mean_iou([[0, 0, 255], [1, 1, 1]], [[0, 1, 1], [1, 1, 1]], ignore=255)
    0.625
    """
    found = class_iou(y_true, y_pred, labels=labels, ignore=ignore, sample_weight=sample_weight)
    return float(np.mean(list(found.values())))
