"""Calibration of a forest of cliques: from a product of tables to the marginals of all cliques.

Each table is assigned to a clique that contains its scope. With the marginals b_C of cliques, and b_S of the separators
between neighbours,

    product of tables = Z prod_C b_C / prod_S b_S

Messages go up to the roots and down again (`besag.infer.join_graph.kernels.passes`), on several branches side by side.
To get such branches, every tree hangs from its centre: the clique none of whose branches has more than half of the
tree's entries. The cliques whose branches are too large for one chunk are the crown, which is done alone.

    cliques     children before parents: one chunk after the other, then the crown
    bounds      where the chunks, and the crown, begin in `cliques`
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from besag.arrays import Array, IntArray, freeze, offsets_of
from besag.infer.join_graph.clique_forest import CliqueForest
from besag.infer.join_graph.kernels.passes import make_down, make_up
from besag.infer.join_graph.tables import CHUNK_ENTRIES, Algebra, CliqueScopes, CliqueTables, Scope
from besag.kernels.threads import run_chunks

MOST_CHUNKS = 8  # of about the same work, if branches allow it
CROWN = 8  # the crown has at most 1 / CROWN of all entries


class TooWideError(Exception):
    """The numbers of a forest are too far apart for linear arithmetic; logarithms are needed."""


class Calibration:
    """The index arrays for calibrating a forest, whatever the numbers of its tables."""

    def __init__(self, algebra: Algebra, forest: CliqueForest) -> None:
        self.algebra = algebra
        self.scopes = algebra.scopes(forest.scopes)
        sizes = self.scopes.sizes.tolist()
        hung = Hung(forest.parents, forest.separators, sizes)
        self.separators = algebra.scopes(hung.separators)
        self.parents = freeze(np.array(hung.parents, np.int64))
        self.links = _lists(self.parents, len(sizes))
        n_chunks = min(MOST_CHUNKS, max(1, sum(sizes) // CHUNK_ENTRIES))
        self.cliques, self.bounds = hung.chunks(n_chunks)
        self.up, self.down = algebra.kernel(make_up), algebra.kernel(make_down)

    @property
    def n_entries(self) -> int:
        """Of all cliques."""
        return int(self.scopes.entries[-1])

    def run(
        self,
        scopes: CliqueScopes,
        homes: Sequence[int],
        values: Array,
        *,
        strict: bool = True,
        room: Array | None = None,
    ) -> tuple[CliqueTables, float]:
        """The marginals of all cliques under the product of tables on these scopes, and the log of its sum.

        If that is -inf the marginals are meaningless. strict: raise TooWideError if linear numbers may have lost
        something that matters; else that counts as 0. room: an array to write the marginals to.
        """
        n, n_chunks, cards = len(self.parents), len(self.bounds) - 2, self.algebra.cards
        beliefs = np.empty(self.n_entries) if room is None else room
        messages = np.empty(int(self.separators.entries[-1]))
        scales, extra, lows = np.zeros(n), np.zeros(n), np.zeros(n)
        structure = (cards, self.scopes.arrays, self.separators.arrays)
        given = (self.links, _lists(np.array(homes, np.int64), n), scopes.arrays, freeze(values), self.cliques)

        def up(i: int) -> None:
            some = (self.bounds[i], self.bounds[i + 1], strict)
            self.up(*structure, *given, *some, beliefs, messages, scales, extra, lows)

        def down(i: int) -> None:
            settled = (self.parents, self.cliques, self.bounds[i], self.bounds[i + 1], messages, scales)
            self.down(*structure, *settled, beliefs)

        run_chunks(up, n_chunks, self.algebra.n_threads)
        if np.isfinite(scales).all():
            up(n_chunks)
        if np.isnan(scales).any():
            raise TooWideError
        if not np.isfinite(scales).all():
            return CliqueTables(self.scopes, beliefs), -math.inf
        down(n_chunks)
        run_chunks(down, n_chunks, self.algebra.n_threads)
        return CliqueTables(self.scopes, beliefs), float(scales.sum() + extra.sum())


class Hung:
    """A forest whose trees hang from their centres; separators are those towards the new parents."""

    def __init__(self, parents: Sequence[int], separators: Sequence[Scope], sizes: Sequence[int]) -> None:
        self.parents, self.separators, self.sizes = list(parents), list(separators), sizes
        self.order = list(range(len(sizes)))
        self.branches, children = self._branches(), self._children
        roots = [c for c, parent in enumerate(parents) if parent < 0]
        moved = [path for c in roots if len(path := self._to_centre(c, children)) > 1]
        for path in moved:
            for above, below in pairwise(path):
                self.parents[above] = below
                self.separators[above] = separators[below]
            self.parents[path[-1]], self.separators[path[-1]] = -1, ()
        late = {c for path in moved for c in path}
        self.order = [c for c in self.order if c not in late] + [c for path in moved for c in path]
        self.branches = self._branches()

    def _branches(self) -> list[int]:
        """Entries of each clique and all below it."""
        found = list(self.sizes)
        for c in self.order:
            if self.parents[c] >= 0:
                found[self.parents[c]] += found[c]
        return found

    def _to_centre(self, root: int, children: list[list[int]]) -> list[int]:
        """The path from a root to the centre of its tree."""
        path, half = [root], self.branches[root] / 2
        while (heavy := max(children[path[-1]], key=self.branches.__getitem__, default=-1)) >= 0:
            if self.branches[heavy] <= half:
                break
            path.append(heavy)
        return path

    @property
    def _children(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.parents]
        for c, parent in enumerate(self.parents):
            if parent >= 0:
                found[parent].append(c)
        return found

    def chunks(self, n: int) -> tuple[IntArray, list[int]]:
        """Cliques and bounds: about n chunks, and the crown, which may be empty."""
        total, crown, children = sum(self.sizes), 0, self._children
        heap = [(-self.branches[c], c) for c, parent in enumerate(self.parents) if parent < 0]
        heapq.heapify(heap)
        top = set[int]()
        while n > 1 and heap and -heap[0][0] * n > total and (crown + self.sizes[heap[0][1]]) * CROWN <= total:
            _, c = heapq.heappop(heap)
            crown += self.sizes[c]
            top.add(c)
            for child in children[c]:
                heapq.heappush(heap, (-self.branches[child], child))
        chunk_of, filled, count = [n] * len(self.parents), 0, 0
        for _, root in sorted(heap, key=lambda found: found[1]):
            chunk_of[root] = count
            filled += self.branches[root]
            if filled * n >= total - crown:
                filled, count = 0, min(count + 1, n - 1)
        for c in reversed(self.order):
            if c not in top and self.parents[c] >= 0 and self.parents[c] not in top:
                chunk_of[c] = chunk_of[self.parents[c]]
        number = np.array(chunk_of, np.int64)
        order = np.array(self.order, np.int64)
        cliques = order[np.argsort(number[order], kind="stable")]
        return freeze(cliques), offsets_of(np.bincount(number, minlength=n + 1)).tolist()


def _lists(owners: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """The items of each owner (n,): where they begin, and their numbers; those of owner -1 are left out."""
    order = np.argsort(owners, kind="stable")
    kept = order[np.count_nonzero(owners < 0) :]
    counts = np.bincount(owners[kept], minlength=n)
    return freeze(offsets_of(counts)), freeze(kept)
