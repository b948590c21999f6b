"""How far away things are, from two pictures side by side: a labelling of least energy, with a bound.

    H(d) = sum over pixels of cost_p(d_p) + sum over neighbours of w_pq min(|d_p - d_q|, 2)

d_p is the disparity of a pixel, how far to the left it lies in the right picture. cost_p is how much the two pixels
differ, to within half a pixel (Birchfield and Tomasi 1998); w_pq is larger where the left picture is smooth. Reads
tsukuba from the data folder BESAG_DATA (Middlebury's benchmark, Szeliski et al. 2008, of which this is the energy: the
least is 369218), else makes a pair of its own. BESAG_SECONDS: how long to look for, 10 where it is not said.
"""

import os
import warnings
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import besag

warnings.simplefilter("ignore", besag.errors.ConvergenceWarning)
FOLDER = Path(os.environ.get("BESAG_DATA", "../shared/data")) / "middlebury_mrf/mrfstereo/data"
SECONDS = float(os.environ.get("BESAG_SECONDS", "10"))
SMOOTH, NEAR, TWICE = 20.0, 2.0, 8  # weight of an edge, its limit, and the change of colour below which it doubles


def read() -> tuple[np.ndarray, np.ndarray, int]:
    """Left and right, (H, W, 3), and how many disparities there are."""
    if (FOLDER / "tsukuba-imL.png").exists():
        return *((plt.imread(FOLDER / f"tsukuba-im{side}.png") * 255).round().astype(int) for side in "LR"), 16
    rng = np.random.default_rng(0)
    height, width, n = 60, 90, 8
    left = rng.integers(0, 256, (height, width, 3))
    right = rng.integers(0, 256, (height, width, 3))
    depth = np.full((height, width), 2)
    depth[15:45, 20:50], depth[25:55, 60:80] = 6, 4
    for d in (2, 4, 6):  # what is near hides what is far
        rows, columns = np.nonzero(depth == d)
        rows, columns = rows[columns >= d], columns[columns >= d]
        right[rows, columns - d] = left[rows, columns]
    return left, np.clip(right + rng.integers(-15, 16, right.shape), 0, 255), n


def between(image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest value within half a pixel to the left and to the right."""
    left, right = image.copy(), image.copy()
    left[:, 1:] = right[:, :-1] = (image[:, 1:] + image[:, :-1]) // 2
    return np.minimum(image, np.minimum(left, right)), np.maximum(image, np.maximum(left, right))


def costs(left: np.ndarray, right: np.ndarray, n: int) -> np.ndarray:
    """(H, W, n): how much a pixel differs from the one that lies d to the left in the right picture."""
    (least, most), (least_right, most_right) = between(left), between(right)
    found = np.full((*left.shape[:2], n), 3.0 * 255)
    for d in range(n):
        here, there = (slice(None), slice(d, None)), (slice(None), slice(0, left.shape[1] - d))
        one = np.maximum(0, np.maximum(left[here] - most_right[there], least_right[there] - left[here]))
        other = np.maximum(0, np.maximum(right[there] - most[here], least[here] - right[there]))
        found[:, d:, d] = np.minimum(one, other).sum(axis=-1)
    return found


left, right, n = read()
smooth = [(np.diff(left, axis=axis) ** 2).sum(axis=-1) < 3 * TWICE**2 for axis in (1, 0)]
weights = tuple(SMOOTH * np.where(near, 2.0, 1.0) for near in smooth)
model = besag.grid(left.shape[:2], n, -costs(left, right, n), besag.truncated_linear(n, NEAR), weights)

found = model.map(engine="trws", time_limit=SECONDS, trace=True)
print(f"{left.shape[0]} x {left.shape[1]} pixels, {n} disparities")
print(f"energy {found.energy:.0f}, none has less than {found.energy_bound:.0f}: within {found.gap / found.energy:.3%}")

Path("out").mkdir(exist_ok=True)
figure, (picture, disparity, course) = plt.subplots(1, 3, figsize=(13, 3.6), layout="constrained")
picture.imshow(left.astype(np.uint8))
disparity.imshow(found.labels, cmap="viridis")
course.plot(found.trace["seconds"], found.trace["value"], label="energy of the best labelling")
course.plot(found.trace["seconds"], found.trace["bound"], label="lower bound")
course.set(xlabel="seconds", ylim=(0.98 * found.energy, 1.04 * found.energy))
course.legend()
for axes, title in ((picture, "left"), (disparity, "disparity")):
    axes.set_title(title)
    axes.set_axis_off()
figure.savefig("out/stereo.png", dpi=130)
print("out/stereo.png shows disparities, and energy and bound over time")
