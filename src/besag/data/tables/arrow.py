"""Columns of tables that speak Arrow's stream interface (polars, pyarrow, ...) as codes, without Python objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from besag.data.tables.code_table import code_type
from besag.data.tables.column_type import ColumnType, sorted_order, type_of_values
from besag.data.tables.columns import Column, column_of_numbers, column_of_series
from besag.errors import require


def arrow_table(data: Any) -> Any:
    """What speaks Arrow as a pyarrow.Table, without what was the index of a DataFrame; no copy."""
    require("pyarrow", "arrow", "to read polars, Arrow and Parquet")
    import pyarrow as pa

    table = data if isinstance(data, pa.Table) else pa.table(data)
    index = (table.schema.pandas_metadata or {}).get("index_columns", [])
    return table.drop_columns([name for name in index if name in table.column_names])


def column_of_arrow(name: str, column: Any) -> Column:
    """A pyarrow.ChunkedArray."""
    import pandas as pd
    import pyarrow as pa

    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), 0xFF, np.uint8), ColumnType((), pd.Index([], dtype="str"))
    if column.num_chunks == 0:
        return np.zeros(0, np.uint8), ColumnType((), pd.Index([], dtype="str"))
    if pa.types.is_dictionary(kind):
        return _of_dictionary(name, column, "ordered" if kind.ordered else "nominal")
    if _is_text(kind):
        return _of_dictionary(name, column.cast(pa.large_string()).dictionary_encode(), "")
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        missing = np.asarray(column.is_null()) if column.null_count else None
        filled = column.fill_null(False if pa.types.is_boolean(kind) else 0) if column.null_count else column
        values = filled.to_numpy()
        return column_of_numbers(name, values, missing, values.dtype)
    return column_of_series(name, column.to_pandas())


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    view = getattr(pa.types, "is_string_view", lambda _: False)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or view(kind))


def _of_dictionary(name: str, column: Any, category: str) -> Column:
    """Indices into distinct values: ordered ones are the states as they stand, of others those that occur, sorted."""
    import pandas as pd
    import pyarrow as pa

    whole = column.unify_dictionaries().combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks)
    is_text = _is_text(whole.dictionary.type)
    values = whole.dictionary.cast(pa.large_string()) if is_text else whole.dictionary
    found = pd.Index(values.to_pandas().array, dtype="str" if is_text else None)
    indices = np.asarray(whole.indices.fill_null(len(found)) if whole.indices.null_count else whole.indices)
    order = np.arange(len(found))
    if category != "ordered":
        used = np.flatnonzero(np.bincount(indices, minlength=len(found) + 1)[: len(found)])
        order = used[sorted_order(found.take(used))]
    kind = code_type(len(order))
    table = np.full(len(found) + 1, np.iinfo(kind).max, kind)
    table[order] = np.arange(len(order))
    return np.ascontiguousarray(table[indices]), type_of_values(name, found.take(order), category)
