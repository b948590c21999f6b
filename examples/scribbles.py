"""Interactive segmentation: a flower cut out of a photograph by a few strokes on it and on its background.

    H(y) = sum over pixels of -log p(x_i | y_i) + sum over neighbours of c exp(-|x_i - x_j|^2 / s) [y_i != y_j]

after Boykov and Jolly (ICCV 2001). The picture comes with scikit-learn. p(x | y) are mixtures of colours under the
strokes; pixels under a stroke are evidence. The energy is submodular, so that one minimum cut is a labelling of least
energy, and a new stroke is new evidence on the same model.
"""

import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_sample_image
from sklearn.mixture import GaussianMixture

import besag
import besag.plot

COUPLING, STEP = 5.0, 2
STROKES = {  # label: from (row, column) to (row, column), in the picture's own pixels
    1: [((120, 230), (330, 400)), ((330, 230), (120, 400)), ((220, 190), (220, 440)), ((95, 320), (350, 315))],
    0: [((20, 30), (20, 600)), ((400, 40), (400, 590)), ((60, 40), (370, 40)), ((60, 590), (370, 590))],
}

image = load_sample_image("flower.jpg")[::STEP, ::STEP] / 255.0
height, width = image.shape[:2]


def scribble() -> np.ndarray:
    """(H, W): the label of each pixel under a stroke three pixels wide, -1 elsewhere."""
    labels = np.full((height, width), -1)
    for label, strokes in STROKES.items():
        for start, end in strokes:
            rows, columns = (np.linspace(a, b, 500) / STEP for a, b in zip(start, end, strict=True))
            for shift in (-1, 0, 1):
                labels[(rows + shift).astype(int), columns.astype(int)] = label
    return labels


def contrast(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The cost of a border between pixels: small where colours differ."""
    return COUPLING * np.exp(-((one - other) ** 2).sum(axis=-1) / SCALE)


strokes = scribble()
steps = [image[:, 1:] - image[:, :-1], image[1:] - image[:-1]]
SCALE = 2 * np.mean([np.mean((step**2).sum(axis=-1)) for step in steps])
colours = [GaussianMixture(5, random_state=0).fit(image[strokes == label]) for label in (0, 1)]
scores = np.stack([mixture.score_samples(image.reshape(-1, 3)) for mixture in colours], axis=-1)
unary = np.logaddexp(np.log(0.9) + scores, np.log(0.1)).reshape(
    height, width, 2
)  # one pixel in ten may have any colour
weights = (contrast(image[:, 1:], image[:, :-1]), contrast(image[1:], image[:-1]))
model = besag.grid((height, width), 2, unary=unary, pairwise=besag.potts(2), weights=weights)

names = np.array([variable.name for variable in model.variables]).reshape(height, width)
evidence = {name: str(label) for name, label in zip(names[strokes >= 0], strokes[strokes >= 0], strict=True)}
began = time.perf_counter()
found = model.map(evidence)
print(f"{height} x {width} pixels, {len(evidence)} of them under strokes: {time.perf_counter() - began:.2f} s")
print(f"by {found.diagnostics.engine}, optimal: {found.optimal}; energy {found.energy:.1f}")
alone = np.where(strokes >= 0, strokes, unary.argmax(axis=-1))
ragged = [(labels[:, 1:] != labels[:, :-1]).mean() for labels in (alone, found.labels)]
print(f"neighbours that differ: {ragged[0]:.4f} by colours alone, {ragged[1]:.4f} by the cut")

Path("out").mkdir(exist_ok=True)
besag.plot.draw_segmentation(
    image, {"strokes": strokes, "by colours alone": alone, "by the cut": found.labels}, "out/scribbles.png"
)
print("out/scribbles.png shows the strokes and what they cut out")
