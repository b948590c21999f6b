"""How good predictions are, where the truth is known: of labels, of probabilities, of chunks, of edges of graphs.

Every function takes the truth first and the prediction second: one array, whose first axis is that of instances, or a
list of arrays or lists of different shapes, such as sequences and images. Sums run over all labels of all instances. A
label of the truth that is None, NaN or one of `ignore` is not known, and its place counts nowhere. `sample_weight` has
one number for each instance, or one for each label.

`labels.py` reads all of this; each other file is a family of measures. Nothing but numpy is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from besag.metrics.agreement import accuracy as accuracy
from besag.metrics.agreement import class_iou as class_iou
from besag.metrics.agreement import hamming_loss as hamming_loss
from besag.metrics.agreement import mean_iou as mean_iou
from besag.metrics.chunks import chunk_f1 as chunk_f1
from besag.metrics.chunks import find_chunks as find_chunks
from besag.metrics.edges import EdgeScores as EdgeScores
from besag.metrics.edges import edge_scores as edge_scores
from besag.metrics.edges import structural_hamming_distance as structural_hamming_distance
from besag.metrics.probabilities import CalibrationCurve as CalibrationCurve
from besag.metrics.probabilities import brier_score as brier_score
from besag.metrics.probabilities import calibration_curve as calibration_curve
from besag.metrics.probabilities import expected_calibration_error as expected_calibration_error
from besag.metrics.probabilities import log_loss as log_loss
from besag.text import no_attribute

__all__ = [
    "CalibrationCurve",
    "EdgeScores",
    "accuracy",
    "brier_score",
    "calibration_curve",
    "chunk_f1",
    "class_iou",
    "edge_scores",
    "expected_calibration_error",
    "find_chunks",
    "hamming_loss",
    "log_loss",
    "mean_iou",
    "structural_hamming_distance",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise AttributeError(no_attribute("besag.metrics", name, __all__))
