"""Cost functions between a file and a Model: tables of energies, in which +inf is a hard zero.

The readers of libDAI, WCSP and CFN files make a list of CostFunctions, and `model_of_costs` pools those of one shape
into one Template, with a row of theta for each distinct table. Functions that hold the same array share that row.
A function without variables is a constant, which is added to the first function with variables, or to a new unary one
on variable 0, so that energies stay as the file gives them.

WCSP and CFN files forbid labellings whose costs sum up to a limit or more. Tables can express that for single entries
only: an entry is a hard zero if even the least entries of all other functions bring the sum to the limit,

    E_f(y_f) + sum over g != f of min E_g >= limit.

All other labellings stay possible; metadata["energy_limit"] keeps the limit, and `model.map` warns of an answer at or
above it.

A file may declare far more than it contains: `EntryBudget` and SPARE_STATES limit what may be made of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, concatenate
from besag.io.shared.budget import EntryBudget
from besag.io.shared.files import NumberText
from besag.model.metadata import NONE
from besag.model.model import FactorGroup, Model
from besag.model.template import Template
from besag.model.variable import Names, Variables, number_states

SPARE_STATES = 1 << 16  # states that a file may declare beyond its count of numbers


class CostFunction(NamedTuple):
    """Energies (K1..Kn) on a scope of n variables; functions that hold the same array share it."""

    scope: tuple[int, ...]
    table: Array
    name: str | None = None


class Sparse(NamedTuple):
    """A table (K1..Kn) given by tuples in a file, from `start` on: a state for each of `columns`, and a number.

    columns: how many states each column has. default: the value of all other entries. owner: the number of a function.
    """

    shape: tuple[int, ...]
    columns: tuple[int, ...]
    start: int
    n_tuples: int
    default: float
    owner: int

    @property
    def end(self) -> int:
        """Where its tuples end."""
        return self.start + self.n_tuples * (len(self.columns) + 1)


def check_size(numbers: NumberText, room: EntryBudget, table: Sparse, what: str, tuples: str) -> None:
    """ParseError where the file ends within the tuples of a table, or is too short for one of its size."""
    if table.end > len(numbers):
        raise numbers.fail(len(numbers), f"the file ends in the {table.n_tuples} {tuples} of {what} {table.owner}")
    if not room.holds(table.shape):
        message = f"the table of {what} {table.owner} has {prod(table.shape)} entries, too many for so short a file"
        raise numbers.fail(table.start - 1, message)


def dense_tables(numbers: NumberText, tables: Sequence[Sparse], what: str) -> Iterator[tuple[list[int], Array]]:
    """The tables, all of one shape and number of tuples at a time: their positions, and the tables (T, size), flat.

    ParseError if a state does not exist, saying that `what` was expected.
    """
    alike: dict[tuple[tuple[int, ...], int], list[int]] = {}
    for number, table in enumerate(tables):
        alike.setdefault((table.shape, table.n_tuples), []).append(number)
    for (shape, n_tuples), members in alike.items():
        columns, width = tables[members[0]].columns, len(tables[members[0]].columns) + 1
        starts = np.array([tables[number].start for number in members], np.int64)
        entries = numbers.values[starts[:, None] + np.arange(n_tuples * width)].reshape(len(members), n_tuples, width)
        states = entries[:, :, :-1]
        wrong = ~((states >= 0) & (states < np.array(columns)) & (states == np.floor(states)))
        if wrong.any():
            at, row, column = (int(i) for i in np.argwhere(wrong)[0])
            place = int(starts[at]) + row * width + column
            numbers.integer(place, 0, columns[column] - 1, f"{what} {tables[members[at]].owner}")
        strides = np.array([prod(columns[axis + 1 :]) for axis in range(len(columns))], np.int64)
        dense = np.repeat([tables[number].default for number in members], prod(shape)).reshape(len(members), -1)
        dense[np.arange(len(members))[:, None], states.astype(np.int64) @ strides] = entries[:, :, -1]
        yield members, dense


def too_many_states(cardinalities: IntArray, n_numbers: int) -> int | None:
    """The variable with the most states if these are too many for a file with so many numbers, else None."""
    if int(np.unique(cardinalities).sum()) <= n_numbers + SPARE_STATES:
        return None
    return int(np.argmax(cardinalities))


def number_variables(names: Names, cardinalities: IntArray) -> Variables:
    """Variables whose states are "0".."K-1"."""
    distinct, space_of = np.unique(cardinalities, return_inverse=True)
    return Variables(names, [number_states(k) for k in distinct.tolist()], space_of)


def model_of_costs(
    variables: Variables,
    functions: Sequence[CostFunction],
    metadata: Mapping[str, Any] | None = None,
    limit: float = np.inf,
) -> Model:
    """The Model whose energy is the sum of the functions, in their order; a sum of `limit` or more is forbidden."""
    by_shape: dict[tuple[int, ...], list[int]] = {}
    functions = _without_constants(variables, functions)
    for number, function in enumerate(functions):
        by_shape.setdefault(function.table.shape, []).append(number)
    groups, tables, uses = [], [], []
    for shape, members in by_shape.items():
        group, own, counts = _group(shape, [functions[i] for i in members], np.array(members, np.int64))
        groups.append(group)
        tables += own
        uses += counts
    theta = concatenate(tables, np.float64)
    support = _allowed(theta, np.array([table.size for table in tables], np.int64), np.array(uses), limit)
    theta[~support] = 0.0
    known = dict(metadata or NONE) | ({"energy_limit": limit} if np.isfinite(limit) else {})
    return Model(variables, tuple(groups), theta, None if support.all() else support, metadata=known or NONE)


def _allowed(energies: Array, sizes: IntArray, uses: IntArray, limit: float) -> BoolArray:
    """Which entries of all tables, one after another, can be part of a labelling below the limit.

    sizes: of the tables. uses: how many functions have each of them.
    """
    if not len(sizes):
        return np.ones(0, np.bool_)
    least = np.minimum.reduceat(energies, np.cumsum(sizes) - sizes)
    with np.errstate(over="ignore"):
        total = float((uses * least).sum())
        if not total < limit:
            return np.zeros(len(energies), np.bool_)
        return np.asarray(energies + np.repeat(total - least, sizes) < limit)


def _group(
    shape: tuple[int, ...], functions: list[CostFunction], positions: IntArray
) -> tuple[FactorGroup, list[Array], list[int]]:
    """The group of the functions of one shape, their distinct tables, and how many functions have each."""
    row_of: dict[int, int] = {}
    rows = np.array([row_of.setdefault(id(function.table), len(row_of)) for function in functions])
    tables = list({id(function.table): function.table for function in functions}.values())
    scopes = np.array([function.scope for function in functions], np.int64)
    names = tuple(function.name for function in functions if function.name is not None)
    template = Template(f"table[{','.join(map(str, shape))}]", shape, len(tables))
    group = FactorGroup(template, scopes, rows, False, positions, names or None)
    return group, tables, np.bincount(rows).tolist()


def _without_constants(variables: Variables, functions: Sequence[CostFunction]) -> list[CostFunction]:
    constants = [function.table.item() for function in functions if not function.scope]
    kept = [function for function in functions if function.scope]
    if constants:
        first = kept[0] if kept else CostFunction((0,), np.zeros(int(variables.cardinalities[0])))
        with np.errstate(over="ignore"):  # the Model refuses too large energies
            kept[:1] = [first._replace(table=first.table + sum(constants))]
    return kept
