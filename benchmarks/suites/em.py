"""EM on a published network whose rows have lost a fifth of their cells at random: besag and pyAgrum, complete rows.

    maximise  sum_n log p(x_n),   x_n: the cells that are left of row n

Both begin at uniform CPTs with a little noise, and stop where a step gains less than 1e-4 of the log-likelihood.
Errors are mean absolute ones of the rows of CPTs, weighted by how often the data see them. One row in 4,000 has lost
nothing; `complete` is the better rival that counts each CPT in the rows that have all of its family. Times are of
learning alone: besag is given a DataFrame, pyAgrum has read its rows before.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.networks import Array, IntArray, Network, read, sample, uncompressed
from benchmarks.suite import Case, Job, Suite

MISSING, EPSILON, SEED = 0.2, 1e-4, 11


def lost(codes: IntArray) -> Any:
    """(N, V): the cells that are lost."""
    return np.random.default_rng(SEED).random(codes.shape) < MISSING


def table(network: Network, n_rows: int) -> Any:
    """The rows as a DataFrame of states, None where a cell is lost."""
    import pandas as pd

    codes = sample(network, n_rows)
    columns = zip(network.names, network.states, codes.T, lost(codes).T, strict=True)
    return pd.DataFrame(
        {name: np.where(gone, None, np.array(states, object)[own]) for name, states, own, gone in columns}
    )


def error(network: Network, codes: IntArray, cpts: list[Array]) -> float:
    """The mean absolute error of CPTs, their rows weighted by how often the data see them."""
    wrong = []
    for parents, truth, found in zip(network.parents, network.tables, cpts, strict=True):
        apart = np.abs(found.reshape(truth.shape) - truth).sum(axis=-1)
        wrong.append(np.mean(apart[tuple(codes[:, p] for p in parents)]) if parents else float(apart))
    return float(np.mean(wrong))


def complete_cases(network: Network, rows: IntArray) -> list[Array]:
    """The CPTs counted in the rows that have all of a family; uniform where no row has the parents' states."""
    found = []
    for v, (parents, truth) in enumerate(zip(network.parents, network.tables, strict=True)):
        counts, own = np.full(truth.shape, 1e-9), rows[:, [*parents, v]]
        np.add.at(counts, tuple(own[(own >= 0).all(axis=1)].T), 1.0)
        found.append(counts / counts.sum(axis=-1, keepdims=True))
    return found


def besag_job(name: str, n_rows: int) -> Job:
    """From uniform CPTs with noise."""
    import besag

    network = read(name)
    rows, codes = table(network, n_rows), sample(network, n_rows)
    rng = np.random.default_rng(0)
    shapes = zip(network.names, network.tables, strict=True)
    uniform = {v: rng.dirichlet(np.full(t.shape[-1], 50.0), size=t.shape[:-1]) for v, t in shapes}
    edges = [(network.names[p], v) for v, own in zip(network.names, network.parents, strict=True) for p in own]
    model = besag.bayesian_network(edges, dict(zip(network.names, network.states, strict=True)), uniform)

    def run() -> Any:
        return besag.em(model, rows, tolerance=EPSILON, n_threads=1)

    def summary(found: Any) -> dict[str, float]:
        cpts = [np.exp(found.model.problem.table(_number(found.model, v))) for v in network.names]
        known = np.where(lost(codes), -1, codes)
        return {
            "log_likelihood": float(found.history["log_likelihood"].iloc[-1]),
            "steps": found.log.n_iterations,
            "error": error(network, codes, cpts),
            "complete": error(network, codes, complete_cases(network, known)),
        }

    return Job(run, summary)


def _number(model: Any, child: str) -> int:
    """The factor that is the CPT of a variable."""
    v = model.variables.index(child)
    return next(f for f in range(model.n_factors) if model.graph.scope(f)[-1] == v)


def pyagrum_job(name: str, n_rows: int) -> Job:
    """BNLearner with EM; it has read the rows, from a file, before."""
    import pyagrum as gum

    network, codes = read(name), sample(read(name), n_rows)
    with uncompressed(name) as path:
        template = gum.loadBN(str(path))
    cells = np.array([np.array(own, object)[c] for own, c in zip(network.states, codes.T, strict=True)]).T
    cells[lost(codes)] = "?"
    rows = Path(tempfile.mkdtemp()) / "rows.csv"
    rows.write_text("\n".join(",".join(row) for row in [network.names, *cells.tolist()]) + "\n")

    def prepare() -> Any:
        learner = gum.BNLearner(str(rows), template, ["?"])
        learner.setNumberOfThreads(1)
        learner.useSmoothingPrior(1e-6)  # without a prior it refuses configurations that were never seen
        learner.useEM(EPSILON)
        return learner

    def run(learner: Any) -> Any:
        return learner.learnParameters(template.dag())

    def summary(found: Any) -> dict[str, float]:
        cpts = []
        for v, name in enumerate(network.names):
            order = [*(network.names[p] for p in network.parents[v]), name]
            cpts.append(found.cpt(name).reorganize(order[::-1]).toarray())
        return {"pyagrum_error": error(network, codes, cpts)}

    return Job(run, summary, prepare)


def case(n_rows: int) -> Case:
    """alarm, all contestants."""
    return Case(
        f"alarm, {n_rows:,} rows, {MISSING:.0%} of the cells missing",
        {"besag": besag_job, "pyagrum": pyagrum_job},
        {"name": "alarm", "n_rows": n_rows},
        baseline=("pyagrum",),
        patience=5.0,
        time_limit=400.0,
        slow=n_rows > 1000,
    )


SUITE = Suite(
    title="EM with missing cells",
    cases=(case(1000), case(10_000)),
    scores=("log_likelihood", "steps", "error", "complete", "pyagrum_error"),
)
