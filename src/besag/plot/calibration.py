"""What was said beside what came true: on the diagonal where probabilities mean what they say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from besag.errors import ModelError
from besag.metrics.probabilities import CalibrationCurve
from besag.plot.style import LINE, SERIES, File, new_figure, write_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_calibration(curves: CalibrationCurve | Mapping[str, CalibrationCurve], path: File | None = None) -> Figure:
    """One curve of `besag.metrics.calibration_curve`, or several by name; dots are as large as their share of labels.

    >>> import besag.plot
    >>> from besag import metrics
    >>> curve = metrics.calibration_curve([0, 1, 1], [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8]])
    >>> figure = besag.plot.draw_calibration({"bp": curve})
    """
    named = dict(curves) if isinstance(curves, Mapping) else {"": curves}
    for curve in named.values():
        if not isinstance(curve, CalibrationCurve):
            told = "a curve must be one of besag.metrics.calibration_curve(y_true, probabilities)"
            raise ModelError(f"{told}, got {type(curve).__name__}")
    if not 0 < len(named) <= len(SERIES):
        raise ModelError(f"a picture has 1 to {len(SERIES)} curves, got {len(named)}")
    figure = new_figure(figsize=(4, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color=LINE, lw=1, ls="--")
    for (name, curve), colour in zip(named.items(), SERIES, strict=False):
        label = f"{name}, error {curve.error:.3f}".removeprefix(", ")
        axes.plot(curve.said, curve.true, color=colour, lw=1.3, label=label)
        axes.scatter(curve.said, curve.true, 8 + 150 * curve.weight, color=colour, lw=0)
    axes.set(xlabel="said", ylabel="came true", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return write_figure(figure, path)
