"""Tables of cliques: dense and flat, with the axes in the order of the variables' numbers.

Numbers are linear or, where their range is too large for that, logarithms; an Algebra knows which and does with both

    multiply    large times small, in place; the scope of the small one lies in that of the large one
    marginal    sum over the variables that are not in a scope
    quotient    above / below, 0 where below is 0: there above is 0 too
    entropy     - sum p log p of a table that sums to one
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from besag.arrays import Array, IntArray, frozen
from besag.kernels.clique_tables import make_add, make_entropy, make_log_sum, make_multiply, make_offsets, make_sum
from besag.kernels.compile import kernel_of
from besag.kernels.threads import run_chunks

Scope = tuple[int, ...]

LOW_ENTRIES = 1 << 9  # of the inner list of offsets: both lists stay in the first cache
CHUNKED_ENTRIES = 1 << 18  # from which on a table is cut into chunks
CHUNKS = 4
MOST_MAPS = 20_000  # lists of offsets that are kept
FAINT = 1e-150  # largest entry of a product below which it is made again from logarithms
TINY = 1e-250  # below which a number is taken for 0, so that no quotient overflows
WEAKEST, WEAKEST_LOG = 1e-60, -700.0  # of a message beside its largest entry


class Table(NamedTuple):
    """Numbers on the states of some variables, row-major, the scope in ascending order."""

    scope: Scope
    values: Array


class Algebra:
    """What can be done with tables on variables of these cardinalities."""

    def __init__(
        self, cardinalities: Sequence[int], *, log: bool = False, compile: bool = True, n_threads: int | None = None
    ) -> None:
        self.cardinalities = list(cardinalities)
        self.logs = [math.log2(k) for k in cardinalities]
        self.log, self.compile, self.n_threads = log, compile, n_threads
        self._multiply = kernel_of(make_add if log else make_multiply, compile=compile)
        self._sum = kernel_of(make_sum, compile=compile)
        self._fill = kernel_of(make_offsets, compile=compile)
        self._entropy = kernel_of(make_entropy, compile=compile)
        self._log_sum = kernel_of(make_log_sum, compile=compile) if log else None
        self._maps: dict[tuple[Scope, Scope], tuple[IntArray, IntArray]] = {}

    def bits(self, scope: Iterable[int]) -> float:
        """log2 of the entries of a table."""
        return sum([self.logs[v] for v in scope])

    def size(self, scope: Scope) -> int:
        """Entries of a table."""
        return math.prod([self.cardinalities[v] for v in scope])

    def from_logs(self, scope: Scope, logs: Array) -> Table:
        """A table from logarithms, none of them far above 0."""
        return Table(scope, logs if self.log else np.exp(logs))

    def plain(self, values: Array) -> Array:
        """As linear numbers."""
        return np.exp(values) if self.log else values

    def ones(self, scope: Scope) -> Table:
        """A table to multiply others into."""
        return Table(scope, np.zeros(self.size(scope)) if self.log else np.ones(self.size(scope)))

    def multiply(self, table: Table, by: Table) -> None:
        """In place."""
        self._apply(self._multiply, table, by)

    def product(self, scope: Scope, tables: Sequence[Table]) -> tuple[Table, float]:
        """The product of tables over exp(log_scale), and log_scale: 0 unless linear numbers become too small."""
        answer = self.ones(scope)
        for table in tables:
            self.multiply(answer, table)
        if self.log or not tables or answer.values.max() > FAINT:
            return answer, 0.0
        logs, add = Table(scope, np.zeros(self.size(scope))), kernel_of(make_add, compile=self.compile)
        for table in tables:
            self._apply(add, logs, Table(table.scope, _log(table.values)))
        top = float(logs.values.max())
        return (answer, 0.0) if top == -math.inf else (Table(scope, np.exp(logs.values - top)), top)

    def _apply(self, kernel: Callable[..., None], table: Table, by: Table) -> None:
        high, low = self._map(table.scope, by.scope)
        small = frozen(by.values)
        self._chunked(len(high), len(table.values), lambda a, b, _: kernel(table.values, small, high, low, a, b))

    def marginal(self, table: Table, scope: Scope) -> Table:
        """The sum over what is not in the scope; the table itself where nothing is."""
        if len(scope) == len(table.scope):
            return table
        high, low = self._map(table.scope, scope)
        large, size = frozen(table.values), self.size(scope)
        if self._log_sum is not None:
            top, total = np.full(size, -math.inf), np.zeros(size)
            self._log_sum(top, total, large, high, low)
            return Table(scope, _log(total) + np.where(total > 0, top, 0.0))
        totals = np.zeros((self._n_chunks(len(high), len(large)), size))
        self._chunked(len(high), len(large), lambda a, b, c: self._sum(totals[c], large, high, low, a, b))
        return Table(scope, totals[0] if len(totals) == 1 else totals.sum(axis=0))

    def quotient(self, above: Array, below: Array) -> Array:
        """above / below, 0 where below is 0."""
        if self.log:
            return np.subtract(above, below, out=np.full_like(above, -math.inf), where=below > -math.inf)
        return np.divide(above, below, out=np.zeros_like(above), where=below > TINY)

    def shifted(self, values: Array, by: float) -> Array:
        """The values times exp(by)."""
        return values + by if self.log else values * math.exp(by)

    def mixed(self, one: Array, other: Array, share: float) -> Array:
        """one^(1 - share) other^share."""
        if self.log:
            return np.where(one > -math.inf, (1.0 - share) * one + share * np.maximum(other, WEAKEST_LOG), one)
        return one ** (1.0 - share) * np.maximum(other, WEAKEST) ** share

    def scaled(self, values: Array) -> tuple[Array, float]:
        """The values over the largest of them, and its log: -inf where there is nothing."""
        top = float(values.max())
        if self.log:
            return values - (0.0 if top == -math.inf else top), top
        return (values / top, math.log(top)) if top > 0 else (values, -math.inf)

    def message(self, values: Array) -> tuple[Array, float]:
        """As `scaled`, and what is above 0 but very weak is made less so."""
        values, log_top = self.scaled(values)
        if self.log:
            return np.where(values > -math.inf, np.maximum(values, WEAKEST_LOG), -math.inf), log_top
        return np.where(values > 0, np.maximum(values, WEAKEST), 0.0), log_top

    def entropy(self, table: Table) -> float:
        """In nats; zeros count nothing."""
        if self.log:
            positive = table.values[table.values > -math.inf]
            return -float(np.exp(positive) @ positive)
        values, n = frozen(table.values), len(table.values)
        parts = np.zeros(self._n_chunks(n, n))

        def work(start: int, stop: int, chunk: int) -> None:
            parts[chunk] = self._entropy(values, start, stop)

        self._chunked(n, n, work)
        return float(parts.sum())

    def _chunked(self, n_rows: int, size: int, work: Callable[[int, int, int], None]) -> None:
        """work(start, stop, chunk) for all rows; the number of chunks depends on the size alone."""
        n_chunks = self._n_chunks(n_rows, size)
        if n_chunks == 1:
            work(0, n_rows, 0)
        else:
            run_chunks(
                lambda c: work(c * n_rows // n_chunks, (c + 1) * n_rows // n_chunks, c), n_chunks, self.n_threads
            )

    def _n_chunks(self, n_rows: int, size: int) -> int:
        return CHUNKS if size >= CHUNKED_ENTRIES and n_rows >= CHUNKS else 1

    def _map(self, large: Scope, small: Scope) -> tuple[IntArray, IntArray]:
        """Where the entries of the large table are in the small one: (high, low) of the kernels."""
        found = self._maps.get((large, small))
        if found is None:
            strides, step = {}, 1
            for v in reversed(small):
                strides[v] = step
                step *= self.cardinalities[v]
            cut, inner = len(large), 1
            while cut > 0 and inner < LOW_ENTRIES:
                cut -= 1
                inner *= self.cardinalities[large[cut]]
            if len(self._maps) >= MOST_MAPS:
                self._maps.clear()
            found = (self._offsets(large[:cut], strides), self._offsets(large[cut:], strides))
            self._maps[large, small] = found
        return found

    def _offsets(self, axes: Scope, strides: dict[int, int]) -> IntArray:
        offsets = np.empty(self.size(axes), np.int64)
        cards = np.array([self.cardinalities[v] for v in axes], np.int64)
        self._fill(frozen(cards), frozen(np.array([strides.get(v, 0) for v in axes], np.int64)), offsets)
        return np.asarray(frozen(offsets))


def _log(values: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(values)
