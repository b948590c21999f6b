"""Baum-Welch and Viterbi training as Methods: an iteration is an M-step and the E-step after it.

    E-step    counts C = sum_n E[begun, transitions, emissions | x_n],  or along the best path of each sequence
    M-step    each row of probabilities = (C + a) over its sum          a: Dirichlet pseudo-counts of the prior
    value     = -(sum_n log p(x_n) + <a, log p>),  or with log p(x_n, best path)

No step makes the value larger. A row without counts stays as it is, and zeros stay zeros. theta (P,) are the
probabilities: start, then transitions row by row, then emissions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from besag.arrays import Array, norm
from besag.errors import CapabilityError, ModelError
from besag.learn.checkpoint import Checkpoint, Kept
from besag.learn.hidden.chains import ChainParameters, HiddenSequences, refuse_impossible
from besag.learn.hidden.rounds import EM, PREFIX
from besag.learn.history import Iteration
from besag.learn.optimisers.base import Method, Point
from besag.learn.penalty import Penalty, penalty_of
from besag.model.layout import Layout

LIKELIHOOD = "log_likelihood"
METHODS = ("baum_welch", "viterbi")


class ChainObjective:
    """What is minimised, as `besag.learn.optimisers.base` wants to know of it."""

    def __init__(self, n: int) -> None:
        self.penalty: Penalty = penalty_of(Layout(()))
        self.n, self.has_value, self.noise = n, True, 0.0


class BaumWelch(Method):
    """M-step and E-step in turn; along the best paths if `hard`. prior: pseudo-counts, in the shapes of parameters."""

    compares_values = False

    def __init__(
        self, options: EM, data: HiddenSequences, prior: ChainParameters, hard: bool, n_threads: int | None
    ) -> None:
        Method.__init__(self, options, ChainObjective(len(data)))  # type: ignore[arg-type]
        self.options, self.data, self.prior, self.hard, self.n_threads = options, data, prior, hard, n_threads

    def begin(self, theta: Array) -> Point:
        return self._point(0, self.prior.like(theta), {})

    def step(self, point: Point) -> Point:
        before = self.prior.like(point.theta)
        counts = self.prior.like(np.asarray(point.kept["counts"]))
        return self._point(point.iteration + 1, counts.plus(self.prior).normalised(before), point.kept)

    def _point(self, iteration: int, parameters: ChainParameters, before: Mapping[str, Any]) -> Point:
        expect = self.data.follow if self.hard else self.data.expect
        log_z, counts = expect(parameters, self.n_threads)
        refuse_impossible(log_z == -np.inf)
        likelihood = float(log_z.sum())
        column = np.append(before.get(PREFIX + LIKELIHOOD, np.zeros(0)), likelihood)
        asked = counts.plus(self.prior)
        rest = asked.packed() - _given_back(asked, parameters).packed()
        value = -(likelihood + parameters.log_density(self.prior))
        kept = {"counts": counts.packed(), PREFIX + LIKELIHOOD: column}
        return Point(iteration, parameters.packed(), value, norm(rest), float(iteration > 0), kept)

    def is_converged(self, point: Point, rows: list[Iteration]) -> bool:
        if len(rows) < 2 or not math.isfinite(point.value):
            return False
        return abs(rows[-2].value - point.value) <= self.options.tolerance * max(1.0, abs(point.value))

    def check(self, resume: Checkpoint) -> None:
        """ModelError where a checkpoint is of other data, or of another model."""
        self.unpacked(resume.kept)
        was = resume.rows[-1].value
        now = self.begin(resume.theta).value if len(resume.theta) == len(self.prior.packed()) else math.nan
        if not np.isclose(was, now, rtol=1e-9, atol=1e-9):
            raise ModelError(f"the checkpoint is of other data or another model: the value there was {was}, now {now}")

    def likelihoods(self, checkpoint: Checkpoint) -> list[float]:
        """log p of all sequences at each row of the history."""
        values = np.asarray(checkpoint.kept[PREFIX + LIKELIHOOD], np.float64)
        return [float(value) for value in values[: len(checkpoint.rows)]]

    def unpacked(self, kept: Mapping[str, Kept]) -> Mapping[str, Kept]:
        if "counts" not in kept:
            raise CapabilityError("checkpoint must be one of an HMM")
        return kept


def _given_back(counts: ChainParameters, parameters: ChainParameters) -> ChainParameters:
    """The counts that rows of probabilities give where their sums are those of these counts."""
    return ChainParameters(
        *(own * part.sum(axis=-1, keepdims=True) for own, part in zip(parameters, counts, strict=True))
    )
