"""The third part of `besag demo`: labels of pixels, learnt on one half of a noisy picture, tested on the other.

The picture is a slice of a brain that comes with matplotlib, in four shades of grey. What the model sees is each shade
as a number with noise; what it is to find is the shade.
"""

from __future__ import annotations

import gzip
import time
import warnings
from pathlib import Path

import numpy as np

from besag.arrays import Array, IntArray
from besag.cli.demo_page import Section, Table
from besag.errors import ApproximationWarning, ConvergenceWarning

NOISE, CUTS = 1.0, (0.35, 0.6, 0.85)  # quantiles between shades
SHADES = ("black", "dark", "grey", "bright")
ENGINES = ("bp[tolerance=1e-3]", "mean_field[tolerance=1e-3]")


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


def show_picture(*, draw: bool) -> Section:
    """Learns, labels by several engines, compares with pixels alone."""
    from besag.estimators.graph_crf import GraphCRF
    from besag.estimators.grid_crf import GridCRF

    shades = read_brain()
    truth, half = np.array(SHADES)[shades], shades.shape[1] // 2
    seen = shades + NOISE * np.random.default_rng(0).standard_normal(shades.shape)
    features = make_features(seen)
    left, labels = features[:, :half], truth[:, :half]
    alone = GraphCRF(l2=0.1).fit([(left.reshape(-1, 4),)], [labels.ravel()])
    began = time.perf_counter()
    crf = GridCRF(pairwise="potts", l2=0.1, decode="marginal", engine=ENGINES[0]).fit([left], [labels])
    learnt = time.perf_counter() - began

    found = {"pixels alone": alone.predict([(features.reshape(-1, 4),)])[0].reshape(truth.shape)}
    seconds, sure = {"pixels alone": ""}, {}
    for engine in ENGINES:
        crf.engine, name = engine, f"with neighbours, {engine}"
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", ApproximationWarning)
            sure[name] = crf.predict_marginals([features])[0]
        found[name] = np.array(crf.classes_)[sure[name].argmax(axis=2)]
        seconds[name] = f"{time.perf_counter() - began:.2f}"
    wrong = {name: f"{(labels != truth)[:, half:].mean():.1%}" for name, labels in found.items()}
    rows = tuple((name, seconds[name], wrong[name]) for name in found)
    caption = f"Pixels of the right half, {truth[:, half:].size:,} of them, learnt from the left half in {learnt:.1f} s"
    text = (
        "A slice of a brain in four shades of grey, under noise as strong as the step from one shade to the next. "
        "A grid model learns from the left half what a shade looks like and how much neighbours agree."
    )
    figures = {}
    if draw:
        from besag.plot import draw_heat_map, draw_segmentation

        best = f"with neighbours, {ENGINES[0]}"
        shown = {"truth": truth, "pixels alone": found["pixels alone"], "with neighbours": found[best]}
        figures["What is seen, the truth, and labels found"] = draw_segmentation(seen, shown, classes=SHADES)
        figures["How sure: the probability of the label found"] = draw_heat_map(sure[best].max(axis=2))
    table = Table(caption, ("labelled by", "seconds", "wrong"), rows)
    return Section("A picture: labels of pixels", text, (table,), figures)
