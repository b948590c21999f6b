"""Pictures of models and of marginals.

A Bayesian network is drawn in layers: a variable stands below its parents, a root just above the first of its children,
and an edge that passes a layer has a place of its own there (Sugiyama, Tagawa and Toda 1981). A lattice is drawn as
such, any other Markov network by springs (Kamada and Kawai 1989), with a line for each factor of two variables and a
square for each larger one; factors of one variable are not drawn.

Lengths are inches. matplotlib (extra `plot`), and networkx (extra `graph`) for the springs, are imported when a picture
is asked for. Figures are made without pyplot, so nothing global changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from os import PathLike
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from besag.arrays import Array
from besag.errors import ModelError, TooLargeError, require
from besag.infer.result import Result
from besag.model.dag import parents_of, topological
from besag.model.model import Model

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

File: TypeAlias = "str | PathLike[str]"
Points: TypeAlias = "list[tuple[float, float]]"

MAX_VARIABLES = 100
MAX_STATES = 8
MAX_LETTERS = 16
HEAD, ROW, PAD, GAP = 0.26, 0.19, 0.1, 0.5
INK, FAINT, LINE = "#22303c", "#6b7785", "#9aa5b1"
CARD, KNOWN, EDGE = "#ffffff", "#fdf3d8", "#c5ced8"
TRACK, BAR, MARK = "#eaeff4", "#3b7fb6", "#d1495b"


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

    result: the marginals; without it cards have states only. before: other marginals, shown as marks on the bars.
    observed: variables whose cards are shaded. path: a file to write, .png, .pdf or .svg. At most 100 variables.

    >>> import besag.plot
    >>> model = besag.data.bundled("sprinkler")
    >>> figure = besag.plot.draw_network(model, model.marginals())
    """
    require("matplotlib", "plot", "a picture")
    from matplotlib.figure import Figure

    if len(model.variables) > MAX_VARIABLES:
        raise TooLargeError(f"a picture has at most {MAX_VARIABLES} variables; the model has {len(model.variables)}")
    shaded = {model.variables.index(name) for name in observed}
    cards = [_card(model, v, result, before, v in shaded) for v in range(len(model.variables))]
    size = np.array([max(card.width for card in cards), max(card.height for card in cards)])
    layout: Callable[[Model, Array], tuple[Array, Sequence[_Arrow | _Link]]]
    layout = _layers if model.is_bayesian_network else _plane
    centres, lines = layout(model, size)
    corners = [centres - size / 2, centres + size / 2, *(np.array(line.points) for line in lines if line.points)]
    low, high = (end(np.concatenate(corners), axis=0) + pad for end, pad in ((np.min, -PAD), (np.max, PAD)))
    margin = 0.35 if title else 0.0
    high[0] = max(high[0], low[0] + 2 * PAD + 0.085 * len(title))
    figure = Figure(figsize=(high[0] - low[0], high[1] - low[1] + margin), dpi=150)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(low[0], high[0]), ylim=(low[1], high[1] + margin))
    axes.set_axis_off()
    axes.text(low[0] + PAD, high[1] + margin / 2, title, size=10, color=INK, va="center")
    heights = np.array([card.height for card in cards])
    for line in lines:
        line.draw(axes, centres, heights)
    for card, centre in zip(cards, centres, strict=True):
        card.draw(axes, size[0], *centre)
    return _written(figure, path)


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
    require("matplotlib", "plot", "a picture")
    from matplotlib.figure import Figure

    names = [name for name in before if name in set(after)] if variables is None else list(variables)
    if not 0 < len(names) <= MAX_VARIABLES:
        raise TooLargeError(
            f"a picture has 1 to {MAX_VARIABLES} variables, got {len(names)}; choose with variables=[...]"
        )
    pairs = [(_row(before, name), _row(after, name)) for name in names]
    columns = min(4, ceil(len(names) ** 0.5))
    rows = ceil(len(names) / columns)
    tall = max(len(values) for values, _ in pairs)
    figure = Figure(figsize=(2.9 * columns, 0.5 + rows * (0.55 + 0.34 * tall)), dpi=150, layout="constrained")
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
    return _written(figure, path)


def _bar_pairs(axes: Axes, name: str, states: Sequence[str], one: Array, other: Array, labels: tuple[str, str]) -> None:
    place = np.arange(len(states))
    for values, shift, colour, label in ((one, -0.2, LINE, labels[0]), (other, 0.2, BAR, labels[1])):
        axes.barh(place + shift, values, 0.36, color=colour, label=label)
        for y, p in zip(place + shift, values, strict=True):
            axes.text(p + 0.02, y, f"{p:.3f}", va="center", size=7, color=FAINT)
    axes.set_title(name, size=9, weight="bold", color=INK, loc="left")
    axes.set(xlim=(0, 1.18), ylim=(len(states) - 0.5, -0.5), xticks=[])
    axes.set_yticks(place, [_short(state) for state in states], size=8, color=INK)
    axes.tick_params(length=0)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.spines["left"].set_color(EDGE)


