"""The second part of `besag demo`: labels of pixels, learnt on one half of a noisy picture, tested on the other.

The picture is a slice of a brain that comes with matplotlib, in four shades of grey. What the model sees is each shade
as a number with noise; what it is to find is the shade.
"""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import numpy as np

from besag.arrays import Array, IntArray
from besag.errors import require
from besag.text import table

NOISE, SHADES = 1.0, (0.35, 0.6, 0.85)  # the shades are cut at these quantiles


def read_brain() -> IntArray:
    """Shades (128, 128)."""
    import matplotlib as mpl

    with gzip.open(Path(mpl.get_data_path()) / "sample_data" / "s1045.ima.gz") as file:
        values = np.frombuffer(file.read(), np.uint16).reshape(256, 256)[::2, ::2]
    return np.digitize(values, np.quantile(values[values > 0], SHADES))


def make_features(seen: Array) -> Array:
    """(H, W, 4): what is seen at a pixel, around it, and their squares."""
    around = sum(np.roll(seen, shift, axis) for axis in (0, 1) for shift in (-1, 1)) / 4
    return np.stack([seen, around, seen**2, around**2], axis=-1)


def show_picture(folder: Path) -> str:
    """Learns, labels, compares with pixels alone; a table, and where the picture is."""
    from besag.estimators.graph_crf import GraphCRF
    from besag.estimators.grid_crf import GridCRF
    from besag.plot import draw_segmentation

    require("matplotlib", "plot", "a picture")
    truth = read_brain()
    seen = truth + NOISE * np.random.default_rng(0).standard_normal(truth.shape)
    half = truth.shape[1] // 2
    left, right = make_features(seen[:, :half]), make_features(seen[:, half:])
    alone = GraphCRF(l2=0.1).fit([(left.reshape(-1, 4),)], [truth[:, :half].ravel()])
    began = time.perf_counter()
    crf = GridCRF(pairwise="potts", l2=0.1, decode="marginal", engine="bp[damping=0.3]")
    crf.fit([left], [truth[:, :half]])
    learnt = time.perf_counter() - began
    found = {
        "pixels alone": alone.predict([(right.reshape(-1, 4),)])[0].reshape(truth[:, half:].shape),
        "with neighbours": crf.predict([right])[0],
    }
    rows = [(name, f"{(labels != truth[:, half:]).mean():.1%}") for name, labels in found.items()]
    pictures = {"truth": truth[:, half:], **found}
    folder.mkdir(parents=True, exist_ok=True)
    draw_segmentation(seen[:, half:], pictures, folder / "segmentation.png", classes=crf.classes_)
    return (
        "Labels of pixels: four shades of a brain under noise, learnt by pseudolikelihood on the left half\n"
        f"in {learnt:.1f} s, found on the right half:\n\n{table(('labelled by', 'wrong pixels'), rows)}\n\n"
        f"Picture: {folder / 'segmentation.png'}"
    )
