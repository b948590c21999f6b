"""Climbing from where a walk stands, and beginning again: what methods that change one edge at a time share."""

from __future__ import annotations

import numpy as np

from besag.arrays import BoolArray
from besag.kernels.compile import compiled
from besag.learn.networks.structure.kernels.changes import make_shuffle
from besag.learn.networks.structure.moves import Walk
from besag.learn.networks.structure.task import Task


def climb(task: Task, walk: Walk, restarts: int = 0) -> None:
    """The best change of one edge until none helps; then again from a random DAG of the class of the best."""
    for left in range(restarts, -1, -1):
        task.keep(walk.matrix, walk.score)
        while (change := walk.best()) is not None and change.worth > task.slack:
            walk.make(change)
            task.keep(walk.matrix, walk.score)
            task.note(walk.score, walk.describe(change))
        if left:
            walk.go_to(shuffle(task.best, task))
            task.note(walk.score, "restart")


def shuffle(matrix: BoolArray, task: Task) -> BoolArray:
    """A random DAG of the same equivalence class, by reversals of covered edges (Chickering 1995)."""
    matrix, n_edges = matrix.copy(), int(matrix.sum())
    may = task.constraints.allowed.T & ~task.constraints.required
    draws = task.rng.random(4 * n_edges)
    compiled(make_shuffle)(matrix, may, draws, np.empty((n_edges, 2), np.int64))
    return matrix
