"""The marginals of two Results beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from besag.arrays import Array
from besag.errors import ModelError, TooLargeError
from besag.infer.result import Result
from besag.plot.network import MAX_VARIABLES
from besag.plot.style import (
    BAR,
    EDGE,
    FAINT,
    INK,
    LINE,
    File,
    expect_result,
    new_figure,
    read_row,
    shorten_text,
    write_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def compare_marginals(
    before: Result,
    after: Result,
    path: File | None = None,
    *,
    labels: tuple[str, str] = ("before", "after"),
    variables: Sequence[str] | None = None,
) -> Figure:
    """Two Results side by side: a small bar chart for each variable, a pair of bars for each state.

    variables: which ones, in which order; all that both Results have by default. path: a file to write.

    >>> import besag.plot
    >>> model = besag.data.bundled("student")
    >>> with_letter = model.marginals(evidence={"letter": "l0"})
    >>> figure = besag.plot.compare_marginals(model.marginals(), with_letter, variables=["grade", "intelligence"])
    """
    before, after = expect_result(before), expect_result(after)
    names = [name for name in before if name in set(after)] if variables is None else list(variables)
    if not 0 < len(names) <= MAX_VARIABLES:
        raise TooLargeError(
            f"a picture has 1 to {MAX_VARIABLES} variables, got {len(names)}; choose with variables=[...]"
        )
    pairs = [(read_row(before, name), read_row(after, name)) for name in names]
    columns = min(4, ceil(len(names) ** 0.5))
    rows = ceil(len(names) / columns)
    tall = max(len(values) for values, _ in pairs)
    figure = new_figure(figsize=(2.9 * columns, 0.5 + rows * (0.55 + 0.34 * tall)), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    for axes in grid[len(names) :]:
        axes.set_axis_off()
    for name, (one, other), axes in zip(names, pairs, grid, strict=False):
        states = before.graph.variables.states(before.graph.variables.index(name))
        if len(one) != len(other):
            raise ModelError(f"{name!r} has {len(one)} states in one Result and {len(other)} in the other")
        _bar_pairs(axes, name, states, one, other, labels)
    handles, texts = grid[0].get_legend_handles_labels()
    figure.legend(handles, texts, loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return write_figure(figure, path)


def _bar_pairs(axes: Axes, name: str, states: Sequence[str], one: Array, other: Array, labels: tuple[str, str]) -> None:
    place = np.arange(len(states))
    for values, shift, colour, label in ((one, -0.2, LINE, labels[0]), (other, 0.2, BAR, labels[1])):
        axes.barh(place + shift, values, 0.36, color=colour, label=label)
        for y, p in zip(place + shift, values, strict=True):
            axes.text(p + 0.02, y, f"{p:.3f}", va="center", size=7, color=FAINT)
    axes.set_title(name, size=9, weight="bold", color=INK, loc="left")
    axes.set(xlim=(0, 1.18), ylim=(len(states) - 0.5, -0.5), xticks=[])
    axes.set_yticks(place, [shorten_text(state) for state in states], size=8, color=INK)
    axes.tick_params(length=0)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.spines["left"].set_color(EDGE)
