"""What a user waits for before the first answer: a fresh process, and building large models.

The fresh process imports besag, builds a 37-node tree, and prints its marginals. "cold" gives it an empty directory for
compiled kernels each time. Beside it stands a fresh process that does nothing but import numpy.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable

import numpy as np

from benchmarks.suite import Case, Job, Suite

TREE = """
import besag
print(besag.data.random_model("polytree", 37, seed=1, n_states=(2, 4)).marginals())
"""


def process(code: str, cold: bool = False) -> int:
    """The number of lines that a fresh Python prints."""
    with tempfile.TemporaryDirectory() as empty:
        place = {"NUMBA_CACHE_DIR": empty} if cold else {}
        done = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, **place}, check=True, capture_output=True, text=True
        )
    return done.stdout.count("\n")


def fresh(code: str, cold: bool = False) -> Callable[..., Job]:
    """A contestant that is a process."""
    return lambda: Job(lambda: process(code, cold), lambda lines: {"lines": lines} if lines else {})


def grid(side: int) -> Job:
    """A grid from arrays, compiled and bound."""
    import besag

    unary = np.random.default_rng(0).standard_normal((side, side, 2))

    def run() -> int:
        model = besag.grid((side, side), 2, unary=unary, pairwise=besag.potts(2))
        return len(model.problem.log_potentials)

    return Job(run, lambda entries: {"entries": entries})


def factors(n: int) -> Job:
    """A Markov network from hand-given factors, compiled and bound."""
    import besag

    rng = np.random.default_rng(0)
    scopes = rng.integers(0, 5000, (n, 2))
    scopes[:, 1] = (scopes[:, 0] + 1 + scopes[:, 1] % 4999) % 5000
    given = [((int(a), int(b)), table) for (a, b), table in zip(scopes, rng.standard_normal((n, 2, 2)), strict=True)]

    def run() -> int:
        return len(besag.markov_network([2] * 5000, given).problem.log_potentials)

    return Job(run, lambda entries: {"entries": entries})


SUITE = Suite(
    title="before the first answer",
    cases=(
        Case("fresh process, 37-node tree", {"besag": fresh(TREE), "numpy-import": fresh("import numpy")}),
        Case("fresh process, 37-node tree, cold", {"besag": fresh(TREE, cold=True)}),
        Case("grid of 1000 x 1000, built, compiled, bound", {"besag": grid}, {"side": 1000}),
        Case("100,000 hand-given factors, built, compiled, bound", {"besag": factors}, {"n": 100_000}),
    ),
    environments={"numpy-import": "besag"},
)
