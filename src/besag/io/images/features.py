"""What a model sees of the colours of an image, (H, W, 6 C + 2) for C colours, all of about the size of one.

c            colours, from -1 to 1, and their squares
c * g_s      blurred by a Gaussian of s = 1, 2, 4 and 8 pixels
|grad|       of the grey image, at s = 1 and 2
"""

from __future__ import annotations

import numpy as np

from besag.arrays import AnyArray, Array

BLURS, EDGES = (1, 2, 4, 8), (1, 2)


def make_local_features(image: AnyArray) -> Array:
    """Of an image (H, W) or (H, W, C); integers count from 0 to the largest of their type.

    >>> make_local_features(np.zeros((4, 5, 3), np.uint8)).shape
    (4, 5, 20)
    """
    from scipy.ndimage import gaussian_filter, gaussian_gradient_magnitude

    top = np.iinfo(image.dtype).max if image.dtype.kind in "iu" else 1.0
    colours = 2.0 * np.asarray(image, np.float64).reshape(*image.shape[:2], -1) / top - 1.0
    grey = colours.mean(axis=2)
    blurred = [gaussian_filter(colours, (s, s, 0)) for s in BLURS]
    edges = [gaussian_gradient_magnitude(grey, s)[..., None] * s * 2.0 for s in EDGES]
    return np.concatenate([colours, colours**2, *blurred, *edges], axis=2)
