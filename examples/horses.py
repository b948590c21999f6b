"""Horses cut out of photographs: pixels by themselves, and grid CRFs learnt by several objectives.

328 photographs of 64 x 64 pixels with the outlines of horses (Weizmann horses, Borenstein and Ullman) lie in the data
folder, BESAG_DATA or ../shared/data. Every second one is for training, the others for the test. Features are made from
the photograph alone: colours, blurred colours, contrast to the border of the picture, edges, and the place of the pixel.
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
from sklearn.linear_model import LogisticRegression

import besag
import besag.plot
from besag.metrics import accuracy, expected_calibration_error, log_loss, mean_iou

warnings.simplefilter("ignore", besag.errors.ApproximationWarning)
warnings.simplefilter("ignore", besag.errors.ConvergenceWarning)
FOLDER = Path(os.environ.get("BESAG_DATA", "../shared/data")) / "structured_images"
OBJECTIVES = ("pseudolikelihood", "piecewise[pieces=trees]", "marginal_loss[engine=bp,iterations=10]")


def make_features(photo: np.ndarray) -> np.ndarray:
    """(64, 64, D)."""
    x = photo / 255.0
    height, width = x.shape[:2]
    row, column = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
    grey = x.mean(axis=2)
    blurred = [np.stack([gaussian_filter(x[..., c], s) for c in range(3)], axis=-1) for s in (1, 3)]
    border = np.concatenate([x[:3].reshape(-1, 3), x[:, :3].reshape(-1, 3), x[:, -3:].reshape(-1, 3)])
    centre = x[height // 3 : 2 * height // 3, width // 3 : 2 * width // 3].reshape(-1, 3)
    far = [((b - part.mean(axis=0)) ** 2 / (part.var(axis=0) + 0.01)).sum(axis=2) for b in blurred for part in (border, centre)]
    edges = [gaussian_gradient_magnitude(grey, s) for s in (1, 2)]
    spread = np.sqrt(np.maximum(gaussian_filter(grey**2, 2) - gaussian_filter(grey, 2) ** 2, 0))
    single = np.stack([*[np.log1p(f) for f in far], *edges, spread, row, column, row**2, column**2, row * column], axis=-1)
    base = np.concatenate([x, *blurred, single], axis=-1)
    return np.concatenate([base, base[..., :13] ** 2, np.exp(-2 * (row**2 + column**2))[..., None]], axis=-1)


if not FOLDER.is_dir():
    sys.exit("the data folder is absent: set BESAG_DATA")
archive = np.load(FOLDER / "weizmann_horses_64.npz")
