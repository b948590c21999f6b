"""Boxes of text and lines between them: what pictures of factor graphs, cliques, messages and structures share.

Lengths are inches; a box is as large as its text, of which the lines are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from besag.arrays import Array
from besag.plot.style import CARD, EDGE, FAINT, INK, LINE, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LETTER, ROW = 0.078, 0.16  # of text on a box
MARGIN = 0.25


@dataclass(frozen=True, slots=True)
class TextBox:
    """A text, round like a variable or square like a factor; dark: white letters on ink."""

    text: str
    is_round: bool = True
    dark: bool = False

    @property
    def size(self) -> tuple[float, float]:
        """Width and height."""
        lines = self.text.split("\n")
        return max(LETTER * max(map(len, lines)) + 0.16, 0.3), ROW * len(lines) + 0.14


@dataclass(frozen=True, slots=True)
class Connection:
    """A line between two boxes, with a text in its middle; arrow: from the first to the second."""

    first: int
    second: int
    text: str = ""
    arrow: bool = False
    width: float = 1.2
    colour: str = LINE
    bend: float = 0.0


def sizes_of(boxes: Sequence[TextBox]) -> Array:
    """(N, 2)."""
    return np.array([box.size for box in boxes]).reshape(-1, 2)


def draw_diagram(boxes: Sequence[TextBox], centres: Array, lines: Sequence[Connection], title: str = "") -> Figure:
    """A figure of its own with everything on it."""
    sizes = sizes_of(boxes)
    low, high = (centres - sizes / 2).min(axis=0) - MARGIN, (centres + sizes / 2).max(axis=0) + MARGIN
    head = 0.3 if title else 0.0
    high[0] = max(high[0], low[0] + 2 * MARGIN + 0.085 * len(title))
    figure = new_figure(figsize=tuple(np.array([high[0] - low[0], high[1] - low[1] + head])))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(low[0], high[0]), ylim=(low[1], high[1] + head))
    axes.set_axis_off()
    axes.text(low[0] + 0.1, high[1] + head / 2, title, size=10, color=INK, va="center")
    for line in lines:
        _draw_line(axes, line, centres, sizes)
    for box, centre, size in zip(boxes, centres, sizes, strict=True):
        _draw_box(axes, box, centre, size)
    return figure


def _draw_box(axes: Axes, box: TextBox, centre: Array, size: Array) -> None:
    from matplotlib.patches import FancyBboxPatch

    rounding = min(size) / 2 if box.is_round else 0.0
    face, letters = (INK, CARD) if box.dark else (CARD, INK)
    style = f"round,pad=0,rounding_size={rounding}" if rounding else "square,pad=0"
    (x, y), (width, height) = centre.tolist(), size.tolist()
    corner = (x - width / 2, y - height / 2)
    axes.add_patch(FancyBboxPatch(corner, width, height, style, fc=face, ec=EDGE, lw=1, zorder=3))
    axes.text(x, y, box.text, size=8, color=letters, ha="center", va="center", zorder=4, linespacing=1.25)


def _draw_line(axes: Axes, line: Connection, centres: Array, sizes: Array) -> None:
    from matplotlib.patches import FancyArrowPatch

    start, end = centres[line.first], centres[line.second]
    along = end - start
    length = float(np.hypot(*along)) or 1.0
    along = along / length
    if line.arrow:  # from edge to edge of the boxes
        start, end = start + along * _reach(sizes[line.first], along), end - along * _reach(sizes[line.second], along)
    aside = np.array([along[1], -along[0]]) * line.bend
    patch = FancyArrowPatch(
        tuple(start + aside), tuple(end + aside), arrowstyle="-|>" if line.arrow else "-",
        mutation_scale=9, lw=line.width, color=line.colour, shrinkA=0, shrinkB=0, zorder=1 + line.arrow,
    )  # fmt: skip
    axes.add_patch(patch)
    if line.text:
        x, y = ((start + end) / 2 + 2.2 * aside).tolist()
        back = {"fc": "white", "ec": "none", "pad": 0.6, "alpha": 0.85}
        axes.text(x, y, line.text, size=6.5, color=FAINT, ha="center", va="center", bbox=back, zorder=3)


def _reach(size: Array, along: Array) -> float:
    """From the centre of a box to its edge, in a direction."""
    with np.errstate(divide="ignore"):
        return float((size / 2 / np.abs(along)).min()) + 0.02
