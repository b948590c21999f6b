"""Tabu search: the best change of one edge, also where it makes the score lower, but not back to where it was.

The edge between two variables that a step has changed stays as it is for the next `length` steps, unless changing it
gives the best score so far. The search ends after `patience` steps without one; a restart then goes to a random DAG of
the class of the best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from besag.learn.networks.structure.hill_climb import shuffled
from besag.learn.networks.structure.methods import METHODS
from besag.learn.networks.structure.moves import Walk
from besag.learn.networks.structure.task import Outcome, Task


@dataclass(frozen=True)
class Tabu:
    """See the module."""

    length: int = 10
    patience: int = 100
    restarts: int = 0

    def __post_init__(self) -> None:
        METHODS.check_counts(self, "length", "patience")
        METHODS.check_counts(self, "restarts", least=0)

    def learn(self, task: Task) -> Outcome:
        """The best DAG on the way."""
        walk = Walk(task, task.best)
        task.keep(walk.matrix, walk.score)
        for left in range(self.restarts, -1, -1):
            self._walk(task, walk)
            if left:
                walk.go_to(shuffled(task.best, task))
                task.note(walk.score, "restart")
        return Outcome(task.best, "converged")

    def _walk(self, task: Task, walk: Walk) -> None:
        free_at, step, last = np.zeros(walk.matrix.shape, np.int64), 0, 0
        while step < last + self.patience:
            worth = walk.worths()
            held = (free_at > step) & (worth <= task.best_score - walk.score + task.slack)
            change = walk.best(np.where(held, -np.inf, worth))
            if change is None:
                break
            walk.make(change)
            step += 1
            free_at[change.i, change.j] = free_at[change.j, change.i] = step + self.length
            if walk.score > task.best_score + task.slack:
                last = step
            task.keep(walk.matrix, walk.score)
            task.note(walk.score, walk.describe(change))
