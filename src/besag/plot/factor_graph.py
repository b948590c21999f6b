"""The factor graph of a model: variables round, factors square, 002 (1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from besag.arrays import Array
from besag.errors import TooLargeError
from besag.plot.diagram import Connection, TextBox, draw_diagram, sizes_of
from besag.plot.layouts import spring_layout
from besag.plot.style import File, expect_model, shorten_text, write_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from besag.graph.graph import Graph
    from besag.model.model import Model

MAX_NODES = 200


def draw_factor_graph(model: Model, path: File | None = None, *, title: str = "") -> Figure:
    """Variables and factors, a line for each place in a scope; at most 200 of them.

    >>> import besag.plot
    >>> figure = besag.plot.draw_factor_graph(besag.data.bundled("tree_001"))
    """
    boxes, centres, lines = lay_out_factors(expect_model(model).graph)
    return write_figure(draw_diagram(boxes, centres, lines, title), path)


def lay_out_factors(graph: Graph) -> tuple[list[TextBox], Array, list[Connection]]:
    """Boxes of variables, then of factors; where they are, (V + F, 2); and the lines between them."""
    n = graph.n_variables
    if n + graph.n_factors > MAX_NODES:
        raise TooLargeError(
            f"a picture of a factor graph has at most {MAX_NODES} variables and factors, here are {n + graph.n_factors}"
        )
    boxes = [TextBox(shorten_text(name)) for name in graph.variables.names_at(range(n))]
    boxes += [TextBox(shorten_text(factor_label(graph, f)), is_round=False, dark=True) for f in range(graph.n_factors)]
    pairs = [(int(v), n + f) for f in range(graph.n_factors) for v in graph.scope(f)]
    return boxes, spring_layout(pairs, sizes_of(boxes) + np.array([0.3, 0.1])), [Connection(v, f) for v, f in pairs]


def factor_label(graph: Graph, factor: int) -> str:
    """The name of a factor, `f` where it has none of its own."""
    name = graph.factor_name(factor)
    return "f" if name == graph.scope_name(factor) else name
