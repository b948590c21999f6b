"""The graph of a model, with a line for each factor of two variables and a square for each larger one.

Factors of one variable are not drawn. Lengths are inches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from besag.arrays import Array
from besag.errors import ModelError
from besag.infer.result import Result
from besag.model.model import Model
from besag.plot.cards import PAD, make_card
from besag.plot.large_network import draw_large
from besag.plot.layouts import lay_in_layers, lay_in_plane
from besag.plot.lines import Arrow, Link
from besag.plot.style import INK, MARK, File, expect_model, new_figure, write_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_VARIABLES = 100


def draw_network(
    model: Model,
    result: Result | None = None,
    path: File | None = None,
    *,
    before: Result | None = None,
    observed: str | Collection[str] = (),
    title: str = "",
) -> Figure:
    """The graph of a model, each variable a card with a bar for the probability of each of its states.

    result: the marginals; without it cards have states only. before: other marginals, shown as marks on the bars.
    observed: variables whose cards are shaded. path: a file to write, .png, .pdf or .svg.
    More than 100 variables are dots, dark where marginals are uncertain; more than 600 are clusters.

    >>> import besag.plot
    >>> model = besag.data.bundled("sprinkler")
    >>> figure = besag.plot.draw_network(model, model.marginals())
    """
    model = expect_model(model)
    if not (result is None or isinstance(result, Result)):
        raise ModelError(f"result must be a Result, such as model.marginals(), got {result!r}; or path={result!r}")
    if len(model.variables) > MAX_VARIABLES:
        return write_figure(draw_large(model, result, title), path)
    figure = new_figure()
    shaded = {model.variables.index(name) for name in ([observed] if isinstance(observed, str) else observed)}
    cards = [make_card(model, v, result, before, v in shaded) for v in range(len(model.variables))]
    size = np.array([max(card.width for card in cards), max(card.height for card in cards)])
    layout: Callable[[Model, Array], tuple[Array, Sequence[Arrow | Link]]]
    layout = lay_in_layers if model.is_bayesian_network else lay_in_plane
    centres, lines = layout(model, size)
    corners = [centres - size / 2, centres + size / 2, *(np.array(line.points) for line in lines if line.points)]
    low, high = (end(np.concatenate(corners), axis=0) + pad for end, pad in ((np.min, -PAD), (np.max, PAD)))
    margin = 0.35 if title or before is not None else 0.0
    key = 1.0 if before is not None else 0.0
    high[0] = max(high[0], low[0] + 2 * PAD + 0.085 * len(title) + key)
    figure.set_size_inches(high[0] - low[0], high[1] - low[1] + margin)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(low[0], high[0]), ylim=(low[1], high[1] + margin))
    axes.set_axis_off()
    axes.text(low[0] + PAD, high[1] + margin / 2, title, size=10, color=INK, va="center")
    if before is not None:
        told = "red marks: before"
        axes.text(high[0] - PAD, high[1] + margin / 2, told, size=7, color=MARK, ha="right", va="center")
    heights = np.array([card.height for card in cards])
    for line in lines:
        line.draw(axes, centres, heights)
    for card, centre in zip(cards, centres, strict=True):
        card.draw(axes, size[0], *centre)
    return write_figure(figure, path)
