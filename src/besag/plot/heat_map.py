"""Numbers of the pixels of an image as colours: marginals, how much neighbours are tied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.errors import ModelError, TooLargeError
from besag.infer.result import Result
from besag.plot.panels import make_panels
from besag.plot.style import File, write_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_PANELS = 20


def draw_heat_map(
    values: Any,
    path: File | None = None,
    *,
    titles: Sequence[Any] | None = None,
    limits: tuple[float, float] | None = (0.0, 1.0),
) -> Figure:
    """Marginals of the pixels of an image: (H, W) of one state, or (H, W, K), a panel for each state.

    titles: of the panels, the numbers of the states by default. limits: the ends of the scale of colours; None: the
    least and the largest value.

    >>> import besag.plot
    >>> figure = besag.plot.draw_heat_map(besag.ising((4, 5), 0.4, 0.1).marginals().array, titles=["-1", "+1"])
    """
    array = np.asarray(values)
    if array.ndim not in (2, 3) or array.dtype.kind not in "fiub" or not array.size or not np.isfinite(array).all():
        got = f"{array.dtype} of shape {array.shape}" if array.ndim else type(values).__name__
        near = "; those of a Result are its array" if isinstance(values, Result) else ""
        raise ModelError(f"expected finite numbers (H, W) or (H, W, K), got {got}{near}")
    images = array[:, :, None] if array.ndim == 2 else array
    n = images.shape[2]
    if n > MAX_PANELS:
        raise TooLargeError(f"a picture has at most {MAX_PANELS} panels, got {n}: choose some, values[:, :, [0, 1]]")
    names = ([""] if array.ndim == 2 else range(n)) if titles is None else titles
    if len(names) != n:
        raise ModelError(f"titles must be {n}, one for each panel, got {len(names)}")
    figure, panels = make_panels((images.shape[0], images.shape[1]), [str(name) for name in names])
    low, high = (float(array.min()), float(array.max())) if limits is None else limits
    for k, axes in enumerate(panels):
        shown = axes.imshow(images[:, :, k], vmin=low, vmax=high, cmap="viridis", interpolation="nearest")
    figure.colorbar(shown, ax=panels, shrink=0.8)
    return write_figure(figure, path)
