"""The score of a family, by a criterion, each counted once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from besag.arrays import Array, IntArray
from besag.learn.networks.structure.counter import Counter
from besag.learn.networks.structure.criteria import Criterion

Family = tuple[int, tuple[int, ...]]  # a child, and its parents in ascending order
NOBODY = -1  # the candidate that adds nothing


BYTES_A_FAMILY = 250  # in Python's own objects


class FamilyScores:
    """Scores of families; what was counted once is kept, up to as many bytes as the counter keeps."""

    def __init__(self, counter: Counter, criterion: Criterion) -> None:
        self.counter, self.criterion = counter, criterion
        self.price = criterion.price(counter.total)
        self.sizes = counter.cardinalities.astype(np.float64)
        self._kept: dict[Family, float] = {}
        self._rows: dict[Family, Array] = {}
        self._most = max(1, counter.kept_bytes // (BYTES_A_FAMILY + 8 * counter.n_variables))  # of either
        self._pairs = np.full((counter.n_variables,) * 2, np.nan)  # [child, parent]

    def of(self, child: int, parents: Sequence[int]) -> float:
        """The score of a child with these parents."""
        key = (child, tuple(sorted(parents)))
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= self._most:
                self._kept.clear()
            found = self._added(*key)
            if found is None:
                found = float(self._count(child, key[1], np.array([NOBODY]))[0])
            self._kept[key] = found
        return found

    def _added(self, child: int, parents: tuple[int, ...]) -> float | None:
        """The score, if one of the parents was counted as a candidate beside the others."""
        for i, x in enumerate(parents):
            row = self._rows.get((child, parents[:i] + parents[i + 1 :]))
            if row is not None and row[x] == row[x]:
                return float(row[x])
        return None

    def additions(self, child: int, parents: Sequence[int], candidates: IntArray) -> Array:
        """The scores (n,) of a child with these parents and each of n candidates."""
        key = (child, tuple(sorted(parents)))
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) >= self._most:
                self._rows.clear()
            row = self._pairs[child] if not parents else np.full(self.counter.n_variables, np.nan)
            self._rows[key] = row
        new = candidates[np.isnan(row[candidates])]
        if len(new):
            row[new] = self._new(child, key[1], new)
        return row[candidates]

    def ceilings(self, child: int, parents: Sequence[int], candidates: IntArray) -> Array:
        """What no score of a child with these parents, one of the candidates (n,), and any others is above.

        No likelihood is above 1, so that a price of parameters is a bound; of marginal likelihoods, the first row of a
        configuration j of the parents has probability 1 / K: -log(K) sum_j min(1, n_j). Both only fall with parents.
        """
        k = float(self.sizes[child])
        if self.criterion.is_marginal:
            return np.full(len(candidates), -math.log(k) * self.counter.first_rows(tuple(sorted(parents))))
        return np.asarray(-self.price * (k - 1) * self.sizes[list(parents)].prod() * self.sizes[candidates])

    def total(self, parents: Sequence[Sequence[int]]) -> float:
        """The score of a whole structure."""
        return float(sum(self.of(child, above) for child, above in enumerate(parents)))

    def _new(self, child: int, parents: tuple[int, ...], candidates: IntArray) -> Array:
        """Scores that were not asked for; a pair is counted once where both directions score the same."""
        scores = self._count(child, parents, candidates)
        if not parents and self.criterion.is_equivalent:
            alone = np.array([self.of(x, ()) for x in candidates.tolist()])
            self._pairs[candidates, child] = scores + alone - self.of(child, ())
        return scores

    def _count(self, child: int, parents: tuple[int, ...], candidates: IntArray) -> Array:
        k = self.sizes[child]
        rows = self.sizes[list(parents)].prod() * np.where(candidates >= 0, self.sizes[candidates], 1.0)
        if not self.criterion.is_marginal:
            values = self.counter.families(child, parents, candidates, np.zeros(0))
            return np.asarray(values - self.price * (k - 1) * rows)
        pseudocounts = np.array([self.criterion.pseudocount(k * n) for n in rows.tolist()])
        return self.counter.families(child, parents, candidates, pseudocounts)
