"""Networks as densities: log p of held-out rows, in nats a row, on published binary data.

Each contestant learns from the training rows; `test` is the mean of log p over the test rows. The Chow-Liu tree with
Laplace's prior is the published reference. `tabu` is a Bayesian network by BDeu with at most five parents, under the
prior of strength 10; `markov` the Markov network on its edges, a table for each, whose moments are matched with a
penalty. Where exact inference on these edges is out of reach, there is no Markov network.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.networks import FOLDER
from benchmarks.suite import Case, Job, Suite

DATA = FOLDER.parent / "debd_binary"


def rows(name: str, part: str) -> Any:
    """(N, V) of 0 and 1."""
    with np.load(DATA / f"{name}.npz") as packed:
        return np.unpackbits(packed[part], axis=1)[:, : int(packed["n_vars"])]


def job(make: Callable[[Any], Any]) -> Callable[[str], Job]:
    """A contestant: from training rows to an estimator."""

    def prepared(name: str) -> Job:
        train, test = rows(name, "train"), rows(name, "test")
        return Job(lambda: make(train), lambda found: {"test": found.score(test)})

    return prepared


def binary(train: Any) -> dict[str, int]:
    """Two states for each column: some are constant in the training rows."""
    return {str(v): 2 for v in range(train.shape[1])}


def chow_liu(train: Any) -> Any:
    """The best tree."""
    import besag

    states = binary(train)
    return besag.BayesianNetwork("chow_liu[pseudocount=1]", prior="laplace", states=states, n_jobs=1).fit(train)


def tabu(train: Any) -> Any:
    """A Bayesian network."""
    import besag

    options: dict[str, Any] = {"criterion": "bdeu[strength=10]", "max_parents": 5, "states": binary(train), "n_jobs": 1}
    return besag.BayesianNetwork("tabu", prior="bdeu[strength=10]", **options).fit(train)


def markov(train: Any) -> Any:
    """A Markov network on the same edges."""
    import besag

    edges = tabu(train).edges_
    options: dict[str, Any] = {"states": binary(train), "engine": "exact", "n_jobs": 1}
    return besag.MarkovNetwork(edges, "edges", l2=1.0, **options).fit(train)


NETWORKS = {"chow_liu": job(chow_liu), "tabu": job(tabu)}
CONTESTANTS = {"nltcs": {**NETWORKS, "markov": job(markov)}, **dict.fromkeys(("plants", "dna", "mushrooms"), NETWORKS)}

SUITE = Suite(
    title="Networks as densities of binary data",
    cases=tuple(
        Case(name, contestants, {"name": name}, float("inf"), ("chow_liu",), patience=20.0, time_limit=300.0)
        for name, contestants in CONTESTANTS.items()
    ),
    environments=dict.fromkeys(("chow_liu", "tabu", "markov"), "besag"),
    scores=("test",),
)
