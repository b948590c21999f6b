"""One start after the other, each to its end by Baum-Welch; the best end is the answer."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from besag.arrays import Array, BoolArray
from besag.errors import ConvergenceWarning, ModelError, warn
from besag.estimators.hmm import start as starts
from besag.estimators.hmm.parameters import HiddenMarkovModel
from besag.infer.iterate import Clock, clear_interrupts
from besag.learn.checkpoint import Checkpoint, load_checkpoint
from besag.learn.hidden.baum_welch import LIKELIHOOD, BaumWelch
from besag.learn.hidden.chains import ChainParameters
from besag.learn.history import History, OnIteration
from besag.learn.optimisers.base import descend


class ChainTask(NamedTuple):
    """What is to be learnt: by a method that has the data, of named states, from `init` on or from random starts."""

    method: BaumWelch
    states: tuple[Any, ...]
    init: HiddenMarkovModel | None
    allowed: BoolArray
    seed: int

    def begin(self, number: int, restarts: int) -> ChainParameters:
        """Where run `number` begins."""
        rng, data = np.random.default_rng([self.seed, number]), self.method.data
        if self.init is None:
            return starts.random_parameters(data, self.method.prior.emission.shape[1], self.allowed, rng)
        given = self.init.parameters
        begin = given._replace(transition=given.transition * self.allowed).normalised(given)
        starts.refuse_ruled_out(begin.transition, self.allowed, self.states)
        if number:
            return starts.disturb(begin, rng)
        if not restarts:
            starts.refuse_alike(begin, data, self.states)
        return begin


class ChainEnding(NamedTuple):
    """One way from a start to an end."""

    theta: Array
    history: History
    checkpoint: Checkpoint


def learn_chain(
    task: ChainTask,
    restarts: int,
    time_limit: float | None,
    checkpoint: str | PathLike[str] | None,
    on_step: OnIteration | None,
) -> tuple[ChainParameters, History]:
    """The best end of all starts, and its history."""
    resume = load_checkpoint(checkpoint) if checkpoint is not None and Path(checkpoint).exists() else None
    if resume is not None and restarts:
        raise ModelError("a checkpoint goes on with one run; leave out restarts")
    if resume is not None:
        task.method.check(resume)
    clock, best = Clock(time_limit), None
    with clear_interrupts():
        for number in range(1 + restarts):
            begin, left = task.begin(number, restarts).packed(), None if time_limit is None else max(clock.left, 0.0)
            found = ChainEnding(*descend(task.method, begin, left, on_step, resume))
            best = found if best is None or found.history.value < best.history.value else best
            if clock.left <= 0 or found.history.stopped in ("interrupted", "early_stopping"):
                break
    assert best is not None
    if checkpoint is not None:
        best.checkpoint.save(checkpoint)
    best.history.columns[LIKELIHOOD] = task.method.likelihoods(best.checkpoint)
    _warn_of_end(best.history, task.method)
    return task.method.prior.like(best.theta), best.history


def _warn_of_end(history: History, method: BaumWelch) -> None:
    options = method.options
    if history.stopped == "max_iterations" and options.tolerance > 0:
        warn(
            ConvergenceWarning(
                f"HMM stopped after {history.n_iterations} iterations, before a step gained less than tol="
                f"{options.tolerance:g} of the log-likelihood; more than max_iter={options.max_iterations} may help"
            )
        )
