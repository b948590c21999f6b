"""`besag.em`: parameters of a model p_u(x, s) from x alone, 003.

    maximise  sum_n w_n log p_u(x_n) = h(u) - W g(u),     g(u) = log Z,  h(u) = sum_n w_n log sum_s exp <phi(x_n, s), u>

which are two convex functions: EM is the DC algorithm, mu = grad h(u), then u with W grad g(u) = mu. With exact steps
the log-likelihood never falls. Hidden is what the data do not give: a column that is not there, NaN, None, or the code
-1. A Bayesian network stays one: its M-step is in closed form, also that of noisy-MAX factors (`noisy`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from besag.arrays import Array
from besag.errors import ApproximationWarning, CapabilityError, ModelError, warn
from besag.foreign import hinting
from besag.infer.engine import ENGINES, Engine
from besag.infer.iterate import Clock
from besag.learn.checkpoint import Checkpoint, load_checkpoint
from besag.learn.fit import Fit, read_data
from besag.learn.hidden.noisy import check_counts, gather_up, noisy_children, spell_out, widen
from besag.learn.hidden.rounds import EM, Rounds, add_columns
from besag.learn.hidden.starts import random_start, refuse_symmetry
from besag.learn.hidden.steps import E_STEPS, M_STEPS, Numbers, Visible
from besag.learn.hidden.tables import read_counts
from besag.learn.history import History, Iteration, OnIteration
from besag.learn.losses.likelihood import Likelihood
from besag.learn.objective import thread_count
from besag.learn.optimisers.base import descend
from besag.learn.training import Resume, warn_of_end
from besag.model.model import Model
from besag.query.progress import ProgressLine, pace
from besag.registry import is_whole


@hinting
def em(
    model: Model,
    data: Any,
    e_step: str | Any = "exact",
    m_step: str | Any = "exact",
    *,
    weights: Any = None,
    prior_counts: Any = None,
    max_iterations: int = 200,
    tolerance: float = 1e-6,
    restarts: int = 0,
    seed: int = 0,
    time_limit: float | None = None,
    engine: str | Engine | None = None,
    n_threads: int | None = None,
    progress: bool = False,
    on_step: OnIteration | None = None,
    resume: Resume | None = None,
) -> Fit:
    """Learns the parameters of a model from data with hidden variables, beginning at those that it has.

    data: as for `fit`, a DataFrame of states whose cells may be missing, int codes with -1, or structured data.
    e_step: exact, gibbs, bp or mean_field; m_step: exact, gibbs, bp, contrastive_divergence, pcd or pseudolikelihood,
    each with options in the text. engine: of exact steps, "auto" unless given. prior_counts: of the entries of CPTs, a
    number, {child: table} or (P,). restarts: how many times to begin again with noise; the best end is the answer. The
    history has log_likelihood, 003's g and h, and the value of the DC dual.

    >>> import besag
    >>> model = besag.bayesian_network("A -> B", {"A": 2, "B": 2}, {"B": [[0.9, 0.1], [0.2, 0.8]]})
    >>> found = besag.em(model, [[0, 0], [0, 0], [1, 1], [-1, 1]])
    >>> found.model.marginals()["A"].round(2)
    array([0.5, 0.5])
    """
    if noisy_children(model):
        check_counts(model, prior_counts)
        spelled = spell_out(model)
        given = widen(model, spelled, data)
        fitted = em(
            spelled, given, e_step, m_step, weights=weights, prior_counts=prior_counts, max_iterations=max_iterations,
            tolerance=tolerance, restarts=restarts, seed=seed, time_limit=time_limit, engine=engine,
            n_threads=n_threads, progress=progress, on_step=on_step, resume=resume,
        )  # fmt: skip
        learnt = gather_up(model, fitted.model)
        return replace(fitted, model=learnt, theta=learnt.theta)
    options = EM(max_iterations, tolerance)
    if not is_whole(restarts) or restarts < 0:
        raise CapabilityError(f"restarts must be a whole number from 0 on, got {restarts!r}")
    if not is_whole(seed) or seed < 0:
        raise CapabilityError(f"seed must be a whole number from 0 on, got {seed!r}")
    before = None if resume is None else _read_checkpoint(resume)
    if before is not None and restarts:
        raise CapabilityError("resume goes on with one run; leave out restarts")
    visible = Visible(model, read_data(model, data, weights).all, Likelihood(ENGINES.read("auto"), model.support))
    if visible.weight == 0:
        raise ModelError("weights must not all be 0: there is nothing to learn from")
    threads = thread_count(n_threads)
    first = E_STEPS.read(e_step, engine=engine), M_STEPS.read(m_step, engine=engine)
    prior = read_counts(model, prior_counts)
    refuse_symmetry(visible, restarts, prior_counts if isinstance(prior_counts, Mapping) else ())
    shown = ProgressLine() if progress else None
    clock, best = Clock(time_limit), None
    for number in range(1 + restarts):
        start = Numbers(model.theta, model.support) if number == 0 else random_start(model, number, seed)
        steps = first[0].at_work(visible, threads), first[1].at_work(visible, threads)
        rounds = Rounds(options, visible, steps, start, prior, seed)
        if before is not None:
            rounds.check(before)
        left = None if time_limit is None else max(clock.left, 0.0)
        found = Ending(
            rounds, *descend(rounds, start.theta, left, _watching(on_step, shown, max_iterations, left), before)
        )
        best = found if best is None or found.value < best.value else best
        if clock.left <= 0 or found.history.stopped in ("interrupted", "early_stopping"):
            break
    if shown is not None:
        shown.end()
    assert best is not None
    return _fit(model, best)


class Ending(NamedTuple):
    """One way from a start to an end."""

    rounds: Rounds
    theta: Array
    history: History
    checkpoint: Checkpoint

    @property
    def value(self) -> float:
        """At the end; runs whose likelihood nobody knows are all the same."""
        return math.inf if math.isnan(self.history.value) else self.history.value


def _fit(model: Model, best: Ending) -> Fit:
    history, kept = best.history, best.checkpoint.kept
    add_columns(history, kept)
    history.has_value = not math.isnan(history.value)
    support = kept.get("support")
    found = model.with_numbers(best.theta, None if support is None else np.asarray(support, np.bool_))
    is_exact = best.rounds.is_exact
    result = Fit(
        found,
        found.theta,
        history.value if history.has_value else None,
        history.converged,
        history.stopped or "",
        is_exact,
        None,
        history,
        best.checkpoint,
    )
    if not is_exact:
        text = "a step of EM was not exact: parameters and log-likelihood are those of an approximation"
        if history.stopped == "no_progress":
            text += "; it ended because no model has the moments that the E-step found"
        warn(ApproximationWarning(text))
    elif best.rounds.options.tolerance > 0:
        warn_of_end("EM", history, f"give it more, as in max_iterations={2 * max(history.n_iterations, 1)}")
    return result


def _read_checkpoint(given: Resume) -> Checkpoint:
    resume = load_checkpoint(given) if isinstance(given, (str, PathLike)) else given
    if not isinstance(resume, Checkpoint):
        raise ModelError(f"resume must be a checkpoint or the path of one, got {type(resume).__name__}")
    return resume


def _watching(
    on_step: OnIteration | None, shown: ProgressLine | None, most: int, time_limit: float | None
) -> OnIteration | None:
    """What is called with each row: the user's function, and the line of progress."""
    if shown is None:
        return on_step

    def both(row: Iteration, theta: Array) -> bool | None:
        rate = pace(row.iteration, row.seconds, most, time_limit)
        shown.show(f"em: iteration {row.iteration}, {row.seconds:.1f} s, log-likelihood {-row.value:.8g}{rate}")
        return None if on_step is None else on_step(row, theta)

    return both
