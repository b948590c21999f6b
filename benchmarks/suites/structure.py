"""Structures of Bayesian networks from complete tables.

10,000 rows are drawn from published networks by the seed of `benchmarks.networks`. Every contestant gets the same codes
as the table that it takes, made beforehand; what is timed is the search alone. The BIC of each answer is computed here,
by numpy, from the parents found:

    sum over families of  sum n_jk log(n_jk / n_j)  -  log(N) / 2  q (K - 1)

with K the states that occur, and so is the structural Hamming distance of its CPDAG from that of the true network.
Contestants search in different ways, so that these numbers are scores and need not agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import networks
from benchmarks.suite import Case, Job, Suite, Summary

Codes = NDArray[np.int64]
Matrix = NDArray[np.bool_]
Search = Callable[[Codes, list[str]], Callable[[], Any]]
NETWORKS = ("alarm", "insurance", "hailfinder", "hepar2")
ROWS = 10_000


def job(search: Search, edges: Callable[[Any, list[str]], Matrix]) -> Callable[..., Job]:
    """A contestant: what it searches with, and the matrix of what it found, both directions for an undirected edge."""

    def prepared(network: str) -> Job:
        truth = networks.read(network)
        codes = networks.sample(truth, ROWS)
        codes = np.stack([np.unique(column, return_inverse=True)[1] for column in codes.T], axis=1)

        def summary(answer: Any) -> Summary:
            matrix = edges(answer, truth.names)
            true = np.zeros_like(matrix)
            for child, parents in enumerate(truth.parents):
                true[parents, child] = True
            distance = (cpdag(matrix) != cpdag(true)) | (cpdag(matrix) != cpdag(true)).T
            found = {"SHD": float(np.triu(distance).sum())}
            return found if (matrix & matrix.T).any() else {**found, "BIC": bic(codes, matrix)}

        return Job(search(codes, truth.names), summary)

    return prepared


def bic(codes: Codes, matrix: Matrix) -> float:
    """The BIC of a DAG."""
    sizes, total = codes.max(axis=0) + 1, 0.0
    for child, column in enumerate(matrix.T):
        parents = np.flatnonzero(column)
        above = np.unique(codes[:, parents], axis=0, return_inverse=True)[1].reshape(-1) if len(parents) else 0
        cells = np.unique(above * sizes[child] + codes[:, child], return_counts=True)[1]
        rows = np.unique(above + 0 * codes[:, child], return_counts=True)[1]
        total += float((cells * np.log(cells)).sum() - (rows * np.log(rows)).sum())
        total -= 0.5 * np.log(len(codes)) * (sizes[child] - 1) * float(np.prod(sizes[parents], dtype=float))
    return total


def cpdag(matrix: Matrix) -> Matrix:
    """That of a DAG: colliders, and Meek's first three rules, which suffice; a PDAG as it is."""
    joined = matrix | matrix.T
    if (matrix & matrix.T).any():
        return matrix
    fixed = np.zeros_like(matrix)
    for child in range(len(matrix)):
        for a, b in combinations(np.flatnonzero(matrix[:, child]), 2):
            if not joined[a, b]:
                fixed[a, child] = fixed[b, child] = True
    while True:
        new = fixed.copy()
        for a, b in np.argwhere(matrix & ~fixed):
            beside = joined[a] & fixed[:, b] & ~fixed[a] & ~fixed[:, a]
            through = np.flatnonzero(beside)
            apart = ~joined[np.ix_(through, through)] & ~np.eye(len(through), dtype=bool)
            if (fixed[:, a] & ~joined[b]).any() or (fixed[a] & fixed[:, b]).any() or apart.any():
                new[a, b] = True
        if (new == fixed).all():
            return np.asarray(joined & ~fixed.T)
        fixed = new


def besag_search(method: str) -> Search:
    """A method of besag, one thread; the first run compiles its kernels and is not counted."""

    def prepared(codes: Codes, names: list[str]) -> Callable[[], Any]:
        from besag.learn.networks.structure import learn_structure

        columns = [np.ascontiguousarray(column, np.uint8) for column in codes.T]
        sizes = codes.max(axis=0) + 1
        return lambda: learn_structure(columns, sizes, names=names, method=method, n_threads=1)

    return prepared