# Cards and lines -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Card:
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


def _card(model: Model, v: int, result: Result | None, before: Result | None, shaded: bool) -> _Card:
    variable = model.variables[v]
    after, earlier = (None if r is None else _row(r, variable.name) for r in (result, before))
    for row in (after, earlier):
        if row is not None and len(row) != variable.cardinality:
            raise ModelError(f"{variable.name!r} has {variable.cardinality} states, but {len(row)} in the result")
    shown = np.arange(variable.cardinality)
    if len(shown) > MAX_STATES:
        order = shown if after is None else np.argsort(-after, kind="stable")
        shown = np.sort(order[: MAX_STATES - 1])
    rows = [(_short(variable.states[i]), _at(after, i), _at(earlier, i)) for i in shown.tolist()]
    return _Card(_short(variable.name), rows, variable.cardinality - len(shown), shaded)


def _at(values: Array | None, i: int) -> float | None:
    return None if values is None else float(values[i])


@dataclass(frozen=True, slots=True)
class _Arrow:
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
class _Link:
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


# Layouts -------------------------------------------------------------------------------------------------------------


def _layers(model: Model, size: Array) -> tuple[Array, list[_Arrow]]:
    """Centres (V, 2) in layers, and the arrows."""
    parents = parents_of(model)
    depth = _depths(model, parents)
    layers: list[list[int]] = [[] for _ in range(max(depth) + 1)]
    for v, d in enumerate(depth):
        layers[d].append(v)
    routes = {}  # of an edge: its places in the layers that it passes, numbered from V on
    count = len(parents)
    for child, above in enumerate(parents):
        for parent in above:
            between = range(depth[parent] + 1, depth[child])
            routes[parent, child] = list(range(count, count + len(between)))
            for d in between:
                layers[d].append(count)
                count += 1
    steps = [step for (p, c), places in routes.items() for step in pairwise([p, *places, c])]
    widths = np.full(count, 0.2)
    widths[: len(parents)] = size[0] + GAP
    x = _abscissae(_ordered(layers, steps), steps, widths)
    y = np.zeros(count)
    for d, layer in enumerate(layers):
        y[layer] = -d * (size[1] + GAP)
    band = size[1] / 2  # a passing edge is upright beside the cards of a layer
    arrows = [
        _Arrow(p, c, [(float(x[v]), float(y[v] + end)) for v in places for end in (band, -band)])
        for (p, c), places in routes.items()
    ]
    return np.stack([x, y], axis=1)[: len(parents)], arrows


def _depths(model: Model, parents: list[list[int]]) -> list[int]:
    """The layer of each variable."""
    depth = [0] * len(parents)
    for v in topological(model.variables, parents):
        depth[v] = max((depth[p] + 1 for p in parents[v]), default=0)
    highest: dict[int, int] = {}
    for child, above in enumerate(parents):
        for parent in above:
            highest[parent] = min(depth[child], highest.get(parent, depth[child]))
    return [d if above else highest.get(v, 1) - 1 for v, (d, above) in enumerate(zip(depth, parents, strict=True))]


def _ordered(layers: list[list[int]], steps: list[tuple[int, int]]) -> list[list[int]]:
    """The layers, each sorted by the mean place of its neighbours, sweeping down and up; the best of all sweeps."""
    near: dict[int, list[int]] = {v: [] for layer in layers for v in layer}
    for one, other in steps:
        near[one].append(other)
        near[other].append(one)
    best, fewest = layers, _crossings(layers, steps)
    for sweep in range(16):
        layers = [list(layer) for layer in layers]
        place = {v: i - len(layer) / 2 for layer in layers for i, v in enumerate(layer)}
        for layer in layers if sweep % 2 else layers[::-1]:
            layer.sort(key=lambda v: float(np.mean([place[u] for u in near[v]])) if near[v] else place[v])
            place.update({v: i - len(layer) / 2 for i, v in enumerate(layer)})
        if (crossings := _crossings(layers, steps)) < fewest:
            best, fewest = layers, crossings
    return best


def _crossings(layers: list[list[int]], steps: list[tuple[int, int]]) -> int:
    where = {v: (d, i) for d, layer in enumerate(layers) for i, v in enumerate(layer)}
    ends = np.array([(*where[one], where[other][1]) for one, other in steps]).reshape(-1, 3)
    layer, top, bottom = (ends[:, None, i] - ends[None, :, i] for i in range(3))
    return int(((layer == 0) & (top * bottom < 0)).sum()) // 2


