"""The best structure of all, with proof, up to about 25 variables.

First the parent sets of each child that are worth having: a set with a better subset never is. Sets grow one parent at
a time, and a set whose score cannot be above that of a subset of it (`FamilyScores.ceilings`) is not counted, nor is
one that contains it. Then dynamic programming over all subsets, see `kernels.subsets`, which takes 9
bytes a subset: it is known before anything begins whether they fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.errors import ModelError, TooLargeError
from besag.kernels.compile import compiled
from besag.learn.networks.structure.climb import climb
from besag.learn.networks.structure.kernels.subsets import make_subsets
from besag.learn.networks.structure.moves import Walk
from besag.learn.networks.structure.task import Outcome, Task, matrix_of

BYTES_A_SUBSET = 9
BYTES_A_SET = 400  # of a parent set while they are searched, in Python's own objects
CHUNK_SUBSETS = 2**16  # between two looks at the clock

ParentSets = dict[tuple[int, ...], float]


@dataclass(frozen=True)
class ExactSearch:
    """The proven optimum; what hill climbing finds where the time is over before."""

    def learn(self, task: Task) -> Outcome:
        """TooLargeError, before any work, where subsets do not fit into memory."""
        n, limit = task.n_variables, task.counter.memory_limit
        if BYTES_A_SUBSET * 2.0**n > limit:
            raise TooLargeError(
                f"exact search over {n} variables takes {BYTES_A_SUBSET * 2.0**n:.3g} bytes for its 2^{n} subsets, "
                f"more than memory_limit={limit}; order_search comes close to the optimum for any number"
            )
        climb(task, Walk(task, task.best))
        return Outcome(matrix_of(Optimum(task).parents()), "converged")


class Optimum:
    """The parent sets of each child, and the best last variable of each subset."""

    def __init__(self, task: Task) -> None:
        self.task, self.n = task, task.n_variables
        self.linked = np.array([_bits(np.flatnonzero(row)) for row in task.constraints.linked], np.int64)
        self.sets = [self._worth_having(child) for child in range(self.n)]
        self.last = self._over_subsets()

    def _over_subsets(self) -> AnyArray:
        best, last = np.zeros(2**self.n), np.zeros(2**self.n, np.uint8)
        table, run = _packed(self.sets), compiled(make_subsets)
        for start in range(1, 2**self.n, CHUNK_SUBSETS):
            run(self.n, start, min(start + CHUNK_SUBSETS, 2**self.n), *table, self.linked, best, last)
            self.task.clock.look()
        if best[-1] == -np.inf:
            raise ModelError("no DAG has all required edges within max_parents, max_entries and the tiers; relax one")
        self.task.note(float(best[-1]), "optimum over all subsets")
        return last

    def parents(self) -> list[list[int]]:
        """Of each variable, from the last one of the best order to the first."""
        out: list[list[int]] = [[] for _ in range(self.n)]
        subset = 2**self.n - 1
        while subset:
            v = int(self.last[subset])
            subset ^= 1 << v
            must = int(self.linked[v]) & subset
            scores = {p: score for p, score in self.sets[v].items() if not _bits(p) & ~subset and not must & ~_bits(p)}
            chosen = max(scores, key=scores.__getitem__)
            out[v] = list(chosen)
        return out

    def _worth_having(self, child: int) -> ParentSets:
        """The parent sets of a child that no subset of theirs is as good as, best first."""
        limits, found = self.task.constraints, ParentSets()
        required = np.flatnonzero(limits.required[:, child]).tolist()
        free = np.flatnonzero(limits.linked[:, child] & limits.allowed[:, child] & ~limits.required[:, child]).tolist()
        others = np.flatnonzero(limits.allowed[:, child] & ~limits.linked[:, child]).tolist()
        for n in range(len(free) + 1):
            for some in combinations(free, n):  # sets are compared with those that are linked alike
                base = tuple(sorted((*required, *some)))
                if limits.is_within(child, base):
                    found.update(self._grown(child, base, others))
        if not found:
            raise ModelError(f"no parent set of {self.task.names[child]!r} is within the constraints; relax one")
        self.task.note(max(found.values()), f"{len(found)} parent sets of {self.task.names[child]}")
        return dict(sorted(found.items(), key=lambda item: (-item[1], len(item[0]), item[0])))

    def _grown(self, child: int, base: tuple[int, ...], others: list[int]) -> ParentSets:
        kept: ParentSets = {base: self.task.scores.of(child, base)}
        level: ParentSets = {(): kept[base]}  # of each set beyond base: the best score of it and its subsets
        while level:
            larger: ParentSets = {}
            for added, candidates in self._candidates(child, base, level, others):
                parents = tuple(sorted((*base, *added)))
                scores = self.task.scores.additions(child, parents, np.array(list(candidates), np.int64))
                for (x, below), score in zip(candidates.items(), scores.tolist(), strict=True):
                    larger[(*added, x)] = max(below, score)
                    if score > below:
                        kept[tuple(sorted((*parents, x)))] = score
            self._refuse_many(len(kept) + len(larger))
            self.task.clock.look()
            level = larger
        return kept

    def _candidates(
        self, child: int, base: tuple[int, ...], level: ParentSets, others: list[int]
    ) -> Iterator[tuple[tuple[int, ...], dict[int, float]]]:
        """Sets, with what may be added to them and the best score of the subsets of the two."""
        for added in level:
            parents = (*base, *added)
            room = self.task.constraints.has_room(child, parents)
            able: dict[int, float] = {}
            new = [x for x in others if room[x] and (not added or x > added[-1])]
            ceilings = self.task.scores.ceilings(child, parents, np.array(new, np.int64)).tolist()
            for x, ceiling in zip(new, ceilings, strict=True):
                subsets = [level.get((*added[:i], *added[i + 1 :], x)) for i in range(len(added))]
                if None not in subsets:
                    below = max(level[added], *(s for s in subsets if s is not None)) if subsets else level[added]
                    if ceiling > below:
                        able[x] = below
            if able:
                yield added, able

    def _refuse_many(self, n: int) -> None:
        if BYTES_A_SET * n > self.task.counter.memory_limit:
            raise TooLargeError(
                f"{n} parent sets of one variable are more than memory_limit={self.task.counter.memory_limit} holds; "
                "set max_parents, or take order_search"
            )


def _bits(members: IntArray | tuple[int, ...]) -> int:
    return sum(1 << int(v) for v in members)


def _packed(sets: list[ParentSets]) -> tuple[IntArray, IntArray, Array]:
    """(first, masks, scores) of the kernel."""
    first = np.cumsum([0, *map(len, sets)]).astype(np.int64)
    masks = np.array([_bits(p) for listed in sets for p in listed], np.int64)
    return first, masks, np.array([score for listed in sets for score in listed.values()])
