"""Where the cards of a network are: in layers, on a lattice, or by springs.

A Bayesian network is drawn in layers: a variable stands below its parents, a root just above the first of its children,
and an edge that passes a layer has a place of its own there (Sugiyama, Tagawa and Toda 1981). A lattice is drawn as
such, any other Markov network by springs (Kamada and Kawai 1989), for which networkx is imported.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from besag.arrays import Array
from besag.errors import require
from besag.model.dag import parents_of, topological
from besag.model.model import Model
from besag.plot.lines import Arrow, Link

if TYPE_CHECKING:
    import networkx as nx

GAP = 0.5


def lay_in_layers(model: Model, size: Array) -> tuple[Array, list[Arrow]]:
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
        Arrow(p, c, [(float(x[v]), float(y[v] + end)) for v in places for end in (band, -band)])
        for (p, c), places in routes.items()
    ]
    return np.stack([x, y], axis=1)[: len(parents)], arrows


def layer_layout(parents: list[list[int]], sizes: Array) -> Array:
    """Centres (N, 2) of boxes, each in the layer below its parents."""
    depth = [-1] * len(parents)

    def place(box: int) -> int:
        if depth[box] < 0:
            depth[box] = 1 + max((place(above) for above in parents[box]), default=-1)
        return depth[box]

    layers: list[list[int]] = [[] for _ in range(1 + max(map(place, range(len(parents))), default=-1))]
    for box, d in enumerate(depth):
        layers[d].append(box)
    steps = [(above, box) for box, over in enumerate(parents) for above in over]
    x, y, top = _abscissae(_ordered(layers, steps), steps, sizes[:, 0] + GAP / 2), np.zeros(len(parents)), 0.0
    for layer in layers:
        tall = float(sizes[layer, 1].max())
        y[layer] = top - tall / 2
        top -= tall + GAP / 2
    return np.stack([x, y], axis=1)


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


def lay_in_plane(model: Model, size: Array) -> tuple[Array, list[Link]]:
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
        points = spring_layout(edges, sizes)
    places = {i: [(float(points[h, 0]), float(points[h, 1]))] for i, h in hubs.items()}
    return points[:n], [Link(scope, places.get(i, []), name) for i, (scope, name) in enumerate(scopes)]


def spring_layout(edges: list[tuple[int, int]], sizes: Array) -> Array:
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
