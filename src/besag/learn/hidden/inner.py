"""003's M-step by an inner loop: steps along the difference of moments, one of them estimated.

    estimate mu~ = E[phi] at u~;   u~ += step (mu - mu~);   until ||mu - mu~|| < max(epsilon, its Monte Carlo error)

in means, mu / W. By name, what the estimate is from:

    gibbs                     chains of the model, n_samples sweeps of each after each step; they go on
    bp                        belief propagation
    contrastive_divergence    chains that begin at completed data, k sweeps
    pcd                       chains that go on, k sweeps

The Monte Carlo error is that of the norm, from BLOCKS parts of the sweeps or of the chains. There is a step at least.
Steps are 4 / F for F factors of an instance unless given, at most 1: the curvature of log Z is the covariance of F
indicators.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from besag.arrays import Array, IntArray, norm
from besag.errors import TooLargeError
from besag.infer.engine import ENGINES
from besag.learn.hidden.completions import complete
from besag.learn.hidden.steps import M_STEPS, MStep, Numbers, Visible
from besag.learn.losses.contrastive import Chains
from besag.learn.losses.likelihood import Likelihood, phase_weights

BLOCKS = 4
PATIENCE = 1.0  # seconds that an exact log Z may take, for the history


@dataclass(frozen=True, slots=True)
class Inner:
    """step: alpha. epsilon: of the mean moments. max_steps: of an M-step."""

    step: float | None = None
    epsilon: float = 1e-3
    max_steps: int = 100

    def __post_init__(self) -> None:
        M_STEPS.check_counts(
            self, *(name for name in ("max_steps", "n_samples", "n_chains", "k") if hasattr(self, name))
        )
        M_STEPS.check_numbers(self, "epsilon")
        M_STEPS.check_positive(self, "step")


@dataclass(frozen=True, slots=True)
class GibbsMatching(Inner):
    """n_samples: sweeps of each of n_chains chains for an estimate."""

    n_samples: int = 40
    n_chains: int = 100

    def at_work(self, visible: Visible, n_threads: int | None) -> MStep:
        """On some data."""
        return ChainLoop(self, visible, n_threads, self.n_samples, self.n_chains)


@dataclass(frozen=True, slots=True)
class PCDMatching(Inner):
    """k: sweeps of each of n_chains chains for an estimate."""

    k: int = 1
    n_chains: int = 200

    def at_work(self, visible: Visible, n_threads: int | None) -> MStep:
        """On some data."""
        return ChainLoop(self, visible, n_threads, self.k, self.n_chains)


@dataclass(frozen=True, slots=True)
class ContrastiveMatching(Inner):
    """k: sweeps of each of n_chains chains, which begin at completed data."""

    k: int = 1
    n_chains: int = 200

    def at_work(self, visible: Visible, n_threads: int | None) -> MStep:
        """On some data."""
        return ContrastiveLoop(self, visible, n_threads, self.k, self.n_chains)


@dataclass(frozen=True, slots=True)
class BPMatching(Inner):
    """max_iterations: of belief propagation."""

    max_iterations: int = 1000

    def at_work(self, visible: Visible, n_threads: int | None) -> MStep:
        """On some data."""
        return BPLoop(self, visible, n_threads)


class Loop:
    """The inner loop; `estimate` is what the classes below differ in."""

    is_exact, draws = False, False

    def __init__(self, options: Inner, visible: Visible, n_threads: int | None) -> None:
        self.options, self.visible, self.n_threads = options, visible, n_threads
        n_factors = int(np.diff(visible.batch.graph.factor_offsets).max())
        self.step = min(1.0, 4.0 / n_factors) if options.step is None else options.step

    def begin(self, numbers: Numbers, rng: np.random.Generator) -> None:
        """Before the first estimate of an M-step."""

    def estimate(self, numbers: Numbers, rng: np.random.Generator) -> tuple[Array, float]:
        """mu~ (P,), a mean, and the standard error of its norm."""
        raise NotImplementedError

    def maximise(self, numbers: Numbers, moments: Array, rng: np.random.Generator) -> Numbers:
        """See the module."""
        asked = moments / self.visible.weight
        self.begin(numbers, rng)
        for _ in range(self.options.max_steps):
            found, error = self.estimate(numbers, rng)
            rest = asked - found
            numbers = numbers._replace(theta=self._kept(numbers.theta - self.step * rest, numbers))
            if norm(rest) < max(self.options.epsilon, error):
                break
        return numbers

    def _kept(self, theta: Array, numbers: Numbers) -> Array:
        return theta if numbers.support is None else np.where(numbers.support, theta, 0.0)

    def look(self, numbers: Numbers, moments: Array, rng: np.random.Generator) -> tuple[float | None, Array]:
        """Exact where that takes no time, so that the history has a log-likelihood; else an estimate of the moments."""
        visible, weights = self.visible, phase_weights(self.visible.batch)
        problem = visible.batch.graph.bind(numbers.theta, support=numbers.support, weights=weights)
        try:
            found = ENGINES.read("exact", n_threads=self.n_threads).infer(
                problem, frozenset({"log_partition", "moments"}), time_limit=PATIENCE
            )
        except TooLargeError:
            return None, moments - visible.weight * self.estimate(numbers, rng)[0]
        assert found.log_partitions is not None
        log_z = found.log_partitions.sum() if weights is None else found.log_partitions @ weights
        return float(log_z), moments - visible.batch.graph.moments(found.moments)


class BPLoop(Loop):
    """By belief propagation, whose log Z is an estimate too."""

    def __init__(self, options: BPMatching, visible: Visible, n_threads: int | None) -> None:
        Loop.__init__(self, options, visible, n_threads)
        self.engine = ENGINES.read("bp", n_threads=n_threads, max_iterations=options.max_iterations)

    def estimate(self, numbers: Numbers, rng: np.random.Generator) -> tuple[Array, float]:
        moments = Likelihood(self.engine, numbers.support).free(numbers.theta, self.visible.batch)[1]
        return moments / self.visible.weight, 0.0


class ChainLoop(Loop):
    """By chains that go on. n_sweeps: of an estimate."""

    def __init__(self, options: Inner, visible: Visible, n_threads: int | None, n_sweeps: int, n_chains: int) -> None:
        Loop.__init__(self, options, visible, n_threads)
        self.n_sweeps, self.n_chains, self.codes = n_sweeps, n_chains, None
        self.graph = visible.batch.graph
        self.weights = None if self.graph.n_instances == 1 else visible.batch.weights

    codes: IntArray | None
    draws = True

    def estimate(self, numbers: Numbers, rng: np.random.Generator) -> tuple[Array, float]:
        chains = Chains(self.graph, numbers.support, self.n_threads)
        begun = self.n_chains if self.codes is None else self.codes
        scale = 1.0 if self.graph.n_instances == 1 else self.visible.weight
        self.codes, parts = self._parts(chains, numbers, begun, rng)
        return parts.mean(axis=0) / scale, float(np.sqrt(parts.var(axis=0, ddof=1).sum() / BLOCKS)) / scale

    def _parts(
        self, chains: Chains, numbers: Numbers, begun: IntArray | int, rng: np.random.Generator
    ) -> tuple[IntArray, Array]:
        """The chains after their sweeps, and means (BLOCKS, P): of stretches of sweeps, or of chains after the last."""
        if self.n_sweeps < BLOCKS or self.weights is not None:
            codes, _ = chains.moved(numbers.theta, begun, self.n_sweeps, rng)
            return codes, np.array([chains.moments(part, self.weights) for part in np.array_split(codes, BLOCKS)])
        parts, at = list[Array](), begun
        for _ in range(BLOCKS):
            at, mean = chains.moved(numbers.theta, at, self.n_sweeps // BLOCKS, rng)
            parts.append(mean)
        assert not isinstance(at, int)
        return at, np.array(parts)


class ContrastiveLoop(ChainLoop):
    """The same with chains that begin at completed data each time."""

    def begin(self, numbers: Numbers, rng: np.random.Generator) -> None:
        self.data = complete(self.visible, numbers, self.n_chains, rng)

    def estimate(self, numbers: Numbers, rng: np.random.Generator) -> tuple[Array, float]:
        self.codes = self.data[rng.integers(len(self.data), size=self.n_chains)]
        return ChainLoop.estimate(self, numbers, rng)
