"""Energies of the Middlebury MRF benchmark (Szeliski et al., PAMI 2008), from its pictures in the data folder.

    H(y) = sum over pixels of costs_p(y_p) + sum over neighbours of weights_pq min(|y_p - y_q|^power, limit)

The parameters are those that the benchmark publishes its energies for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.networks import FOLDER as NETWORKS

FOLDER = NETWORKS.parent / "middlebury_mrf"
BEST = {"tsukuba": 369218.0, "venus": 3048043.0}  # energies, Kappes et al., IJCV 2015


class Stereo(NamedTuple):
    """Parameters of a pair of pictures."""

    n_states: int
    power: int  # of differences of colours, and of labels
    most: float  # that a pixel costs
    limit: float
    weight: float
    smooth: float  # the change of colour below which an edge weighs twice; negative where none does


PAIRS = {
    "tsukuba": Stereo(16, 1, 3 * 255, 2, 20.0, 8.0),
    "venus": Stereo(20, 2, 16**2, 7, 50.0, -1.0),
}
PICTURES = {"penguin": (25.0, 200.0), "house": (5.0, np.inf)}  # weight and limit


def image(path: str) -> Any:
    """The numbers of a picture, (H, W, C)."""
    from PIL import Image

    file: Path = FOLDER / path
    if not file.exists():
        raise FileNotFoundError(f"no {file} in the data folder")
    found = np.asarray(Image.open(file)).astype(np.int64)
    return found[..., :3] if found.ndim == 3 else found[..., None]


def between(picture: Any) -> tuple[Any, Any]:
    """The least and the largest value within half a pixel to the left and to the right."""
    left, right = picture.copy(), picture.copy()
    left[:, 1:] = right[:, :-1] = (picture[:, 1:] + picture[:, :-1]) // 2
    return np.minimum(picture, np.minimum(left, right)), np.maximum(picture, np.maximum(left, right))


def stereo_costs(left: Any, right: Any, pair: Stereo) -> Any:
    """(H, W, K): how much pixels differ that lie d apart (Birchfield and Tomasi, PAMI 1998)."""
    (least, most), (least_right, most_right) = between(left), between(right)
    costs = np.full((*left.shape[:2], pair.n_states), float(pair.most))
    for d in range(pair.n_states):
        here, there = (slice(None), slice(d, None)), (slice(None), slice(0, left.shape[1] - d))
        one = np.maximum(0, np.maximum(left[here] - most_right[there], least_right[there] - left[here]))
        other = np.maximum(0, np.maximum(right[there] - most[here], least[here] - right[there]))
        costs[:, d:, d] = np.minimum((np.minimum(one, other) ** pair.power).sum(axis=-1), pair.most)
    return costs


def grid_of(name: str) -> Any:
    """The model of a stereo pair or of a picture to be restored."""
    import besag

    if name in PICTURES:
        weight, limit = PICTURES[name]
        picture, mask = (image(f"denoise/data/{name}-{part}.png")[..., 0] for part in ("input", "mask"))
        costs = np.where(mask[..., None] > 0, (picture[..., None] - np.arange(256)) ** 2.0, 0.0)
        return besag.grid(picture.shape, 256, -costs, besag.truncated_quadratic(256, limit), weight)
    pair = PAIRS[name]
    left, right = (image(f"mrfstereo/data/{name}-im{side}.png") for side in "LR")
    near = left.shape[-1] * pair.smooth * abs(pair.smooth)
    changes = [(np.diff(left, axis=axis) ** 2).sum(axis=-1) for axis in (1, 0)]
    weights = tuple(pair.weight * np.where(change < near, 2.0, 1.0) for change in changes)
    term = besag.truncated_linear if pair.power == 1 else besag.truncated_quadratic
    return besag.grid(
        left.shape[:2], pair.n_states, -stereo_costs(left, right, pair), term(pair.n_states, pair.limit), weights
    )
