"""The score of a family, by a criterion, each counted once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from besag.arrays import Array, IntArray
from besag.learn.networks.structure.counter import Counter
from besag.learn.networks.structure.criteria import Criterion

Family = tuple[int, tuple[int, ...]]  # a child, and its parents in ascending order
NOBODY = -1  # the candidate that adds nothing


class FamilyScores:
    """Scores of families; what was counted once is kept."""

    def __init__(self, counter: Counter, criterion: Criterion) -> None:
        self.counter, self.criterion = counter, criterion
        self.price = criterion.price(counter.total)
        self.sizes = counter.cardinalities.astype(np.float64)
        self._kept: dict[Family, float] = {}
        self._rows: dict[Family, Array] = {}

    def of(self, child: int, parents: Sequence[int]) -> float:
        """The score of a child with these parents."""
        key = (child, tuple(sorted(parents)))
        if key not in self._kept:
            self._kept[key] = float(self._count(child, key[1], np.array([NOBODY]))[0])
        return self._kept[key]

    def additions(self, child: int, parents: Sequence[int], candidates: IntArray) -> Array:
        """The scores (n,) of a child with these parents and each of n candidates."""
        key = (child, tuple(sorted(parents)))
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = np.full(self.counter.n_variables, np.nan)
        new = candidates[np.isnan(row[candidates])]
        if len(new):
            row[new] = self._new(child, key[1], new)
        return row[candidates]

    def total(self, parents: Sequence[Sequence[int]]) -> float:
        """The score of a whole structure."""
        return float(sum(self.of(child, above) for child, above in enumerate(parents)))

    def _new(self, child: int, parents: tuple[int, ...], candidates: IntArray) -> Array:
        """Scores that were not asked for; a pair is counted once where both directions score the same."""
        if parents or not self.criterion.is_equivalent:
            return self._count(child, parents, candidates)
        scores = np.full(len(candidates), np.nan)
        own = self.of(child, ())
        for i, x in enumerate(candidates.tolist()):
            row = self._rows.get((x, ()))
            if row is not None and not np.isnan(row[child]):
                scores[i] = row[child] + own - self.of(x, ())
        left = np.isnan(scores)
        if left.any():
            scores[left] = self._count(child, parents, candidates[left])
        return scores

    def _count(self, child: int, parents: tuple[int, ...], candidates: IntArray) -> Array:
        k = self.sizes[child]
        rows = self.sizes[list(parents)].prod() * np.where(candidates >= 0, self.sizes[candidates], 1.0)
        if not self.criterion.is_marginal:
            values = self.counter.families(child, parents, candidates, np.zeros(0))
            return np.asarray(values - self.price * (k - 1) * rows)
        pseudocounts = np.array([self.criterion.pseudocount(k * n) for n in rows.tolist()])
        return self.counter.families(child, parents, candidates, pseudocounts)
