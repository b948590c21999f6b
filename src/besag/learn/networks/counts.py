"""FamilyCounts: how often each variable had each state beside each joint state of its parents.

Everything that a Bayesian network learns from complete rows is in these tables, so that data may come in parts: counts
of parts add up, also where later parts bring states that earlier ones did not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.data.tables.code_table import CodeTable
from besag.data.tables.column_type import ColumnType
from besag.learn.networks.families import count_families

Parents = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class FamilyCounts:
    """Tables with axes (parents..., child), one for each of V variables.

    parents: the numbers of those of each variable, in the order of the table's axes. total: the weight of all rows.
    """

    names: tuple[str, ...]
    types: tuple[ColumnType, ...]
    parents: Parents
    tables: tuple[AnyArray, ...]
    n_rows: int
    total: float

    @classmethod
    def of(
        cls, table: CodeTable, parents: Parents, n_threads: int | None = None, memory_limit: int | None = None
    ) -> FamilyCounts:
        """The counts of a table; a row counts for the families in which none of its cells is missing."""
        scopes = [(*above, child) for child, above in enumerate(parents)]
        tables = count_families(table.codes, table.cardinalities, scopes, table.weights, n_threads, memory_limit)
        total = float(table.n_rows if table.weights is None else table.weights.sum())
        return cls(table.names, table.types, parents, tuple(tables), table.n_rows, total)

    @cached_property
    def rows(self) -> tuple[Array, ...]:
        """The tables as (configurations of the parents, states)."""
        return tuple(table.reshape(-1, table.shape[-1]).astype(np.float64) for table in self.tables)

    def merged(self, other: FamilyCounts) -> FamilyCounts:
        """The counts of both; states by name."""
        unions = [own.union(their) for own, their in zip(self.types, other.types, strict=True)]
        types = tuple(union[0] for union in unions)
        both = zip(
            self._moved(types, [union[1] for union in unions]),
            other._moved(types, [union[2] for union in unions]),
            strict=True,
        )
        tables = tuple(own + their for own, their in both)
        total, n_rows = self.total + other.total, self.n_rows + other.n_rows
        return replace(self, types=types, tables=tables, n_rows=n_rows, total=total)

    def with_types(self, change: Callable[[str, ColumnType], ColumnType]) -> FamilyCounts:
        """The same counts with the states of each column in another order."""
        types = tuple(change(name, column) for name, column in zip(self.names, self.types, strict=True))
        places = [own.places_in(new) for own, new in zip(self.types, types, strict=True)]
        return replace(self, types=types, tables=tuple(self._moved(types, places)))

    def _moved(self, types: Sequence[ColumnType], places: Sequence[IntArray]) -> Iterator[AnyArray]:
        """The tables with axes of other states; places: where the states of each variable are among these."""
        for child, (above, table) in enumerate(zip(self.parents, self.tables, strict=True)):
            scope = (*above, child)
            if all(types[v] is self.types[v] for v in scope):
                yield table
                continue
            larger = np.zeros([len(types[v].states) for v in scope], table.dtype)
            np.add.at(larger, np.ix_(*(places[v] for v in scope)), table)
            yield larger


def merged_counts(parts: Iterable[FamilyCounts]) -> FamilyCounts:
    """The counts of several tables."""
    first, *rest = parts
    for part in rest:
        first = first.merged(part)
    return first
