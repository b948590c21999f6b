"""Pictures of models and of marginals.

A Bayesian network is drawn in layers: a variable stands one below the lowest of its parents, and within a layer where the
mean of its neighbours in the layers around it is, which leaves few crossings (Sugiyama, Tagawa and Toda 1981). A lattice is drawn
as one; any other Markov network by Kamada and Kawai's springs (1989), with a line for each factor of two variables and a
square for each larger one. Factors of one variable are not drawn.

matplotlib (extra `plot`), and networkx (extra `graph`) for the springs, are imported when a picture is asked for. Figures
are made without pyplot, so nothing global changes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from besag.arrays import Array
from besag.errors import CapabilityError, ModelError, TooLargeError
from besag.infer.result import Result
from besag.model.dag import parents_of, topological
from besag.model.model import Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

File: TypeAlias = "str | PathLike[str]"

MAX_VARIABLES = 100
MAX_STATES = 8
INK, FAINT, LINE = "#22303c", "#7b8794", "#aab4be"
CARD, KNOWN = "#ffffff", "#fff4d6"
BAR, TRACK, MARK = "#2f7ebc", "#edf1f5", "#d1495b"


def draw_network(
    model: Model,
    result: Result | None = None,
    path: File | None = None,
    *,
    before: Result | None = None,
    observed: Collection[str] = (),
    title: str = "",
) -> Figure:
    """The graph of a model, each variable a card with a bar for the probability of each of its states.

    result: marginals to show; without it cards have states only. before: other marginals, shown as marks on the bars.
    observed: variables whose cards are shaded. path: a file to write, .png, .pdf or .svg. At most 100 variables.

    >>> import besag
    >>> model = besag.data.bundled("sprinkler")
    >>> figure = besag.plot.draw_network(model, model.marginals())  # doctest: +SKIP
    """
    figure_class = _import("matplotlib.figure", "plot").Figure
    if len(model.variables) > MAX_VARIABLES:
        raise TooLargeError(f"a picture has at most {MAX_VARIABLES} variables, and the model has {len(model.variables)}")
    _one_row(result, before)
    for name in observed:
        model.variables.index(name)
    cards = [_card(model, v, result, before, observed) for v in range(len(model.variables))]
    centres, hubs = _layout(model, cards)
    figure: Figure = figure_class(dpi=150, layout=None)
    axes = _canvas(figure, centres, cards, title)
    _draw_edges(axes, model, cards, centres, hubs)
    for card, centre in zip(cards, centres, strict=True):
        card.draw(axes, *centre)
    return _written(figure, path)
