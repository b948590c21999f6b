"""What a Bayesian network needs of a table: the counts of its complete rows, and the other rows themselves.

A table in parts (chunks of a file) is gathered part by part, so that only counts and rows with missing cells are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from besag.data.tables.code_table import CodeTable, joined_tables
from besag.data.tables.column_type import ColumnType
from besag.learn.networks.counts import FamilyCounts, Parents, merged_counts


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """The counts of complete rows, and the rows with a missing cell, None if there is none; both of the same states."""

    counts: FamilyCounts
    incomplete: CodeTable | None

    def merged(self, other: Gathered) -> Gathered:
        """Both tables in one."""
        return merge_parts([self, other])

    def with_types(self, change: Callable[[str, ColumnType], ColumnType]) -> Gathered:
        """The same with the states of each column in another order."""
        counts = self.counts.with_types(change)
        return Gathered(counts, _moved(self.incomplete, counts.types))


def gather(parts: Iterable[CodeTable], parents: Parents, n_threads: int | None = None) -> Gathered:
    """All parts of a table whose columns are the variables."""
    return merge_parts([_gathered(part, parents, n_threads) for part in parts])


def merge_parts(parts: Sequence[Gathered]) -> Gathered:
    """Several tables in one; states by name."""
    counts = merged_counts(part.counts for part in parts)
    rows = [part.incomplete for part in parts if part.incomplete is not None]
    return Gathered(counts, _moved(joined_tables(rows), counts.types) if rows else None)


def _gathered(part: CodeTable, parents: Parents, n_threads: int | None) -> Gathered:
    unknown = part.incomplete()
    if not unknown.any():
        return Gathered(FamilyCounts.of(part, parents, n_threads), None)
    counts = FamilyCounts.of(part.take(~unknown), parents, n_threads)
    if part.weights is not None:
        unknown &= part.weights > 0
    return Gathered(counts, part.take(unknown) if unknown.any() else None)


def _moved(table: CodeTable | None, types: Sequence[ColumnType]) -> CodeTable | None:
    if table is None:
        return None
    return table.with_types(types, [own.places_in(new) for own, new in zip(table.types, types, strict=True)])
