"""`read_table`: whatever a user has as a table -> CodeTable.

A DataFrame of pandas; polars, Arrow and whatever else speaks Arrow's stream interface; {name: column} or a list of
{name: value}; int codes (N, V), -1 = missing, whose columns are named "0" to "V-1" and have the states 0 to the largest
code. Declared states take the place of those found, and a value that is none of them is an error that names the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from besag.arrays import AnyArray, Array
from besag.data.tables.arrow import arrow_table, column_of_arrow
from besag.data.tables.code_table import CodeTable, code_type, recode
from besag.data.tables.column_type import ColumnType, declared_type, names_of, type_of_states
from besag.data.tables.columns import Column, column_of_numbers, column_of_series
from besag.errors import DataError, EvidenceError
from besag.graph.evidence import cell_code, no_state, row_name
from besag.model.variable import NameList, Variables, number_states
from besag.text import did_you_mean

NO_ROWS = "the table has no rows; there is nothing to learn from"


def read_table(
    data: Any,
    states: Mapping[str, Sequence[str]] | None = None,
    weights: Any = None,
    columns: Sequence[str] = (),
    first_row: int = 0,
) -> CodeTable:
    """A table as codes. states: declared ones, by name. columns: those to be read, in this order; () = all of them.

    first_row: the number of the first row, for errors, where the table is a part of another one.
    """
    if isinstance(data, CodeTable):
        return data if weights is None else _weighted(data, weights)
    if len(getattr(data, "shape", "NV")) == 1 and getattr(data.dtype, "names", None) is None:
        raise DataError("data must have two axes, rows and columns, got one. Reshape your data: frame[[name]] has two")
    names, read, n_rows, index = _columns(data)
    wanted = list(columns) or names
    absent = [name for name in wanted if name not in names]
    if absent:
        hint = did_you_mean(absent[0], names) or f"it has {', '.join(map(repr, names[:6]))}"
        raise DataError(f"the table has no column {absent[0]!r}; {hint}", column=absent[0])
    found = [read(names.index(name)) for name in wanted]
    for i, name in enumerate(wanted):
        if states is not None and name in states:
            found[i] = _declared(
                name, found[i], tuple(states[name]), range(first_row, first_row + n_rows) if index is None else index
            )
    codes, types = tuple(codes for codes, _ in found), tuple(kind for _, kind in found)
    table = CodeTable(tuple(wanted), types, codes, n_rows, None, index)
    return table if weights is None else _weighted(table, weights)


def _columns(data: Any) -> tuple[list[str], Any, int, Any]:
    """The names of all columns, what reads one by its number, the number of rows and their labels."""
    if hasattr(data, "toarray"):
        raise DataError("sparse data are not supported: a table of states has no zeros to leave out; data.toarray()")
    if hasattr(data, "__array__") and not hasattr(data, "iloc") and not hasattr(data, "__arrow_c_stream__"):
        data = np.asarray(data)
    if isinstance(data, np.ndarray) and data.dtype.names is None:
        return _of_array(data)
    if hasattr(data, "iloc") and hasattr(data, "columns"):
        names = names_of(data.columns)
        return names, lambda i: column_of_series(names[i], data.iloc[:, i]), len(data), data.index
    if hasattr(data, "__arrow_c_stream__"):
        table = arrow_table(data)
        names = names_of(table.column_names)
        return names, lambda i: column_of_arrow(names[i], table.column(i)), table.num_rows, None
    if isinstance(data, (Mapping, list, tuple, np.ndarray)):
        return _columns(_frame(data))
    raise DataError(f"data must be a table: a DataFrame, int codes (N, V), or a path to .csv or .parquet, got {data!r}")


def _frame(data: Any) -> Any:
    import pandas as pd

    try:
        return pd.DataFrame(data)
    except (ValueError, TypeError) as error:
        raise DataError(f"data must be a table, rows by columns: {error}") from None


def _of_array(data: AnyArray) -> tuple[list[str], Any, int, Any]:
    if data.ndim != 2:
        raise DataError(f"data must have two axes, rows and columns, got shape {data.shape}. Reshape your data")
    if data.dtype.kind == "c":
        raise DataError("Complex data not supported: a state is a text or a number")
    if data.dtype.kind not in "biuf":
        return _columns(_frame(data).infer_objects())
    names = list(number_states(data.shape[1]))
    if data.dtype.kind in "iu":
        return names, lambda i: _of_codes(data[:, i]), len(data), None
    return names, lambda i: column_of_numbers(names[i], data[:, i], None, data.dtype), len(data), None


def _of_codes(codes: AnyArray) -> Column:
    """Codes as a user gives them: below 0 is missing, and the states are 0 to the largest."""
    n_states = int(codes.max()) + 1 if len(codes) else 0
    kind = code_type(n_states)
    short = codes.astype(kind)
    if codes.dtype.kind == "i":
        short[codes < 0] = np.iinfo(kind).max
    column = type_of_states(number_states(n_states), declared=False)
    return short, ColumnType(column.states, column.values.astype(codes.dtype))


def _declared(name: str, column: Column, states: tuple[str, ...], index: Any) -> Column:
    """A column as codes of declared states; EvidenceError for a value that is none of them."""
    codes, found = column
    variables = Variables.from_spaces(NameList([name]), [states])
    places = [cell_code(variables, 0, value) for value in found.values.tolist()]
    for at, place in enumerate(places):
        if place is None and (hit := np.flatnonzero(codes == at)).size:
            row = index[int(hit[0])]
            raise EvidenceError(f"{row_name(row)}: {no_state(variables, 0, found.values[at])}", row=row)
    kind = code_type(len(states))
    unknown = np.iinfo(kind).max
    numbered = np.array([unknown if place is None or place < 0 else place for place in places], np.int64)
    return recode(codes, numbered, len(states)), declared_type(states, found, places)


def _weighted(table: CodeTable, weights: Any) -> CodeTable:
    values = read_weights(weights, table.n_rows)
    return CodeTable(table.names, table.types, table.codes, table.n_rows, values, table.index)


def read_weights(given: Any, n_rows: int) -> Array:
    """Weights (N,) of rows: finite, not negative, not all zero; DataError names the row."""
    try:
        weights = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise DataError(f"weights must be numbers, one a row, got {type(given).__name__}") from None
    if weights.shape != (n_rows,):
        raise DataError(f"weights must be {n_rows} numbers, one a row, got shape {weights.shape}")
    wrong = ~((weights >= 0) & (weights < np.inf))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(f"weights must be finite and not negative, got {weights[row]} in row {row}", row=row)
    if n_rows and not weights.any():
        raise DataError("weights must not all be zero")
    return np.ascontiguousarray(weights)


def refuse_no_rows(table: CodeTable) -> None:
    """DataError for a table without rows."""
    if table.n_rows == 0:
        raise DataError(NO_ROWS)
