"""A DAG that changes by one edge at a time, with what every change is worth.

    matrix (V, V)     [i, j]: i -> j
    above (V, V)      [i, j]: there is a path from i to j
    added (V, V)      score of j with i as one more parent, minus its own; -inf where constraints forbid it
    removed (V, V)    score of j without its parent i, minus its own; -inf where i is required

A change touches the parents of one child, of two where an edge is reversed, so only these columns are counted again. An
edge i -> j is reversed for removed[i, j] + added[j, i]. Of changes that are worth the same up to rounding, the first is
taken: adding before removing before reversing, then by the numbers of the variables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from besag.arrays import BoolArray, IntArray
from besag.graph.directed.orientation import order_of
from besag.kernels.compile import compiled
from besag.learn.networks.structure.kernels.changes import make_best_change
from besag.learn.networks.structure.task import Task

ADD, REMOVE, REVERSE = range(3)
WORDS = ("{} -> {} added", "{} -> {} removed", "{} -> {} reversed")


class Change(NamedTuple):
    """What is done to the edge i -> j, and what that is worth."""

    kind: int
    i: int
    j: int
    worth: float


class Walk:
    """See the module. candidates (V, V): of edges that may be added, those allowed where there is nothing else."""

    def __init__(self, task: Task, matrix: BoolArray, candidates: BoolArray | None = None) -> None:
        self.task, self.constraints, self.scores = task, task.constraints, task.scores
        self.candidates = self.constraints.allowed if candidates is None else candidates & self.constraints.allowed
        n = len(matrix)
        self.matrix, self.above, self.none = matrix.copy(), np.zeros_like(matrix), np.zeros_like(matrix)
        self.own, self.worth = np.zeros(n), np.empty((3, n, n))
        self.added, self.removed = np.full((n, n), -np.inf), np.full((n, n), -np.inf)
        self._stand(np.arange(n))

    def go_to(self, matrix: BoolArray) -> None:
        """Stand at another DAG."""
        changed = np.flatnonzero((self.matrix != matrix).any(axis=0))
        self.matrix = matrix.copy()
        self._stand(changed)

    def _stand(self, changed: IntArray) -> None:
        """Find all paths, and what changes of the parents of some variables are worth."""
        for v in order_of(self.matrix) or ():
            self.above[:, v] = self.matrix[:, v] | self.above[:, self.matrix[:, v]].any(axis=1)
        for child in changed.tolist():
            self._count(child)

    @property
    def score(self) -> float:
        """Of the DAG as it stands."""
        return float(self.own.sum())

    def parents(self, child: int) -> tuple[int, ...]:
        """In ascending order."""
        return tuple(np.flatnonzero(self.matrix[:, child]).tolist())

    def best(self, held: BoolArray | None = None, bar: float = 0.0) -> Change | None:
        """The first of those worth most; held (V, V): pairs whose change has to be worth more than bar."""
        state = (self.matrix, self.above, self.added, self.removed, self.constraints.linked)
        held = self.none if held is None else held
        found = compiled(make_best_change)(*state, held, bar, self.task.slack, self.worth)
        return None if found[0] < 0 else Change(*found)

    def make(self, change: Change) -> None:
        """Change the edge."""
        kind, i, j, _ = change
        self.matrix[i, j] = kind == ADD
        if kind != ADD:
            self._part(j)
        if kind != REMOVE:
            self._join(*((i, j) if kind == ADD else (j, i)))
        self._count(j)
        if kind == REVERSE:
            self._count(i)

    def describe(self, change: Change) -> str:
        """The change in words."""
        return WORDS[change.kind].format(self.task.names[change.i], self.task.names[change.j])

    def _join(self, i: int, j: int) -> None:
        """The paths that a new edge i -> j makes."""
        self.matrix[i, j] = True
        to_i, from_j = self.above[:, i].copy(), self.above[j].copy()
        to_i[i] = from_j[j] = True
        self.above |= np.outer(to_i, from_j)

    def _part(self, j: int) -> None:
        """The paths that are left of those to j and beyond, where an edge into it is gone."""
        below = np.flatnonzero(self.above[j]).tolist()
        rank = self.above.sum(axis=0)  # a variable has more ancestors than each of them
        for v in [j, *sorted(below, key=rank.__getitem__)]:
            self.above[:, v] = self.matrix[:, v] | self.above[:, self.matrix[:, v]].any(axis=1)

    def _count(self, child: int) -> None:
        """What adding and removing parents of a child is worth."""
        parents = self.parents(child)
        own = self.own[child] = self.scores.of(child, parents)
        self.added[:, child], self.removed[:, child] = -np.inf, -np.inf
        may = self.candidates[:, child] & self.constraints.has_room(child, parents)
        may[list(parents)] = False
        others = np.flatnonzero(may)
        if len(others):
            self.added[others, child] = self.scores.additions(child, parents, others) - own
        for parent in parents:
            rest = tuple(p for p in parents if p != parent)
            if not self.constraints.required[parent, child]:
                self.removed[parent, child] = self.scores.of(child, rest) - own
