"""Rows of evidence as arrays, and where they stand in files. B rows on V variables and S states are

    observed (B, V) codes, -1 = free     log_weights (B, S) or None     said (B, V): what a row speaks of

where `said` is more than what is observed: a likelihood, or a null of JSON, replaces an earlier state too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from besag.arrays import Array, BoolArray, IntArray
from besag.errors import EvidenceError, EvidenceWarning, warn
from besag.graph.evidence import Evidence, read_doubting, row_name
from besag.model.variable import Variables

LineOf = Callable[[int], int | None]


def _no_line(row: int) -> None:
    return None


@dataclass(frozen=True, slots=True, eq=False)
class EvidenceRows:
    """Rows of evidence, their labels, and where they stand: the file, and the line of a row where it has one."""

    observed: IntArray
    log_weights: Array | None
    said: BoolArray
    labels: Sequence[str]
    path: str = ""
    line: LineOf = _no_line

    def __len__(self) -> int:
        return len(self.observed)

    def evidence(self) -> Evidence:
        """As engines take it, batched where there are several rows."""
        return Evidence(self.observed, self.log_weights)

    def locate(self, error: EvidenceError) -> EvidenceError:
        """The error of one row of several, with the row's file and line in place of its number."""
        if error.row is None:
            return error
        row = int(str(error.row))
        label = "" if self.labels[row] == str(row) else f"{row_name(self.labels[row])}: "
        message = str(error).removeprefix(f"{row_name(error.row)}: ")
        return EvidenceError(f"{self.place(row)}{label}{message}", conflict=error.conflict, row=self.labels[row])

    def place(self, row: int) -> str:
        """The file and the line of a row, in front of what is said of it."""
        return ":".join(str(part) for part in (self.path, self.line(row)) if part is not None) + ": "


def rows_of(
    variables: Variables, given: Sequence[dict[str, Any]], path: str = "", line: LineOf = _no_line
) -> EvidenceRows:
    """Rows {name: value}, as `read_evidence` takes them; what there is to warn of is told once a variable."""
    observed = np.full((len(given), len(variables)), -1, np.int64)
    said = np.zeros(observed.shape, np.bool_)
    weights: Array | None = None
    doubts: dict[int, str] = {}
    rows = EvidenceRows(observed, None, said, [str(row) for row in range(len(given))], path, line)
    for row, values in enumerate(given):
        try:
            read, doubted = read_doubting(variables, values)
        except EvidenceError as error:
            raise rows.locate(EvidenceError(str(error), row=row)) if path else error from None
        doubts = {v: rows.place(row) + doubt for v, doubt in doubted.items()} | doubts
        observed[row] = read.observed
        said[row, [variables.index(name) for name in values]] = True
        if read.log_weights is not None:
            weights = np.zeros((len(given), int(variables.state_offsets[-1]))) if weights is None else weights
            weights[row] = read.log_weights
    for doubt in doubts.values():
        warn(EvidenceWarning(doubt))
    return replace(rows, log_weights=weights)


def join_sentences(variables: Variables, before: EvidenceRows, after: EvidenceRows) -> EvidenceRows:
    """What `after` says, and what `before` says of other variables."""
    if len(before) == 1 and not before.said.any():
        return after
    weights: Array | None = None
    if before.log_weights is not None or after.log_weights is not None:
        nothing = np.zeros((1, int(variables.state_offsets[-1])))
        old, new = (nothing if rows.log_weights is None else rows.log_weights for rows in (before, after))
        weights = np.where(np.repeat(after.said, variables.cardinalities, axis=1), new, old)
        weights = np.broadcast_to(weights, (max(len(before), len(after)), weights.shape[1]))
    return replace(
        before if len(before) > 1 else after,
        observed=np.where(after.said, after.observed, before.observed),
        log_weights=weights,
        said=after.said | before.said,
    )
