"""Cards: a variable with a bar for the probability of each of its states."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from besag.arrays import Array
from besag.errors import ModelError
from besag.infer.result import Result
from besag.model.model import Model
from besag.plot.style import BAR, CARD, EDGE, FAINT, INK, KNOWN, MARK, TRACK, read_row, shorten_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_STATES = 8
LONG_NUMBER = re.compile(r"\d+\.\d{4,}(?:e[+-]?\d+)?")
HEAD, ROW, PAD = 0.26, 0.19, 0.1


@dataclass(frozen=True, slots=True)
class Card:
    """What is shown of a variable: (state, probability, probability before) of the states that fit."""

    name: str
    rows: list[tuple[str, float | None, float | None]]
    left_out: int
    shaded: bool

    @property
    def labels(self) -> float:
        """The width of the column of states."""
        return 0.1 + 0.068 * max(len(state) for state, _, _ in self.rows)

    @property
    def width(self) -> float:
        bars = 1.15 if self.rows[0][1] is not None else 0.0
        return max(2 * PAD + self.labels + bars, 2 * PAD + 0.085 * len(self.name), 0.7)

    @property
    def height(self) -> float:
        return HEAD + ROW * (len(self.rows) + (self.left_out > 0)) + PAD

    def draw(self, axes: Axes, width: float, x: float, y: float) -> None:
        from matplotlib.patches import FancyBboxPatch

        left, top = x - width / 2, y + self.height / 2
        corner, colour = (left, top - self.height), KNOWN if self.shaded else CARD
        style = "round,pad=0,rounding_size=0.07"
        axes.add_patch(FancyBboxPatch(corner, width, self.height, style, fc=colour, ec=EDGE, lw=1, zorder=3))
        axes.text(x, top - 0.15, self.name, size=8, weight="bold", color=INK, ha="center", va="center", zorder=4)
        for i, row in enumerate(self.rows):
            self._draw_row(axes, left + PAD, width - 2 * PAD, top - HEAD - (i + 0.5) * ROW, row)
        if self.left_out:
            rest, middle = f"and {self.left_out} more", corner[1] + PAD + ROW / 2
            axes.text(x, middle, rest, size=6.5, color=FAINT, ha="center", va="center", zorder=4)

    def _draw_row(
        self, axes: Axes, left: float, width: float, y: float, row: tuple[str, float | None, float | None]
    ) -> None:
        from matplotlib.patches import Rectangle

        state, p, before = row
        if p is None:
            axes.text(left + width / 2, y, state, size=7, color=FAINT, ha="center", va="center", zorder=4)
            return
        axes.text(left, y, state, size=7, color=INK, va="center", zorder=4)
        axes.text(left + width, y, f"{100 * p:.1f}%", size=6.5, color=FAINT, ha="right", va="center", zorder=4)
        start, length, thick = left + self.labels, width - self.labels - 0.4, 0.11
        axes.add_patch(Rectangle((start, y - thick / 2), length, thick, fc=TRACK, lw=0, zorder=4))
        axes.add_patch(Rectangle((start, y - thick / 2), length * p, thick, fc=BAR, lw=0, zorder=4))
        if before is not None:
            axes.vlines(start + length * before, y - 0.08, y + 0.08, color=MARK, lw=1.3, zorder=5)


def make_card(model: Model, v: int, result: Result | None, before: Result | None, shaded: bool) -> Card:
    """The card of variable v, with its probabilities where there is a Result."""
    variable = model.variables[v]
    after, earlier = (None if r is None else read_row(r, variable.name) for r in (result, before))
    for row in (after, earlier):
        if row is not None and len(row) != variable.cardinality:
            raise ModelError(f"{variable.name!r} has {variable.cardinality} states, but {len(row)} in the result")
    shown = np.arange(variable.cardinality)
    if len(shown) > MAX_STATES:
        order = shown if after is None else np.argsort(-after, kind="stable")
        shown = np.sort(order[: MAX_STATES - 1])
    labels = _labels(variable.states)
    rows = [(labels[i], _at(after, i), _at(earlier, i)) for i in shown.tolist()]
    return Card(shorten_text(variable.name), rows, variable.cardinality - len(shown), shaded)


def _labels(states: Sequence[str]) -> list[str]:
    """States as they fit on a card; long numbers, as ends of intervals, to four digits where states stay distinct."""
    rounded = [LONG_NUMBER.sub(lambda found: f"{float(found[0]):.4g}", state) for state in states]
    return [shorten_text(state) for state in (rounded if len(set(rounded)) == len(states) else states)]


def _at(values: Array | None, i: int) -> float | None:
    return None if values is None else float(values[i])
