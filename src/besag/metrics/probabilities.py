"""How good probabilities p_t (K,) of labels t are, with the truth y_t and weights w_t scaled to sum to one:

    log loss       - sum_t w_t log p_t(y_t)
    Brier score    sum_t w_t sum_k (p_t(k) - [y_t = k])^2
    calibration    of what was said with probability near c, which share came true

Probabilities have one axis more than the truth, the last, with the classes: (T, K) of a sequence, (H, W, K) of an
image, as `predict_marginals` gives them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from besag.arrays import Array, IntArray, freeze
from besag.errors import ModelError
from besag.metrics.labels import (
    Ignored,
    Parts,
    Shapes,
    check_shapes,
    encode,
    find_instance,
    find_void,
    read_parts,
    read_weights,
    select_known,
)
from besag.registry import is_whole
from besag.text import shorten

ROUNDING = 1e-5  # of sums of probabilities in float32


class Forecast(NamedTuple):
    """Truth (T,) as columns, probabilities (T, K), weights (T,) that sum to one, and the classes."""

    truth: IntArray
    chances: Array
    weights: Array
    classes: tuple[Any, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationCurve:
    """What was said and what came true, in those of the bins that have any: arrays (M,).

    said: the mean probability. true: the share that came true. weight: the share of all labels, which sums to one.
    """

    said: Array
    true: Array
    weight: Array

    @property
    def error(self) -> float:
        """The expected calibration error, sum over bins of weight |said - true|."""
        return float(self.weight @ np.abs(self.said - self.true))


def log_loss(
    y_true: Any,
    probabilities: Any,
    *,
    labels: Iterable[Any] | None = None,
    ignore: Ignored = -1,
    sample_weight: Any = None,
) -> float:
    """The mean of -log p(y_t), in nats: inf where the truth was said to be impossible.

    labels: the classes of the columns, `crf.classes_`; 0, 1, ..., K - 1 by default.

    >>> from besag import metrics
    >>> round(metrics.log_loss(["N", "V"], [[0.8, 0.2], [0.5, 0.5]], labels=["N", "V"]), 4)
    0.4581
    """
    truth, chances, weights, _ = _read_forecast(y_true, probabilities, labels, ignore, sample_weight)
    with np.errstate(divide="ignore"):
        return float(-(weights @ np.log(chances[np.arange(len(truth)), truth])))


def brier_score(
    y_true: Any,
    probabilities: Any,
    *,
    labels: Iterable[Any] | None = None,
    ignore: Ignored = -1,
    sample_weight: Any = None,
) -> float:
    """The mean of sum_k (p_t(k) - [y_t = k])^2, from 0 to 2: Brier's own form, twice the other one for two labels.

    >>> from besag import metrics
    >>> round(metrics.brier_score([0, 1], [[0.8, 0.2], [0.5, 0.5]]), 4)
    0.29
    """
    truth, chances, weights, _ = _read_forecast(y_true, probabilities, labels, ignore, sample_weight)
    away = chances.copy()
    away[np.arange(len(truth)), truth] -= 1
    return float(weights @ np.einsum("tk,tk->t", away, away))


def calibration_curve(
    y_true: Any,
    probabilities: Any,
    *,
    label: Any = None,
    n_bins: int = 10,
    labels: Iterable[Any] | None = None,
    ignore: Ignored = -1,
    sample_weight: Any = None,
) -> CalibrationCurve:
    """Probabilities in bins of equal width, and how often each came true.

    With `label`, the probability that this is the label; without, the confidence, that of the most probable label. A
    bin has its upper edge and not its lower one (Guo, Pleiss, Sun and Weinberger 2017).

    >>> from besag import metrics
    >>> curve = metrics.calibration_curve([0, 1, 1], [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8]], n_bins=5)
    >>> curve.said.round(3), curve.true, curve.weight.round(3), round(curve.error, 3)
    (array([0.8, 0.9]), array([0.5, 1. ]), array([0.667, 0.333]), 0.233)
    """
    if not is_whole(n_bins) or n_bins < 1:
        raise ModelError(f"n_bins must be a whole number from 1 on, got {n_bins!r}")
    truth, chances, weights, classes = _read_forecast(y_true, probabilities, labels, ignore, sample_weight)
    if label is None:
        best = chances.argmax(axis=1)
        said, came = chances.max(axis=1), truth == best
    else:
        if label not in classes:
            raise ModelError(f"label must be one of {shorten([repr(one) for one in classes])}, got {label!r}")
        said, came = chances[:, classes.index(label)], truth == classes.index(label)
    bins = np.searchsorted(np.linspace(0, 1, n_bins + 1)[1:-1], said)
    weight, sum_said, sum_true = (np.bincount(bins, weights * values, n_bins) for values in (1.0, said, came))
    kept = weight > 0
    means = (values[kept] / weight[kept] for values in (sum_said, sum_true))
    return CalibrationCurve(*map(freeze, (*means, weight[kept])))


def expected_calibration_error(
    y_true: Any,
    probabilities: Any,
    *,
    n_bins: int = 10,
    labels: Iterable[Any] | None = None,
    ignore: Ignored = -1,
    sample_weight: Any = None,
) -> float:
    """The mean distance of confidence and accuracy over bins of the confidence, each weighted by its share of labels.

    >>> from besag import metrics
    >>> round(metrics.expected_calibration_error([0, 1, 1], [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8]], n_bins=5), 3)
    0.233
    """
    return calibration_curve(
        y_true, probabilities, n_bins=n_bins, labels=labels, ignore=ignore, sample_weight=sample_weight
    ).error


def _read_forecast(
    y_true: Any, probabilities: Any, labels: Iterable[Any] | None, ignore: Ignored, sample_weight: Any
) -> Forecast:
    """Truth and probabilities where the truth is known."""
    true, given = read_parts(y_true, "y_true"), _read_table(probabilities)
    classes = _columns(given, labels)
    check_shapes(true, given, "probabilities", (len(classes),))
    truth = _find_columns(true, classes, ignore, named=labels is not None)
    weights = read_weights(sample_weight, true)
    known = select_known(truth >= 0, weights)
    chances = np.concatenate([part.reshape(-1, len(classes)) for part in given.arrays])[known]
    _check_chances(chances, np.flatnonzero(known), true.shapes)
    kept = weights[known]
    return Forecast(truth[known], chances, kept / kept.sum(), classes)


def _read_table(probabilities: Any) -> Parts:
    parts = read_parts(probabilities, "probabilities")
    arrays = []
    for n, part in enumerate(parts.arrays):
        try:
            arrays.append(np.asarray(part, np.float64))
        except (TypeError, ValueError):
            raise ModelError(f"probabilities must be numbers, got {part.dtype} in instance {n}") from None
    return Parts(arrays, parts.whole)


def _columns(given: Parts, labels: Iterable[Any] | None) -> tuple[Any, ...]:
    """The classes of the last axis: by name, or numbers."""
    if labels is None:
        first = next((array for array in given.arrays if array.ndim), np.zeros(0))
        return tuple(range(first.shape[-1]))
    return tuple(label.item() if isinstance(label, np.generic) else label for label in labels)


def _find_columns(true: Parts, classes: tuple[Any, ...], ignore: Ignored, *, named: bool) -> IntArray:
    """(T,): the column of each label of the truth, -1 where it is not known."""
    (codes,), values = encode([true.flat()])
    void = find_void(values, ignore)
    where = {label: column for column, label in enumerate(classes)}
    column_of = np.array([-1 if void[i] else where.get(value, -2) for i, value in enumerate(values)], np.int64)
    columns = np.asarray(column_of[codes])
    if (columns == -2).any():
        at = int(np.argmax(columns == -2))
        hint = "ignore= leaves it out" if named else "labels= says which column is which, as in labels=crf.classes_"
        known = shorten([repr(one) for one in classes])
        raise ModelError(
            f"instance {find_instance(true.shapes, at)} of y_true: the label {values[int(codes[at])]!r} has no column "
            f"of the probabilities, which are of {known}; {hint}"
        )
    return columns


def _check_chances(chances: Array, places: IntArray, shapes: Shapes) -> None:
    sums = chances.sum(axis=1)
    wrong = ~((chances.min(axis=1) >= 0) & (np.abs(sums - 1) <= ROUNDING))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ModelError(
            f"instance {find_instance(shapes, int(places[at]))}: probabilities must be from 0 on and sum to one, "
            f"got {chances[at].tolist()[:8]}, whose sum is {sums[at]}"
        )
