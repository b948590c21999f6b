"""The minimum of an objective: an optimiser at work, with held-out data watched, from a checkpoint on or from zeros.

What `besag.fit` and estimators share. Where held-out data are best served by a theta that was left behind, that one is
the answer, the way back to it is the last row of the history, of step 0, and nothing is said to have converged.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from os import PathLike
from typing import NamedTuple, TypeAlias

import numpy as np

from besag.arrays import Array, norm
from besag.errors import CapabilityError, ConvergenceWarning, ModelError, warn
from besag.infer.iterate import clear_interrupts
from besag.learn.checkpoint import Checkpoint, load_checkpoint
from besag.learn.early import PREFIX, HeldOut
from besag.learn.history import History, Iteration, OnIteration
from besag.learn.objective import Instances, Total
from besag.learn.optimisers.base import Optimizer, pseudo_gradient

GAP = "gap"  # the column of a history that says how far above the least value it is at most
Resume: TypeAlias = Checkpoint | str | PathLike[str]


class Minimum(NamedTuple):
    """Theta, how it was reached, and from where to go on."""

    theta: Array
    history: History
    checkpoint: Checkpoint


def minimum(
    total: Total,
    method: Optimizer,
    start: Array,
    *,
    held_out: Instances | None = None,
    time_limit: float | None = None,
    on_step: OnIteration | None = None,
    resume: Resume | None = None,
) -> Minimum:
    """The least value of `total`; with held-out data, theta where their loss is least on the way there."""
    total.objective.warn_of(total.shards)
    before = None if resume is None else _resumed(total, resume)
    kept, watch = ({} if before is None else before.kept), None
    if held_out is not None:
        if not total.has_value:
            raise CapabilityError("held_out= watches values, and this objective has a gradient only: leave it out")
        begin, first = (start, 0) if before is None else (before.theta, before.iteration)
        watch = HeldOut(total, held_out, begin, first, kept)
        if before is not None:
            watch.catch_up(before)
    if before is not None:
        before = replace(before, kept={name: value for name, value in kept.items() if not name.startswith(PREFIX)})
    is_over = watch is not None and watch.is_over  # before a checkpoint: not a step more
    limit = 0.0 if is_over else time_limit
    found, history, checkpoint = method.minimize(
        total, start, time_limit=limit, on_step=_watching(on_step, watch), resume=before
    )
    history.stopped = "early_stopping" if is_over else history.stopped
    if watch is None:
        return Minimum(found, history, checkpoint)
    with suppress(KeyboardInterrupt), clear_interrupts():  # pressed again: left to who resumes
        watch.catch_up(checkpoint)
    checkpoint = replace(checkpoint, kept={**checkpoint.kept, **watch.packed()})
    unseen = len(history.rows) - len(watch.losses)
    history.held_out = watch.losses + [math.nan] * unseen
    if not np.array_equal(watch.best, found):
        history.go_back(*_measured(total, watch, history))
        history.stopped = "early_stopping" if history.converged else history.stopped
        history.held_out.append(watch.least)
    return Minimum(watch.best, history, checkpoint)


def _measured(total: Total, watch: HeldOut, history: History) -> tuple[float, float]:
    """Value and norm of the gradient at the best theta: those of its row, evaluated where that was left out."""
    row = history.rows[watch.losses.index(watch.least)]
    if not math.isnan(row.value):
        return row.value, row.grad_norm
    value, gradient = total.value_and_grad(watch.best)
    return value + total.penalty.absolute(watch.best), norm(pseudo_gradient(total, watch.best, gradient))


def usual_optimizer(total: Total, smooth: str = "lbfgs") -> str:
    """What minimises an objective unless somebody names another: `smooth`, or frank_wolfe where there are kinks."""
    return smooth if total.objective.is_smooth or not hasattr(total.objective, "ascent") else "frank_wolfe"


def warn_of_end(who: str, history: History, more: str, *, is_exact: bool = True) -> None:
    """A ConvergenceWarning where a fit ended without having got there; more: what to do if it was merely too short."""
    count, norm = history.n_iterations, history.rows[-1].grad_norm
    far = f"its gradient norm {norm:.3g}"
    if GAP in history.columns:
        far = f"its value {history.value:.6g} at most {history.columns[GAP][-1]:.3g} above the least"
    if _has_risen(history):
        text = f"{who} stopped after {count} iterations, its gradient norm {norm:.3g}; values have risen on the way: "
        text += "give it smaller steps, as in gradient_descent[step=0.01]"
    elif history.stopped == "max_iterations":
        text = f"{who} stopped after {count} iterations, {far}; {more}"
    elif history.stopped == "no_progress":
        text = f"{who} found no step that makes the value smaller, after {count} iterations and at a gradient norm of "
        text += f"{norm:.3g}; "
        if is_exact:
            text += "inputs of very different sizes may be why: scale them"
        else:
            text += (
                "inference was approximate, and its values have kinks where its fixed points change: theta is the best "
            )
            text += "so far. More l2, likelihood[engine=trw], whose value is convex, or marginal_loss may get further"
    else:
        return
    warn(ConvergenceWarning(text))


def _has_risen(history: History) -> bool:
    """Whether a lower value was left behind."""
    return history.went_back > 0 and history.rows[-1].value < history.rows[-2].value


def _resumed(total: Total, given: Resume) -> Checkpoint:
    """The checkpoint, from its file where it is in one; ModelError where it is of other data or another penalty."""
    resume = load_checkpoint(given) if isinstance(given, (str, PathLike)) else given
    if not isinstance(resume, Checkpoint):
        raise ModelError(f"resume must be a checkpoint or the path of one, got {type(resume).__name__}")
    _check_resumed(total, resume)
    return resume


def _check_resumed(total: Total, resume: Checkpoint) -> None:
    """Not where the last row was not evaluated, or an iteration is under way: then nothing is known of theta."""
    was, theta, box = resume.rows[-1].value, resume.shown, total.penalty.box
    if box is not None and len(theta) == len(box.low) and not box.contains(theta):
        raise ModelError("resume is of a fit with other bounds: its theta is not within these")
    if resume.kept.get("position", 0) or not np.isfinite(was) or len(theta) != len(total.statistics):
        return
    now = total.value(theta)
    rtol = 1e-9 if total.objective.is_exact else 1e-3  # rows may be of rougher inference, or of other messages
    if not np.isclose(was, now, rtol=rtol, atol=1e-9):
        raise ModelError(f"resume is of other data or another penalty: the value there was {was}, now it is {now}")


def _watching(on_step: OnIteration | None, watch: HeldOut | None) -> OnIteration | None:
    if watch is None:
        return on_step

    def both(row: Iteration, theta: Array) -> bool:
        ended = bool(on_step(row, theta)) if on_step is not None else False
        return watch(theta) or ended

    return both
