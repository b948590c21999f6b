"""A photograph cut into regions without any labels: a hidden Potts field whose emissions are learnt by EM.

    p(x, s) ~ exp(-c sum over neighbours of [s_i != s_j]) prod over pixels of p(x_i | s_i),    p(x | s) a table

The picture comes with scikit-learn, reduced to colours of a palette by k-means; only these are seen. The E-step is mean
field, and the M-step counts expected colours: the coupling c is given, so that log Z does not depend on the tables.
"""

from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_sample_image

import besag
import besag.plot

N_COLOURS, N_REGIONS, COUPLING, STEPS = 24, 4, 1.5, 12

image = load_sample_image("china.jpg")[20:380:5, 40:600:5]
height, width = image.shape[:2]
palette = KMeans(N_COLOURS, n_init=2, random_state=0).fit(image.reshape(-1, 3).astype(np.float64))
seen = palette.labels_.reshape(height, width)  # x: a colour a pixel

centres = palette.cluster_centers_
start = KMeans(N_REGIONS, n_init=4, random_state=0).fit(centres).labels_
emission = np.where(start[:, None] == np.arange(N_REGIONS), 8.0, 1.0)  # colours x regions: breaks the symmetry
emission /= emission.sum(axis=0)

weights = (np.full((height, width - 1), COUPLING), np.full((height - 1, width), COUPLING))
for step in range(STEPS + 1):
    unary = np.log(emission)[seen]
    field = besag.grid((height, width), N_REGIONS, unary, besag.potts(N_REGIONS), weights)
    found = field.marginals(engine="mean_field[tolerance=1e-4]")
    posterior = found.array  # p(s_i | x), (H, W, K)
    if step % 3 == 0:
        print(f"step {step:2d}: log p(x) + log Z(c) at least {found.log_partition / seen.size:.4f} a pixel")
    counts = np.zeros((N_COLOURS, N_REGIONS))
    np.add.at(counts, seen.reshape(-1), posterior.reshape(-1, N_REGIONS))
    emission = (counts + 0.1) / (counts + 0.1).sum(axis=0)

regions, alone = posterior.argmax(axis=-1), np.log(emission)[seen].argmax(axis=-1)
Path("out").mkdir(exist_ok=True)
besag.plot.draw_segmentation(image, {"pixels alone": alone, "with the field": regions}, "out/regions.png")
differ = [(labels[:, 1:] != labels[:, :-1]).mean() for labels in (alone, regions)]
print(f"neighbours that differ: {differ[0]:.3f} by pixels alone, {differ[1]:.3f} with the field")
print("out/regions.png shows the picture and its regions")
