"""E-steps: h(theta) and mu = sum_n w_n E[phi | x_n], 003 a), by inference with what is known as evidence.

All rows go to the engine at once. Where nothing hidden meets in a factor, as in a bipartite graph whose one side is
visible, p(s | x) is a product over the hidden variables: observed variables are no axes of any table, so that the exact
engines find single variables left, and their answer is that product. One hidden parent of all others is so common
that it has an E-step of its own (`latent_class`), which "auto" takes.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from besag.arrays import Array
from besag.errors import ApproximationWarning
from besag.graph.evidence import Evidence
from besag.infer.engine import ENGINES, Engine, Want
from besag.infer.result import Result
from besag.learn.hidden.latent_class import LatentClass, hidden_root
from besag.learn.hidden.steps import EStep, Expected, Numbers, Visible
from besag.learn.losses.contrastive import refuse_impossible_chains
from besag.learn.losses.likelihood import Likelihood

MOMENTS: frozenset[Want] = frozenset({"moments"})


@dataclass(frozen=True, slots=True)
class ExactExpectation:
    """By `engine`: "auto", which is exact where that fits, and says so where it does not."""

    engine: str | Engine = "auto"

    def at_work(self, visible: Visible, n_threads: int | None) -> EStep:
        """On some data."""
        root = hidden_root(visible) if self.engine == "auto" else None
        if root is not None:
            return LatentClass(visible, root)
        return Posterior(visible, ENGINES.read(self.engine, n_threads=n_threads))


@dataclass(frozen=True, slots=True)
class BPExpectation:
    """By belief propagation; h is its own estimate. max_iterations, tolerance, damping: of the engine."""

    max_iterations: int = 1000
    tolerance: float = 1e-9
    damping: float = 0.0

    def at_work(self, visible: Visible, n_threads: int | None) -> EStep:
        """On some data."""
        options = {"max_iterations": self.max_iterations, "tolerance": self.tolerance, "damping": self.damping}
        return Posterior(visible, ENGINES.read("bp", n_threads=n_threads, **options))


@dataclass(frozen=True, slots=True)
class MeanFieldExpectation:
    """By the best product of single variables; h is a lower bound, as is the log-likelihood where log Z is exact."""

    max_iterations: int = 1000
    tolerance: float = 1e-9

    def at_work(self, visible: Visible, n_threads: int | None) -> EStep:
        """On some data."""
        options = {"max_iterations": self.max_iterations, "tolerance": self.tolerance}
        return Posterior(visible, ENGINES.read("mean_field", n_threads=n_threads, **options))


@dataclass(frozen=True, slots=True)
class GibbsExpectation:
    """By a Gibbs sampler for each instance, 003; h is not known. Chains go on from step to step.

    n_samples: sweeps that count, for each chain. n_chains: for each instance.
    """

    n_samples: int = 100
    n_chains: int = 1
    burn_in: int = 20

    def at_work(self, visible: Visible, n_threads: int | None) -> EStep:
        """On some data."""
        options = {"n_samples": self.n_samples, "n_chains": self.n_chains, "burn_in": self.burn_in}
        return SampledPosterior(visible, ENGINES.read("gibbs", n_threads=n_threads, **options))


class Posterior:
    """An engine that knows h."""

    def __init__(self, visible: Visible, engine: Engine) -> None:
        self.visible, self.engine = visible, engine
        self.warm: tuple[Result | None, ...] = ()

    def expect(self, numbers: Numbers, rng: np.random.Generator) -> Expected:
        """h and mu."""
        visible, loss = self.visible, Likelihood(self.engine, numbers.support)
        value, moments = -visible.energy(numbers), np.array(visible.statistics)
        if visible.hidden is not None:
            known, more, self.warm = loss.clamped(numbers.theta, visible.hidden, self.warm)
            value, moments = value + known, moments + more
        return Expected(value, moments, loss.is_exact)


class SampledPosterior:
    """Chains for each instance, which go on from where the last step left them."""

    def __init__(self, visible: Visible, engine: Engine) -> None:
        self.visible, self.engine = visible, engine
        self.warm: Result | None = None

    def expect(self, numbers: Numbers, rng: np.random.Generator) -> Expected:
        """mu, a mean over sweeps."""
        visible, moments = self.visible, np.array(self.visible.statistics)
        if visible.hidden is None:
            return Expected(-visible.energy(numbers), moments, True)
        return Expected(None, moments + self._sampled(numbers, rng), False)

    def _sampled(self, numbers: Numbers, rng: np.random.Generator) -> Array:
        hidden = self.visible.hidden
        assert hidden is not None
        given: dict[str, Any] = {"evidence": Evidence(hidden.labels, batched=hidden.is_rows), "weights": hidden.weights}
        problem = hidden.graph.bind(numbers.theta, support=numbers.support, **given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ApproximationWarning)  # EM says it once
            result = self.engine.infer(problem, MOMENTS, warm=self.warm, rng=rng)
        assert result.state is not None
        refuse_impossible_chains(problem, np.asarray(result.state["codes"]))
        self.warm = replace(result, table_moments=None)
        return hidden.graph.moments(result.moments)
