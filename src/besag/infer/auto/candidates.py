"""Which of several estimates to believe: what bounds on log Z disprove is no answer.

An estimate of log Z has an error of its own, so that by SLIP nats it may lie outside of its bounds, and the nearest
bound takes its place. Further outside the engine has failed, and its marginals are as wrong as its log Z. In the order
of what speaks for them

    join_graph    where it is exact, or where its passes have settled: marginals change by CALM at the most
    bp            where messages have converged
    join_graph    after more than one pass
    bp            in any other state
    join_graph    after its first pass
    trw, mean_field      the bounds themselves, which are what is left where both are disproved. Those from above come
                         first: their problem is convex, where mean field settles for one of several modes

and each row of a batch has the first of these that it does not disprove. Moments are sums over rows, and a union is
one row: they are the first's that no row, or instance, disproves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from besag.arrays import Array, BoolArray, IntArray
from besag.infer.result import Result

SLIP = 0.01  # nats
ROUNDING = 1e-9  # of log Z
CALM = 0.05  # change of a marginal
ROWS = ("log_partitions", "probabilities", "factor_marginals")  # arrays with a row for each row of evidence

Interval = tuple[Array, Array]


def is_settled(result: Result) -> bool:
    """Whether an engine has come to an end of its own."""
    told = result.diagnostics
    if told["engine"] == "join_graph":
        return result.bound == "exact" or told["converged"] or told["change"] <= CALM
    return bool(told["converged"])


def is_allowed(result: Result, interval: Interval | None) -> BoolArray:
    """(R,) or (N,): where an estimate is not disproved; there must be numbers, and messages must not have diverged."""
    values = result.log_partitions
    if values is None:
        fine = result.probabilities is None or bool(np.isfinite(result.probabilities).all())
        return np.full(1, fine and not result.diagnostics.get("diverges"))
    sound = ~np.isnan(values) & (values < np.inf) & (not result.diagnostics.get("diverges"))
    if interval is None:
        return np.asarray(sound)
    low, high = interval
    slip = SLIP + ROUNDING * np.abs(np.where(np.isfinite(values), values, 0.0))
    return np.asarray(sound & (values >= low - slip) & (values <= high + slip))


def sort_in_order(results: Sequence[Result]) -> list[Result]:
    """What there is the most to say for first."""

    def rank(result: Result) -> int:
        settled, is_bp = is_settled(result), result.diagnostics["engine"] == "bp"
        if settled:
            return int(is_bp)
        return 3 if is_bp else 2 if result.diagnostics["change"] < np.inf else 4

    return sorted(results, key=rank)


def choose(results: Sequence[Result], interval: Interval | None) -> Result | None:
    """The answer out of several, the better ones first; None where each of them is disproved."""
    able = np.array([is_allowed(result, interval) for result in results])
    whole = next((i for i, rows in enumerate(able) if rows.all()), None)
    by_row = able.shape[1] > 1 and results[0].graph.n_instances == 1 and results[0].table_moments is None
    if whole == 0 or not by_row or not able.any(axis=0).all():
        return None if whole is None else results[whole]
    return _mixed(results, able.argmax(axis=0))


def _mixed(results: Sequence[Result], which: IntArray) -> Result:
    """Each row from the result that is named for it; how it came about is told of the one with the most rows."""
    lead = results[int(np.bincount(which).argmax())]
    rows = np.arange(len(which))
    arrays: dict[str, Any] = {
        name: np.array([getattr(result, name) for result in results])[which, rows]
        for name in ROWS
        if getattr(lead, name) is not None
    }
    return replace(lead, **arrays, bound="estimate", bounds=None, state=None)
