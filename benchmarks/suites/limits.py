"""Whether limits are kept: what questions take that are asked with a time_limit of 0.5 s or a memory_limit of 100 MB.

Contestants are engines, each with a question that it can answer. Kernels are loaded by the same question about a small
model of the same kind; then a large one is built, and its first question is what is timed: "best" is to be below 1.5 s,
and "added MB" below 110 where the case names 100 MB (with 5 s, so that it ends). `answered` is 0 where the engine
refused by a TooLargeError, 1 where it answered.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.networks import bif
from benchmarks.suite import Case, Job, Suite

ASKED: dict[str, dict[str, float]] = {"0.5 s": {"time_limit": 0.5}, "100 MB": {"memory_limit": 1e8, "time_limit": 5.0}}
LOADING = {"time_limit": 1.0}  # of the question about a small model
PATIENCE, KILLED_AFTER = 0.0, 180.0  # one run, which counts

Asked = tuple[Any, Any]  # a model and its evidence


def grid(side: int, n_states: int) -> Asked:
    """A Potts grid."""
    import besag

    unary = np.random.default_rng(0).standard_normal((side, side, n_states))
    return besag.grid((side, side), n_states, unary=unary, pairwise=besag.potts(n_states), weights=0.5), None


def chain(length: int) -> Asked:
    """A chain of four states."""
    import besag

    rng = np.random.default_rng(0)
    return besag.chain(rng.standard_normal((length, 4)), rng.standard_normal((4, 4))), None


def dense(n: int) -> Asked:
    """Spins of which each is coupled to all others."""
    import besag

    rng, pairs = np.random.default_rng(0), np.stack(np.triu_indices(n, 1), axis=1)
    return besag.ising(pairs, rng.standard_normal(len(pairs)) / np.sqrt(n), 0.3 * rng.standard_normal(n)), None


def rows_of(model: Any, n: int) -> Asked:
    """A network with n rows of evidence on a third of its variables."""
    return model, model.sample(n, seed=1)[list(model.variables.names)[::3]]


def alarm(n: int) -> Asked:
    """Rows on alarm."""
    import besag

    return rows_of(besag.load(bif("alarm")), n)


def polytree(n: int) -> Asked:
    """Rows on a tree."""
    import besag

    return rows_of(besag.data.random_model("polytree", 37, seed=1, n_states=(2, 4)), n)


def limited(engine: str, verb: str, make: Callable[[int], Asked], sizes: tuple[int, int], asked: str) -> Job:
    """The first question about a large model, with a limit, when kernels are loaded."""
    from besag.errors import TooLargeError

    small, large = sizes

    def ask(given: Asked, limits: dict[str, float]) -> float:
        model, evidence = given
        try:
            getattr(model, verb)(evidence=evidence, engine=engine, **limits)
        except TooLargeError:
            return 0.0
        return 1.0

    ask(make(small), LOADING)
    return Job(partial(ask, limits=ASKED[asked]), lambda answered: {"answered": answered}, partial(make, large))


ITERATIVE = {
    "bp": "marginals",
    "bp[schedule=sequential]": "marginals",
    "bp[schedule=residual]": "marginals",
    "join_graph": "marginals",
    "trw": "marginals",
    "mean_field": "marginals",
    "mean_field[family=tree]": "marginals",
    "gibbs": "marginals",
    "gibbs[scan=random]": "marginals",
    "gibbs[scan=tree]": "marginals",
    "ais": "marginals",
    "auto": "marginals",
}
MODELS: dict[str, tuple[Callable[[int], Asked], tuple[int, int], dict[str, str]]] = {
    "grid 1000 x 1000": (partial(grid, n_states=2), (150, 1000), ITERATIVE | {"exact": "map"}),
    "grid 300 x 300": (partial(grid, n_states=2), (150, 300), {"join_graph": "marginals", "auto": "map"}),
    "grid 200 x 200, K = 10": (partial(grid, n_states=10), (120, 200), ITERATIVE | {"junction_tree": "map"}),
    "chain of 10^6, K = 4": (chain, (150_000, 1_000_000), ITERATIVE | {"tree": "marginals", "exact": "map"}),
    "300 spins, all coupled": (dense, (200, 300), ITERATIVE | {"junction_tree": "map"}),
    "alarm, 100,000 rows": (alarm, (200, 100_000), {"junction_tree": "marginals", "auto": "map", "bp": "marginals"}),
    "tree of 37, 100,000 rows": (polytree, (200, 100_000), {"tree": "marginals", "exact": "map", "auto": "marginals"}),
}


def case(model: str, asked: str) -> Case:
    """All engines on one model with one limit."""
    make, sizes, engines = MODELS[model]
    jobs = {
        engine: partial(limited, engine, verb, make=make, sizes=sizes, asked=asked) for engine, verb in engines.items()
    }
    return Case(f"{model}; {asked}", jobs, tolerance=np.inf, patience=PATIENCE, time_limit=KILLED_AFTER, cores=2)


SUITE = Suite(
    title="limits, asked and kept",
    cases=tuple(case(model, asked) for model in MODELS for asked in ASKED),
    environments={engine: "besag" for _, _, engines in MODELS.values() for engine in engines},
    scores=("answered",),
)
