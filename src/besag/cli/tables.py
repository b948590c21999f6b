"""A Result as a table, for people, or for programs: with a value in every cell and all digits.

A table has R lines, each of one of the B rows of evidence: (R,) `row_of`. It is made column by column and some
thousands of lines at a time, so that a batch of 100,000 rows takes little more than its inference. Names, states and
labels are escaped as they come in: all cells are ready to be printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.cli.answers import LOG_10
from besag.cli.messages import escape

if TYPE_CHECKING:
    from besag.infer.result import Result
    from besag.model.variable import Variables

BAR = 20
CELLS = 1 << 18  # that are made at a time

Columns = list[list[str]]


class TextTable(NamedTuple):
    """Lines above the table, the names of its columns, and these, some lines at a time."""

    notes: list[str]
    header: list[str]
    parts: Iterator[Columns]


class Lines(NamedTuple):
    """A table before it is cut into parts and the labels of the rows go in front."""

    notes: list[str]
    header: list[str]
    row_of: IntArray
    columns: Callable[[slice], Columns]


def table_of(task: str, result: Result, labels: Sequence[str], terminal: bool) -> TextTable:
    """The answers of a task; where there are several rows of evidence, their labels are the first column."""
    notes, header, row_of, columns = _lines(task, result, terminal)
    step = max(1, CELLS // len(header))
    parts = [slice(start, start + step) for start in range(0, len(row_of), step)]
    if not result.batched:
        return TextTable(notes, header, (columns(part) for part in parts))
    shown = _cells(labels)
    return TextTable(notes, ["row", *header], ([shown[row_of[part]].tolist(), *columns(part)] for part in parts))


def _lines(task: str, result: Result, terminal: bool) -> Lines:
    if task == "PR":
        return _partitions(result)
    if task == "MAR":
        return _marginals(result, terminal)
    if task == "SAMPLE":
        return _samples(result)
    alone = not result.batched and len(result.solutions) == 1
    return _labelling(result) if alone else _labellings(result, 6 if terminal else 12)


def _partitions(result: Result) -> Lines:
    values = np.atleast_1d(result.log_partition)

    def columns(part: slice) -> Columns:
        return [_numbers(values[part]), _numbers(values[part] / LOG_10)]

    return Lines([_how(result)], ["log Z", "log10 Z"], np.arange(len(values)), columns)


def _marginals(result: Result, terminal: bool) -> Lines:
    """A line a state: lines b S to (b + 1) S - 1 are of row b, S the states of all variables that were asked for."""
    variables = result.graph.variables
    keys = result.keys()
    spaces = [variables[name].states for name in keys]
    first = [int(i == 0) for space in spaces for i in range(len(space))]
    names = _cells([name for name, space in zip(keys, spaces, strict=True) for _ in space])
    states = _cells([state for space in spaces for state in space])
    shown = np.where(first, names, "") if terminal else names
    values = np.concatenate([np.atleast_2d(result[name]) for name in keys], axis=1)
    flat = values.ravel()

    def columns(part: slice) -> Columns:
        p = flat[part].tolist()
        state = np.arange(*part.indices(len(flat))) % len(states)
        written = [list(map(_probability, p)), ["#" * round(BAR * x) for x in p]] if terminal else [_digits(p, 12)]
        return [shown[state].tolist(), states[state].tolist(), *written]

    notes = [_how(result)]
    if not result.batched and result.log_partitions is not None:
        notes.insert(0, _log_z(result))
    header = ["variable", "state", "probability"] + ([""] if terminal else [])
    return Lines(notes, header, np.repeat(np.arange(len(values)), len(states)), columns)


def _labelling(result: Result) -> Lines:
    assignment = result.assignment
    cells = [_cells(assignment).tolist(), _cells(assignment.values()).tolist()]
    rows = np.zeros(len(assignment), np.int64)
    return Lines([_weight(result), _how(result)], ["variable", "state"], rows, lambda part: [c[part] for c in cells])


def _labellings(result: Result, digits: int) -> Lines:
    """A line a labelling; those of infinite energy only fill the array."""
    assert result.codes is not None
    assert result.energies is not None
    codes, energies, variables = result.codes, result.energies, result.graph.variables
    rows, ranks = np.nonzero(energies < np.inf)
    asked = np.flatnonzero(codes[0, 0] >= 0).tolist()
    states = _states(variables, asked)

    def columns(part: slice) -> Columns:
        b, rank = rows[part], ranks[part]
        h, found = energies[b, rank], codes[b, rank]
        written = [found_states[found[:, v]].tolist() for v, found_states in zip(asked, states, strict=True)]
        return [list(map(str, (rank + 1).tolist())), _numbers(h, digits), _numbers(-h / LOG_10, digits), *written]

    names = [escape(name) for name in variables.names_at(asked)]
    return Lines([_how(result)], ["rank", "energy", "log10 weight", *names], rows, columns)


def _samples(result: Result) -> Lines:
    variables = result.graph.variables
    everyone = range(len(variables))
    drawn = result.samples.reshape(-1, len(variables))
    states = _states(variables, everyone)

    def columns(part: slice) -> Columns:
        return [states[v][drawn[part, v]].tolist() for v in everyone]

    n = result.samples.shape[-2]
    names = [escape(name) for name in variables.names_at(everyone)]
    return Lines([], names, np.arange(len(drawn)) // max(n, 1), columns)


# Cells ---------------------------------------------------------------------------------------------------------------


def _cells(texts: Iterable[str]) -> AnyArray:
    """Texts that may be printed, in an array that gives many of them at once."""
    return np.array([escape(text) for text in texts], dtype=object)


def _states(variables: Variables, indices: Iterable[int]) -> list[AnyArray]:
    """The states of some variables; those of one space share an array."""
    spaces = [_cells(space) for space in variables.spaces]
    return [spaces[variables.space_of[v]] for v in indices]


def _digits(values: list[float], digits: int) -> list[str]:
    return list(map(f"%.{digits}g".__mod__, values))


def _numbers(values: Array, digits: int = 12) -> list[str]:
    """Numbers in which rounding errors around zero are zero."""
    return _digits(np.where(np.abs(values) <= 1e-12, 0.0, values).tolist(), digits)


def _number(value: float) -> str:
    return _numbers(np.array([value]))[0]


def _probability(p: float) -> str:
    return f"{p:.6f}" if p == 0 or p >= 5e-7 else f"{p:.1e}"


# Notes ---------------------------------------------------------------------------------------------------------------


def _how(result: Result) -> str:
    reason = result.diagnostics.get("reason")
    return f"{result.bound}, by {result.diagnostics['engine']}" + (f": {reason}" if reason else "")


def _log_z(result: Result) -> str:
    return f"log Z = {_number(result.log_partition)}, log10 Z = {_number(result.log_partition / LOG_10)}"


def _weight(result: Result) -> str:
    proof = "proven optimal" if result.optimal else f"not proven optimal, the gap is {result.gap:.6g}"
    return f"energy = {_number(result.energy)}, log10 weight = {_number(-result.energy / LOG_10)}, {proof}"
