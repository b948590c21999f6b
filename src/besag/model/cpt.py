"""Reading conditional probability tables: from arrays, DataFrames and dicts, with rows that sum to one.

A CPT has axes (parents..., child). A row, over the child, is accepted if it sums to one within 1e-6, as in published
files, and is then normalised; any other row is an error that names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from besag.arrays import Array, BoolArray
from besag.errors import ModelError
from besag.model.variable import Variables

TOLERANCE = 1e-6


def check_cpt(variables: Variables, parents: list[int], child: int, given: Any, tolerance: float = TOLERANCE) -> Array:
    """A CPT as an array (parents..., child) whose rows sum to one, or a ModelError that names the row."""
    name = variables.names[child]
    table = _cpt_array(variables, parents, child, given)
    shape = tuple(variables.cardinalities[[*parents, child]].tolist())
    if table.shape != shape:
        axes = ", ".join([*variables.names_at(parents), name])
        raise ModelError(f"the CPT of {name!r} must have shape {shape}, axes ({axes}), got {table.shape}")
    if not ((table >= 0) & (table <= 1 + tolerance)).all():
        at = tuple(int(i) for i in np.argwhere(~((table >= 0) & (table <= 1 + tolerance)))[0])
        states = ", ".join(
            f"{variables.names[v]}={variables.states(v)[i]}" for v, i in zip([*parents, child], at, strict=True)
        )
        raise ModelError(f"the CPT of {name!r} must hold probabilities, but the entry at {states} is {table[at]}")
    sums = table.sum(axis=-1)
    wrong = np.abs(sums - 1) > tolerance
    if wrong.any():
        raise ModelError(_row_message(variables, parents, child, table, wrong))
    return np.asarray(table / sums[..., None])


def _row_message(variables: Variables, parents: list[int], child: int, table: Array, wrong: BoolArray) -> str:
    name = variables.names[child]
    row = tuple(int(i) for i in np.argwhere(wrong)[0]) if parents else ()
    where = ", ".join(f"{variables.names[p]}={variables.states(p)[i]}" for p, i in zip(parents, row, strict=True))
    which = f"row {where} of the CPT" if parents else "the CPT"
    message = f"{which} of {name!r} sums to {table[row].sum():.9g}, not 1"
    columns = table.reshape(-1, table.shape[-1]).sum(axis=0)
    if parents and np.allclose(columns, 1, atol=TOLERANCE):
        message += "; its columns do: the axes must be (parents, child), so transpose the table"
    return message


def _cpt_array(variables: Variables, parents: list[int], child: int, given: Any) -> Array:
    if hasattr(given, "columns") and hasattr(given, "index"):
        return _cpt_from_frame(variables, parents, child, given)
    if hasattr(given, "to_dict"):
        given = given.to_dict()
    if isinstance(given, Mapping):
        return _cpt_from_rows(variables, parents, child, given)
    try:
        return np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"the CPT of {variables.names[child]!r} must be an array, a DataFrame or a dict") from None


def _cpt_from_frame(variables: Variables, parents: list[int], child: int, frame: Any) -> Array:
    """Rows are states of the parents (a MultiIndex for several), columns are states of the child."""
    if not parents and len(frame) == 1:
        return _row(variables, child, dict(zip(frame.columns, frame.iloc[0], strict=True)))
    order = list(range(len(parents)))
    levels, expected = [str(level) for level in frame.index.names], variables.names_at(parents)
    if len(parents) > 1 and any(level is not None for level in frame.index.names):
        if set(levels) != set(expected):
            raise ModelError(
                f"the index of the CPT of {variables.names[child]!r} must have the levels {expected}, got {levels}"
            )
        order = [levels.index(name) for name in expected]
    rows = {}
    for key, row in frame.iterrows():
        keys = key if isinstance(key, tuple) else (key,)
        rows[tuple(keys[i] for i in order) if len(keys) == len(order) else key] = dict(row)
    return _cpt_from_rows(variables, parents, child, rows)


def _cpt_from_rows(variables: Variables, parents: list[int], child: int, rows: Mapping[Any, Any]) -> Array:
    """{states of the parents: row}; without parents {state: probability}."""
    if not parents:
        return _row(variables, child, rows)
    table = np.full(tuple(variables.cardinalities[[*parents, child]].tolist()), np.nan)
    for key, row in rows.items():
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) != len(parents):
            expected = ", ".join(variables.names_at(parents))
            raise ModelError(
                f"row {key!r} of the CPT of {variables.names[child]!r} must name a state of each of ({expected})"
            )
        table[tuple(state_code(variables, p, k) for p, k in zip(parents, keys, strict=True))] = _row(
            variables, child, row
        )
    missing = np.argwhere(np.isnan(table).any(axis=-1))
    if missing.size:
        row = ", ".join(
            f"{variables.names[p]}={variables.states(p)[i]}" for p, i in zip(parents, missing[0], strict=True)
        )
        raise ModelError(f"the CPT of {variables.names[child]!r} has no row for {row}")
    return table


def _row(variables: Variables, child: int, row: Any) -> Array:
    states = variables.states(child)
    if not isinstance(row, Mapping):
        values = np.asarray(row, np.float64)
        if values.shape != (len(states),):
            raise ModelError(
                f"a row of the CPT of {variables.names[child]!r} has {len(states)} entries, got {values.shape}"
            )
        return values
    values = np.zeros(len(states))
    named = [state_code(variables, child, state) for state in row]
    if len(set(named)) != len(named):
        raise ModelError(f"a row of the CPT of {variables.names[child]!r} names a state twice: {list(row)}")
    values[named] = list(row.values())
    if len(row) != len(states):
        absent = [
            s for s in states if variables.find_state(child, s) not in {state_code(variables, child, k) for k in row}
        ]
        raise ModelError(f"a row of the CPT of {variables.names[child]!r} names no probability for {absent}")
    return values


def state_code(variables: Variables, index: int, state: object) -> int:
    """The code of a state by name, or a ModelError."""
    code = variables.find_state(index, state)
    if code is None:
        raise ModelError(variables.no_state(index, state))
    return code
