"""Images in folders, made into features in the same way to learn and to label."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from besag.arrays import AnyArray, Array
from besag.errors import ParseError
from besag.io.images.features import make_local_features
from besag.io.images.folders import ARRAYS, read_image


def read_pictures_of(paths: Iterable[Path]) -> list[Array]:
    """Features (H, W, D) of each file: local ones of images, those of .npy as they are."""
    found: list[Array] = []
    for path in paths:
        image = read_image(path)
        if image.ndim not in (2, 3) or image.dtype.kind not in "iufb" or not image.size:
            raise ParseError(
                f"expected numbers (H, W) or (H, W, D), got {image.dtype} of {image.shape}", path=str(path)
            )
        features = image.reshape(*image.shape[:2], -1) if path.suffix == ARRAYS else make_local_features(image)
        if found and features.shape[2] != found[0].shape[2]:
            raise ParseError(
                f"it has {features.shape[2]} features a pixel, and the first one has {found[0].shape[2]}; make all of "
                "them colours, all grey, or all .npy",
                path=str(path),
            )
        found.append(features)
    return found


def check_sizes(files: Iterable[tuple[Path, Path]], images: list[Array], masks: list[AnyArray]) -> None:
    """ParseError where an image and its mask differ in size."""
    for (path, mask), image, labels in zip(files, images, masks, strict=True):
        if image.shape[:2] != labels.shape:
            raise ParseError(f"the mask is {labels.shape}, and {path.name} is {image.shape[:2]}", path=str(mask))
