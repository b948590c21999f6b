"""Panels side by side, each an image of the same height and width."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import AnyArray
from besag.errors import ModelError
from besag.plot.style import INK, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_COLUMNS = 4
PANEL = 2.6  # inches, the longer side


def make_panels(shape: tuple[int, int], titles: list[str]) -> tuple[Figure, list[Axes]]:
    """A figure with a panel for each title, in rows of up to four, shaped for images (H, W)."""
    columns = min(MAX_COLUMNS, len(titles))
    rows = ceil(len(titles) / columns)
    height, width = np.array(shape) * PANEL / max(shape)
    figure = new_figure(figsize=(columns * (width + 0.2) + 0.9, rows * (height + 0.35) + 0.3), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).reshape(-1).tolist()
    for axes in grid:
        axes.set_axis_off()
    for axes, title in zip(grid, titles, strict=False):
        axes.set_title(title, size=9, weight="bold", color=INK, loc="left")
    return figure, grid[: len(titles)]


def read_image(image: Any) -> AnyArray:
    """(H, W), or (H, W, 3) or (H, W, 4) colours: numbers from 0 to 255, or any others, which are scaled to 0..1."""
    values = np.asarray(image)
    colours = values.ndim == 3 and values.shape[2] in (3, 4)
    if not (values.ndim == 2 or colours) or values.dtype.kind not in "fiub" or not values.size:
        raise ModelError(
            f"an image must be numbers of shape (H, W), (H, W, 3) or (H, W, 4), got {_kind(image, values)}"
        )
    if values.dtype == np.uint8:
        return values
    if not np.isfinite(values := values.astype(np.float64)).all():
        raise ModelError("an image must be finite numbers, got NaN or inf")
    low, high = values.min(), values.max()
    if colours and low >= 0 and high <= 1:
        return values
    return np.asarray((values - low) / (high - low if high > low else 1.0))


def _kind(image: Any, values: AnyArray) -> str:
    return f"{values.dtype} of shape {values.shape}" if values.ndim else type(image).__name__