def besag_matrix(answer: Any, names: list[str]) -> Matrix:
    """The graph of the method: a DAG, or what PC leaves undirected."""
    return np.array(answer.graph.matrix)


def pyagrum_search(use: str) -> Search:
    """pyAgrum's learner with the BIC, no prior, one thread."""

    def prepared(codes: Codes, names: list[str]) -> Callable[[], Any]:
        import pandas as pd
        import pyagrum as gum

        frame = pd.DataFrame(codes.astype(str), columns=names)

        def run() -> Any:
            learner = gum.BNLearner(frame)
            learner.useScoreBIC()
            learner.useNoPrior()
            learner.setNumberOfThreads(1)
            getattr(learner, use)()
            return learner.learnDAG(), [learner.idFromName(name) for name in names]

        return run

    return prepared


def pyagrum_matrix(answer: Any, names: list[str]) -> Matrix:
    """Of its DAG, whose nodes are numbers."""
    dag, ids = answer
    return matrix_of([(ids.index(a), ids.index(b)) for a, b in dag.arcs()], len(names))


def pgmpy_search(codes: Codes, names: list[str]) -> Callable[[], Any]:
    """pgmpy's hill climbing with the BIC."""
    import pandas as pd
    from pgmpy.estimators import HillClimbSearch

    frame = pd.DataFrame(codes.astype(str), columns=names).astype("category")
    return lambda: HillClimbSearch(frame).estimate(scoring_method="bic-d", show_progress=False)


def pgmpy_matrix(answer: Any, names: list[str]) -> Matrix:
    """Of its DAG."""
    return matrix_of([(names.index(a), names.index(b)) for a, b in answer.edges()], len(names))


def causal_learn_search(codes: Codes, names: list[str]) -> Callable[[], Any]:
    """causal-learn's PC, chi2 at level 0.01."""
    from causallearn.search.ConstraintBased.PC import pc

    return lambda: pc(codes, alpha=0.01, indep_test="chisq", show_progress=False)


def causal_learn_matrix(answer: Any, names: list[str]) -> Matrix:
    """graph[i, j] = -1 and graph[j, i] = 1 is i -> j there, both -1 is i - j."""
    marks = answer.G.graph
    return np.asarray((marks == -1) & ((marks.T == 1) | (marks.T == -1)))


def matrix_of(edges: Sequence[tuple[int, int]], n: int) -> Matrix:
    """(n, n): [i, j] of i -> j."""
    matrix = np.zeros((n, n), np.bool_)
    for i, j in edges:
        matrix[i, j] = True
    return matrix


CONTESTANTS = {
    "besag hill_climb": job(besag_search("hill_climb"), besag_matrix),
    "besag tabu": job(besag_search("tabu"), besag_matrix),
    "besag order_search": job(besag_search("order_search"), besag_matrix),
    "besag pc": job(besag_search("pc"), besag_matrix),
    "pyAgrum hill climbing": job(pyagrum_search("useGreedyHillClimbing"), pyagrum_matrix),
    "pyAgrum tabu list": job(pyagrum_search("useLocalSearchWithTabuList"), pyagrum_matrix),
    "pgmpy hill climbing": job(pgmpy_search, pgmpy_matrix),
    "causal-learn PC": job(causal_learn_search, causal_learn_matrix),
}
OWN = ("besag hill_climb", "besag tabu", "besag order_search", "besag pc")

SUITE = Suite(
    title="structures of Bayesian networks, 10,000 rows",
    cases=tuple(
        Case(
            network,
            CONTESTANTS,
            {"network": network},
            tolerance=float("inf"),
            baseline=("pyAgrum hill climbing", "pyAgrum tabu list"),
            patience=20.0,
            time_limit=300.0,
        )
        for network in NETWORKS
    ),
    environments={
        **dict.fromkeys(OWN, "besag"),
        "pyAgrum hill climbing": "pyagrum",
        "pyAgrum tabu list": "pyagrum",
        "pgmpy hill climbing": "pgmpy",
        "causal-learn PC": "causal-learn",
    },
    scores=("BIC", "SHD"),
)
