"""Forward-backward: what the E-step of a hidden Markov model needs, and all factor marginals.

A chain of T variables with K states has a start distribution pi (K,), a transition matrix A (K, K) and log-likelihoods
of its frames l (T, K):

    p(y) ~ pi[y_0] exp(l[0, y_0]) prod_t A[y_(t-1), y_t] exp(l[t, y_t])

The E-step is ln Z of every chain, the marginals of all variables, and the pair marginals summed over chains and steps.

All pair marginals are compared with a fill of as many fresh bytes. besag writes into pages that the answer before gave
back (`besag.recycled`), as it does from the second answer on; besag-fresh has no such pages, like the first answer of a
process or one while all others are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.suite import Case, Job, Suite, Summary

Array = NDArray[np.float64]


class Chains(NamedTuple):
    """The inputs of a case: start (K,), transition (K, K) and log_frames (chains, length, K)."""

    start: Array
    transition: Array
    log_frames: Array


class EStep(NamedTuple):
    """The results: the sum of ln Z over chains, posteriors (chains, length, K), and summed pair marginals (K, K)."""

    log_likelihood: float
    posteriors: Array | Sequence[Array]
    pairs: Array


# A contestant prepares, untimed, and returns the work to be timed.


def besag_chains(chains: Chains) -> tuple[Any, Array, Any]:
    """A union of chains that share start and transition tables; theta; the frames as log-weights of all states."""
    import besag
    from besag.model.variable import RangeNames, Variables

    n_chains, length, n_states = chains.log_frames.shape
    steps = np.stack([np.arange(length - 1), np.arange(1, length)], axis=1)
    groups = (
        besag.FactorGroup(besag.Template("start", (n_states,)), np.zeros((1, 1), np.int64)),
        besag.FactorGroup(besag.Template("transition", (n_states, n_states)), steps),
    )
    theta = -np.log(np.concatenate([chains.start, chains.transition.ravel()]))
    model = besag.Model(Variables.alike(RangeNames(length), n_states), groups, theta)
    graph = besag.compile_graph(*[model] * n_chains)
    evidence = besag.Evidence(np.full(n_chains * length, -1), chains.log_frames.reshape(1, -1))
    return graph, theta, evidence


def besag_estep(chains: Chains) -> Callable[[], EStep]:
    """The tree engine, asked for log_partition, variables and moments; binding the numbers is part of the work."""
    import besag

    graph, theta, evidence = besag_chains(chains)
    engine: Any = besag.infer.Tree(n_threads=1)
    n_states = len(chains.start)

    def run() -> EStep:
        wants = frozenset({"log_partition", "variables", "moments"})
        result = engine.infer(graph.bind(theta, evidence=evidence), wants)
        pairs = result.moments[n_states:].reshape(n_states, n_states)
        return EStep(float(np.sum(result.log_partition)), result.array.reshape(-1, n_states), pairs)

    return run


def besag_factors(chains: Chains) -> Callable[[], Array]:
    """The tree engine, asked for every factor marginal: (chains * (length - 1), K, K)."""
    import besag

    graph, theta, evidence = besag_chains(chains)
    engine, n_states = besag.infer.Tree(n_threads=1), len(chains.start)
    n_start = len(chains.log_frames) * n_states

    def run() -> Array:
        result = engine.infer(graph.bind(theta, evidence=evidence), frozenset({"factors"}))
        assert result.factor_marginals is not None
        return result.factor_marginals[0, n_start:].reshape(-1, n_states, n_states)

    return run


def besag_fresh_factors(**parameters: int) -> Job:
    """The same into fresh pages."""
    from besag import recycled

    run = besag_factors(draw(**parameters))
    return Job(lambda _: run(), factors_summary, recycled.forget)


def hmmlearn_estep(chains: Chains) -> Callable[[], EStep]:
    """The compiled functions of hmmlearn's scaling implementation, called as its own E-step calls them."""
    from hmmlearn import _hmmc
    from hmmlearn.utils import normalize

    start, transition, log_frames = chains
    frames = np.exp(log_frames)

    def run() -> EStep:
        total, posteriors, pairs = 0.0, [], np.zeros_like(transition)
        for frame in frames:
            log_likelihood, forward, scaling = _hmmc.forward_scaling(start, transition, frame)
            backward = _hmmc.backward_scaling(start, transition, frame, scaling)
            posterior = forward * backward
            normalize(posterior, axis=1)
            pairs += _hmmc.compute_scaling_xi_sum(forward, transition, backward, frame)
            total += log_likelihood
            posteriors.append(posterior)
        return EStep(total, posteriors, pairs)

    return run


def numpy_fill(chains: Chains) -> Callable[[], Array]:
    """The least that storing all pair marginals can cost: writing that many fresh bytes."""
    n_chains, length, n_states = chains.log_frames.shape

    def run() -> Array:
        pages = np.empty((n_chains * (length - 1), n_states, n_states))
        pages.fill(1.0)
        return pages

    return run


def draw(n_chains: int, length: int, n_states: int) -> Chains:
    """The same random chains for every contestant."""
    rng = np.random.default_rng(20 + n_states)
    start = rng.dirichlet(np.ones(n_states))
    transition = rng.dirichlet(np.ones(n_states), n_states)
    return Chains(start, transition, rng.standard_normal((n_chains, length, n_states)))


def job(work: Callable[[Chains], Callable[[], Any]], summary: Callable[[Any], Summary]) -> Callable[..., Job]:
    """A contestant on the chains of a case."""
    return lambda **parameters: Job(work(draw(**parameters)), summary)


def probe(n: int) -> Array:
    """Weights that tell the entries of an array apart."""
    return np.cos(np.arange(n, dtype=np.float64))


def estep_summary(result: EStep) -> dict[str, float]:
    """Checksums of an E-step."""
    n_states = len(result.pairs)
    posteriors = np.asarray(result.posteriors).reshape(-1, n_states)
    return {
        "log_likelihood": result.log_likelihood,
        "posteriors": float(probe(len(posteriors)) @ posteriors @ probe(n_states)),
        "pairs": float(result.pairs.ravel() @ probe(n_states**2)),
        "pairs_total": float(result.pairs.sum()),
    }


def factors_summary(marginals: Array) -> dict[str, float]:
    """The size of all pair marginals, and the largest error of their sums."""
    return {"bytes": marginals.nbytes, "error": float(np.abs(marginals.sum(axis=(1, 2)) - 1.0).max())}


MANY: Mapping[str, int] = {"n_chains": 1000, "length": 100, "n_states": 20}
LONG: Mapping[str, int] = {"n_chains": 1, "length": 1_000_000, "n_states": 8}
ESTEP = {"besag": job(besag_estep, estep_summary), "hmmlearn": job(hmmlearn_estep, estep_summary)}
FACTORS = {
    "besag": job(besag_factors, factors_summary),
    "besag-fresh": besag_fresh_factors,
    "numpy-fill": job(numpy_fill, lambda pages: {"bytes": pages.nbytes, "error": 0.0}),
}

SUITE = Suite(
    title="forward-backward on chains",
    cases=(
        Case("E-step, 1,000 chains of 100, K = 20", ESTEP, MANY),
        Case("E-step, one chain of 10^6, K = 8", ESTEP, LONG),
        Case("all pair marginals, 1,000 chains of 100, K = 20", FACTORS, MANY, baseline=("numpy-fill",)),
        Case("all pair marginals, one chain of 10^6, K = 8", FACTORS, LONG, baseline=("numpy-fill",)),
    ),
    environments={"numpy-fill": "besag", "besag-fresh": "besag"},
)
