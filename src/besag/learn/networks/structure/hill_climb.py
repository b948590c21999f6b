"""Greedy search: the best change of one edge, as long as one makes the score higher.

Where none does, a restart goes back to the best DAG so far, makes a few random changes, and climbs again. The first
climb has no chance in it, so that without restarts the seed makes no difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from besag.arrays import BoolArray
from besag.infer.iterate import Stopped, drive
from besag.learn.networks.structure.methods import METHODS
from besag.learn.networks.structure.moves import Change, Walk
from besag.learn.networks.structure.task import Outcome, Task, matrix_of


@dataclass(frozen=True)
class HillClimb:
    """restarts: how many. kicks: random changes before each of them, one for every so many variables at least."""

    restarts: int = 5
    kicks: int = 6

    def __post_init__(self) -> None:
        METHODS.check_counts(self, "restarts", least=0)
        METHODS.check_counts(self, "kicks")

    def learn(self, task: Task) -> Outcome:
        """The best DAG of all climbs."""
        return climb_from(task, matrix_of(task.constraints.extend(task.names)), self.restarts, self.kicks)


def climb_from(
    task: Task, start: BoolArray, restarts: int, kicks: int = 6, candidates: BoolArray | None = None
) -> Outcome:
    """As HillClimb does from some DAG; candidates (V, V): of edges that may be added."""
    walk = Walk(task, start, candidates)
    best, matrix, left = walk.score, walk.matrix.copy(), restarts

    def advance() -> Stopped | None:
        nonlocal best, matrix, left
        change = walk.best(walk.worths())
        if change is not None and change.worth > walk.slack:
            walk.make(change)
            task.note(walk.score, walk.describe(change))
            return None
        if walk.score > best + walk.slack:
            best, matrix = walk.score, walk.matrix.copy()
        if left == 0:
            return "converged"
        left -= 1
        walk.go_to(shuffled(matrix, task))
        task.note(walk.score, "restart")
        return None

    stopped = drive(advance)
    return Outcome(walk.matrix if walk.score > best else matrix, stopped)


def kick(walk: Walk, n: int) -> None:
    """Make n random changes."""
    for _ in range(n):
        worth = walk.worths()
        able = np.argwhere(worth > -np.inf)
        if not len(able):
            return
        kind, i, j = able[walk.task.rng.integers(len(able))].tolist()
        walk.make(Change(kind, i, j, float(worth[kind, i, j])))


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
