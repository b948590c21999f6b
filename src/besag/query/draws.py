"""Means over draws, with their standard errors, 001.

(1/S) sum over s of h(y^(s))       with s^2 the variance of the S values, its error is
    s / sqrt(S)                    of independent draws, from engines that sample exactly
    s / sqrt(ESS)                  of chains: ESS is their effective size (besag.infer.sampling.diagnostics)

S draws, D distinct ones among them, Q numbers of each; C chains, whose draws take turns
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from besag.arrays import Array, IntArray
from besag.errors import CapabilityError, ConvergenceWarning, warn
from besag.graph.evidence import Evidence
from besag.infer.auto.engine import Auto
from besag.infer.engine import Engine, Want
from besag.infer.iterate import Clock
from besag.infer.result import Result
from besag.infer.sampling.diagnostics import mean_error
from besag.query.run import Options, run_engine
from besag.query.verbs import POSSIBLE

if TYPE_CHECKING:
    from besag.model.model import Model

SHARE = 0.5  # of the time limit, for drawing


def draw_many(model: Model, engine: Engine, read: Evidence, options: Options) -> Result:
    """All draws of an engine under one row of evidence, at least one."""
    tells: Want = next(want for want in POSSIBLE if want in engine.capabilities.wants)
    if isinstance(engine, Auto):
        tells = "variables"  # which the sampler has, so that nobody is asked for log Z
    want = frozenset[Want]({"samples", tells})
    limit = options.get("time_limit")
    timed: Options = options if limit is None else {**options, "time_limit": SHARE * limit}
    result = run_engine(model, engine, read, want, timed)
    if not len(result.samples):
        raise CapabilityError("sampling ended before the first draw; give it more time, or a smaller burn_in")
    return result


def distinct_rows(codes: IntArray) -> tuple[IntArray, IntArray]:
    """(D, V) and (S,): the distinct rows in the order of their first, and the number of each row among them."""
    short = codes.astype(np.min_scalar_type(int(codes.max(initial=0))))
    numbers: dict[bytes, int] = {}
    which = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in short], np.int64)
    return codes[np.unique(which, return_index=True)[1]], which


def at_draws(values: Iterable[Array], which: IntArray, clock: Clock, verb: str) -> Array:
    """(S, ...): the values (D, ...) of distinct draws at all draws, as far as there is time, at least at one.

    Ctrl-C ends it like the time limit, once there is a value.
    """
    kept: list[Array] = []
    ended = "stopped at its time_limit"
    try:
        for value in values:
            kept.append(value)
            if clock.left <= 0:
                break
    except KeyboardInterrupt:
        if not kept:
            raise
        ended = "was interrupted"
    n = int(np.argmax(which == len(kept))) if len(kept) <= which.max() else len(which)
    if n < len(which):
        text = f"{verb} {ended} after {n} of {len(which)} samples"
        warn(ConvergenceWarning(f"{text}: the answer is the mean over these"))
    return np.stack(kept)[which[:n]]


def error_of_mean(values: Array, result: Result) -> Array | None:
    """(Q,): the standard error of the mean of values (S, Q) at the draws of a Result; None where it is unknown."""
    n_chains = result.diagnostics.get("n_chains")
    if n_chains is None:
        moved = values - values[:1]  # exactly 0 where all draws agree
        return np.asarray(moved.std(axis=0, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None
    n = len(values) // n_chains
    by_chain = values[: n * n_chains].reshape(n, n_chains, values.shape[1])
    error = mean_error(by_chain.transpose(2, 1, 0))
    return error if np.isfinite(error).all() else None
