"""What every method counts with: configurations of parents, values of families, tests.

    codes (V, N)         one unsigned type for all columns
    weights (N,) or ()   none: every row counts 1, and all counts are whole

The numbered configurations of sets of variables are kept up to `memory_limit` bytes; the ones used longest ago go
first. Threads share the candidates of a family among them, each with tables of its own: answers do not depend on how
many there are.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.errors import TooLargeError
from besag.infer.memory import default_memory_limit
from besag.kernels.compile import compiled
from besag.kernels.threads import available_threads, run_chunks
from besag.learn.networks.structure.kernels.families import make_additions, make_join, make_pairs
from besag.learn.networks.structure.kernels.independence import make_independence

KEPT_BYTES = 2**28  # of numbered configurations, where nobody says
MOST_CELLS = 250  # of a table, but for the last state of each column, that are counted by words
MOST_MARKED = 32  # states of a column that is
CHUNK_ROWS = 2**21  # rows times candidates that are worth a thread


class Counter:
    """Counts of complete rows; see the module."""

    def __init__(
        self,
        codes: AnyArray,
        cardinalities: IntArray,
        weights: Array | None = None,
        *,
        memory_limit: int | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.codes, self.cardinalities = codes, cardinalities
        self.weights = np.zeros(0) if weights is None else np.ascontiguousarray(weights, np.float64)
        self.n_variables, self.n_rows = codes.shape
        self.total = float(self.n_rows if weights is None else self.weights.sum())
        self.memory_limit = default_memory_limit() if memory_limit is None else memory_limit
        self.kept_bytes = min(KEPT_BYTES, self.memory_limit) if memory_limit is None else memory_limit
        self.n_threads = available_threads() if n_threads is None else n_threads
        self._kept: OrderedDict[tuple[int, ...], tuple[AnyArray, int]] = OrderedDict()
        whole = np.arange(self.n_rows + 1, dtype=np.float64)
        self._logs = whole * np.log(np.maximum(whole, 1.0)) if weights is None else np.zeros(0)
        self._marks, self._first = mark_states(codes, cardinalities if weights is None else None)

    def configurations(self, variables: Sequence[int]) -> tuple[AnyArray, int]:
        """The numbers (N,) of the joint states of some variables, in ascending order, and how many there are."""
        key = tuple(variables)
        found = self._kept.pop(key, None)
        if found is None:
            found = self._join(key)
        self._kept[key] = found
        while len(self._kept) > 1 and 4 * self.n_rows * len(self._kept) > self.kept_bytes:
            self._kept.popitem(last=False)
        return found

    def first_rows(self, variables: Sequence[int]) -> float:
        """The sum over configurations of their weights, each at most 1: how many there are, of rows that weigh 1."""
        ids, n = self.configurations(variables)
        return float(np.minimum(np.bincount(ids, self.weights), 1.0).sum()) if len(self.weights) else float(n)

    def _join(self, key: tuple[int, ...]) -> tuple[AnyArray, int]:
        if not key:
            return np.zeros(self.n_rows, np.uint32), 1
        ids, n = self.configurations(key[:-1])
        k = int(self.cardinalities[key[-1]])
        joined = np.empty(self.n_rows, np.uint32)
        places = np.full(n * k, -1, np.int32)
        return joined, int(compiled(make_join)(ids, self.codes[key[-1]], k, places, joined))

    def families(self, child: int, parents: Sequence[int], candidates: IntArray, pseudocounts: Array) -> Array:
        """Values (n,) of a child with its parents and each of n candidates, -1 for none: see `kernels.families`."""
        (ids, n_ids), k = self.configurations(parents), int(self.cardinalities[child])
        widest = int(self.cardinalities[candidates].max()) if candidates.max() >= 0 else 1
        values, size = np.empty(len(candidates)), 2 * n_ids * k * widest
        threads = min(self.n_threads, max(1, self.n_rows * len(candidates) // CHUNK_ROWS))
        self._refuse(8 * size * threads, child, parents)
        run, most_cells = compiled(make_additions), MOST_CELLS if len(self._marks) else 0

        def count(chunk: int) -> None:
            part = slice(len(candidates) * chunk // threads, len(candidates) * (chunk + 1) // threads)
            given = pseudocounts[part] if len(pseudocounts) else pseudocounts
            table = self._table(size)
            data = (self.codes, candidates[part], self.cardinalities, self.weights, self._marks, self._first)
            run(ids, self.codes[child], n_ids, k, *data, most_cells, self._logs, given, table, values[part])

        run_chunks(count, threads, threads)
        return values

    def pairs(self, x: int, others: IntArray) -> Array:
        """The counts (K, S) of the states of a variable beside those of others, S the sum of their cardinalities."""
        (ids, _), k = self.configurations(()), int(self.cardinalities[x])
        sizes = self.cardinalities[others]
        counts = np.empty((k, int(sizes.sum())))
        data = (self.codes, others, self.cardinalities, self.weights, self._marks, self._first)
        compiled(make_pairs)(ids, self.codes[x], k, *data, self._table(2 * k * int(sizes.max(initial=1))), counts)
        return counts

    def test(self, x: int, y: int, given: Sequence[int], chi: bool) -> tuple[float, int]:
        """(statistic, adjusted degrees of freedom) of x and y given others: G^2, or chi^2."""
        ids, n_ids = self.configurations(given)
        kx, ky = (int(self.cardinalities[v]) for v in (x, y))
        self._refuse(16 * n_ids * kx * ky, x, given)
        table = self._table(2 * n_ids * kx * ky)
        run = compiled(make_independence)
        statistic, freedom = run(ids, n_ids, self.codes[x], kx, self.codes[y], ky, self.weights, int(chi), table)
        return float(statistic), int(freedom)

    def _table(self, size: int) -> AnyArray:
        return np.empty(size, np.float64 if len(self.weights) else np.int32)

    def _refuse(self, needed: float, child: int, parents: Sequence[int]) -> None:
        if needed > self.memory_limit:
            raise TooLargeError(
                f"counting column {child} with {len(parents)} parents takes {needed:.0f} bytes, more than "
                f"memory_limit={self.memory_limit}; set max_parents or max_entries"
            )


def mark_states(codes: AnyArray, cardinalities: IntArray | None) -> tuple[AnyArray, IntArray]:
    """(marks, first) of `kernels.families`; none for weighted rows, where cardinalities are None."""
    words, first = -(-codes.shape[1] // 64), np.full(len(codes), -1)
    if cardinalities is None:
        return np.zeros((0, words), np.uint64), first
    marked = np.flatnonzero(cardinalities <= MOST_MARKED)
    first[marked] = np.cumsum(cardinalities[marked]) - cardinalities[marked]
    marks = np.zeros((int(cardinalities[marked].sum()), 8 * words), np.uint8)
    for v in marked.tolist():
        for state in range(int(cardinalities[v])):
            packed = np.packbits(codes[v] == state, bitorder="little")
            marks[first[v] + state, : len(packed)] = packed
    return marks.view("<u8").astype(np.uint64, copy=False), first
