"""The second part of `besag demo`: labels of pixels, learnt on one half of a noisy picture, tested on the other.

The picture is a slice of a brain that comes with matplotlib, in four shades of grey. What the model sees is each shade
as a number with noise; what it is to find is the shade. segmentation.png shows all of it, certainty.png how probable
each label is that was found.
"""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import numpy as np

from besag.arrays import Array, IntArray
from besag.errors import require
from besag.text import table

NOISE, CUTS = 1.0, (0.35, 0.6, 0.85)  # quantiles between shades
SHADES = ("black", "dark", "grey", "bright")


def read_brain() -> IntArray:
    """Shades (256, 256) by number."""
    import matplotlib as mpl

    with gzip.open(Path(mpl.get_data_path()) / "sample_data" / "s1045.ima.gz") as file:
        values = np.frombuffer(file.read(), np.uint16).reshape(256, 256)
    return np.digitize(values, np.quantile(values[values > 0], CUTS))


def make_features(seen: Array) -> Array:
    """(H, W, 4): what is seen at a pixel, around it, and their squares."""
    around = sum(np.roll(seen, shift, axis) for axis in (0, 1) for shift in (-1, 1)) / 4
    return np.stack([seen, around, seen**2, around**2], axis=-1)


def show_picture(folder: Path) -> str:
    """Learns, labels, compares with pixels alone; a table, and where the pictures are."""
    from besag.estimators.graph_crf import GraphCRF
    from besag.estimators.grid_crf import GridCRF
    from besag.plot import draw_heat_map, draw_segmentation

    require("matplotlib", "plot", "a picture")
    shades = read_brain()
    truth, half = np.array(SHADES)[shades], shades.shape[1] // 2
    seen = shades + NOISE * np.random.default_rng(0).standard_normal(shades.shape)
    features = make_features(seen)
    left, labels = features[:, :half], truth[:, :half]
    alone = GraphCRF(l2=0.1).fit([(left.reshape(-1, 4),)], [labels.ravel()])
    began = time.perf_counter()
    crf = GridCRF(pairwise="potts", l2=0.1, engine="bp[damping=0.3]").fit([left], [labels])
    learnt = time.perf_counter() - began
    p = crf.predict_marginals([features])[0]
    found = {
        "pixels alone": alone.predict([(features.reshape(-1, 4),)])[0].reshape(truth.shape),
        "with neighbours": np.array(crf.classes_)[p.argmax(axis=2)],
    }
    wrong = {name: f"{(labels != truth)[:, half:].mean():.1%}" for name, labels in found.items()}
    titled = {f"{name}: {wrong[name]} wrong": labels for name, labels in found.items()}
    folder.mkdir(parents=True, exist_ok=True)
    draw_segmentation(seen, {"truth": truth, **titled}, folder / "segmentation.png", classes=SHADES)
    draw_heat_map(p.max(axis=2), folder / "certainty.png", titles=["how sure: the probability of the label found"])
    rows = table(("labelled by", "wrong pixels"), list(wrong.items()))
    return (
        "Labels of pixels: four shades of a brain under noise, learnt by pseudolikelihood on the left half\n"
        f"in {learnt:.1f} s, found on the right half:\n\n{rows}\n\n"
        f"Picture: {folder / 'segmentation.png'}\nPicture: {folder / 'certainty.png'}"
    )
