"""Tables of cliques: dense and flat, with the axes in the order of the variables' numbers.

Numbers are linear or, if their range is too large for that, logarithms; an Algebra knows which, and offers for both

    marginals       sums over the variables that are not in a scope
    conditionals    tables divided by their own marginals on a part of their variables
    quotient        above / below, and 0 where below is 0, since above is 0 there too
    entropy         - sum p log p of a table that sums to one

Most of it is done for many tables at once, which lie one after the other in one array (CliqueTables).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import NamedTuple

import numpy as np

from besag.arrays import AnyArray, Array, IntArray, freeze, offsets_of
from besag.infer.join_graph.kernels.losses import make_entropy, make_information, make_losses
from besag.infer.join_graph.kernels.passes import TINY
from besag.infer.join_graph.kernels.tables import make_conditionals, make_marginal, make_marginals
from besag.kernels.compile import kernel_of
from besag.kernels.threads import run_chunks

Scope = tuple[int, ...]

CHUNK_ENTRIES = 1 << 16  # of tables that are done at a time: some 0.1 ms
WEAKEST, WEAKEST_LOG = 1e-60, -700.0  # least positive entry of a message relative to its largest: linear, and in logs
WEAKEST_SINGLE = 1e-37  # least positive entry in single precision


class CliqueTable(NamedTuple):
    """Numbers on the joint states of some variables, row-major, the scope in ascending order."""

    scope: Scope
    values: Array


@dataclass(frozen=True, slots=True, eq=False)
class CliqueScopes:
    """Some scopes, and where the variables and the entries of each begin."""

    each: list[Scope]
    first: IntArray  # (n + 1,), into variables
    variables: IntArray
    entries: IntArray  # (n + 1,)

    @property
    def arrays(self) -> tuple[IntArray, IntArray, IntArray]:
        """What kernels read."""
        return self.first, self.variables, self.entries

    @property
    def sizes(self) -> IntArray:
        """Entries of each table."""
        return np.diff(self.entries)


@dataclass(frozen=True, slots=True, eq=False)
class CliqueTables:
    """Tables on some scopes, one after the other."""

    scopes: CliqueScopes
    values: AnyArray

    def __len__(self) -> int:
        return len(self.scopes.each)

    def __getitem__(self, i: int) -> CliqueTable:
        scopes = self.scopes
        return CliqueTable(scopes.each[i], self.values[scopes.entries[i] : scopes.entries[i + 1]])

    def __iter__(self) -> Iterator[CliqueTable]:
        return (self[i] for i in range(len(self)))


class Algebra:
    """Operations on tables over variables of these cardinalities."""

    def __init__(
        self, cardinalities: Sequence[int], *, log: bool = False, compile: bool = True, n_threads: int | None = None
    ) -> None:
        self.cardinalities = list(cardinalities)
        self.cards = freeze(np.array(self.cardinalities, np.int64))
        self.logs = [math.log2(k) for k in cardinalities]
        self.log, self.compile, self.n_threads = log, compile, n_threads
        self._marginal = self.kernel(make_marginal)
        self._marginals = self.kernel(make_marginals)
        self._conditionals = self.kernel(make_conditionals)
        self._entropy = self.kernel(make_entropy)
        self._losses = self.kernel(make_losses)
        self._information = self.kernel(make_information)

    def kernel(self, make: Callable[..., Callable[..., object]]) -> Callable[..., object]:
        """A kernel for linear numbers or logarithms, whichever are used."""
        return kernel_of(make, int(self.log), compile=self.compile)

    def bits(self, scope: Iterable[int]) -> float:
        """log2 of the entries of a table."""
        return sum([self.logs[v] for v in scope])

    def size(self, scope: Scope) -> int:
        """Entries of a table."""
        return math.prod([self.cardinalities[v] for v in scope])

    def scopes(self, each: Sequence[Scope]) -> CliqueScopes:
        """Scopes for many tables."""
        first = offsets_of(np.array([len(scope) for scope in each], np.int64))
        variables = np.fromiter(chain.from_iterable(each), np.int64, int(first[-1]))
        entries = offsets_of(np.array([self.size(scope) for scope in each], np.int64))
        return CliqueScopes(list(each), freeze(first), freeze(variables), freeze(entries))

    def tables(self, each: Sequence[CliqueTable]) -> CliqueTables:
        """Many tables from single ones."""
        values = np.concatenate([table.values for table in each]) if each else np.zeros(0)
        return CliqueTables(self.scopes([table.scope for table in each]), values)

    def from_logs(self, scope: Scope, logs: Array) -> CliqueTable:
        """A table from logarithms, none of them far above 0."""
        return CliqueTable(scope, logs if self.log else np.exp(logs))

    def plain(self, values: Array) -> Array:
        """The values as linear numbers."""
        return np.exp(values) if self.log else values

    def marginal(self, table: CliqueTable, scope: Scope) -> CliqueTable:
        """The sum over the variables that are not in the scope; the table itself if there are none."""
        if len(scope) == len(table.scope):
            return table
        out = np.empty(self.size(scope))
        self._marginal(self.cards, _array(table.scope), freeze(table.values), _array(scope), out)
        return CliqueTable(scope, out)

    def marginals(self, tables: CliqueTables, source: Sequence[int], scopes: CliqueScopes) -> CliqueTables:
        """For each scope, the sum of table source[i] over the variables that are not in it."""
        chosen = freeze(np.array(source, np.int64))
        work, values, out = tables.scopes.sizes[chosen], freeze(tables.values), np.empty(int(scopes.entries[-1]))
        fixed = (self.cards, tables.scopes.arrays, values, chosen, scopes.arrays)
        self.in_chunks(work, lambda start, stop: self._marginals(*fixed, start, stop, out))
        return CliqueTables(scopes, out)

    def conditionals(self, tables: CliqueTables, parts: CliqueScopes) -> CliqueTables:
        """b(C) / b(S) for each table on C and a scope S that is part of C; the table itself if S is empty."""
        values = tables.values.copy()
        fixed = (self.cards, tables.scopes.arrays, parts.arrays)
        self.in_chunks(tables.scopes.sizes, lambda a, b: self._conditionals(*fixed, a, b, TINY, values))
        return CliqueTables(tables.scopes, values)

    def in_chunks(self, work: IntArray, function: Callable[[int, int], object]) -> None:
        """Call function(start, stop) on ranges of items; the ranges depend on the work of the items alone."""
        done = np.cumsum(work)
        n = max(1, int(done[-1]) // CHUNK_ENTRIES) if len(done) else 0
        bounds = [0, *np.searchsorted(done, done[-1] * np.arange(1, n) / n).tolist(), len(done)] if n else [0]
        run_chunks(lambda i: function(bounds[i], bounds[i + 1]), n, self.n_threads)

    def quotient(self, above: Array, below: Array) -> Array:
        """above / below, 0 where below is 0."""
        if self.log:
            return np.subtract(above, below, out=np.full_like(above, -math.inf), where=below > -math.inf)
        return np.divide(above, below, out=np.zeros_like(above), where=below > TINY)

    def mix(self, one: Array, other: Array, share: float) -> Array:
        """one^(1 - share) other^share."""
        if self.log:
            return np.where(one > -math.inf, (1.0 - share) * one + share * np.maximum(other, WEAKEST_LOG), one)
        return one ** (1.0 - share) * np.maximum(other, WEAKEST) ** share

    def scale(self, tables: CliqueTables) -> tuple[Array, Array]:
        """The values of each table divided by the largest, and the log of that: -inf if all are zero."""
        values, scopes = tables.values, tables.scopes
        tops = np.maximum.reduceat(values, scopes.entries[:-1]) if len(scopes.each) else np.zeros(0)
        if self.log:
            return values - np.repeat(np.where(tops > -math.inf, tops, 0.0), scopes.sizes), tops
        with np.errstate(divide="ignore"):
            return values / np.repeat(np.where(tops > 0, tops, 1.0), scopes.sizes), np.log(np.maximum(tops, 0.0))

    def messages(self, tables: CliqueTables) -> tuple[CliqueTables, float]:
        """As `scaled`, with the sum of the logs; very weak positive entries are raised to the weakest allowed."""
        values, log_tops = self.scale(tables)
        if self.log:
            values = np.where(values > -math.inf, np.maximum(values, WEAKEST_LOG), -math.inf)
        else:
            values = np.where(values > 0, np.maximum(values, WEAKEST), 0.0)
        return CliqueTables(tables.scopes, values), float(log_tops.sum())

    def round_to_single(self, values: Array) -> AnyArray:
        """The values in single precision; positive ones stay positive."""
        if self.log:
            return values.astype(np.float32)
        return np.where(values > 0, np.maximum(values, WEAKEST_SINGLE), 0.0).astype(np.float32)

    def distributions(self, tables: CliqueTables) -> CliqueTables:
        """The tables as linear numbers, each normalised; uniform if numbers have failed."""
        values, log_tops = self.scale(tables)
        failed = np.repeat(~np.isfinite(log_tops), tables.scopes.sizes)
        values = np.where(failed, 1.0, self.plain(values))
        totals = np.add.reduceat(values, tables.scopes.entries[:-1]) if len(tables) else np.zeros(0)
        return CliqueTables(tables.scopes, values / np.repeat(totals, tables.scopes.sizes))

    def entropy(self, table: CliqueTable) -> float:
        """The entropy of a table, in nats; 0 log 0 counts as 0."""
        return float(self._entropy(freeze(table.values)))  # type: ignore[arg-type]

    def loss_entropies(self, table: CliqueTable, tried: Sequence[tuple[int, frozenset[int]]]) -> Array:
        """(n, 3): H(v, R), H(C - v) and H(R) of a table on C, for each v and R."""
        found, scopes = np.empty((len(tried), 3)), [sorted(beside) for _, beside in tried]
        leaving, beside = _array([v for v, _ in tried]), _array([v for scope in scopes for v in scope])
        given = (self.cards, _array(table.scope), freeze(table.values))
        first = _array([0, *accumulate(map(len, scopes))])
        n, n_threads = (len(tried), self.n_threads) if len(table.values) >= CHUNK_ENTRIES else (1, 1)

        def find(i: int) -> None:
            self._losses(*given, leaving, first, beside, i * len(tried) // n, (i + 1) * len(tried) // n, found)

        run_chunks(find, n, n_threads)
        return found

    def information(self, tables: Sequence[CliqueTable]) -> list[Array]:
        """I(u; v) of all pairs u < v of each table's variables, by their places (n, n)."""
        found = [np.full((len(table.scope), len(table.scope)), -1.0) for table in tables]

        def find(i: int) -> None:
            self._information(self.cards, _array(tables[i].scope), freeze(tables[i].values), found[i])

        large = sum(len(table.values) for table in tables) >= CHUNK_ENTRIES
        run_chunks(find, len(tables), self.n_threads if large else 1)
        return found


def _array(scope: Sequence[int]) -> IntArray:
    return np.asarray(freeze(np.array(scope, np.int64)))
