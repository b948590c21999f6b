"""Strengths of edges from bootstrap samples, and the threshold that parts them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from besag.errors import ModelError
from besag.learn.networks.structure.bootstrap import EdgeStrengths
from besag.plot.style import BAR, FAINT, INK, MARK, File, new_figure, write_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_bootstrap(edges: EdgeStrengths, path: File | None = None, *, threshold: float | None = None) -> Figure:
    """The share of pairs that are at most so strong, and the threshold: the one that `edges` finds, or one given.

    >>> import besag.plot
    >>> frame = besag.data.bundled("sprinkler").sample(300, seed=0)
    >>> figure = besag.plot.draw_bootstrap(besag.bootstrap_edges(frame, 5))
    """
    if not isinstance(edges, EdgeStrengths):
        raise ModelError(f"expected what besag.bootstrap_edges gives, got {type(edges).__name__}")
    least = edges.threshold if threshold is None else threshold
    values = np.sort(edges.strength[np.triu_indices(len(edges.names), 1)])
    figure = new_figure(figsize=(4.2, 3.0), layout="constrained")
    axes = figure.subplots()
    axes.step([0.0, *values, 1.0], [0.0, *np.arange(1, len(values) + 1) / len(values), 1.0], where="post", color=BAR)
    axes.axvline(least, color=MARK, lw=1.2, ls="--")
    kept = int((values >= least).sum())
    axes.set_title(f"{kept} of {len(values)} pairs from {least:.2f} on", size=9, weight="bold", color=INK, loc="left")
    axes.set_xlabel(f"strength: share of {edges.n} structures that join a pair", size=8, color=FAINT)
    axes.set_ylabel("share of pairs at most so strong", size=8, color=FAINT)
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    return write_figure(figure, path)
