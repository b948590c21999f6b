"""Learnt weights by name: as a coloured table, or the largest as bars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import Array
from besag.errors import ModelError
from besag.plot.style import BAR, EDGE, FAINT, INK, MARK, File, new_figure, shorten_text, write_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_SIDE = 40
MAX_BARS = 60


def draw_weights(weights: Any, path: File | None = None, *, most: int = 20, title: str = "") -> Figure:
    """`crf.transition_features_`, `crf.state_features_` or another {(name, name): weight}: positive is more probable.

    Up to 40 by 40 names are a table of colours. Of more, or where most pairs have no weight, the `most` largest in
    size are bars.

    >>> import besag.plot
    >>> figure = besag.plot.draw_weights({("B", "I"): 2.0, ("B", "O"): -1.0, ("I", "I"): 0.5, ("I", "O"): 0.0})
    """
    found = dict(weights) if isinstance(weights, Mapping) else {}
    pairs = [key for key in found if isinstance(key, tuple) and len(key) == 2]
    if not found or len(pairs) != len(found):
        raise ModelError("weights must be {(name, name): number}, as crf.transition_features_ is")
    values = np.array([float(found[key]) for key in pairs])
    if not np.isfinite(values).all():
        raise ModelError("weights must be finite numbers, got NaN or inf")
    if not 1 <= most <= MAX_BARS:
        raise ModelError(f"most must be from 1 to {MAX_BARS}, got {most!r}")
    rows, columns = (list(dict.fromkeys(key[side] for key in pairs)) for side in (0, 1))
    small = max(len(rows), len(columns)) <= MAX_SIDE and 2 * len(pairs) > len(rows) * len(columns)
    if not small:
        return write_figure(_bars(pairs, values, most, title), path)
    table = np.full((len(rows), len(columns)), np.nan)
    for (row, column), value in zip(pairs, values, strict=True):
        table[rows.index(row), columns.index(column)] = value
    return write_figure(_table(rows, columns, table, title), path)


def _table(rows: list[Any], columns: list[Any], table: Array, title: str) -> Figure:
    reach = float(np.nanmax(np.abs(table))) or 1.0
    figure = new_figure(figsize=(1.6 + 0.28 * len(columns), 1.2 + 0.24 * len(rows)), layout="constrained")
    axes = figure.subplots()
    shown = axes.imshow(table, vmin=-reach, vmax=reach, cmap="RdBu", aspect="auto")
    for ticks, names in ((axes.set_yticks, rows), (axes.set_xticks, columns)):
        ticks(range(len(names)), [shorten_text(str(name)) for name in names], size=7, color=INK)
    axes.tick_params(axis="x", rotation=90, length=0)
    axes.tick_params(axis="y", length=0)
    axes.set_title(title, size=9, weight="bold", color=INK, loc="left")
    figure.colorbar(shown, shrink=0.8).ax.tick_params(labelsize=7)
    return figure


def _bars(pairs: list[Any], values: Array, most: int, title: str) -> Figure:
    order = np.argsort(-np.abs(values), kind="stable")[:most]
    figure = new_figure(figsize=(5.0, 0.7 + 0.2 * len(order)), layout="constrained")
    axes = figure.subplots()
    place = np.arange(len(order))
    axes.barh(place, values[order], 0.7, color=[BAR if values[i] > 0 else MARK for i in order])
    axes.set_yticks(place, [f"{pairs[i][0]} → {pairs[i][1]}" for i in order], size=7, color=INK)
    axes.set(ylim=(len(order) - 0.5, -0.5))
    axes.axvline(0, color=EDGE, lw=1)
    heading = title or f"the {len(order)} largest of {len(pairs)} weights"
    axes.set_title(heading, size=9, weight="bold", color=INK, loc="left")
    axes.set_xlabel("weight: positive is more probable", size=8, color=FAINT)
    axes.tick_params(length=0, labelsize=7)
    axes.spines[["top", "right", "left"]].set_visible(False)
    return figure
