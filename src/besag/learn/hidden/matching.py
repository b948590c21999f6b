"""Exact M-steps: the parameters whose moments are mu, 003 b); in closed form for Bayesian networks (`tables`).

    theta = argmin of  <theta, mu> + sum_n w_n log Z_n(theta)         gradient = mu - sum_n w_n E[phi]

which is learning from labelled data whose statistics are mu: "the M-step solves a supervised learning task". L-BFGS
begins with the last theta and never goes up, so that the log-likelihood does not fall even where it ends early.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from besag.arrays import Array, IntArray
from besag.data.dataset import Batch
from besag.errors import ConvergenceWarning
from besag.infer.engine import ENGINES, Engine
from besag.learn.hidden.steps import MStep, Numbers, Visible
from besag.learn.hidden.tables import Tables, has_tables
from besag.learn.losses.likelihood import Likelihood
from besag.learn.losses.projection import Projection
from besag.learn.objective import Total
from besag.learn.optimisers.lbfgs import LBFGS
from besag.learn.penalty import penalty_of

MATCHED, FAR = (
    0.01,
    30.0,
)  # theta has gone so far, and this part of the difference of moments is left: no model has them


@dataclass(frozen=True, slots=True)
class ExactMatching:
    """Closed form for a Bayesian network, else L-BFGS until the gradient is small.

    engine: of the free phase. tolerance, max_iterations: of L-BFGS.
    """

    engine: str | Engine = "auto"
    tolerance: float = 1e-9
    max_iterations: int = 200

    def at_work(self, visible: Visible, n_threads: int | None) -> MStep:
        """On some data."""
        if has_tables(visible.model):
            return Tables(visible.model)
        return Matching(self, visible, n_threads)


class Whole:
    """All instances, in parts that stay as they are."""

    def __init__(self, parts: list[Batch]) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return len(self.parts[0])

    def shards(self) -> Sequence[Batch]:
        """The parts."""
        return self.parts

    def batch(self, instances: IntArray) -> Batch:
        """Some instances of the first part by number."""
        return self.parts[0].take(instances)


class Free:
    """What M-steps share that know log Z by an engine."""

    draws = False

    def __init__(self, visible: Visible, engine: str | Engine, n_threads: int | None) -> None:
        self.visible, self.n_threads, self.is_exact = visible, n_threads, True
        self.engine = ENGINES.read(engine, n_threads=n_threads)

    def look(self, numbers: Numbers, moments: Array, rng: np.random.Generator) -> tuple[float | None, Array]:
        """W log Z, summed over instances where each has its own, and mu - W E[phi]."""
        loss = Likelihood(self.engine, numbers.support)
        log_z, free = loss.free(numbers.theta, self.visible.batch)
        self.is_exact &= loss.is_exact
        return log_z, np.asarray(moments - free)


class Matching(Free):
    """L-BFGS at work."""

    def __init__(self, options: ExactMatching, visible: Visible, n_threads: int | None) -> None:
        Free.__init__(self, visible, options.engine, n_threads)
        self.method = LBFGS(tolerance=options.tolerance, max_iterations=options.max_iterations)

    def maximise(self, numbers: Numbers, moments: Array, rng: np.random.Generator) -> Numbers | None:
        """Theta with these moments."""
        loss = Projection(self.engine, numbers.support, moments=moments)
        penalty = penalty_of(self.visible.model.layout)
        total = Total(loss, Whole([self.visible.batch]), penalty, n_threads=self.n_threads)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            theta, history, _ = self.method.minimize(total, numbers.theta)
        first, last = history.rows[0].grad_norm, history.rows[-1].grad_norm
        if not history.converged and last > MATCHED * first and np.abs(theta - numbers.theta).max() > FAR:
            return None
        return Numbers(theta, numbers.support)
