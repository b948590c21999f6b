"""A diagnosis network in the manner of QMR: 600 diseases, 600 findings, each a noisy-OR of up to 30 diseases.

As tables the findings would have some 10^11 entries. Findings that are absent factorise, so that the posterior of all
diseases is exact with a dozen findings present among hundreds that are absent; with more it is an estimate, with bounds
on log P(findings). The picture shows the posterior of every disease as findings come in.

    python examples/diagnosis.py
"""

import time
import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np

import besag

mpl.use("Agg")
import matplotlib.pyplot as plt

N = 600
SICK = ["d17", "d42", "d299"]
warnings.simplefilter("ignore", besag.errors.ApproximationWarning)  # the last lines say what is an estimate

rng = np.random.default_rng(1)
diseases, findings = [f"d{i}" for i in range(N)], [f"f{i}" for i in range(N)]
edges, cpts = [], {disease: [1 - p, p] for disease, p in zip(diseases, rng.uniform(0.001, 0.03, N), strict=True)}
for finding in findings:
    causes = rng.choice(N, size=rng.integers(2, 31), replace=False)
    edges += [(f"d{cause}", finding) for cause in causes]
    cpts[finding] = besag.factors.noisy_or(rng.uniform(0.2, 0.9, len(causes)), leak=0.005)
model = besag.bayesian_network(edges, dict.fromkeys([*diseases, *findings], 2), cpts)
print(repr(model))

truth = {d: str(int(d in SICK)) for d in diseases}
patient = model.sample(1, evidence=truth, seed=3, engine="junction_tree").iloc[0]
present = list(rng.permutation([f for f in findings if patient[f] == "1"]))
absent = list(rng.permutation([f for f in findings if patient[f] == "0"]))
print(f"the patient has {', '.join(SICK)}, and {len(present)} findings")

steps, curves = [*range(0, 13, 2), len(present)], []
for n in steps:
    seen = dict.fromkeys(absent[: 20 * n], "0") | dict.fromkeys(present[:n], "1")
    began = time.perf_counter()
    r = model.marginals(diseases, evidence=seen or None)
    curves.append([r[d][1] for d in diseases])
    low, high = r.log_partition_bounds
    log_p = f"{low:8.2f}, exact" if r.bound == "exact" else f"from {low:.1f} to {high:.1f}"
    print(f"{n:2d} present, {min(20 * n, len(absent)):3d} absent: log P {log_p}, {time.perf_counter() - began:.2f} s")

curves = np.array(curves)
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.plot(steps, curves, color="0.8", linewidth=0.6)
for d in SICK:
    axes.plot(steps, curves[:, diseases.index(d)], linewidth=2, label=f"{d}, which the patient has")
axes.set_xlabel("findings present (and twenty times as many absent)")
axes.set_ylabel("p(disease | findings)")
axes.legend()
Path("out").mkdir(exist_ok=True)
figure.savefig("out/diagnosis.png", dpi=120)
print("out/diagnosis.png shows the posterior of every disease")
