"""Greedy search: the best change of one edge, as long as one makes the score higher.

Where none does, two things help. A restart goes to a random DAG of the class of the best: where edges point the other
way, others can be added. And `moved` of the variables, drawn at random, go each to its best place in an order of the
best DAG, with parents grown anew, as in `order_search`. The search climbs, restarts once, moves variables, climbs, and
restarts as often as it may. With restarts=0 and moved=0 there is no chance in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from besag.learn.networks.structure.climb import climb
from besag.learn.networks.structure.methods import METHODS
from besag.learn.networks.structure.moves import Walk
from besag.learn.networks.structure.order_search import move_some
from besag.learn.networks.structure.task import Outcome, Task


@dataclass(frozen=True)
class HillClimb:
    """restarts: how many. moved: the share of the variables."""

    restarts: int = 3
    moved: float = 0.7

    def __post_init__(self) -> None:
        METHODS.check_counts(self, "restarts", least=0)
        METHODS.check_numbers(self, "moved", below=1.0 + 1e-9)

    def learn(self, task: Task) -> Outcome:
        """The best DAG of all climbs."""
        walk = Walk(task, task.best)
        climb(task, walk, min(self.restarts, 1))
        if self.moved:
            move_some(task, self.moved)
        if self.moved or self.restarts:
            walk.go_to(task.best)
            climb(task, walk, self.restarts)
        return Outcome(task.best, "converged")
