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

from besag.arrays import Array, BoolArray
from besag.graph.directed.orientation import order_of
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
        self.go_to(matrix)

    def go_to(self, matrix: BoolArray) -> None:
        """Stand at another DAG."""
        n = len(matrix)
        self.matrix = matrix.copy()
        self.own = np.zeros(n)
        self.added, self.removed = np.full((n, n), -np.inf), np.full((n, n), -np.inf)
        self.above = np.zeros_like(self.matrix)
        for v in order_of(self.matrix) or ():
            self.above[:, v] = self.matrix[:, v] | self.above[:, self.matrix[:, v]].any(axis=1)
        for child in range(n):
            self._count(child)

    @property
    def score(self) -> float:
        """Of the DAG as it stands."""
        return float(self.own.sum())

    def parents(self, child: int) -> tuple[int, ...]:
        """In ascending order."""
        return tuple(np.flatnonzero(self.matrix[:, child]).tolist())

    def worths(self) -> Array:
        """Of adding, removing and reversing every edge: (3, V, V), -inf where it cannot be."""
        worth = np.full((3, *self.matrix.shape), -np.inf)
        free = ~(self.matrix | self.matrix.T | self.above.T)
        worth[ADD][free] = self.added[free]
        worth[REMOVE] = np.where(self.constraints.linked, -np.inf, self.removed)
        i, j = np.nonzero(self.matrix & ~self.constraints.required)
        blocked = (self.above[i] & self.matrix[:, j].T).any(axis=1)  # a path from i to another parent of j
        worth[REVERSE, i, j] = np.where(blocked, -np.inf, self.removed[i, j] + self.added[j, i])
        return worth

    def best(self, worth: Array) -> Change | None:
        """The first of the changes that are worth most."""
        most = worth.max()
        if most == -np.inf:
            return None
        kind, i, j = np.unravel_index(int(np.argmax(worth >= most - self.task.slack)), worth.shape)
        return Change(int(kind), int(i), int(j), float(worth[kind, i, j]))

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
