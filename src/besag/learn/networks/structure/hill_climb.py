"""Greedy search: the best change of one edge, as long as one makes the score higher.

Where none does, a restart goes to a random DAG of the class of the best, and climbs from there: where edges point the
other way, others can be added. The first climb has no chance in it, so that without restarts the seed makes no
difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from besag.arrays import BoolArray
from besag.learn.networks.structure.methods import METHODS
from besag.learn.networks.structure.moves import Walk
from besag.learn.networks.structure.task import Outcome, Task


@dataclass(frozen=True)
class HillClimb:
    """restarts: how many."""

    restarts: int = 5

    def __post_init__(self) -> None:
        METHODS.check_counts(self, "restarts", least=0)

    def learn(self, task: Task) -> Outcome:
        """The best DAG of all climbs."""
        return climb(task, Walk(task, task.best), self.restarts)


def climb(task: Task, walk: Walk, restarts: int) -> Outcome:
    """The best DAG of a climb from where a walk stands, and of restarts."""
    for left in range(restarts, -1, -1):
        task.keep(walk.matrix, walk.score)
        while (change := walk.best(walk.worths())) is not None and change.worth > task.slack:
            walk.make(change)
            task.keep(walk.matrix, walk.score)
            task.note(walk.score, walk.describe(change))
        if left:
            walk.go_to(shuffled(task.best, task))
            task.note(walk.score, "restart")
    return Outcome(task.best, "converged")


def shuffled(matrix: BoolArray, task: Task) -> BoolArray:
    """A random DAG of the same equivalence class, by reversals of covered edges (Chickering 1995)."""
    matrix = matrix.copy()
    for _ in range(4 * int(matrix.sum())):
        edges = np.argwhere(matrix & ~task.constraints.required & task.constraints.allowed.T)
        if not len(edges):
            break
        i, j = edges[task.rng.integers(len(edges))].tolist()
        rest = matrix[:, j].copy()
        rest[i] = False
        if (rest == matrix[:, i]).all():
            matrix[i, j], matrix[j, i] = False, True
    return matrix
