"""Networks of more variables than cards would fit: dots, and beyond some hundred the clusters that they form.

A pair of variables is joined where a factor has both. Places are those of springs (Fruchterman and Reingold 1991),
clusters those of Louvain's method (Blondel et al. 2008); networkx has both.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from besag.arrays import Array
from besag.errors import require
from besag.infer.result import Result
from besag.model.model import Model
from besag.plot.style import BAR, FAINT, INK, LINE, new_figure, read_row, shorten_text

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_DOTS = 600
NAMED = 150  # dots that have their names beside them
SEED = 0


def draw_large(model: Model, result: Result | None, title: str) -> Figure:
    """Dots, the darker the less certain the marginals of a result are; or clusters with their numbers of members."""
    graph = _pairs(model)
    figure = new_figure(figsize=(8, 8), layout="constrained")
    axes = figure.subplots()
    axes.set_axis_off()
    if len(graph) <= MAX_DOTS:
        _draw_dots(axes, graph, model, result)
        told = f"{len(graph)} variables"
    else:
        told = f"{len(graph)} variables in {_draw_clusters(axes, graph, model)} clusters"
    axes.set_title(title or told, size=10, color=INK, loc="left")
    return figure


def _pairs(model: Model) -> nx.Graph[int]:
    require("networkx", "graph", "a picture of this model")
    import networkx as nx

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(len(model.variables)))
    for group in model.groups:
        for scope in group.scopes.tolist():
            graph.add_edges_from(combinations(scope, 2))
    return graph


def _draw_dots(axes: Axes, graph: nx.Graph[int], model: Model, result: Result | None) -> None:
    points = _places(graph)
    _draw_lines(axes, points, list(graph.edges), np.full(graph.number_of_edges(), 0.6))
    shades = None if result is None else np.array([_uncertainty(read_row(result, v.name)) for v in model.variables])
    colours = BAR if shades is None else shades
    shown = axes.scatter(points[:, 0], points[:, 1], s=22, c=colours, cmap="Blues", vmin=-0.3, vmax=1, zorder=3)
    shown.set_edgecolor(INK)
    shown.set_linewidth(0.4)
    if len(graph) <= NAMED:
        for v, (x, y) in enumerate(points):
            axes.text(x, y + 0.018, shorten_text(model.variables[v].name), size=5.5, color=INK, ha="center", zorder=4)


def _draw_clusters(axes: Axes, graph: nx.Graph[int], model: Model) -> int:
    import networkx as nx

    clusters = sorted(nx.community.louvain_communities(graph, seed=SEED), key=lambda found: (-len(found), min(found)))
    number = {v: c for c, members in enumerate(clusters) for v in members}
    above: nx.Graph[int] = nx.Graph()
    above.add_nodes_from(range(len(clusters)))
    for one, other in graph.edges:
        a, b = number[one], number[other]
        if a != b:
            above.add_edge(a, b, weight=above.get_edge_data(a, b, {"weight": 0})["weight"] + 1)
    points = _places(above)
    links = np.array([above.edges[pair]["weight"] for pair in above.edges], np.float64)
    _draw_lines(axes, points, list(above.edges), 0.4 + 3 * links / links.max(initial=1.0))
    sizes = np.array([len(members) for members in clusters])
    areas = 60 + 1200 * sizes / sizes.max()
    axes.scatter(points[:, 0], points[:, 1], s=areas, color=BAR, alpha=0.85, edgecolor=INK, lw=0.5, zorder=3)
    for members, area, (x, y) in zip(clusters, areas.tolist(), points, strict=True):
        hub = max(members, key=lambda v: (graph.degree(v), -v))
        name = shorten_text(model.variables[hub].name)
        axes.text(x, y, f"{len(members)}", size=7, color="white", ha="center", va="center", zorder=4)
        below = (0, -np.sqrt(area / np.pi) - 2)  # the radius of the disc, in points
        axes.annotate(
            name, (x, y), below, textcoords="offset points", size=6, color=FAINT, ha="center", va="top", zorder=4
        )
    return len(clusters)


def _draw_lines(axes: Axes, points: Array, pairs: list[tuple[int, int]], widths: Array) -> None:
    from matplotlib.collections import LineCollection

    ends = [(points[one], points[other]) for one, other in pairs]
    axes.add_collection(LineCollection(ends, colors=LINE, linewidths=widths.tolist(), zorder=1))


def _places(graph: nx.Graph[int]) -> Array:
    import networkx as nx

    found = nx.spring_layout(graph, seed=SEED, iterations=100)
    return np.array([found[v] for v in graph])


def _uncertainty(p: Array) -> float:
    """The entropy of a marginal, 1 where it is uniform."""
    positive = p[p > 0]
    return float(-(positive * np.log(positive)).sum() / np.log(len(p))) if len(p) > 1 else 0.0
