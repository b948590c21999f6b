"""How the time of a message grows with the states of a variable, and with the variables of a factor.

Messages of structured factors take O(K), where those of tables take O(K^2); the automaton of a count with few values
takes O(n) for all of its n messages. Each point is one question about a chain of factors, or about one factor on n
variables, by the tree engine.
"""

import time
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import besag

LENGTH = 30  # variables of a chain


def seconds_of(model: besag.Model, verb: str) -> float:
    """CPU seconds of a question, the best of three after one that compiles."""
    ask = (lambda: model.map(engine="tree")) if verb == "min-sum" else (lambda: model.log_partition(engine="tree"))
    ask()
    spent = []
    for _ in range(3):
        began = time.process_time()
        ask()
        spent.append(time.process_time() - began)
    return min(spent)


def chain_of(kind: str, k: int) -> besag.Model:
    """A chain of variables of k states."""
    unary = np.random.default_rng(k).normal(size=(1, LENGTH, k))
    side = round(k**0.5)
    pairwise = {
        "table": lambda: np.random.default_rng(0).normal(size=(k, k)),
        "potts": lambda: besag.potts(k),
        "truncated linear": lambda: besag.truncated_linear(k, k / 4),
        "truncated quadratic": lambda: besag.truncated_quadratic(k, k),
        "displacement": lambda: besag.factors.displacement((side, side), (1.0, 2.0), side / 4),
    }[kind]()
    return besag.grid((1, LENGTH), k, unary, pairwise)


def count_of(kind: str, n: int) -> besag.Model:
    """One factor on n variables."""
    names = tuple(str(v) for v in range(n))
    term = {
        "parity": lambda: besag.factors.parity(n),
        "any of": lambda: besag.factors.any_of(n - 1),
        "at most 3": lambda: besag.factors.count([0.0] * 4 + [-np.inf] * (n - 3)),
        "robust potts": lambda: besag.factors.robust_potts(n, 2, limit=3.0),
    }[kind]()
    fields = [((name,), [0.0, 0.1 * (i % 7) - 0.5]) for i, name in enumerate(names)]
    return besag.markov_network([2] * n, [(names, term), *fields])


def main() -> None:
    """Measure, fit slopes, plot."""
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
    states, scopes = (64, 256, 1024, 4096), (64, 256, 1024, 4096)
    for axis, verb in zip(axes, ("min-sum", "sum-product"), strict=False):
        for kind in ("table", "potts", "truncated linear", "truncated quadratic", "displacement"):
            sizes = states[:3] if kind == "table" else states
            spent = [seconds_of(chain_of(kind, k), verb) / (LENGTH - 1) for k in sizes]
            report(axis, f"{verb}, {kind}", kind, sizes, spent)
        axis.set_title(f"a message, {verb}")
        axis.set_xlabel("K")
    for kind in ("parity", "any of", "at most 3", "robust potts"):
        spent = [seconds_of(count_of(kind, n), "sum-product") for n in scopes]
        report(axes[2], f"n messages, {kind}", kind, scopes, spent)
    axes[2].set_title("all messages of a factor, sum-product")
    axes[2].set_xlabel("n")
    for axis in axes:
        axis.set_ylabel("seconds")
        axis.legend()
    Path("out").mkdir(exist_ok=True)
    figure.savefig("out/message_times.png", dpi=130)
    print("out/message_times.png shows them")


def report(axis: plt.Axes, title: str, kind: str, sizes: tuple[int, ...], spent: list[float]) -> None:
    """A line of the plot, and the power of growth between the last two sizes."""
    power = np.log(spent[-1] / spent[-2]) / np.log(sizes[-1] / sizes[-2])
    print(f"{title:34} {spent[-1]:.2e} s at {sizes[-1]}, grows as the power {power:.2f}")
    axis.loglog(sizes, spent, "o-", label=kind)


if __name__ == "__main__":
    main()
