"""The tables of a BIF file: which rows its statements set, and all numbers of the file at once.

A table comes in one of four orders. If it has all its rows, in one of the two orders that programs write, or is one
"table", its numbers are the CPT up to a transposition, and all such tables of one shape are filled together; only the
others are filled row by row.

    FIRST      rows; the first parent changes fastest             numbers (K_n, ..., K_1, K)
    LAST       rows; the last parent changes fastest              numbers (K_1, ..., K_n, K)
    TABLE      one statement; the child changes slowest           numbers (K, K_1, ..., K_n)
    SCATTERED  rows in any order, and a default for the others
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from math import prod

import numpy as np

from besag.arrays import Array, IntArray
from besag.io.shared.files import floats
from besag.io.shared.tables import TablePool

END = " -1 "  # put after each statement to count its numbers, since it cannot be a probability


class NumberOrder(Enum):
    """How the numbers of a table are ordered."""

    FIRST = auto()
    LAST = auto()
    TABLE = auto()
    SCATTERED = auto()


@dataclass(slots=True, eq=False)
class ProbabilityBlock:
    """A probability block: its number in the file, its scope (parents, child) and the shape of its CPT.

    n_rows: of the CPT. texts: the numbers of its statements, those of a default last. where: the row of the CPT that
    each statement sets, if the table is scattered.
    """

    block: int
    scope: list[int]
    shape: tuple[int, ...]
    n_rows: int
    order: NumberOrder = NumberOrder.SCATTERED
    texts: Sequence[str] = ()
    where: Sequence[int] = ()
    has_default: bool = False
    properties: Sequence[str] = ()

    @property
    def length(self) -> int:
        """How many numbers each statement must have."""
        return self.n_rows * self.shape[-1] if self.order is NumberOrder.TABLE else self.shape[-1]

    def row(self, number: int) -> int | None:
        """The row of the CPT that a statement sets; None if it is a table or a default."""
        if self.order is NumberOrder.TABLE or (self.order is NumberOrder.SCATTERED and number >= len(self.where)):
            return None
        if self.order is NumberOrder.SCATTERED:
            return self.where[number]
        parents = self.shape[:-1]
        order = "F" if self.order is NumberOrder.FIRST else "C"
        return int(np.ravel_multi_index(np.unravel_index(number, parents, order), parents))  # type: ignore[call-overload]

    def spread(self, numbers: Array) -> Array:
        """The numbers (statements, K) of a scattered table -> its CPT (rows, K)."""
        cpt = np.empty((self.n_rows, self.shape[-1]))
        if self.has_default:
            cpt[:] = numbers[-1]
        cpt[list(self.where)] = numbers[: len(self.where)]
        return cpt


class LabelOrders:
    """The labels of the rows of a table, "a, b", in the two orders that programs write; cached by the states."""

    def __init__(self) -> None:
        self._known: dict[tuple[NumberOrder, tuple[tuple[str, ...], ...]], list[str]] = {}

    def order(self, spaces: tuple[tuple[str, ...], ...], labels: list[str]) -> NumberOrder:
        """The order in which labels name each row once, for parents with these states."""
        first_moves = len(spaces) > 1 < len(spaces[0]) and labels[1].startswith(f"{spaces[0][1]},")
        order = NumberOrder.FIRST if first_moves else NumberOrder.LAST
        expected = self._known.get((order, spaces))
        if expected is None:
            expected = self._known[order, spaces] = _row_labels(spaces, order)
        return order if labels == expected else NumberOrder.SCATTERED


def _row_labels(spaces: tuple[tuple[str, ...], ...], order: NumberOrder) -> list[str]:
    if order is NumberOrder.FIRST:
        rows = list(spaces[0])
        for states in spaces[1:]:
            rows = [f"{row}, {state}" for state in states for row in rows]
        return rows
    rows = list(spaces[-1])
    for states in spaces[-2::-1]:
        rows = [f"{state}, {row}" for state in states for row in rows]
    return rows


def arrange_tables(tables: Sequence[ProbabilityBlock]) -> tuple[list[TablePool], Array] | None:
    """The tables of each shape, and all CPTs in that order; None if some statement has a wrong number of numbers."""
    members: dict[tuple[int, ...], list[int]] = {}
    alike: dict[tuple[tuple[int, ...], NumberOrder, int], list[int]] = {}
    for child, table in enumerate(tables):
        members.setdefault(table.shape, []).append(child)
        alone = child if table.order is NumberOrder.SCATTERED else -1
        alike.setdefault((table.shape, table.order, alone), []).append(child)
    texts = [text for children in alike.values() for child in children for text in tables[child].texts]
    try:
        numbers = floats(space_numbers(END.join(texts) + END))
    except ValueError:
        return None
    pools = _pools(tables, members)
    weights = np.empty(sum(prod(shape) * len(children) for shape, children in members.items()))
    placed = _place(tables, pools, alike.values(), numbers, weights)
    return (pools, weights) if placed else None


def _pools(tables: Sequence[ProbabilityBlock], members: dict[tuple[int, ...], list[int]]) -> list[TablePool]:
    """The children of each shape, and their scopes: views of one array, as there may be many shapes with few each."""
    children = np.array([child for group in members.values() for child in group])
    scopes = np.array([v for group in members.values() for child in group for v in tables[child].scope])
    pools, first, at = [], 0, 0
    for shape, group in members.items():
        last, end = first + len(group), at + len(group) * len(shape)
        pools.append(TablePool(shape, scopes[at:end].reshape(len(group), len(shape)), children[first:last]))
        first, at = last, end
    return pools


def space_numbers(numbers: str) -> bytes:
    """Numbers with spaces for commas; non-ASCII characters become "?", which is no number."""
    return numbers.replace(",", " ").encode("ascii", "replace")


def _place(
    tables: Sequence[ProbabilityBlock],
    pools: list[TablePool],
    alike: Iterable[list[int]],
    numbers: Array,
    weights: Array,
) -> bool:
    """Put all numbers in their places; False if an END is not where it must be."""
    views: dict[tuple[int, ...], tuple[IntArray, Array]] = {}
    start = 0
    for shape, _, children in pools:
        size = prod(shape)
        end = start + size * len(children)
        views[shape] = children, weights[start:end].reshape(len(children), size)
        start = end
    at = 0
    for group in alike:
        first = tables[group[0]]
        statements, width = len(group) * len(first.texts), first.length + 1
        if len(numbers) - at < statements * width:
            return False
        block = numbers[at : at + statements * width].reshape(statements, width)
        at += statements * width
        if np.count_nonzero(block[:, -1] == -1) < statements:
            return False
        children, view = views[first.shape]
        rows = slice(None) if len(group) == len(children) else np.searchsorted(children, group)
        view[rows] = _cpts(first, len(group), block[:, :-1])
    return at == len(numbers)


def _cpts(first: ProbabilityBlock, n: int, numbers: Array) -> Array:
    """The CPTs (n, entries) of n tables like `first` from the numbers of their statements."""
    *parents, k = first.shape
    if first.order is NumberOrder.FIRST:
        axes = (0, *range(len(parents), 0, -1), len(parents) + 1)
        numbers = numbers.reshape(n, *parents[::-1], k).transpose(axes)
    elif first.order is NumberOrder.TABLE:
        numbers = numbers.reshape(n, k, first.n_rows).transpose(0, 2, 1)
    elif first.order is NumberOrder.SCATTERED:
        numbers = first.spread(numbers)
    return numbers.reshape(n, first.n_rows * k)
