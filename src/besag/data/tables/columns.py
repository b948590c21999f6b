"""One column of pandas or numpy as codes (N,) and its ColumnType.

categories    the codes that pandas keeps, as they are
whole numbers, truth values, floats that are whole
              looked up in a table from the least to the largest value; as they are where they count from 0
other floats  a few distinct values are states; many are measurements, and an error that says what to do
all else      pandas numbers the distinct values
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import AnyArray, BoolArray
from besag.data.tables.code_table import code_type
from besag.data.tables.column_type import MANY, ColumnType, measurements, sorted_order, type_of_values
from besag.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

Column = tuple[AnyArray, ColumnType]

WIDE = 1 << 16  # from the least to the largest whole number: beyond it values are hashed
MOST_STATES = 1 << 16


def column_of_series(name: str, column: pd.Series[Any]) -> Column:
    """A column of a DataFrame."""
    import pandas as pd

    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        codes = np.asarray(column.array.codes)
        category = "ordered" if dtype.ordered else "nominal"
        return _of_signed(codes), type_of_values(name, dtype.categories, category)
    if dtype.kind in "biuf":  # of nullable columns too
        missing = np.asarray(column.isna()) if dtype.kind == "f" or not isinstance(dtype, np.dtype) else None
        if missing is not None and not missing.any():
            missing = None
        plain = dtype if isinstance(dtype, np.dtype) else np.dtype(getattr(dtype, "numpy_dtype", np.float64))
        filled = column if missing is None or isinstance(dtype, np.dtype) else column.fillna(column.dropna().min())
        values = filled.to_numpy(dtype=plain) if missing is None or not missing.all() else np.zeros(len(column), plain)
        return column_of_numbers(name, values, missing, dtype)
    return _factorized(name, column)


def column_of_numbers(name: str, values: AnyArray, missing: BoolArray | None, dtype: Any) -> Column:
    """Numbers or truth values (N,), those under `missing` anything; dtype: what they come back as."""
    import pandas as pd

    if values.dtype.kind == "f":
        whole, missing = _whole(values, missing)
        if whole is None:
            return _few_floats(name, values, missing, dtype)
        values = whole
    if values.dtype.kind == "b":
        values = values.view(np.uint8) if values.flags.c_contiguous else values.astype(np.uint8)
    inside = values if missing is None else values[~missing]
    if len(inside) == 0:
        return np.full(len(values), 0xFF, np.uint8), ColumnType((), pd.Index([], dtype=dtype))
    low, high = int(inside.min()), int(inside.max())
    if high - low >= WIDE:
        series = pd.Series(values) if missing is None else pd.Series(values, dtype="Int64").mask(missing)
        return _factorized(name, series, dtype)
    return _looked_up(name, values, missing, (low, high), dtype)


def _looked_up(name: str, values: AnyArray, missing: BoolArray | None, ends: tuple[int, int], dtype: Any) -> Column:
    import pandas as pd

    low, high = ends
    if missing is not None:
        values = np.where(missing, low, values)
    places = values if low == 0 and values.dtype.itemsize < 8 else values.astype(np.int64) - low
    times = np.bincount(places, minlength=high - low + 1)
    if missing is not None:
        times[0] -= np.count_nonzero(missing)
    found = np.flatnonzero(times)
    column = type_of_values(name, pd.Index(found + low).astype(dtype))
    kind = code_type(len(found))
    if low == 0 and len(found) == high + 1:
        codes = places.view(kind) if places.dtype.itemsize == kind().itemsize else places.astype(kind)
    else:
        table = np.zeros(high - low + 1, kind)
        table[found] = np.arange(len(found))
        codes = table[places]
    if missing is not None:
        codes = codes.copy() if np.may_share_memory(codes, values) else codes
        codes[missing] = np.iinfo(kind).max
    return np.ascontiguousarray(codes), column


def _whole(values: AnyArray, missing: BoolArray | None) -> tuple[AnyArray | None, BoolArray | None]:
    """Floats as whole numbers, None where they are none; and which of them are missing."""
    unknown = np.isnan(values)
    if missing is not None:
        unknown |= missing
    filled = np.where(unknown, 0.0, values) if unknown.any() else values
    small = np.abs(filled) < 2.0**53
    whole = filled.astype(np.int64) if small.all() else None
    if whole is not None and not (whole == filled).all():
        whole = None
    return whole, unknown if unknown.any() else None


def _few_floats(name: str, values: AnyArray, missing: BoolArray | None, dtype: Any) -> Column:
    import pandas as pd

    known = values if missing is None else values[~missing]
    distinct = np.unique(known)
    if len(distinct) > MANY or not np.isfinite(distinct).all():
        raise measurements(name, distinct)
    codes = np.searchsorted(distinct, values).astype(np.uint8)
    if missing is not None:
        codes[missing] = 0xFF
    return codes, type_of_values(name, pd.Index(distinct).astype(dtype))


def _factorized(name: str, column: pd.Series[Any], dtype: Any = None) -> Column:
    """Any other column, its distinct values sorted."""
    import pandas as pd

    try:
        codes, found = column.factorize()
    except TypeError as error:
        raise DataError(f"column {name!r} holds values that are no states: {error}", column=name) from None
    values = pd.Index(found, dtype=column.dtype)
    if len(values) > MOST_STATES:
        raise DataError(
            f"column {name!r} has {len(values)} distinct values, more than {MOST_STATES}: is it a name or a number of "
            f"the row? Then drop it, frame.drop(columns={name!r}), or make it the index, frame.set_index({name!r})",
            column=name,
        )
    order = sorted_order(values)
    ordered = values.take(order) if dtype is None else values.take(order).astype(dtype)
    kind = code_type(len(order))
    table = np.full(len(order) + 1, np.iinfo(kind).max, kind)
    table[order] = np.arange(len(order))
    return table[codes], type_of_values(name, ordered)  # -1 = missing is the last


def _of_signed(codes: AnyArray) -> AnyArray:
    """pandas' codes, -1 = missing, as unsigned numbers: no copy but of 64 bits."""
    if codes.dtype.itemsize == 8:
        codes = codes.astype(np.int32)
    return np.ascontiguousarray(codes).view(codes.dtype.name.replace("int", "uint"))
