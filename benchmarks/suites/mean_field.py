"""Mean field on the grids of the suite `loopy`: 50 sweeps over all variables in float32, beside 50 iterations of BP.

Both start from uniform distributions and give the marginals of all variables; they answer different questions, so
their answers are not compared. Mean field is given its start as an array: one that it makes itself is looked at when it
has settled, and then sweeps go over a second start too.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from benchmarks.suite import Case, Job, Suite
from benchmarks.suites.loopy import GRIDS, ITERATIONS, besag_problem, besag_run, draw

Array = NDArray[np.float32]


def mean_field_job(**parameters: int) -> Job:
    """All sweeps, on a problem that is there."""
    import besag

    problem = besag_problem(draw(**parameters))
    start = np.full((parameters["side"] ** 2, parameters["n_states"]), 1.0 / parameters["n_states"])
    engine = besag.infer.MeanField(init=start, max_iterations=ITERATIONS, tolerance=0, dtype="float32", n_threads=1)

    def run() -> Array:
        return engine.infer(problem, frozenset({"variables"})).array.astype(np.float32)

    return Job(run, lambda q: summary("mean field", q))


def bp_job(**parameters: int) -> Job:
    """Synchronous belief propagation."""
    problem = besag_problem(draw(**parameters))
    return Job(lambda: besag_run(problem, ITERATIONS), lambda beliefs: summary("bp", beliefs))


def summary(engine: str, marginals: Array) -> Mapping[str, float]:
    """A number of its own for each engine."""
    return {f"largest of {engine}": float(marginals.max())}


SUITE = Suite(
    title="sweeps of mean field beside belief propagation",
    cases=tuple(
        Case(
            f"50 sweeps, {name}",
            {"besag": mean_field_job, "bp": bp_job},
            {"side": side, "n_states": n_states},
            baseline=("bp",),
        )
        for name, (side, n_states) in GRIDS.items()
    ),
    environments={"bp": "besag"},
)
