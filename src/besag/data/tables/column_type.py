"""What a column of a table holds: the values that its states stand for, so that answers look as the data did.

A state is named str(value), a whole float as a whole number: 1.0 is "1", because pandas makes floats of integers beside
a missing cell. States are in the order of the categories where a column has them, else sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import AnyArray, IntArray
from besag.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

ARROW_TEXT = "string of Arrow"
MANY = 20  # distinct numbers with a fraction that are taken for states


@dataclass(frozen=True, slots=True, eq=False)
class ColumnType:
    """States (K,) by name, and what they stand for.

    values: a pandas Index (K,) of the dtype of the column. category: "" where it was no Categorical, else "nominal" or
    "ordered". declared: whether the states were given, so that no other may occur.
    """

    states: tuple[str, ...]
    values: pd.Index[Any]
    category: str = ""
    declared: bool = False

    def restored(self, codes: AnyArray) -> Any:
        """The values (N,) of codes (N,), as pandas keeps such a column."""
        import pandas as pd

        if not self.category:
            return self.values.take(codes)
        dtype = pd.CategoricalDtype(self.values, ordered=self.category == "ordered")
        return pd.Categorical.from_codes(codes, dtype=dtype, validate=False)

    def union(self, other: ColumnType) -> tuple[ColumnType, IntArray, IntArray]:
        """The type of both columns in one, and where the states of either are in it."""
        if self.states == other.states:
            same = np.arange(len(self.states))
            return self, same, same
        known = {state: i for i, state in enumerate(self.states)}
        new = [i for i, state in enumerate(other.states) if state not in known]
        values = (
            self.values.append(other.values[new]) if len(self.values) else other.values[new]
        )  # an empty one has no dtype
        states = (*self.states, *(other.states[i] for i in new))
        if self.category:
            joined = ColumnType(states, values, self.category, self.declared)
        else:
            order = sorted_order(values)
            joined = ColumnType(tuple(states[i] for i in order), values.take(order), "", self.declared)
        at = {state: i for i, state in enumerate(joined.states)}
        own, others = (np.array([at[state] for state in part.states], np.int64) for part in (self, other))
        return joined, own, others

    def places_in(self, new: ColumnType) -> IntArray:
        """(K,): where the states are among those of another type; texts of numbers by their number: "1.0" is "1"."""
        at = {state: i for i, state in enumerate(new.states)}
        return np.array([at[s] if s in at else at[state_name(float(s))] for s in self.states], np.int64)

    def told(self) -> dict[str, Any]:
        """The type as JSON can hold it."""
        import pandas as pd

        told: dict[str, Any] = {"states": list(self.states), "category": self.category, "declared": self.declared}
        if isinstance(self.values, pd.IntervalIndex):
            ends = [self.values.left.tolist(), self.values.right.tolist()]
            return {**told, "dtype": "interval", "closed": self.values.closed, "values": ends}
        listed = self.values.tolist()
        if self.values.dtype.kind in "mM":
            return {**told, "dtype": str(self.values.dtype), "values": [str(value) for value in listed]}
        plain = all(isinstance(value, (str, int, float, bool)) for value in listed)
        dtype = str(self.values.dtype) if plain else "str"
        arrow = isinstance(self.values.dtype, pd.ArrowDtype) and dtype.startswith(
            "string"
        )  # a name that two types have
        return {**told, "dtype": ARROW_TEXT if arrow else dtype, "values": listed if plain else list(self.states)}

    @classmethod
    def from_told(cls, told: Mapping[str, Any]) -> ColumnType:
        """The inverse of `told`."""
        import pandas as pd

        if told["dtype"] == "interval":
            left, right = told["values"]
            values: Any = pd.IntervalIndex.from_arrays(left, right, closed=told["closed"])
        else:
            dtype = told["dtype"]
            values = pd.Index(told["values"], dtype=_arrow_text() if dtype == ARROW_TEXT else dtype)
        return cls(tuple(told["states"]), values, told["category"], told["declared"])


def type_of_values(name: str, values: pd.Index[Any], category: str = "", declared: bool = False) -> ColumnType:
    """The type of a column with these distinct values, in this order; DataError where two have one name."""
    states = tuple(state_name(value) for value in values.tolist())
    if len(set(states)) < len(states):
        twice = next(state for i, state in enumerate(states) if state in states[:i])
        raise DataError(
            f"column {name!r} has two values that are both written {twice!r}, such as a number and a text; make them "
            f"one with frame[{name!r}].astype(str)",
            column=name,
        )
    return ColumnType(states, values, category, declared)


def type_of_states(states: Sequence[str], declared: bool = True) -> ColumnType:
    """States that are given by name alone; texts that are all whole numbers, or true and false, are taken for these."""
    return ColumnType(tuple(states), _typed(states), "", declared)


def declared_type(states: Sequence[str], found: ColumnType, codes: Sequence[int | None]) -> ColumnType:
    """Declared states as values of the column's own dtype, where they can be; codes: of the values found in it."""
    import pandas as pd

    if found.category and set(found.states) == set(states):
        at = [found.states.index(state) for state in states]
        return ColumnType(tuple(states), found.values.take(at), found.category, True)
    if found.category or not len(found.values):
        return ColumnType(tuple(states), pd.Index(list(states), dtype="str"), found.category, True)
    values: list[Any] = list(states)
    known = {code: value for code, value in zip(codes, found.values.tolist(), strict=True) if code is not None}
    try:
        values = [known[i] if i in known else _as_kind(found.values.dtype, state) for i, state in enumerate(states)]
        return ColumnType(tuple(states), pd.Index(values, dtype=found.values.dtype), "", True)
    except (ValueError, TypeError):
        return ColumnType(tuple(states), pd.Index(list(states), dtype="str"), "", True)


