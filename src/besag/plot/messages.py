"""Messages on a factor graph, in the order in which they are sent, 002 (28), (29)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from besag.errors import ModelError
from besag.infer.result import Result
from besag.plot.diagram import Connection, draw_diagram
from besag.plot.factor_graph import lay_out_factors
from besag.plot.style import BAR, MARK, File, expect_result, write_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ASIDE = 0.07  # of the two messages along a line


def draw_messages(
    result: Result, path: File | None = None, *, until: int | None = None, title: str | None = None
) -> Figure:
    """The messages of `model.marginals(engine="tree", trace=True)` as arrows with their numbers, the last one red.

    until: the last step that is drawn, so that `for step in range(n)` shows how inference goes on; all by default.

    >>> import besag.plot
    >>> r = besag.data.bundled("tree_001").marginals(engine="tree[root=i]", trace=True)
    >>> figure = besag.plot.draw_messages(r, until=3)
    """
    log, graph = expect_result(result, "model.marginals(trace=True)").messages, result.graph
    steps = np.unique(log["step"].to_numpy())
    if until is not None and until not in steps:
        raise ModelError(f"until must be a step from {steps.min()} to {steps.max()}, got {until!r}")
    last = int(steps.max()) if until is None else until
    boxes, centres, lines = lay_out_factors(graph)
    names = [*graph.variables.names_at(range(graph.n_variables)), *map(graph.factor_name, range(graph.n_factors))]
    place = {name: number for number, name in reversed(list(enumerate(names)))}
    sent = list(lines)
    for (step, source, target), rows in log[log["step"] <= last].groupby(["step", "source", "target"], sort=False):
        if source not in place or target not in place:
            raise ModelError(f"the message from {source} to {target} is not one between a variable and a factor")
        numbers = ", ".join(f"{value:.3g}" for value in rows["value"])
        colour = MARK if step == last else BAR
        label = f"{step}: {numbers}"
        sent.append(Connection(place[source], place[target], label, True, 1.0, colour, ASIDE))
    heading = f"messages up to step {last} of {steps.max()}" if title is None else title
    return write_figure(draw_diagram(boxes, centres * 1.2, sent, heading), path)
