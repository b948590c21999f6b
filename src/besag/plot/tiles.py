"""Rows of numbers as small images side by side: filters of a machine, samples, data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.errors import ModelError
from besag.plot.style import File, new_figure, write_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_tiles(
    rows: Any, shape: tuple[int, int] | None = None, path: File | None = None, *, columns: int | None = None
) -> Figure:
    """Images (N, H W) of a shape (H, W), square unless given; numbers of both signs in two colours around 0.

    Filters are `draw_tiles(rbm.components_)`, samples `draw_tiles(rbm.sample(25))`.

    >>> import numpy as np
    >>> figure = draw_tiles(np.eye(4))
    >>> len(figure.axes)
    4
    """
    try:
        values = np.asarray(rows, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"tiles must be rows of numbers (N, H W), got {type(rows).__name__}") from None
    if values.ndim != 2 or not 0 < len(values) <= 400 or not np.isfinite(values).all():
        raise ModelError(f"tiles must be 1 to 400 rows of finite numbers (N, H W), got shape {values.shape}")
    side = math.isqrt(values.shape[1])
    height, width = (side, side) if shape is None else shape
    if height * width != values.shape[1]:
        raise ModelError(f"rows of {values.shape[1]} numbers are no images of shape {(height, width)}; give shape=")
    n_columns = math.ceil(math.sqrt(len(values))) if columns is None else columns
    n_rows = math.ceil(len(values) / n_columns)
    size = 0.55 / max(height, width)  # inches of a pixel
    figure = new_figure(figsize=(n_columns * width * size + 0.1, n_rows * height * size + 0.1))
    grid = figure.subplots(
        n_rows, n_columns, squeeze=False,
        gridspec_kw={"wspace": 0.08, "hspace": 0.08, "left": 0.01, "right": 0.99, "bottom": 0.01, "top": 0.99},
    ).reshape(-1)  # fmt: skip
    reach = float(np.abs(values).max()) or 1.0
    signed = values.min() < 0
    low, colours = (-reach, "RdBu_r") if signed else (0.0, "Greys")
    for axes in grid[len(values) :]:
        axes.remove()
    for axes, row in zip(grid, values, strict=False):
        axes.imshow(row.reshape(height, width), vmin=low, vmax=reach, cmap=colours, interpolation="nearest")
        axes.set_axis_off()
    return write_figure(figure, path)
