"""Gibbs sampling on a 512 x 512 Ising grid: 200 sweeps of a chain, and the mean of each spin in them.

    log p(s) = sum_i h_i s_i + J sum_(i,j) s_i s_j - log Z    s_i = -1, 1    h_i ~ N(0, 1/4)    J = 0.3

Every contestant runs on one thread and visits the two colours of the checkerboard in turn. `numba` is what a user would
write for this one model by hand: one coupling, bytes for spins, numba's own generator. All average the
conditional means (thrml the spins themselves), which agree but for chance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.suite import Case, Job, Suite

Array = NDArray[np.float64]
SIDE, SWEEPS, COUPLING = 512, 200, 0.3


def draw() -> Array:
    """The fields h (n, n), the same for every contestant."""
    return np.random.default_rng(7).normal(0.0, 0.5, (SIDE, SIDE))


def besag_job(n_chains: int) -> Callable[[], Job]:
    """The public engine, with the standard errors and diagnostics that it always gives."""

    def make() -> Job:
        import besag

        model = besag.ising((SIDE, SIDE), COUPLING, draw())
        engine = besag.infer.Gibbs(scan="chromatic", n_chains=n_chains, n_samples=SWEEPS, burn_in=0, n_threads=1)
        problem = model.problem

        def run() -> Array:
            beliefs = engine.infer(problem, frozenset({"variables"}), rng=np.random.default_rng(1)).array.reshape(
                SIDE, SIDE, 2
            )
            return np.asarray(beliefs[..., 1] - beliefs[..., 0])

        return Job(run, summary)

    return make


def numba_job(n_chains: int) -> Callable[[], Job]:
    """A checkerboard sampler by hand; chains one after the other."""
    return lambda: _numba_job(n_chains)


def _numba_job(n_chains: int) -> Job:
    import numba

    @numba.njit()
    def sweeps(spins: NDArray[np.int8], field: Array, coupling: float, n_sweeps: int, total: Array) -> None:
        n = spins.shape[0]
        for _ in range(n_sweeps):
            for colour in range(2):
                for i in range(n):
                    for j in range((i + colour) & 1, n, 2):
                        around = 0
                        if i > 0:
                            around += spins[i - 1, j]
                        if i < n - 1:
                            around += spins[i + 1, j]
                        if j > 0:
                            around += spins[i, j - 1]
                        if j < n - 1:
                            around += spins[i, j + 1]
                        p = 1.0 / (1.0 + np.exp(-2.0 * (field[i, j] + coupling * around)))
                        total[i, j] += 2.0 * p - 1.0
                        spins[i, j] = 1 if np.random.random() < p else -1  # noqa: NPY002

    field = draw()

    def run() -> Array:
        total = np.zeros((SIDE, SIDE))
        for chain in range(n_chains):
            spins = np.where(np.random.default_rng(chain).random((SIDE, SIDE)) < 0.5, 1, -1).astype(np.int8)
            sweeps(spins, field, COUPLING, SWEEPS, total)
        return total / (n_chains * SWEEPS)

    return Job(run, summary)


def thrml_job() -> Job:
    """thrml's blocks, with its moments of each spin."""
    import jax
    import jax.numpy as jnp
    from thrml import Block, SamplingSchedule, SpinNode, sample_with_observation
    from thrml.models import IsingEBM, IsingSamplingProgram, hinton_init
    from thrml.observers import MomentAccumulatorObserver

    nodes = [[SpinNode() for _ in range(SIDE)] for _ in range(SIDE)]
    flat = [node for row in nodes for node in row]
    edges = [(nodes[i][j], nodes[i][j + 1]) for i in range(SIDE) for j in range(SIDE - 1)]
    edges += [(nodes[i][j], nodes[i + 1][j]) for i in range(SIDE - 1) for j in range(SIDE)]
    field = jnp.asarray(draw().reshape(-1), jnp.float32)
    weights = jnp.full(len(edges), COUPLING, jnp.float32)
    ebm = IsingEBM(flat, edges, field, weights, jnp.array(1.0))
    colours = [Block([nodes[i][j] for i in range(SIDE) for j in range(SIDE) if (i + j) % 2 == c]) for c in (0, 1)]
    program = IsingSamplingProgram(ebm, colours, clamped_blocks=[])
    observer = MomentAccumulatorObserver(
        [[(node,) for node in flat]], lambda states, _: [2 * s.astype(jnp.float32) - 1 for s in states]
    )
    schedule = SamplingSchedule(n_warmup=0, n_samples=SWEEPS, steps_per_sample=1)

    @jax.jit  # type: ignore[untyped-decorator]
    def sample(key: Any) -> Any:
        first, second = jax.random.split(key)
        start = hinton_init(first, ebm, colours, ())
        (total,), _ = sample_with_observation(second, program, schedule, start, [], observer.init(), observer)
        return total

    def run() -> Array:
        return np.asarray(sample(jax.random.key(1)), np.float64).reshape(SIDE, SIDE) / SWEEPS

    return Job(run, summary)


def summary(means: Array) -> Mapping[str, float]:
    """How far spins follow their fields."""
    field = draw()
    return {"along the field": float((means * field).mean() / np.abs(field).mean())}


SUITE = Suite(
    title="Gibbs sampling of an Ising grid",
    cases=(
        Case(
            f"{SWEEPS} sweeps of one chain, {SIDE}^2",
            {"besag": besag_job(1), "numba": numba_job(1), "thrml": thrml_job},
            tolerance=0.01,
            baseline=("numba",),
        ),
        Case(
            f"{SWEEPS} sweeps of four chains, {SIDE}^2",
            {"besag": besag_job(4), "numba": numba_job(4)},
            tolerance=0.01,
            baseline=("numba",),
        ),
    ),
    environments={"numba": "besag"},
)