def _abscissae(layers: list[list[int]], steps: list[tuple[int, int]], widths: Array) -> Array:
    """Where each place is in its layer: near the mean of its neighbours, in order, no two closer than their widths.

    This is least squares under order constraints: isotonic regression, once the distances to keep are taken off. Sweeps
    down look at the layer above, sweeps up at the layer below; the last is down, so that children stand below parents.
    """
    from scipy.optimize import isotonic_regression

    above: list[list[int]] = [[] for _ in widths]
    below: list[list[int]] = [[] for _ in widths]
    for upper, lower in steps:
        above[lower].append(upper)
        below[upper].append(lower)
    x = np.zeros(len(widths))
    apart = [np.append(0.0, np.cumsum((widths[layer][1:] + widths[layer][:-1]) / 2)) for layer in layers]
    for layer, offsets in zip(layers, apart, strict=True):
        x[layer] = offsets - offsets[-1] / 2
    pairs = list(zip(layers, apart, strict=True))
    for sweep in range(40):
        near, order = (above, pairs) if sweep % 2 else (below, pairs[::-1])
        for layer, offsets in order:
            wished = np.array([x[near[v]].mean() if near[v] else x[v] for v in layer])
            x[layer] = isotonic_regression(wished - offsets).x + offsets
    return x


def _plane(model: Model, size: Array) -> tuple[Array, list[_Link]]:
    """Centres (V, 2) of a lattice or by springs, and the links."""
    n = len(model.variables)
    scopes = [
        (tuple(scope), None if group.names is None else group.names[i])
        for group in model.groups
        for i, scope in enumerate(group.scopes.tolist())
        if len(scope) > 1
    ]
    hubs = {i: n + k for k, i in enumerate(i for i, (scope, _) in enumerate(scopes) if len(scope) > 2)}
    if model.shape is not None and len(model.shape) == 2 and not hubs:
        row, column = np.divmod(np.arange(n), model.shape[1])
        points = np.stack([column, -row], axis=1) * (size + GAP)
    else:
        edges = [(v, hubs[i]) for i in hubs for v in scopes[i][0]]
        edges += [scope for i, (scope, _) in enumerate(scopes) if i not in hubs]
        sizes = np.tile(size, (n + len(hubs), 1))
        sizes[n:] = 0.2
        points = _springs(edges, sizes)
    places = {i: [(float(points[h, 0]), float(points[h, 1]))] for i, h in hubs.items()}
    return points[:n], [_Link(scope, places.get(i, []), name) for i, (scope, name) in enumerate(scopes)]


def _springs(edges: list[tuple[int, int]], sizes: Array) -> Array:
    """Centres (n, 2) of boxes of these sizes: each part of the graph by itself, then in rows."""
    require("networkx", "graph", "a picture of this model")
    import networkx as nx

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(len(sizes)))
    graph.add_edges_from(edges)
    points = np.zeros(sizes.shape)
    boxes = []
    for members in map(sorted, nx.connected_components(graph)):
        points[members] = _one_part(graph.subgraph(members).copy(), members, sizes[members])
        low, high = (points[members] + sign * sizes[members] / 2 for sign in (-1, 1))
        points[members] -= low.min(axis=0)
        boxes.append((members, high.max(axis=0) - low.min(axis=0) + GAP))
    limit = max(1.6 * sum(float(np.prod(box)) for _, box in boxes) ** 0.5, *(float(box[0]) for _, box in boxes), 0.0)
    x = y = tall = 0.0
    for members, (width, height) in boxes:
        if x > 0 and x + width > limit:
            x, y, tall = 0.0, y - tall, 0.0
        points[members] += (x, y - height)
        x, tall = x + width, max(tall, height)
    return points


def _one_part(graph: nx.Graph[int], members: list[int], sizes: Array) -> Array:
    """Kamada and Kawai's places of a connected graph, its long axis level, scaled until no two boxes overlap.

    The springs start without crossings where that is possible; from a circle they often end with some.
    """
    import networkx as nx

    start = nx.planar_layout(graph) if nx.is_planar(graph) else None
    found = nx.kamada_kawai_layout(graph, pos=start)
    points = np.array([found[v] for v in members])
    points = _upright(points - points.mean(axis=0))
    one, other = np.triu_indices(len(points), 1)
    with np.errstate(divide="ignore"):
        scales = ((sizes[one] + sizes[other]) / 2 + GAP) / np.abs(points[one] - points[other])
    return np.asarray(points * scales.min(axis=1).max(initial=0.0))


def _upright(points: Array) -> Array:
    """Points turned: the long axis level, or the first on top where no axis is longer; the first ones top left."""
    spread, axes = np.linalg.svd(points)[1:]
    if len(spread) == 2 and spread[1] > 0.95 * spread[0]:
        x, y = points[0] / np.linalg.norm(points[0])
        axes = np.array([(y, -x), (x, y)])
    turned = points @ axes.T
    trend = (np.arange(len(points)) - (len(points) - 1) / 2) @ turned
    return np.asarray(turned * np.where(trend * (1, -1) < 0, -1, 1))


# Small things --------------------------------------------------------------------------------------------------------


def _row(result: Result, name: str) -> Array:
    if result.batched:
        raise ModelError("a picture shows one row of evidence, and this Result has a batch of them")
    return np.asarray(result[name])


def _short(text: str) -> str:
    return text if len(text) <= MAX_LETTERS else text[: MAX_LETTERS - 1] + "…"


def _written(figure: Figure, path: File | None) -> Figure:
    if path is not None:
        figure.savefig(path)
    return figure
