"""A noisy picture of a brain in four shades of grey, cleaned by every engine: time, log Z, pictures side by side.

The picture comes with matplotlib. Each pixel is replaced by a random shade with probability 0.3. The model has a Potts
term between neighbours and the noise as unary terms, and the answer is the shade of the largest marginal.
"""

import gzip
import time
import warnings
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import besag

N_SHADES, NOISE, COUPLING = 4, 0.3, 0.9
ENGINES = {
    "mean_field": "mean_field",
    "trw": "trw[max_iterations=100]",
    "bp": "bp[damping=adaptive]",
    "join_graph": "join_graph[clique_bound=256,max_iterations=1]",
    "gibbs": "gibbs[n_samples=100,burn_in=50,n_chains=2]",
    "auto": "auto",
}


def brain(step: int = 4) -> np.ndarray:
    """Shades (H, W) of every `step`-th pixel."""
    with gzip.open(Path(mpl.get_data_path()) / "sample_data" / "s1045.ima.gz") as file:
        values = np.frombuffer(file.read(), np.uint16).reshape(256, 256)[::step, ::step]
    return np.digitize(values, np.quantile(values[values > 0], [0.35, 0.6, 0.85]))


true = brain()
rng = np.random.default_rng(0)
seen = np.where(rng.random(true.shape) < NOISE, rng.integers(N_SHADES, size=true.shape), true)
likelihood = np.full(N_SHADES, NOISE / N_SHADES) + (1 - NOISE) * np.eye(N_SHADES)
height, width = true.shape
weights = (np.full((height, width - 1), COUPLING), np.full((height - 1, width), COUPLING))
model = besag.grid(
    true.shape, N_SHADES, unary=np.log(likelihood)[seen], pairwise=besag.potts(N_SHADES), weights=weights
)

pictures = {"true": true, "seen": seen}
print(f"{'engine':12} {'seconds':>8} {'log Z':>10} {'at least':>10} {'at most':>10} {'wrong pixels':>12}")
print(f"{'(as seen)':12} {'':8} {'':10} {'':10} {'':10} {(seen != true).mean():12.3f}")
for name, engine in ENGINES.items():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        r = model.marginals(engine=engine)
        seconds = time.perf_counter() - began
    pictures[name] = r.array.argmax(axis=-1)
    numbers = (np.inf,) * 3 if r.log_partitions is None else (r.log_partition, *r.log_partition_bounds)
    shown = [f"{x:10.1f}" if np.isfinite(x) else " " * 10 for x in numbers]
    print(f"{name:12} {seconds:8.2f} {' '.join(shown)} {(pictures[name] != true).mean():12.3f}")

figure, axes = plt.subplots(2, 4, figsize=(12, 6.4), layout="constrained")
for axis, (name, picture) in zip(axes.flat, pictures.items(), strict=True):
    axis.imshow(picture, cmap="gray", vmin=0, vmax=N_SHADES - 1)
    axis.set_title(name if name == "true" else f"{name}: {(picture != true).mean():.1%} wrong")
    axis.axis("off")
Path("out").mkdir(exist_ok=True)
figure.savefig("out/denoising.png", dpi=100)
print("out/denoising.png shows them side by side")
