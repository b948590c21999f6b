"""A junction tree: cliques round, separators square on the lines between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from besag.errors import ModelError, TooLargeError
from besag.plot.diagram import Connection, TextBox, draw_diagram, sizes_of
from besag.plot.layouts import layer_layout
from besag.plot.style import File, write_figure
from besag.query.tree_view import JunctionTreeView

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_CLIQUES = 100
NAMES_A_LINE = 3


def draw_junction_tree(tree: Any, path: File | None = None, *, title: str = "") -> Figure:
    """The tree of `model.junction_tree()`, or of a model; its roots on top, at most 100 cliques.

    >>> import besag.plot
    >>> figure = besag.plot.draw_junction_tree(besag.data.bundled("asia"))
    """
    view = tree if isinstance(tree, JunctionTreeView) else getattr(tree, "junction_tree", lambda: None)()
    if not isinstance(view, JunctionTreeView):
        raise ModelError(f"expected a model, or what model.junction_tree() gives, got {type(tree).__name__}")
    n = len(view.cliques)
    if n > MAX_CLIQUES:
        raise TooLargeError(f"a picture of a junction tree has at most {MAX_CLIQUES} cliques, here are {n}")
    boxes = [TextBox(_wrapped(names)) for names in view.cliques]
    boxes += [TextBox(_wrapped(separator.names), is_round=False) for separator in view.separators]
    parents: list[list[int]] = [[] for _ in boxes]  # children come first: a separator is between clique and parent
    for number, separator in enumerate(view.separators, n):
        parents[separator.clique], parents[number] = [number], [separator.parent]
    lines = [Connection(above, box) for box, over in enumerate(parents) for above in over]
    centres = layer_layout(parents, sizes_of(boxes)) if boxes else np.zeros((0, 2))
    return write_figure(draw_diagram(boxes, centres, lines, title), path)


def _wrapped(names: tuple[str, ...]) -> str:
    rows = [names[i : i + NAMES_A_LINE] for i in range(0, len(names), NAMES_A_LINE)]
    return "\n".join(", ".join(row) for row in rows) or "∅"
