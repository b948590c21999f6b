"""Horses cut out of photographs: pixels by themselves, and grid CRFs learnt by several objectives.

328 photographs of 64 x 64 pixels with the outlines of horses (Weizmann horses, Borenstein and Ullman) lie in the data
folder, BESAG_DATA or ../shared/data. Every second one is for training, the others are for the test. Features are made
from the photograph alone: colours, blurred colours, how unlike the border and the centre they are, edges, and places.
BESAG_PICTURES=40 takes the first 40 only, and a minute in place of many.
"""

import os
import sys
import time
import warnings
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import numpy as np
from scipy.ndimage import gaussian_filter, gaussian_gradient_magnitude

import besag
import besag.plot
from besag.metrics import accuracy, class_iou, expected_calibration_error, log_loss

warnings.simplefilter("ignore", besag.errors.ApproximationWarning)
warnings.simplefilter("ignore", besag.errors.ConvergenceWarning)
FOLDER = Path(os.environ.get("BESAG_DATA", "../shared/data")) / "structured_images"
OBJECTIVES = (
    "pseudolikelihood",
    "piecewise",
    "piecewise[pieces=trees]",
    "likelihood[engine=bp[damping=0.3]]",
    "marginal_loss[engine=trw,iterations=5]",
)


def make_features(photo: np.ndarray) -> np.ndarray:
    """(64, 64, D)."""
    x = photo / 255.0
    height, width = x.shape[:2]
    row, column = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
    grey = x.mean(axis=2)
    blurred = [np.stack([gaussian_filter(x[..., c], s) for c in range(3)], axis=-1) for s in (1, 3)]
    border = np.concatenate([x[:3].reshape(-1, 3), x[:, :3].reshape(-1, 3), x[:, -3:].reshape(-1, 3)])
    centre = x[height // 3 : 2 * height // 3, width // 3 : 2 * width // 3].reshape(-1, 3)
    far = [
        np.log1p((np.square(colours - part.mean(axis=0)) / (part.var(axis=0) + 0.01)).sum(axis=2))
        for colours in blurred
        for part in (border, centre)
    ]
    edges = [gaussian_gradient_magnitude(grey, s) for s in (1, 2)]
    spread = np.sqrt(np.maximum(gaussian_filter(grey**2, 2) - gaussian_filter(grey, 2) ** 2, 0))
    places = [row, column, row**2, column**2, row * column, np.exp(-2 * (row**2 + column**2))]
    base = np.concatenate([x, *blurred, np.stack([*far, *edges, spread, *places], axis=-1)], axis=-1)
    return np.concatenate([base, base[..., :13] ** 2], axis=-1)


if not FOLDER.is_dir():
    sys.exit("the data folder is absent: set BESAG_DATA")
archive = np.load(FOLDER / "weizmann_horses_64.npz")
count = int(os.environ.get("BESAG_PICTURES", len(archive["rgb"])))
masks = np.unpackbits(archive["mask_packed"], axis=1).reshape(-1, 64, 64).astype(int)[:count]
features = np.stack([make_features(photo) for photo in archive["rgb"][:count]])
scale = features[::2].std(axis=(0, 1, 2))
features = (features - features[::2].mean(axis=(0, 1, 2))) / scale
train, test = list(features[::2]), list(features[1::2])
truth = list(masks[1::2])


def describe(name: str, seconds: float, labels: list[np.ndarray], p: list[np.ndarray]) -> None:
    """One line of the table."""
    iou = class_iou(truth, labels)[1]
    scores = accuracy(truth, labels), log_loss(truth, p), expected_calibration_error(truth, p)
    print(f"{name:50} {seconds:8.0f} {iou:6.3f} " + " ".join(f"{score:9.3f}" for score in scores), flush=True)


print(f"{'learnt and labelled by':50} {'seconds':>8} {'IoU':>6} {'accuracy':>9} {'log loss':>9} {'ECE':>9}")
began = time.perf_counter()
alone = besag.GraphCRF(l2=1.0).fit([(x.reshape(-1, x.shape[2]),) for x in train], [y.ravel() for y in masks[::2]])
seconds = time.perf_counter() - began
p = [q.reshape(64, 64, 2) for q in alone.predict_marginals([(x.reshape(-1, x.shape[2]),) for x in test])]
describe("pixels alone (logistic regression)", seconds, [q.argmax(axis=2) for q in p], p)
shown = {"truth": truth[3], "pixels alone": p[3].argmax(axis=2)}
for objective in OBJECTIVES:
    began = time.perf_counter()
    crf = besag.GridCRF(objective=objective, l2=1.0, engine="bp[damping=0.3]").fit(train, list(masks[::2]))
    seconds = time.perf_counter() - began
    p = crf.predict_marginals(test)
    describe(f"{objective}, max-marginals", seconds, [q.argmax(axis=2) for q in p], p)
    labels = crf.predict(test)
    describe(f"{objective}, MAP", seconds, labels, p)
    shown[objective] = labels[3]
Path("out").mkdir(exist_ok=True)
besag.plot.draw_segmentation(archive["rgb"][7], shown, "out/horses.png")
print("out/horses.png shows one of them")
