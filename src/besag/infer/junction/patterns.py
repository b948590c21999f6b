"""Moments of many rows of evidence on a large graph: a tree for each pattern of observed variables.

A tree that serves all rows has an axis for every variable that some row leaves open. On a small graph that is the best:
rows go through it side by side. On a large one it may be far larger than the trees of single rows, in which what is
observed is no axis; then rows that observe the same variables share a tree of their own.

    cost of one tree for all     entries * rows
    cost of one for each         mean entries * rows + PLANNED * links * patterns      mean: over PROBES of them
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import IntArray
from besag.errors import TooLargeError
from besag.graph.evidence import Evidence
from besag.infer.engine import Want

if TYPE_CHECKING:
    from besag.infer.junction.run import JunctionRun

LARGE = 2.0**15  # table entries of a tree for all rows, from which others are thought of
PLANNED = 500.0  # table entries that take as long as planning a tree takes for each link of the graph
PROBES = 3


def sums_by_pattern(run: JunctionRun, want: frozenset[Want]) -> dict[str, Any] | None:
    """log Z and moments with a tree for each pattern; None where one tree for all rows costs less."""
    groups = list(_groups(run.given.evidence))
    if len(groups) == 1:
        return None
    whole = _entries(run, want)
    if whole <= LARGE:
        return None
    probes = [groups[i] for i in np.unique(np.linspace(0, len(groups) - 1, PROBES).astype(np.int64))]
    n_rows = run.given.evidence.n_rows
    mean = np.mean([_entries(_part(run, rows), want) for rows in probes])
    if mean * n_rows + PLANNED * len(run.graph.scope_variables) * len(groups) >= whole * n_rows:
        return None
    log_z, moments = np.empty(n_rows), np.zeros(len(run.given.log_potentials))
    for rows in groups:
        part = _part(run, rows)
        found = part.sums(want)
        log_z[rows] = found["log_partitions"]
        moments += found["table_moments"]
        run.told |= part.told
    run.told["patterns"] = len(groups)
    return {"log_partitions": log_z, "table_moments": moments}


def _groups(evidence: Evidence) -> Iterator[IntArray]:
    """The rows of each pattern."""
    seen = np.packbits(evidence.observed >= 0, axis=1)
    _, which = np.unique(seen, axis=0, return_inverse=True)
    order = np.argsort(which.reshape(-1), kind="stable")
    yield from np.split(order, np.cumsum(np.bincount(which.reshape(-1)))[:-1])


def _part(run: JunctionRun, rows: IntArray) -> JunctionRun:
    """The same question about some rows."""
    evidence, problem = run.given.evidence, run.given
    logs = evidence.log_weights
    logs = logs if logs is None or len(logs) == 1 else logs[rows]
    own = Evidence(evidence.observed[rows], logs, batched=True)
    return type(run)(
        run.engine, replace(problem, evidence=own, weights=problem.row_weights[rows]), time_limit=run.time_limit
    )


def _entries(run: JunctionRun, want: frozenset[Want]) -> float:
    """Table entries of a tree; inf where none was found."""
    try:
        return run.draw_up(want)[1].total
    except TooLargeError:
        return np.inf
