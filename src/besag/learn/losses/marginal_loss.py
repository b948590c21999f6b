"""Marginal loss (Domke 2013): the log loss of each variable's own marginal, as inference with an engine has it.

    L(theta) = - sum_n w_n sum_v log b_v(y_v; theta)            over the variables whose labels are known

What is learnt is what is asked for: marginals that are right as this very inference makes them, so that errors of the
model, and of the engine, are made up for. L is not convex, and where inference is exact it is no likelihood either: it
says nothing of how labels go together.

Converged. b is the gradient of log Z, or of what stands in for it, by log-potentials; its Jacobian is symmetric: the
product with dL/db, which the chain rule asks for, is a directional derivative, by two perturbed runs (Domke 2010),

    dL/dlp = (moments(lp + r h) - moments(lp - r h)) / 2r,          h_v(k) = dL/db_v(k) = - C_vk / b_v(k)

C_vk is the weight of the labels k of v. Moments that are right to u make the error of this about (u / b)^(2/3) of the
gradient, b the least belief of a label, where it is least: at r = (3 u)^(1/3) b^(2/3). So labels that are far less
probable than others are perturbed apart, a factor of BAND in b at a time.

Truncated, `iterations=k`. b is what k iterations of bp or trw give, and the gradient is exact: `losses.unrolled`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from besag.arrays import Array, BoolArray, dot
from besag.data.dataset import Batch
from besag.errors import CapabilityError
from besag.graph.evidence import Evidence
from besag.graph.problem import Problem
from besag.infer.bp.engine import BP
from besag.infer.engine import ENGINES, Engine, Want
from besag.infer.prepared import Prepared
from besag.infer.result import Result
from besag.infer.trw.engine import TRW
from besag.learn.losses.base import OBJECTIVES, Loss, infer_whole
from besag.learn.losses.terms import impossible_labels, weighted_rows
from besag.learn.losses.unrolled import TABLES, Unrolled, UnrolledPlan, plan_unrolled
from besag.model.template import Template

ABLE = ("brute", "bp", "exact", "junction_tree", "mean_field", "tree", "trw")
BAND = 1e-4
ROUNDING, SETTLED = 1e-16, 1e-13  # of moments: by exact engines, and by those that iterate
TOLERANCE = 1e-12  # of engines that iterate, unless their text has another
VARIABLES: frozenset[Want] = frozenset({"variables"})
MOMENTS: frozenset[Want] = frozenset({"moments"})


@dataclass(frozen=True, slots=True)
class MarginalLossOptions:
    """engine: of the marginals. iterations: of bp or trw, after which they are cut off; None until they settle."""

    engine: str | Engine = "trw"
    iterations: int | None = None

    def __post_init__(self) -> None:
        OBJECTIVES.check_counts(self, "iterations")

    def at_work(self, support: BoolArray | None, n_threads: int | None) -> Loss:
        """The loss for data of a model with these hard zeros."""
        engine = ENGINES.read(self.engine, n_threads=n_threads, tolerance=TOLERANCE)
        name = ENGINES.name_of(engine)
        if name not in ABLE:
            raise CapabilityError(f"marginal_loss takes marginals of {', '.join(ABLE)}, not of {name!r}")
        if getattr(engine, "optimise", False):
            raise CapabilityError("marginal_loss takes trw with weights that stay as they are: leave out optimise=true")
        if self.iterations is None:
            return MarginalLoss(support, engine)
        if not isinstance(engine, (BP, TRW)):
            raise CapabilityError(f"marginal_loss: iterations= are those of bp or trw, {name!r} is no such engine")
        if isinstance(engine, BP) and (engine.schedule, engine.damping) != ("synchronous", 0.0):
            raise CapabilityError("marginal_loss: iterations of bp are synchronous, without damping; trw takes damping")
        return TruncatedLoss(support, engine, iterations=self.iterations)


@dataclass(frozen=True, slots=True, eq=False)
class MarginalLoss(Loss):
    """See the module; marginals of an engine that has settled. bounds: the kinds of its answers so far."""

    support: BoolArray | None
    engine: Engine
    bounds: set[str] = field(default_factory=set)
    counted: WeakKeyDictionary[Batch, Array] = field(default_factory=WeakKeyDictionary)
    surrogate = "marginal_loss"

    @property
    def is_exact(self) -> bool:
        """Whether all marginals so far were."""
        return self.bounds <= {"exact"}

    def statistics(self, batch: Batch) -> Array:
        """(P,): zeros; labels that meet hard zeros are refused."""
        counts, problem = self.counts(batch), self.bound(np.zeros(batch.graph.layout.n_parameters), batch)
        if self.support is not None or any(_may_rule_out(block.template) for block in batch.graph.blocks):
            self.refuse(batch, counts, Prepared(problem, TABLES, None).base[0] > -np.inf)
        return np.zeros(batch.graph.layout.n_parameters)

    def counts(self, batch: Batch) -> Array:
        """C (S,): the weight of each label."""
        if batch not in self.counted:
            rows, weights, _ = weighted_rows(batch)
            row, v = np.nonzero(rows >= 0)
            states = batch.graph.state_offsets[v] + rows[row, v]
            n_states = int(batch.graph.state_offsets[-1])
            self.counted[batch] = np.bincount(states, weights[row, v], n_states).astype(np.float64)
        return self.counted[batch]

    def bound(self, theta: Array, batch: Batch) -> Problem:
        """The numbers of all instances."""
        return batch.graph.bind(theta, support=self.support)

    def refuse(self, batch: Batch, counts: Array, possible: BoolArray) -> None:
        """EvidenceError where a label that counts is not possible, (S,)."""
        wrong = (counts > 0) & ~possible
        if wrong.any():
            rows, weights, numbers = weighted_rows(batch)
            states = batch.graph.state_offsets[:-1] + np.maximum(rows, 0)
            row, v = np.argwhere((rows >= 0) & (weights > 0) & wrong[states])[0]
            raise impossible_labels(int(numbers[row, v]))

    def value_and_grad(self, theta: Array, batch: Batch, state: Result | None) -> tuple[float, Array, Result | None]:
        """L, its gradient (P,), and the messages."""
        counts, problem = self.counts(batch), self.bound(theta, batch)
        result = infer_whole(self.engine, problem, VARIABLES, warm=state)
        assert result.probabilities is not None
        self.bounds.add(result.bound)
        beliefs, known = result.probabilities[0], counts > 0
        if (beliefs[known] <= 0).any():  # by a hard zero, or since theta is large
            flat = infer_whole(self.engine, self.bound(np.zeros_like(theta), batch), VARIABLES).probabilities
            assert flat is not None
            self.refuse(batch, counts, flat[0] > 0)
            return np.inf, np.zeros_like(theta), None
        value, moments = -dot(counts[known], np.log(beliefs[known])), np.zeros(len(problem.log_potentials))
        for part in _bands(beliefs, known):
            moments += self._derivative(problem, np.where(part, counts, 0.0), beliefs, result)
        return value, -batch.graph.moments(moments), _warm(self.engine, result)

    def _derivative(self, problem: Problem, counts: Array, beliefs: Array, warm: Result) -> Array:
        """(L,): dL/dlp of some labels."""
        known = counts > 0
        noise = ROUNDING if self.engine.capabilities.bound == "exact" else SETTLED
        direction = np.zeros_like(counts)
        direction[known] = -counts[known] / beliefs[known]
        largest = float((counts[known] / counts[known].max() / beliefs[known]).max())
        step = np.cbrt(3.0 * noise) * largest ** (-2.0 / 3.0) / counts[known].max()
        ends = [self._moments(problem, sign * step * direction, warm) for sign in (1.0, -1.0)]
        return np.asarray((ends[0] - ends[1]) / (2.0 * step))

    def _moments(self, problem: Problem, change: Array, warm: Result) -> Array:
        observed = np.full((1, problem.graph.n_variables), -1)
        perturbed = problem.with_evidence(Evidence(observed, change[None]))
        return infer_whole(self.engine, perturbed, MOMENTS, warm=_warm(self.engine, warm)).moments


@dataclass(frozen=True, slots=True, eq=False)
class TruncatedLoss(MarginalLoss):
    """See the module; marginals after so many iterations. plans: of each batch."""

    iterations: int = 1
    plans: WeakKeyDictionary[Batch, UnrolledPlan] = field(default_factory=WeakKeyDictionary)

    @property
    def is_exact(self) -> bool:
        """Never."""
        return False

    def value_and_grad(self, theta: Array, batch: Batch, state: Any) -> tuple[float, Array, None]:
        """L and its gradient (P,)."""
        counts, problem = self.counts(batch), self.bound(theta, batch)
        if batch not in self.plans:
            self.plans[batch] = plan_unrolled(problem, self.engine)
        sweeps = Unrolled(problem, self.plans[batch], self.iterations, getattr(self.engine, "memory_limit", None))
        known = counts > 0
        value = -dot(counts[known], sweeps.log_beliefs[known])
        if not np.isfinite(value):
            return np.inf, np.zeros_like(theta), None
        return value, -batch.graph.moments(sweeps.gradient(counts)), None


def _bands(beliefs: Array, known: BoolArray) -> Iterator[BoolArray]:
    """Labels (S,) whose beliefs are about alike."""
    band = np.zeros(len(beliefs), np.int64)
    band[known] = np.floor(np.log(beliefs[known]) / np.log(BAND))
    return ((band == number) & known for number in np.unique(band[known]))


def _warm(engine: Engine, result: Result) -> Result | None:
    """What the next run begins with."""
    return result if isinstance(engine, (BP, TRW)) else None


def _may_rule_out(template: Template) -> bool:
    """Whether it has hard zeros, or its formula may."""
    return template.support is not None or template.structured is not None
