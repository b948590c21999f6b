"""Pictures as the arrays of grid graphs, 002: a variable for each pixel, edges between neighbours.

    nodes (T, D)       the features of all T pixels of N pictures, one picture after the other, row by row
    shapes             (H, W) of each picture
    edges (E, 2)       of each direction: right and down, with connectivity 8 also down-right and down-left

The contrast of an edge says how alike its two pixels look,

    g = exp(-1/2 mean_d (x_id - x_jd)^2 / s_d),    s_d the mean of (x_id - x_jd)^2 over all edges of the training data,

1 where they are equal, and 0.6 where they differ as edges do on average. Columns that never change do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from besag.arrays import Array, IntArray, freeze, offsets_of
from besag.errors import ModelError
from besag.model.build import grid_edges

BLOCK = 1 << 16  # edges whose differences are held at a time
DIRECTIONS = ("right", "down", "down_right", "down_left")


class Pictures(NamedTuple):
    """Features and edge features of pictures; edge features are one array (E, Q) a direction, or None."""

    nodes: Array
    shapes: list[tuple[int, ...]]
    edge_features: tuple[Array, ...] | None = None

    @property
    def offsets(self) -> IntArray:
        """(N + 1,): where the pixels of each picture begin."""
        return offsets_of(np.array([height * width for height, width in self.shapes], np.int64))


def read_pictures(images: Any, edge_features: Any = None, connectivity: int = 4) -> Pictures:
    """A list of arrays (H, W, D) or (H, W) as Pictures; edge features are a list of tuples, an array a direction."""
    given = list(images) if isinstance(images, Iterable) and not isinstance(images, (str, bytes)) else None
    if not given:
        raise ModelError(f"images must be a list of arrays (H, W, D), and not empty; got {type(images).__name__}")
    arrays = [_features(n, image) for n, image in enumerate(given)]
    depth = arrays[0].shape[2]
    for n, array in enumerate(arrays):
        if array.shape[2] != depth:
            raise ModelError(f"image {n} has {array.shape[2]} features a pixel, image 0 has {depth}")
    shapes = [array.shape[:2] for array in arrays]
    nodes = np.concatenate([array.reshape(-1, depth) for array in arrays])
    read = None if edge_features is None else _edge_features(edge_features, shapes, connectivity)
    return Pictures(freeze(nodes), shapes, read)


def _features(n: int, image: Any) -> Array:
    try:
        array = np.asarray(image, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"image {n} must be an array of numbers, (H, W, D) or (H, W)") from None
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3 or array.size == 0:
        hint = "; images is a list: write [image] for one" if array.ndim == 1 else ""
        raise ModelError(f"image {n} must have shape (H, W, D) or (H, W), got {np.shape(image)}{hint}")
    if not np.isfinite(array).all():
        row, column, feature = (int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ModelError(f"image {n}: feature {feature} of pixel ({row}, {column}) is {array[row, column, feature]}")
    return array


def _edge_features(given: Any, shapes: Sequence[tuple[int, ...]], connectivity: int) -> tuple[Array, ...]:
    listed = list(given) if isinstance(given, Iterable) else []
    if len(listed) != len(shapes):
        raise ModelError(f"edge_features must be a list with an entry for each of {len(shapes)} images")
    parts: list[list[Array]] = [[] for _ in range(connectivity // 2)]
    depths = set[int]()
    for n, (arrays, shape) in enumerate(zip(listed, shapes, strict=True)):
        sizes = grid_edges((shape[0], shape[1]), connectivity)[1]
        expected = f"one array of each of the shapes {', '.join(f'{size} + (Q,)' for size in sizes)}"
        if not isinstance(arrays, (tuple, list)) or len(arrays) != len(sizes):
            raise ModelError(f"edge_features of image {n} must be {expected}")
        for direction, (array, size) in enumerate(zip(arrays, sizes, strict=True)):
            try:
                values = np.asarray(array, np.float64)
            except (TypeError, ValueError):
                raise ModelError(f"edge_features of image {n} must be numbers, {expected}") from None
            values = values[..., None] if values.ndim == 2 else values
            if values.shape[:2] != size or values.ndim != 3 or not np.isfinite(values).all():
                raise ModelError(f"edge_features of image {n} must be finite, {expected}; got {np.shape(array)}")
            parts[direction].append(values.reshape(-1, values.shape[2]))
            depths.add(values.shape[2])
    if len(depths) != 1:
        raise ModelError(f"edges must have the same number of features everywhere, got {sorted(depths)}")
    return tuple(np.concatenate(arrays) for arrays in parts)


def picture_edges(pictures: Pictures, connectivity: int) -> list[IntArray]:
    """The edges (E, 2) of each direction, sorted by picture."""
    of_shape = {shape: grid_edges((shape[0], shape[1]), connectivity)[0] for shape in set(pictures.shapes)}
    placed = list(zip(pictures.shapes, pictures.offsets.tolist(), strict=False))
    return [
        np.concatenate([of_shape[shape][direction] + start for shape, start in placed])
        for direction in range(connectivity // 2)
    ]


def measure_scale(nodes: Array, edges: Sequence[IntArray]) -> Array:
    """s (D,): the mean squared difference over all edges, 0 for columns that never change."""
    total, count = np.zeros(nodes.shape[1]), 0
    for scopes in edges:
        for start in range(0, len(scopes), BLOCK):
            part = scopes[start : start + BLOCK]
            total += np.square(nodes[part[:, 0]] - nodes[part[:, 1]]).sum(axis=0)
        count += len(scopes)
    return total / max(count, 1)


def measure_contrast(nodes: Array, scopes: IntArray, scale: Array) -> Array:
    """g (E,) of some edges."""
    counts = scale > 0
    weights = np.where(counts, 0.5 / np.where(counts, scale, 1.0), 0.0) / max(int(counts.sum()), 1)
    contrast = np.empty(len(scopes))
    for start in range(0, len(scopes), BLOCK):
        part = scopes[start : start + BLOCK]
        contrast[start : start + BLOCK] = np.square(nodes[part[:, 0]] - nodes[part[:, 1]]) @ weights
    return np.exp(-contrast)
