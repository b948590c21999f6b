"""Images and masks in folders: files of one stem belong together.

image     .png, .jpg and what else Pillow reads, as uint8 (H, W) grey or (H, W, 3) colours; .npy, features (H, W, D)
mask      one number a pixel: grey, palette or black and white, .png best; .npy of integers (H, W)
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from besag.arrays import AnyArray
from besag.errors import ParseError, require
from besag.io.shared.files import write_atomically

ARRAYS = ".npy"
GREY, ONE_NUMBER = ("L", "I", "F", "I;16", "I;16B"), ("1", "L", "P", "I", "I;16", "I;16B")


def list_folder(folder: Path) -> dict[str, Path]:
    """{stem: file} of a folder, sorted; what is hidden is left out."""
    if not folder.is_dir():
        raise ParseError("expected a folder of images", path=str(folder))
    found: dict[str, Path] = {}
    for path in sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")):
        if path.stem in found:
            raise ParseError(f"{found[path.stem].name} and {path.name} have one stem", path=str(folder))
        found[path.stem] = path
    if not found:
        raise ParseError("the folder has no files", path=str(folder))
    return found


def pair_folders(images: Path, masks: Path) -> list[tuple[Path, Path]]:
    """(image, mask) of each stem; ParseError where one is missing."""
    first, second = list_folder(images), list_folder(masks)
    for stem in sorted(set(first) ^ set(second)):
        file, other = (first[stem], masks) if stem in first else (second[stem], images)
        raise ParseError(f"there is no file of the stem {stem!r} in {other}", path=str(file))
    return [(first[stem], second[stem]) for stem in first]


def read_image(path: Path) -> AnyArray:
    """An image, see the module."""
    if path.suffix == ARRAYS:
        return _read_array(path)
    image = _open(path)
    if image.mode == "1":
        image = image.convert("L")
    return np.asarray(image if image.mode in GREY else image.convert("RGB"))


def read_mask(path: Path) -> AnyArray:
    """The labels (H, W) of a mask."""
    if path.suffix == ARRAYS:
        labels = _read_array(path)
    else:
        image = _open(path)
        if image.mode not in ONE_NUMBER:
            raise ParseError(f"a mask must have one number a pixel, grey or palette, got {image.mode}", path=str(path))
        labels = np.asarray(image)
    if labels.ndim != 2 or labels.dtype.kind not in "iub":
        raise ParseError(f"a mask must be integers (H, W), got {labels.dtype} of shape {labels.shape}", path=str(path))
    return labels.astype(np.int64)


def write_mask(path: Path, labels: AnyArray) -> None:
    """Labels (H, W) as a grey .png of 8 or 16 bits, or as .npy."""
    if path.suffix == ARRAYS:
        _write(path, lambda file: np.save(file, labels))
        return
    image = _pillow("images")
    if labels.min() < 0 or labels.max() >= 1 << 16:
        raise ParseError("an image holds labels from 0 to 65535", path=str(path))
    kind = np.uint8 if labels.max() < 1 << 8 else np.uint16
    _write(path, lambda file: image.fromarray(labels.astype(kind)).save(file, "PNG"))


def write_array(path: Path, values: AnyArray) -> None:
    """Numbers as .npy."""
    _write(path, lambda file: np.save(file, values))


def _write(path: Path, save: Any) -> None:
    file = io.BytesIO()
    save(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, file.getvalue())


def _read_array(path: Path) -> AnyArray:
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except (ValueError, EOFError) as error:
        raise ParseError(f"expected an array of numpy: {error}", path=str(path)) from None


def _open(path: Path) -> Any:
    pillow = _pillow(f"reading {path.name}")
    try:
        with pillow.open(path) as image:
            image.load()
            return image.copy()
    except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:
        raise ParseError(f"expected an image: {error}", path=str(path)) from None


def _pillow(what: str) -> Any:
    require("PIL", "image", what)
    from PIL import Image

    return Image
