"""Labellings of an image beside it: a colour for each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import AnyArray
from besag.errors import ModelError, TooLargeError
from besag.metrics.labels import Ignored, encode, find_void
from besag.plot.panels import make_panels, read_image
from besag.plot.style import FAINT, TRACK, File, write_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_CLASSES = 20


def draw_segmentation(
    image: Any,
    labellings: Mapping[str, Any],
    path: File | None = None,
    *,
    classes: Sequence[Any] | None = None,
    ignore: Ignored = -1,
) -> Figure:
    """An image, and labellings of its pixels beside it, {title: labels (H, W)}: one colour for each class.

    image: (H, W) grey or (H, W, 3) colours. classes: those in the key, in this order, at most 20; all that occur by
    default. Pixels without a label, None, NaN or one of `ignore`, are grey.

    >>> import numpy as np
    >>> import besag.plot
    >>> image = np.arange(12.0).reshape(3, 4)
    >>> figure = besag.plot.draw_segmentation(image, {"truth": image > 5, "found": image > 6})
    """
    shown = read_image(image)
    if not isinstance(labellings, Mapping):
        raise ModelError(
            f'labellings must be {{title: labels}}, as {{"found": labels}}, got {type(labellings).__name__}'
        )
    arrays = {title: _read_labels(title, labels, shown.shape[:2]) for title, labels in labellings.items()}
    codes, keys = _codes(list(arrays.values()), classes, ignore)
    colours = _colours(len(keys))
    figure, panels = make_panels((shown.shape[0], shown.shape[1]), ["image", *arrays])
    panels[0].imshow(shown, cmap="gray" if shown.ndim == 2 else None)
    for axes, code in zip(panels[1:], codes, strict=True):
        axes.imshow(colours[code].reshape(*shown.shape[:2], 3), interpolation="nearest")
    _draw_key(figure, [str(key) for key in keys], colours)
    return write_figure(figure, path)


def _read_labels(title: str, labels: Any, shape: tuple[int, ...]) -> AnyArray:
    array = np.asarray(labels) if hasattr(labels, "__array__") else np.array(labels, object)
    if array.shape != shape:
        raise ModelError(f"labelling {title!r} must have the shape of the image, {shape}, got {array.shape}")
    return array.reshape(-1)


def _codes(arrays: list[AnyArray], classes: Sequence[Any] | None, ignore: Ignored) -> tuple[list[AnyArray], list[Any]]:
    """The colour of each pixel by number, the last where there is no label; and the classes."""
    if not arrays:
        raise ModelError('labellings must be {title: labels}, with at least one, as {"found": labels}')
    codes, values = encode([array if array.dtype.kind in "iufb" else array.astype(object) for array in arrays])
    void = find_void(values, ignore).tolist()
    known = [value for value, is_void in zip(values, void, strict=True) if not is_void]
    keys = sorted(known, key=lambda value: (isinstance(value, str), value)) if classes is None else list(classes)
    if not 0 < len(keys) <= MAX_CLASSES:
        raise TooLargeError(f"a picture has 1 to {MAX_CLASSES} classes, got {len(keys)}; choose with classes=[...]")
    outside = [value for value in known if value not in keys]
    if outside:
        raise ModelError(f"the label {outside[0]!r} is none of the classes {keys}; give it in classes=, or in ignore=")
    place = np.array([-1 if is_void else keys.index(value) for value, is_void in zip(values, void, strict=True)])
    return [place[code] for code in codes], keys


def _colours(n: int) -> AnyArray:
    """(n + 1, 3): of the classes, and a light grey."""
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb

    palette = [to_rgb(colour) for colour in colormaps["tab10" if n <= 10 else "tab20"].colors]  # type: ignore[attr-defined]
    return np.array([*palette[:n], to_rgb(TRACK)])


def _draw_key(figure: Figure, names: list[str], colours: AnyArray) -> None:
    from matplotlib.patches import Patch

    patches = [Patch(facecolor=tuple(colour), label=name) for name, colour in zip(names, colours[:-1], strict=True)]
    figure.legend(handles=patches, loc="outside right upper", frameon=False, fontsize=8, labelcolor=FAINT)
