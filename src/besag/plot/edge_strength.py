"""How strongly an image ties neighbouring pixels, 002: one panel for each direction of edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.errors import ModelError
from besag.plot.panels import make_panels, read_image
from besag.plot.style import File, write_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIRECTIONS = ("right", "down", "down right", "down left")


def draw_edge_strength(image: Any, strengths: Sequence[Any], path: File | None = None) -> Figure:
    """An image, and beside it what `GridCRF.edge_strength(image)` gives: dark where neighbours may differ.

    >>> import numpy as np
    >>> import besag.plot
    >>> image = np.arange(12.0).reshape(3, 4)
    >>> figure = besag.plot.draw_edge_strength(image, (np.ones((3, 3)), np.zeros((2, 4))))
    """
    shown = read_image(image)
    arrays = [np.asarray(values, np.float64) for values in strengths]
    height, width = shown.shape[:2]
    expected = [(height, width - 1), (height - 1, width), *[(height - 1, width - 1)] * 2][: len(arrays)]
    if len(arrays) not in (2, 4) or [values.shape for values in arrays] != expected:
        raise ModelError(
            f"strengths must be what edge_strength(image) gives, arrays of shapes {expected or [(height, width - 1)]}, "
            f"got {[values.shape for values in arrays]}"
        )
    if not all(np.isfinite(values).all() for values in arrays):
        raise ModelError("strengths must be finite numbers, got NaN or inf")
    figure, panels = make_panels((height, width), ["image", *DIRECTIONS[: len(arrays)]])
    panels[0].imshow(shown, cmap="gray" if shown.ndim == 2 else None)
    low = min((float(values.min()) for values in arrays if values.size), default=0.0)
    high = max((float(values.max()) for values in arrays if values.size), default=1.0)
    for axes, values in zip(panels[1:], arrays, strict=True):
        if values.size:  # a picture of one row has no edges downwards
            drawn = axes.imshow(values, vmin=low, vmax=high, cmap="viridis", interpolation="nearest")
    if any(values.size for values in arrays):
        figure.colorbar(drawn, ax=panels, shrink=0.8)
    return write_figure(figure, path)
