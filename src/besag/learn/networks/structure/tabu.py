"""Tabu search: the best change of one edge, also where it makes the score lower, but not back to where it was.

The edge between two variables that a step has changed stays as it is for the next `length` steps, unless changing it
gives the best score so far. The search ends after `patience` steps without one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from besag.infer.iterate import Stopped, drive
from besag.learn.networks.structure.hill_climb import shuffled
from besag.learn.networks.structure.methods import METHODS
from besag.learn.networks.structure.moves import Walk
from besag.learn.networks.structure.task import Outcome, Task, matrix_of


@dataclass(frozen=True)
class Tabu:
    """See the module."""

    length: int = 10
    patience: int = 100
    restarts: int = 0

    def __post_init__(self) -> None:
        METHODS.check_counts(self, "length", "patience")

    def learn(self, task: Task) -> Outcome:
        """The best DAG on the way."""
        walk = Walk(task, matrix_of(task.constraints.extend(task.names)))
        best, matrix = walk.score, walk.matrix.copy()
        free_at, step, since, left = np.zeros(matrix.shape, np.int64), 0, 0, self.restarts

        def advance() -> Stopped | None:
            nonlocal best, matrix, step, since, left
            worth = walk.worths()
            held = (free_at > step) & (worth <= best - walk.score + walk.slack)
            change = walk.best(np.where(held, -np.inf, worth))
            if change is None or since >= self.patience:
                if left == 0:
                    return "converged"
                walk.go_to(shuffled(matrix, task))
                left, since = left - 1, 0
                free_at[:] = 0
                task.note(walk.score, "restart")
                return None
            walk.make(change)
            step, since = step + 1, since + 1
            free_at[change.i, change.j] = free_at[change.j, change.i] = step + self.length
            if walk.score > best + walk.slack:
                best, matrix, since = walk.score, walk.matrix.copy(), 0
            task.note(walk.score, walk.describe(change))
            return None

        stopped = drive(advance)
        return Outcome(matrix, stopped)
