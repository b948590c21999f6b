"""What joins the cards of a network: arrows from parents to children, and links of factors."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from besag.arrays import Array
from besag.plot.style import FAINT, INK, LINE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points: TypeAlias = "list[tuple[float, float]]"


@dataclass(frozen=True, slots=True)
class Arrow:
    """An edge from a parent down to its child, through points between the layers."""

    parent: int
    child: int
    points: Points

    def draw(self, axes: Axes, centres: Array, heights: Array) -> None:
        from matplotlib.patches import FancyArrowPatch
        from matplotlib.path import Path

        (x0, y0), (x1, y1) = centres[self.parent], centres[self.child]
        first, last = (x0, y0 - heights[self.parent] / 2), (x1, y1 + heights[self.child] / 2 + 0.02)
        stops = [first, *self.points, last]
        curve: Points = stops[:1]
        for (xa, ya), (xb, yb) in pairwise(stops):
            bend = 0.45 * (yb - ya)
            curve += [(xa, ya + bend), (xb, yb - bend), (xb, yb)]
        route = Path(curve, [Path.MOVETO] + [Path.CURVE4] * (len(curve) - 1))
        axes.add_patch(FancyArrowPatch(path=route, arrowstyle="-|>", mutation_scale=9, color=LINE, lw=1.3, zorder=2))


@dataclass(frozen=True, slots=True)
class Link:
    """A factor of a Markov network: a line between two variables, or a square at a point that several meet in."""

    scope: tuple[int, ...]
    points: Points
    name: str | None

    def draw(self, axes: Axes, centres: Array, heights: Array) -> None:
        ends = centres[list(self.scope)]
        middle = np.array(self.points[0]) if self.points else ends.mean(axis=0)
        for x, y in ends:
            axes.plot([x, middle[0]], [y, middle[1]], color=LINE, lw=1.3, zorder=1)
        if self.points:
            axes.plot(*middle, marker="s", ms=9, mfc=INK, mec=INK, zorder=2)
        if self.name is not None:
            box = {"fc": "white", "ec": "none", "pad": 0.8}
            y = middle[1] + (0.17 if self.points else 0.0)
            axes.text(middle[0], y, self.name, size=7, color=FAINT, ha="center", va="center", bbox=box, zorder=2)
