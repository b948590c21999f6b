"""CodeTable: N rows of V variables as one array of state codes a column.

codes: V contiguous arrays (N,) of unsigned integers, the shortest that hold the states: K <= 255 in a byte. The largest
value of an array's type stands for a missing cell: 255, 65535, ... These are the codes that a pandas Categorical keeps,
-1 = missing, read as unsigned numbers, so that most tables are taken as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from besag.arrays import AnyArray, Array, BoolArray, IntArray
from besag.data.tables.column_type import MANY, ColumnType, typed_text
from besag.errors import DataError, DataWarning, warn
from besag.model.variable import NameList, Variables

FEW_ROWS = 5  # of a value, on average: too few to learn anything of it


def code_type(n_states: int) -> type[np.uint8 | np.uint16 | np.uint32]:
    """The shortest unsigned integers for states 0 to n - 1 and one more that stands for a missing cell."""
    return np.uint8 if n_states <= 0xFF else np.uint16 if n_states <= 0xFFFF else np.uint32


def missing_code(codes: AnyArray) -> int:
    """What stands for a missing cell in such codes."""
    return int(np.iinfo(codes.dtype).max)


@dataclass(frozen=True, slots=True, eq=False)
class CodeTable:
    """Rows as codes, see the module; weights (N,) of the rows, None = 1 each; index: the labels of the rows."""

    names: tuple[str, ...]
    types: tuple[ColumnType, ...]
    codes: tuple[AnyArray, ...]
    n_rows: int
    weights: Array | None = None
    index: Any = None

    @property
    def variables(self) -> Variables:
        """The columns as variables; DataError for one whose cells are all missing."""
        check_known(self.names, self.types)
        return Variables.from_spaces(NameList(self.names), [column.states for column in self.types])

    @property
    def cardinalities(self) -> IntArray:
        """(V,)."""
        return np.array([len(column.states) for column in self.types], np.int64)

    @property
    def has_missing(self) -> tuple[bool, ...]:
        """(V,): whether any cell of a column is missing."""
        return tuple(bool(self.n_rows) and int(codes.max()) == missing_code(codes) for codes in self.codes)

    def incomplete(self) -> BoolArray:
        """(N,): the rows with a missing cell."""
        found = np.zeros(self.n_rows, np.bool_)
        for codes, some in zip(self.codes, self.has_missing, strict=True):
            if some:
                found |= codes == missing_code(codes)
        return found

    def observed(self) -> IntArray:
        """(N, V) codes, -1 = missing: what Evidence and `besag.em` take."""
        rows = np.empty((self.n_rows, len(self.codes)), np.int64)
        for v, codes in enumerate(self.codes):
            rows[:, v] = codes
            rows[codes == missing_code(codes), v] = -1
        return rows

    def take(self, rows: Any) -> CodeTable:
        """Some rows: a mask or their numbers."""
        codes = tuple(np.ascontiguousarray(column[rows]) for column in self.codes)
        weights = None if self.weights is None else self.weights[rows]
        n_rows = int(np.count_nonzero(rows)) if np.asarray(rows).dtype == np.bool_ else len(rows)
        index = None if self.index is None else self.index[rows]
        return CodeTable(self.names, self.types, codes, n_rows, weights, index)

    def reordered(self, names: Sequence[str]) -> CodeTable:
        """The columns in another order."""
        at = [self.names.index(name) for name in names]
        types, codes = tuple(self.types[i] for i in at), tuple(self.codes[i] for i in at)
        return CodeTable(tuple(names), types, codes, self.n_rows, self.weights, self.index)

    def with_types(self, types: Sequence[ColumnType], places: Sequence[IntArray]) -> CodeTable:
        """The same cells as codes of other types; places: where the states of each column are in its new type."""
        codes = tuple(
            recode(own, at, len(column.states)) for own, at, column in zip(self.codes, places, types, strict=True)
        )
        return CodeTable(self.names, tuple(types), codes, self.n_rows, self.weights, self.index)

    def as_read(self) -> CodeTable:
        """A table of text as it would have been read at once, see `typed_text`."""
        types = [
            own if own.declared else typed_text(name, own) for name, own in zip(self.names, self.types, strict=True)
        ]
        places = [own.places_in(new) for own, new in zip(self.types, types, strict=True)]
        return self.with_types(types, places)


def check_known(names: Sequence[str], types: Sequence[ColumnType]) -> None:
    """DataError for a column whose cells are all missing."""
    for name, column in zip(names, types, strict=True):
        if not column.states:
            raise DataError(
                f"column {name!r} has no value in any row; drop it, or declare its states and it is hidden: "
                f"states={{{name!r}: [...]}}",
                column=name,
            )


def warn_of_constants(names: Sequence[str], types: Sequence[ColumnType]) -> None:
    """A DataWarning that names the columns of one state."""
    alone = [name for name, column in zip(names, types, strict=True) if len(column.states) == 1]
    if alone:
        what = f"column {alone[0]!r} has" if len(alone) == 1 else f"columns {alone} have"
        warn(DataWarning(f"{what} one value in all rows: a variable of one state, which tells nothing"))


def warn_of_identifiers(names: Sequence[str], types: Sequence[ColumnType], n_rows: int) -> None:
    """A DataWarning that names the columns of many values that next to no rows share, unless they were declared."""
    counts = {n: len(own.states) for n, own in zip(names, types, strict=True) if not own.declared}
    found = [name for name, count in counts.items() if count > MANY and n_rows < FEW_ROWS * count]
    if found:
        least = min(counts[name] for name in found)
        what = f"column {found[0]!r} has" if len(found) == 1 else f"columns {found} have"
        told = f"{what} {least} different values{' or more' if len(found) > 1 else ''} in {n_rows} rows"
        drop = repr(found[0] if len(found) == 1 else found)
        what_to_do = f"drop names and dates of rows, frame.drop(columns={drop}), and cut numbers, besag.Discretizer"
        warn(DataWarning(f"{told}, too few to learn from; {what_to_do}"))


def recode(codes: AnyArray, places: IntArray, n_states: int) -> AnyArray:
    """Codes by another numbering, places (K,), of n states, missing cells staying so; themselves where it is theirs."""
    dtype = code_type(n_states)
    if codes.dtype == dtype and (places == np.arange(len(places))).all():
        return codes
    largest = missing_code(codes)
    if len(places) < largest and largest > 1 << 16:  # too long for a look-up of every code
        new = places[np.where(codes == largest, 0, codes)] if len(places) else np.zeros(len(codes), np.int64)
        return np.where(codes == largest, np.iinfo(dtype).max, new).astype(dtype)
    table = np.full(largest + 1, np.iinfo(dtype).max, dtype)
    table[: len(places)] = places
    return np.asarray(table[codes])


def joined_tables(tables: Sequence[CodeTable]) -> CodeTable:
    """The rows of several tables of the same columns, one after the other."""
    first, *rest = tables
    if not rest:
        return first
    types = list(first.types)
    for table in rest:
        types = [own.union(other)[0] for own, other in zip(types, table.types, strict=True)]
    moved = [
        table.with_types(types, [new.union(own)[2] for new, own in zip(types, table.types, strict=True)])
        for table in tables
    ]
    codes = tuple(np.concatenate([table.codes[v] for table in moved]) for v in range(len(types)))
    n_rows = sum(table.n_rows for table in tables)
    weights = None
    if any(table.weights is not None for table in tables):
        weights = np.concatenate([np.ones(t.n_rows) if t.weights is None else t.weights for t in tables])
    return CodeTable(first.names, tuple(types), codes, n_rows, weights)
