"""How inference went on: value and bound, and what still changed, from iteration to iteration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.errors import ModelError
from besag.infer.result import Result
from besag.plot.style import FAINT, INK, SERIES, File, new_figure, write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = {"value": "value, and bound (dashed)", "residual": "residual"}


def draw_trace(traces: Any, path: File | None = None, *, over: str = "seconds") -> Figure:
    """`r.trace` of one Result, or of several by name: of log Z, or of the energy of a labelling.

    over: "seconds" or "iteration".

    >>> import besag.plot
    >>> model = besag.ising((4, 4), 0.4, 0.1)
    >>> r = {engine: model.marginals(engine=engine, trace=True) for engine in ("trw", "mean_field")}
    >>> figure = besag.plot.draw_trace(r)
    """
    named: dict[str, Any] = dict(traces) if isinstance(traces, Mapping) else {"": traces}
    if not 0 < len(named) <= len(SERIES):
        raise ModelError(f"a picture has 1 to {len(SERIES)} traces, got {len(named)}")
    if over not in ("iteration", "seconds"):
        raise ModelError(f"over must be 'iteration' or 'seconds', got {over!r}")
    frames = {name: one.trace if isinstance(one, Result) else one for name, one in named.items()}
    for name, frame in frames.items():
        if not {over, *PANELS, "bound"} <= set(getattr(frame, "columns", ())):
            which = f"trace {name!r}" if name else "a trace"
            got = f"got {type(named[name]).__name__}"
            raise ModelError(f"{which} must be a Result that was asked for with trace=True, or its trace, {got}")
    shown = [column for column in PANELS if any(np.isfinite(frame[column]).any() for frame in frames.values())]
    if not shown:
        raise ModelError("there is nothing to draw: the traces have neither values nor residuals")
    figure = new_figure(figsize=(3.6 * len(shown), 2.9), layout="constrained")
    for axes, column in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        for (name, frame), colour in zip(frames.items(), SERIES, strict=False):
            _draw_curves(axes, frame, over, column, colour, name)
        axes.set_title(PANELS[column], size=9, weight="bold", color=INK, loc="left")
        axes.set_xlabel(over, size=8, color=FAINT)
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    if len(frames) > 1:
        axes.legend(frameon=False, fontsize=8)
    return write_figure(figure, path)


def _draw_curves(axes: Axes, frame: Any, over: str, column: str, colour: str, name: str) -> None:
    x, y = frame[over].to_numpy(float), frame[column].to_numpy(float)
    if column == "residual":
        positive = np.isfinite(y) & (y > 0)
        axes.plot(x[positive], y[positive], color=colour, lw=1.3, label=name)
        axes.set_yscale("log" if positive.any() else "linear")
        return
    axes.plot(x, np.where(np.isfinite(y), y, np.nan), color=colour, lw=1.3, label=name)
    bound = frame["bound"].to_numpy(float)
    if np.isfinite(bound).any() and not np.array_equal(bound, y):
        axes.plot(x, np.where(np.isfinite(bound), bound, np.nan), color=colour, lw=1.3, ls="--")
