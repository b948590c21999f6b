"""How a fit went: the objective, the loss on other data, the norm of the gradient, and the monitors of chains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from besag.errors import ModelError
from besag.plot.style import FAINT, INK, SERIES, File, new_figure, write_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SHOWN = {
    "value": "objective",
    "held_out": "loss on held-out data",
    "grad_norm": "norm of the gradient",
    "log_likelihood": "log-likelihood",
    "held_out_log_likelihood": "log-likelihood, held out",
    "pseudo_likelihood": "pseudo-likelihood",
    "reconstruction": "reconstruction error",
    "energy_gap": "energy gap of the chains",
    "free_energy_gap": "free energy, held out - data",
}


def draw_history(
    histories: pd.DataFrame | Mapping[str, pd.DataFrame], path: File | None = None, *, over: str = "iteration"
) -> Figure:
    """Learning curves: `fit.history` or `crf.history_`, or several by name, a panel for each quantity.

    over: "iteration", or "seconds" to compare optimisers whose iterations differ.

    >>> import besag.plot
    >>> model = besag.markov_network({"A": 2}, [(("A",), [0.0, 0.0])])
    >>> figure = besag.plot.draw_history(besag.fit(model, [[0], [0], [1]]).history)
    """
    named: dict[str, Any] = dict(histories) if isinstance(histories, Mapping) else {"": histories}
    if not 0 < len(named) <= len(SERIES):
        raise ModelError(f"a picture has 1 to {len(SERIES)} histories, got {len(named)}")
    if over not in ("iteration", "seconds"):
        raise ModelError(f"over must be 'iteration' or 'seconds', got {over!r}")
    for name, history in named.items():
        if over not in getattr(history, "columns", ()):
            which = f"history {name!r}" if name else "a history"
            raise ModelError(f"{which} must be a DataFrame as fit.history is, got {type(history).__name__}")
    shown = [c for c in SHOWN if any(c in history and history[c].notna().any() for history in named.values())]
    if not shown:
        raise ModelError(f"there is nothing to draw: expected at least one of {', '.join(SHOWN)} in a history")
    figure = new_figure(figsize=(3.4 * len(shown), 2.8), layout="constrained")
    for axes, column in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        for (name, history), colour in zip(named.items(), SERIES, strict=False):
            if column in history:
                axes.plot(history[over], history[column], color=colour, lw=1.3, label=name)
        axes.set_title(SHOWN[column], size=9, weight="bold", color=INK, loc="left")
        axes.set_xlabel(over, size=8, color=FAINT)
        axes.set_yscale("log" if column == "grad_norm" else "linear")
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    if len(named) > 1:
        axes.legend(frameon=False, fontsize=8)
    return write_figure(figure, path)
