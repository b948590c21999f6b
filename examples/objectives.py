"""What stands in for the likelihood, beside the likelihood itself, on a grid that is small enough for it.

Labels of a 3 x 4 grid are drawn from a known distribution, theta is learnt by each objective, and compared with that of
the exact likelihood: the distance of theta, the largest difference of a marginal, KL(exact || learnt), and the share of
missing labels, each given the others in its row, that are filled in as the exact one does. Once the model is right, and
once it is not: labels depend on each other across the grid, which the model knows nothing of. At the end, how the error
of theta goes down with the number of rows, as a picture.
"""

import warnings
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

import besag

OBJECTIVES = (
    "likelihood[engine=exact]",
    "likelihood[engine=bp]",
    "likelihood[engine=trw]",
    "pseudolikelihood",
    "piecewise[pieces=trees]",
    "piecewise",
    "marginal_loss[engine=exact]",
    "marginal_loss[engine=bp]",
    "marginal_loss[engine=trw,iterations=5]",
)
SHAPE = (3, 4)
warnings.simplefilter("ignore", besag.errors.ApproximationWarning)
warnings.simplefilter("ignore", besag.errors.ConvergenceWarning)


def draw(n: int, seed: int, far: float) -> tuple[besag.Model, np.ndarray]:
    """The truth, with ties across the grid of strength `far`, and n rows of it."""
    rng = np.random.default_rng(7)
    names = [f"v{i}" for i in range(12)]
    near = besag.ising(SHAPE, 0.3, 0.2 * rng.normal(size=SHAPE))
    factors = [(tuple(near.graph.scope(f).tolist()), near.problem.table(f)) for f in range(near.graph.n_factors)]
    factors += [((a, 11 - a), far * np.eye(2)) for a in range(6)]
    truth = besag.markov_network([2] * len(names), factors)
    return truth, truth.sample(n, seed=seed).to_numpy().astype(int)


def make_model() -> besag.Model:
    """One field for each variable, one coupling for all neighbours."""
    node = besag.Template("field", (2,), n_inputs=12, basis=np.array([[1.0, -1.0]]))
    edge = besag.Template("coupling", (2, 2), basis=np.array([[[-1.0, 1.0], [1.0, -1.0]]]))
    pairs = besag.ising(SHAPE, 1.0, 0.0).graph
    scopes = [pairs.scope(f).tolist() for f in range(pairs.n_factors) if len(pairs.scope(f)) == 2]
    groups = [besag.FactorGroup(node, np.arange(12)[:, None], inputs=np.eye(12)), besag.FactorGroup(edge, scopes)]
    data = besag.StructuredData([2] * 12, groups)
    return besag.Model(data.variables, data.groups, np.zeros(13))


def compare(far: float) -> None:
    """The table of one truth."""
    _, rows = draw(2000, 1, far)
    model = make_model()
    exact = besag.fit(model, rows, objective=OBJECTIVES[0], l2=0.1).model
    holes = np.where(np.random.default_rng(0).random((200, 12)) < 0.3, -1, draw(200, 2, far)[1])
    best, marginals = exact.map(holes_frame(exact, holes)).labels, exact.marginals().array
    print(f"{'objective':40}{'coupling':>10}{'theta':>9}{'marginals':>11}{'KL':>9}{'filled in':>11}")
    for name in OBJECTIVES:
        found = besag.fit(model, rows, objective=name, l2=0.1).model
        same = (found.map(holes_frame(found, holes)).labels == best)[holes < 0].mean()
        distance = np.linalg.norm(found.theta - exact.theta)
        apart = np.abs(found.marginals(engine="exact").array - marginals).max()
        divergence = max(besag.kl(exact, found), 0.0)
        print(f"{name:40}{found.theta[-1]:>10.3f}{distance:>9.4f}{apart:>11.4f}{divergence:>9.4f}{same:>11.3f}")


def holes_frame(model: besag.Model, codes: np.ndarray) -> pd.DataFrame:
    """Rows of evidence, missing where labels are."""
    columns = [model.variables.names[v] for v in range(codes.shape[1])]
    return pd.DataFrame(np.where(codes < 0, None, codes.astype(str)), columns=columns)


def draw_errors(path: Path) -> float:
    """The error of pseudolikelihood's theta for several numbers of rows; the slope in logarithms."""
    sizes, truth, flat = [100, 300, 1000, 3000, 10_000], besag.ising(SHAPE, 0.3, 0.2), besag.ising(SHAPE, 0.0, 0.0)
    errors = []
    for n in sizes:
        found = [besag.fit(flat, truth.sample(n, seed=s), objective="pseudolikelihood").theta for s in range(8)]
        errors.append(np.sqrt(np.mean([np.sum((theta - truth.theta) ** 2) for theta in found])))
    slope = float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])
    figure, axes = plt.subplots(figsize=(5, 3.5), layout="constrained")
    axes.loglog(sizes, errors, "o-", label="pseudolikelihood")
    axes.loglog(sizes, errors[0] * np.sqrt(sizes[0] / np.array(sizes)), "--", label="1 / sqrt(N)")
    axes.set(xlabel="rows N", ylabel="error of theta")
    axes.legend()
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path)
    return slope


print("the model is right")
compare(0.0)
print("\nthe model is wrong")
compare(1.0)
slope = draw_errors(Path("out/pseudolikelihood.png"))
print(f"\nerror of pseudolikelihood ~ N^{slope:.2f}, out/pseudolikelihood.png")
