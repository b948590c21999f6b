"""The steps of EM by name, and what each of them has to offer; M instances of weights w_n, W = sum_n w_n.

    E-step    theta -> h(theta) = sum_n w_n log sum_s exp <phi(x_n, s), u>,  mu = sum_n w_n E[phi | x_n]     u = -theta
    M-step    mu -> theta with  W E[phi] = mu

Both sums are of weights, not means: 003's mu, g and h are these divided by W.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, dot
from besag.data.dataset import Batch
from besag.learn.losses.likelihood import Likelihood, hidden_part, phase_weights
from besag.model.model import Model
from besag.registry import Registry


class Numbers(NamedTuple):
    """What a model is made of besides its structure: theta (P,), and its hard zeros (P,) or None."""

    theta: Array
    support: BoolArray | None


class Visible:
    """Data made ready: statistics (P,) of instances without anything hidden, and the others, equal rows merged."""

    def __init__(self, model: Model, batch: Batch, loss: Likelihood) -> None:
        self.model, self.batch, self.hidden = model, batch, hidden_part(batch)
        self.statistics = loss.statistics(batch)
        weights = phase_weights(batch)
        self.weight = float(len(batch) if weights is None else weights.sum())

    @property
    def never_seen(self) -> IntArray:
        """The variables that no instance gives; instances with graphs of their own share theta, not variables."""
        unknown = (self.batch.labels < 0).all(axis=0)
        return np.flatnonzero(unknown if self.batch.is_rows else unknown & unknown.all())

    def energy(self, numbers: Numbers) -> float:
        """Of the instances without anything hidden: minus their part of h."""
        return dot(self.statistics, numbers.theta)


class Expected(NamedTuple):
    """What an E-step finds: h, None where it cannot tell, mu (P,), and whether both are exact."""

    value: float | None
    moments: Array
    is_exact: bool


class EStep(Protocol):
    """At work on some data."""

    def expect(self, numbers: Numbers, rng: np.random.Generator) -> Expected:
        """h and mu of a model."""


class MStep(Protocol):
    """At work on some data. is_exact: whether it finds the maximum itself. draws: whether it depends on chance."""

    is_exact: bool
    draws: bool

    def maximise(self, numbers: Numbers, moments: Array, rng: np.random.Generator) -> Numbers | None:
        """The model whose moments are mu (P,), those of the prior counts among them; begins with `numbers`.

        None where no model has them: estimates of moments need not be moments of any distribution.
        """

    def look(self, numbers: Numbers, moments: Array, rng: np.random.Generator) -> tuple[float | None, Array]:
        """W log Z, 003's g times W, None where nobody can tell; and mu - W E[phi] (P,), in the step's coordinates."""


class EStepOptions(Protocol):
    """What every E-step that has a name offers."""

    def at_work(self, visible: Visible, n_threads: int | None) -> EStep:
        """The step for some data."""


class MStepOptions(Protocol):
    """What every M-step that has a name offers."""

    def at_work(self, visible: Visible, n_threads: int | None) -> MStep:
        """The step for some data."""


E_STEPS: Registry[EStepOptions] = Registry(
    "e_step",
    "at_work",
    "exact",
    {
        "bp": ("besag.learn.hidden.expect", "BPExpectation"),
        "exact": ("besag.learn.hidden.expect", "ExactExpectation"),
        "gibbs": ("besag.learn.hidden.expect", "GibbsExpectation"),
        "mean_field": ("besag.learn.hidden.expect", "MeanFieldExpectation"),
    },
)
M_STEPS: Registry[MStepOptions] = Registry(
    "m_step",
    "at_work",
    "exact",
    {
        "bp": ("besag.learn.hidden.inner", "BPMatching"),
        "contrastive_divergence": ("besag.learn.hidden.inner", "ContrastiveMatching"),
        "exact": ("besag.learn.hidden.matching", "ExactMatching"),
        "gibbs": ("besag.learn.hidden.inner", "GibbsMatching"),
        "pcd": ("besag.learn.hidden.inner", "PCDMatching"),
        "pseudolikelihood": ("besag.learn.hidden.completions", "PseudolikelihoodMatching"),
    },
)
