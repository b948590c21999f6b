"""A picture with noise and holes restored: 256 labels, the grey levels, and no table.

    H(y) = sum over pixels that are there of (y_p - x_p)^2 + weight sum over neighbours of min((y_p - y_q)^2, limit)

Messages of the second term take O(256), by the lower envelope of parabolas (Felzenszwalb and Huttenlocher 2012), where
a table would have 65536 entries. Reads the penguin of the data folder BESAG_DATA (Middlebury's benchmark, Szeliski et
al. 2008), else makes a picture of its own. BESAG_SECONDS: how long to look for, 10 where it is not said.
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
FOLDER = Path(os.environ.get("BESAG_DATA", "../shared/data")) / "middlebury_mrf/denoise/data"
SECONDS = float(os.environ.get("BESAG_SECONDS", "10"))
WEIGHT, LIMIT, LEVELS = 25.0, 200.0, 256


def read() -> tuple[np.ndarray, np.ndarray]:
    """The picture, and where it is known."""
    if (FOLDER / "penguin-input.png").exists():
        picture, mask = (plt.imread(FOLDER / f"penguin-{part}.png") for part in ("input", "mask"))
        known = (mask if mask.ndim == 2 else mask[..., 0]) > 0
        return (255 * picture).round().astype(int), known
    rng = np.random.default_rng(0)
    rows, columns = np.indices((40, 60))
    clean = np.where((rows - 20) ** 2 + (columns - 35) ** 2 < 150, 200 - 2 * rows, 40 + columns)
    known = (rows // 3 + columns // 4) % 6 > 0
    return np.clip(clean + rng.normal(0, 8, clean.shape), 0, 255).round().astype(int), known


picture, known = read()
costs = np.where(known[..., None], (picture[..., None] - np.arange(LEVELS)) ** 2, 0.0)
model = besag.grid(picture.shape, LEVELS, -costs, besag.truncated_quadratic(LEVELS, LIMIT), WEIGHT)
found = model.map(engine="trws", time_limit=SECONDS)
print(f"{picture.shape[0]} x {picture.shape[1]} pixels, {LEVELS} labels")
print(f"energy {found.energy:.0f}, none has less than {found.energy_bound:.0f}: within {found.gap / found.energy:.2%}")

Path("out").mkdir(exist_ok=True)
figure, panels = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
for axes, title, image in zip(panels, ("given", "restored"), (picture * known, found.labels), strict=True):
    axes.imshow(image, cmap="gray", vmin=0, vmax=255)
    axes.set_title(title)
    axes.set_axis_off()
figure.savefig("out/restoring.png", dpi=130)
print("out/restoring.png shows both")
