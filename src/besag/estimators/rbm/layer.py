"""Rows of a table as visible units of a machine, and back.

    binary        cells are numbers from 0 to 1: a unit a column; between them, the probability of 1
    categorical   cells are states of any kind: a unit a state, 1 at the state of the row

A cell that is missing is an error: a machine needs every one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self

import numpy as np

from besag.arrays import AnyArray, IntArray, offsets_of
from besag.data.tables.arrow import arrow_table
from besag.data.tables.code_table import CodeTable, check_known, missing_code
from besag.data.tables.column_type import ColumnType, names_of
from besag.data.tables.reading import read_table, refuse_no_rows
from besag.errors import DataError


class VisibleLayer(Protocol):
    """What a machine's visible units stand for."""

    is_binary: bool
    names: tuple[str, ...]

    @property
    def offsets(self) -> IntArray:
        """(V + 1,): where the units of each column begin."""

    @property
    def states(self) -> list[tuple[str, ...]]:
        """Of each column, by name."""

    def encode(self, X: Any) -> AnyArray:
        """(N, S) float32: the units of rows; DataError where the rows are of another kind."""

    def decode(self, units: AnyArray) -> Any:
        """The rows of units (N, S), in the form of those that were learnt from."""

    def told(self) -> dict[str, Any]:
        """The layer as JSON can hold it."""


class BinaryLayer:
    """Columns of numbers from 0 to 1. named: whether rows come as DataFrames with these columns."""

    is_binary = True

    def __init__(self, names: tuple[str, ...], *, named: bool) -> None:
        self.names, self.named = names, named

    @classmethod
    def of(cls, X: Any) -> Self:
        """The layer of a table."""
        X = framed(X)
        columns = getattr(X, "columns", None)
        if columns is not None:
            return cls(tuple(names_of(columns)), named=True)
        return cls(tuple(f"v{i}" for i in range(read_numbers(X).shape[1])), named=False)

    @property
    def offsets(self) -> IntArray:
        """A unit each."""
        return np.arange(len(self.names) + 1)

    @property
    def states(self) -> list[tuple[str, ...]]:
        """0 and 1."""
        return [("0", "1")] * len(self.names)

    def encode(self, X: Any) -> AnyArray:
        """The numbers themselves."""
        X = framed(X)
        if self.named and hasattr(X, "columns"):
            X = in_order(X, self.names)
        values = read_numbers(X)
        if values.shape[1] != len(self.names):
            raise DataError(f"X has {values.shape[1]} features, but RBM is expecting {len(self.names)} features")
        wrong = ~((values >= 0) & (values <= 1))
        if wrong.any():
            row, column = (int(i) for i in np.argwhere(wrong)[0])
            value, where = values[row, column], f"in row {row}, column {self.names[column]!r}"
            if np.isnan(value):
                raise DataError(f"a machine needs every cell, and the one {where} is NaN; impute it first", row=row)
            raise DataError(
                f"visible values must be from 0 to 1, got {value:g} {where}; scale them, or take "
                'visible="categorical" for states of another kind',
                row=row,
            )
        return np.ascontiguousarray(values, np.float32)

    def decode(self, units: AnyArray) -> Any:
        """0 and 1."""
        rows = units.astype(np.int8)
        if not self.named:
            return rows
        import pandas as pd

        return pd.DataFrame(rows, columns=list(self.names))

    def told(self) -> dict[str, Any]:
        """Names."""
        return {"kind": "binary", "names": list(self.names), "named": self.named}


class CategoricalLayer:
    """Columns of states. types: of the columns."""

    is_binary = False

    def __init__(self, names: tuple[str, ...], types: tuple[ColumnType, ...], *, named: bool) -> None:
        self.names, self.types, self.named = names, types, named

    @classmethod
    def of(cls, X: Any) -> Self:
        """The layer of a table."""
        table = read_table(X)
        refuse_no_rows(table)
        if not table.names:
            raise DataError("the table has no columns; there is nothing to learn from")
        check_known(table.names, table.types)
        return cls(table.names, table.types, named=hasattr(X, "columns"))

    @property
    def offsets(self) -> IntArray:
        """A unit a state."""
        return offsets_of(np.array([len(column.states) for column in self.types]))

    @property
    def states(self) -> list[tuple[str, ...]]:
        """By name, as the data have them."""
        return [column.states for column in self.types]

    def encode(self, X: Any) -> AnyArray:
        """1 at the state of each cell."""
        states = dict(zip(self.names, self.states, strict=True))
        if not self.named and isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] != len(self.names):
            raise DataError(f"X has {X.shape[1]} features, but RBM is expecting {len(self.names)} features")
        table: CodeTable = read_table(X, states, columns=self.names)
        refuse_no_rows(table)
        offsets = self.offsets
        units = np.zeros((table.n_rows, int(offsets[-1])), np.float32)
        for v, codes in enumerate(table.codes):
            gone = codes == missing_code(codes)
            if gone.any():
                row = int(np.argmax(gone))
                raise DataError(
                    f"a machine needs every cell, and the one in row {row}, column {self.names[v]!r} is missing; "
                    "impute it first",
                    row=row,
                    column=self.names[v],
                )
            units[np.arange(table.n_rows), offsets[v] + codes.astype(np.int64)] = 1.0
        return units

    def decode(self, units: AnyArray) -> Any:
        """The values that the states stand for."""
        import pandas as pd

        offsets = self.offsets
        codes = [units[:, offsets[v] : offsets[v + 1]].argmax(axis=1) for v in range(len(self.names))]
        values = {name: own.restored(c) for name, own, c in zip(self.names, self.types, codes, strict=True)}
        frame = pd.DataFrame(values, columns=list(self.names))
        return frame if self.named else frame.to_numpy()

    def told(self) -> dict[str, Any]:
        """Names and types."""
        types = [column.told() for column in self.types]
        return {"kind": "categorical", "names": list(self.names), "types": types, "named": self.named}


def layer_from(told: Mapping[str, Any]) -> VisibleLayer:
    """The inverse of `told`."""
    names = tuple(told["names"])
    if told["kind"] == "binary":
        return BinaryLayer(names, named=told["named"])
    return CategoricalLayer(names, tuple(ColumnType.from_told(own) for own in told["types"]), named=told["named"])


def framed(X: Any) -> Any:
    """Tables of polars and Arrow as DataFrames, all else as it is."""
    if hasattr(X, "__arrow_c_stream__") and not hasattr(X, "iloc"):
        return arrow_table(X).to_pandas()
    return X


def read_numbers(X: Any) -> AnyArray:
    """X as (N, V) numbers, N and V at least 1."""
    try:
        values = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
        values = values if values.dtype.kind in "fiub" else values.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(
            'X must be an array (N, V) of numbers from 0 to 1; states of another kind need visible="categorical"'
        ) from None
    if values.ndim != 2 or values.size == 0:
        raise DataError(f"X must have shape (N, V) with at least one row and one column, got {values.shape}")
    return values


def in_order(frame: Any, names: tuple[str, ...]) -> Any:
    """The columns of a DataFrame by name; DataError where one is not there."""
    have = {str(name): i for i, name in enumerate(frame.columns)}
    absent = [name for name in names if name not in have]
    if absent:
        raise DataError(f"the table has no column {absent[0]!r}, which was learnt from", column=absent[0])
    return frame.iloc[:, [have[name] for name in names]]
