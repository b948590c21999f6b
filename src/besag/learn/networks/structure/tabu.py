"""Tabu search: the best change of one edge, also where it makes the score lower, but not back to where it was.

The edge between two variables that a step has changed stays as it is for the next `length` steps, unless changing it
gives the best score so far. A walk ends after `patience` steps without one. Before the first, the search climbs, and
`moved` of the variables go to their best places in an order, as in `hill_climb`; a restart goes to a random DAG of the
class of the best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from besag.learn.networks.structure.climb import climb, shuffle
from besag.learn.networks.structure.methods import METHODS
from besag.learn.networks.structure.moves import Walk
from besag.learn.networks.structure.order_search import move_some
from besag.learn.networks.structure.task import Outcome, Task


@dataclass(frozen=True)
class Tabu:
    """See the module."""

    length: int = 10
    patience: int = 50
    restarts: int = 0
    moved: float = 0.7

    def __post_init__(self) -> None:
        METHODS.check_counts(self, "length", "patience")
        METHODS.check_counts(self, "restarts", least=0)
        METHODS.check_numbers(self, "moved", below=1.0 + 1e-9)

    def learn(self, task: Task) -> Outcome:
        """The best DAG on the way."""
        walk = Walk(task, task.best)
        climb(task, walk, restarts=1)
        if self.moved:
            move_some(task, self.moved)
            walk.go_to(task.best)
        for left in range(self.restarts, -1, -1):
            self._walk(task, walk)
            if left:
                walk.go_to(shuffle(task.best, task))
                task.note(walk.score, "restart")
        return Outcome(task.best, "converged")

    def _walk(self, task: Task, walk: Walk) -> None:
        free_at, step, last = np.zeros(walk.matrix.shape, np.int64), 0, 0
        while step < last + self.patience:
            change = walk.best(free_at > step, task.best_score - walk.score + task.slack)
            if change is None:
                break
            walk.make(change)
            step += 1
            free_at[change.i, change.j] = free_at[change.j, change.i] = step + self.length
            if walk.score > task.best_score + task.slack:
                last = step
            task.keep(walk.matrix, walk.score)
            task.note(walk.score, walk.describe(change))
