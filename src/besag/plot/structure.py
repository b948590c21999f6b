"""A learned structure with how sure its edges are: the wider, the surer; arrows where the direction is clear."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from besag.errors import ModelError, TooLargeError
from besag.learn.networks.structure.bootstrap import CLEAR, EdgeStrengths
from besag.plot.diagram import Connection, TextBox, draw_diagram, sizes_of
from besag.plot.layouts import spring_layout
from besag.plot.style import BAR, File, shorten_text, write_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_VARIABLES = 150
WIDEST = 3.5


def draw_structure(edges: EdgeStrengths, path: File | None = None, *, threshold: float | None = None) -> Figure:
    """The edges of `besag.bootstrap_edges` from a strength on, by default the one that it finds itself.

    >>> import besag.plot
    >>> frame = besag.data.bundled("sprinkler").sample(300, seed=0)
    >>> figure = besag.plot.draw_structure(besag.bootstrap_edges(frame, 5), threshold=0.5)
    """
    if not isinstance(edges, EdgeStrengths):
        raise ModelError(
            f"expected what besag.bootstrap_edges gives, got {type(edges).__name__}; draw_network draws a model"
        )
    if len(edges.names) > MAX_VARIABLES:
        raise TooLargeError(f"a picture has at most {MAX_VARIABLES} variables, here are {len(edges.names)}")
    least = edges.threshold if threshold is None else threshold
    boxes = [TextBox(shorten_text(name)) for name in edges.names]
    lines = []
    for i, j in zip(*np.nonzero(np.triu(edges.strength) >= max(least, 1e-12)), strict=True):
        one, other = (int(i), int(j)) if edges.direction[i, j] >= edges.direction[j, i] else (int(j), int(i))
        sure = float(edges.strength[i, j])
        clear = bool(edges.direction[one, other] >= CLEAR)
        lines.append(Connection(one, other, f"{sure:.2f}", arrow=clear, width=0.5 + WIDEST * sure, colour=BAR))
    centres = spring_layout([(line.first, line.second) for line in lines], sizes_of(boxes) + 0.25)
    title = f"{len(lines)} edges of strength {least:.2f} and more, of {edges.n} structures"
    return write_figure(draw_diagram(boxes, centres, lines, title), path)