def _as_kind(dtype: Any, state: str) -> Any:
    """A state's name as a value of a dtype; ValueError where it is none."""
    kind = getattr(dtype, "kind", "O")
    if kind == "b":
        if state.casefold() not in ("true", "false"):
            raise ValueError(state)
        return state.casefold() == "true"
    return int(state) if kind in "iu" else float(state) if kind == "f" else state


def _arrow_text() -> Any:
    import pandas as pd
    import pyarrow as pa

    return pd.ArrowDtype(pa.string())


def _typed(states: Sequence[str]) -> pd.Index[Any]:
    import pandas as pd

    if states and all(state.lstrip("-").isdecimal() and str(int(state)) == state for state in states):
        return pd.Index([int(state) for state in states])
    if states and set(states) <= {"True", "False"}:
        return pd.Index([state == "True" for state in states])
    return pd.Index(list(states), dtype="str")


def typed_text(name: str, column: ColumnType) -> ColumnType:
    """A column of text as it would have been read: numbers and truth values as such, and sorted as these."""
    check_few(name, column.states)
    values = _typed(column.states)
    if values.dtype == "str" and (numbers := _numbers(column.states)) is not None:
        return replace(type_of_values(name, numbers), declared=column.declared)
    order = sorted_order(values)
    return ColumnType(tuple(column.states[i] for i in order), values.take(order), "", column.declared)


def _numbers(states: Sequence[str]) -> pd.Index[Any] | None:
    """The numbers that texts are, each once, sorted; None where one is no finite number."""
    import pandas as pd

    try:
        numbers = np.unique(np.array(states, np.float64))
    except ValueError:
        return None
    return pd.Index(numbers) if len(numbers) and np.isfinite(numbers).all() else None


def check_few(name: str, states: Sequence[str]) -> None:
    """DataError for texts that are many numbers with a fraction."""
    if len(states) <= MANY:
        return
    try:
        numbers = np.array(states, np.float64)
    except ValueError:
        return
    if (numbers != np.round(numbers)).any():
        raise measurements(name, numbers)


def measurements(name: str, numbers: AnyArray) -> DataError:
    """The error for a column of many numbers that are no states."""
    return DataError(
        f"column {name!r} holds {len(numbers)} distinct numbers, from {numbers.min():.6g} to {numbers.max():.6g}: "
        f"measurements, not states. Cut them into intervals, besag.Discretizer().fit_transform(frame), or drop the "
        f"column, frame.drop(columns={name!r})",
        column=name,
    )


def sorted_order(values: pd.Index[Any]) -> IntArray:
    """The order of distinct values: their own, else that of their text."""
    try:
        return np.asarray(values.argsort(), np.int64)
    except TypeError:
        return np.asarray(np.argsort(np.array([str(value) for value in values])), np.int64)


def state_name(value: object) -> str:
    """str(value), a whole float as a whole number."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def names_of(columns: Iterable[object]) -> list[str]:
    """The names of columns as text; DataError where two are the same."""
    names = [str(column) for column in columns]
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise DataError(f"the table has two columns named {twice!r}; drop or rename one of them", column=twice)
    return names
