"""What a second thread gives: the approximate engines on grids with tables drawn at random, a fixed number of steps.

Both contestants are besag; their answers must be the same to the last bit. The first two cases are what the machine
itself gives: two loops of multiply-adds on 8 kB each, with nothing to share, not even a line of the cache; and copying
64 MB each, which is bound by memory as large models with small tables are.

Chain CRFs are trained on CoNLL-2000 as in the suite crf. There `twice at once` is the training on one thread in two
processes side by side, so that 2 x its speed is the most that the machine gives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.beside import beside
from benchmarks.suite import Case, Job, Suite
from benchmarks.suites.crf import besag_training
from benchmarks.suites.loopy import besag_problem, draw

Array = NDArray[np.float64]
Make = Callable[[int], Any]


def bp(n_threads: int) -> Any:
    """Belief propagation."""
    import besag

    return besag.infer.BP(max_iterations=50, tolerance=0, dtype="float32", n_threads=n_threads)


def trw(n_threads: int) -> Any:
    """Tree-reweighted message passing."""
    import besag

    return besag.infer.TRW(max_iterations=20, tolerance=0, n_threads=n_threads)


def mean_field(n_threads: int) -> Any:
    """Naive mean field."""
    import besag

    return besag.infer.MeanField(max_iterations=50, tolerance=0, dtype="float32", n_threads=n_threads)


def gibbs(n_threads: int) -> Any:
    """Four chains."""
    import besag

    return besag.infer.Gibbs(n_samples=200, burn_in=0, n_threads=n_threads)


def join_graph_16(n_threads: int) -> Any:
    """Cliques of 65,536 entries, the most without a time limit."""
    import besag

    return besag.infer.JoinGraph(clique_bound=2**16, max_iterations=2, tolerance=0, n_threads=n_threads)


def join_graph_18(n_threads: int) -> Any:
    """Cliques of 262,144 entries."""
    import besag

    return besag.infer.JoinGraph(clique_bound=2**18, max_iterations=2, tolerance=0, n_threads=n_threads)


def job(make: Make, n_threads: int) -> Callable[..., Job]:
    """All marginals of a problem that is there."""

    def prepared(**parameters: int) -> Job:
        problem, engine = besag_problem(draw(**parameters)), make(n_threads)

        def run() -> Any:
            return engine.infer(problem, frozenset({"variables"}), rng=np.random.default_rng(1)).array

        return Job(run, lambda p: {"checksum": float((np.cos(np.arange(p.size)) * p.reshape(-1)).sum())})

    return prepared


def arithmetic(n_threads: int) -> Callable[[], Job]:
    """Two loops that stay in the first cache."""

    def prepared() -> Job:
        import numba

        from besag.kernels.threads import run_chunks

        @numba.njit(nogil=True, fastmath=True)
        def loop(n: int, x: Array, y: Array) -> None:
            for _ in range(n):
                for i in range(len(x)):
                    x[i] += 1e-9 * y[i]

        def run() -> Array:
            x, y = np.zeros((2, 1024)), np.ones((2, 1024))  # the second halves keep the two apart in memory
            run_chunks(lambda i: loop(2_000_000, x[i, :512], y[i, :512]), 2, n_threads)
            return x

        return Job(run, lambda x: {"checksum": float(x.sum())})

    return prepared


def copying(n_threads: int) -> Callable[[], Job]:
    """Two halves of an array that no cache holds."""

    def prepared() -> Job:
        from besag.kernels.threads import run_chunks

        source = np.ones((2, 1 << 23))
        target = np.zeros_like(source)

        def run() -> Array:
            for _ in range(10):
                run_chunks(lambda i: np.copyto(target[i], source[i]), 2, n_threads)
            return target

        return Job(run, lambda x: {"checksum": float(x.sum())})

    return prepared


def machine(name: str, make: Callable[[int], Callable[[], Job]]) -> Case:
    """What the machine gives."""
    contestants = {"besag": make(2), "one thread": make(1)}
    return Case(name, contestants, tolerance=0.0, baseline=("one thread",), cores=2)


def case(make: Make, side: int, n_states: int) -> Case:
    """One engine on one grid."""
    return Case(
        f"{make.__name__}, {side}^2, K = {n_states}",
        {"besag": job(make, 2), "one thread": job(make, 1)},
        {"side": side, "n_states": n_states},
        tolerance=0.0,
        baseline=("one thread",),
        cores=2,
    )


def training(n_threads: int) -> Callable[[], Job]:
    """A chain CRF."""
    return lambda: besag_training("chunking", n_threads)


SUITE = Suite(
    title="two threads",
    cases=(
        machine("arithmetic alone", arithmetic),
        machine("copying alone", copying),
        case(bp, 1000, 2),
        case(bp, 256, 16),
        case(trw, 256, 16),
        case(mean_field, 256, 16),
        case(gibbs, 512, 2),
        case(join_graph_16, 30, 2),
        case(join_graph_18, 30, 2),
        Case(
            "chain CRF, CoNLL-2000",
            {
                "besag": training(2),
                "one thread": training(1),
                "twice at once": lambda: beside(besag_training, "chunking", 1),
            },
            tolerance=0.0,
            baseline=("one thread",),
            cores=2,
        ),
    ),
    environments={"one thread": "besag", "twice at once": "besag"},
)
