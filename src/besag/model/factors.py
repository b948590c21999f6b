"""Markov networks from hand-given factors, pooled into a few arrays.

A factor is (scope, table): the scope names variables, the table has one axis for each, in that order. A group is
(scopes (F, n), tables (F, K1..Kn) or one shared table). Tables of one shape become one Template "table[K1,..,Kn]" with
a row of theta for each table; a shared table is one row that many factors read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from besag.arrays import AnyArray, IntArray
from besag.errors import ModelError
from besag.foreign import hinting
from besag.model.build import FactorPart, assemble
from besag.model.given import Given, energies_from
from besag.model.model import FactorGroup, Model
from besag.model.structured.base import Structured
from besag.model.template import Template
from besag.model.variable import RangeNames, Variables, variables_from


@dataclass(slots=True)
class _Pool:
    """Collects the tables of one shape."""

    scopes: list[AnyArray] = field(default_factory=list)
    rows: list[AnyArray] = field(default_factory=list)
    tables: list[AnyArray] = field(default_factory=list)
    positions: list[AnyArray] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    n_rows: int = 0

    def add(self, scopes: AnyArray, tables: AnyArray, positions: AnyArray, shared: bool) -> None:
        self.scopes.append(scopes)
        self.tables.append(tables)
        self.positions.append(positions)
        rows = np.full(len(scopes), self.n_rows) if shared else np.arange(self.n_rows, self.n_rows + len(scopes))
        self.rows.append(rows)
        self.n_rows += len(tables)


@hinting
def markov_network(
    variables: Mapping[str, Any] | Sequence[Any],
    factors: Iterable[Any] | Mapping[str, Any],
    given: Given = "log_potential",
) -> Model:
    """Make a Markov network from factors.

    variables: {name: states or cardinality}, or a list of cardinalities or state lists, whose variables are named
    "0", "1", ... factors: a list of (scope, table) or groups ((F, n) scopes, tables), or {factor name: (scope, table)};
    besag.potts(K) may stand for a table.

    >>> import besag
    >>> model = besag.markov_network(
    ...     {"A": ["no", "yes"], "B": 3}, [(("A", "B"), [[1, 2, 3], [4, 5, 6]])], given="weight"
    ... )
    >>> model.marginals()["A"].round(4)
    array([0.2857, 0.7143])
    """
    named = variables_from(variables)
    if isinstance(factors, str) or not isinstance(factors, Iterable):
        raise ModelError(f"factors must be a list of (scope, table) or {{name: (scope, table)}}, got {factors!r}")
    labels = list(factors) if isinstance(factors, Mapping) else None
    listed = list(factors.values()) if isinstance(factors, Mapping) else list(factors)
    pools: dict[tuple[int, ...] | Structured, _Pool] = {}
    count = 0
    for number, item in enumerate(listed):
        where = f"factor {number if labels is None else labels[number]!r}"
        if not isinstance(item, (tuple, list)) or len(item) != 2:
            raise ModelError(f"{where}: expected (scope, table), got {type(item).__name__}")
        scope, table = item
        grouped = (isinstance(scope, np.ndarray) and scope.ndim == 2) or _is_nested(scope)
        scopes = _group_scopes(named, scope, where) if grouped else _one_scope(named, scope, where)
        key, tables, shared = _tables(table, scopes, named, where)
        pool = pools.setdefault(key, _Pool())
        pool.add(scopes, tables, np.arange(count, count + len(scopes)), shared or len(scopes) == 1)
        if labels is not None:
            pool.names.extend([str(labels[number])] if len(scopes) == 1 else _numbered(labels[number], len(scopes)))
        count += len(scopes)
    return assemble(named, [_part(key, name, pools[key], given, named) for key, name in _template_names(pools).items()])


def _template_names(keys: Iterable[tuple[int, ...] | Structured]) -> dict[tuple[int, ...] | Structured, str]:
    """A name for the template of each pool: table[2,3], potts[4], and count[5], count[5] 2 of several alike."""
    names: dict[tuple[int, ...] | Structured, str] = {}
    met: dict[str, int] = {}
    for key in keys:
        name = f"{key.name}[{key.shape[0]}]" if isinstance(key, Structured) else f"table[{','.join(map(str, key))}]"
        met[name] = met.get(name, 0) + 1
        names[key] = name if met[name] == 1 else f"{name} {met[name]}"
    return names


def _part(key: tuple[int, ...] | Structured, name: str, pool: _Pool, given: Given, variables: Variables) -> FactorPart:
    scopes, positions = np.concatenate(pool.scopes), np.concatenate(pool.positions)
    names = tuple(pool.names) if pool.names else None
    if isinstance(key, Structured):
        template = Template(name, key.shape, basis=key)
        group = FactorGroup(template, scopes, None, positions=positions, names=names)
        return FactorPart(group, [np.ones(key.n_parameters)])
    rows, tables = np.concatenate(pool.rows), np.concatenate(pool.tables)
    try:
        energies, support = energies_from(tables, given, where="a table")
    except ModelError as error:
        raise _name_culprit(pool, given, variables) or error from None
    template = Template(name, key, len(tables))
    group = FactorGroup(template, scopes, rows, positions=positions, names=names)
    return FactorPart(group, [energies], "energy", support)


def _name_culprit(pool: _Pool, given: Given, variables: Variables) -> ModelError | None:
    for scopes, tables, positions in zip(pool.scopes, pool.tables, pool.positions, strict=True):
        for i, table in enumerate(tables):
            names = ", ".join(variables.names[int(v)] for v in scopes[i])
            try:
                energies_from(table, given, where=f"factor {positions[i]} on ({names})")
            except ModelError as error:
                return error
    return None


def _is_nested(scope: object) -> bool:
    return isinstance(scope, (list, tuple)) and len(scope) > 0 and isinstance(scope[0], (list, tuple, np.ndarray))


def _numbered(label: object, n: int) -> list[str]:
    return [f"{label}[{i}]" for i in range(n)]


def _one_scope(variables: Variables, scope: object, where: str) -> IntArray:
    if isinstance(scope, (str, int, np.integer)):
        scope = (scope,)
    if not isinstance(scope, (list, tuple, np.ndarray)) or len(scope) == 0:
        raise ModelError(f"{where}: the scope must name one or more variables, got {scope!r}")
    find = variables.names.find
    indices = []
    for name in scope:
        index = find(name if isinstance(name, str) else str(name))
        if index is None:
            raise ModelError(f"{where}: {variables.unknown(str(name))}")
        indices.append(index)
    if len(set(indices)) != len(indices):
        raise ModelError(f"{where}: the scope ({', '.join(map(str, scope))}) repeats a variable")
    return np.array([indices], np.int64)


def _group_scopes(variables: Variables, scopes: Any, where: str) -> IntArray:
    array = np.asarray(scopes)
    if array.ndim != 2 or array.size == 0:
        raise ModelError(f"{where}: the scopes of a group must have shape (F, n), got {array.shape}")
    if np.issubdtype(array.dtype, np.integer) and isinstance(variables.names, RangeNames):
        outside = (array < 0) | (array >= len(variables))
        if outside.any():
            raise ModelError(f"{where}: {variables.unknown(str(array[outside][0]))}")
        return array.astype(np.int64)
    return np.concatenate([_one_scope(variables, list(row), f"{where}, scope {i}") for i, row in enumerate(array)])


def _tables(
    table: object, scopes: IntArray, variables: Variables, where: str
) -> tuple[tuple[int, ...] | Structured, AnyArray, bool]:
    """The pool's key, the tables (F or 1, K1..Kn), and whether all factors share one."""
    if isinstance(table, Structured):
        return table, np.zeros((1, 0)), True
    if hasattr(table, "index") and hasattr(table, "to_numpy"):
        raise ModelError(
            f"{where}: the table must be an array in state order; the labels of a pandas object are not read"
        )
    try:
        array = np.asarray(table, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{where}: the table must be an array of numbers, got {type(table).__name__}") from None
    expected = tuple(variables.cardinalities[scopes[0]].tolist())
    if array.shape == expected:
        return expected, array[None], True
    if array.shape == (len(scopes), *expected) and array.ndim > 1:
        return expected, array, False
    names = ", ".join(variables.names[int(v)] for v in scopes[0])
    grouped = f" or {(len(scopes), *expected)}" if len(scopes) > 1 else ""
    raise ModelError(f"{where} on ({names}): the table must have shape {expected}{grouped}, got {array.shape}")
