"""Max-min hill climbing (Tsamardinos, Brown and Aliferis 2006): tests say which edges may be, the score which are.

Candidate parents and children of x grow by the variable whose least association with x, over sets of candidates, is the
greatest, and shrink where a set parts one from x. The association is minus the p-value of G^2. A pair stays where each
is a candidate of the other, and a climb adds no other edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from besag.learn.networks.structure.climb import climb
from besag.learn.networks.structure.methods import METHODS
from besag.learn.networks.structure.moves import Walk
from besag.learn.networks.structure.pc import Tests
from besag.learn.networks.structure.task import Outcome, Task


@dataclass(frozen=True)
class MMHC:
    """alpha: of the tests. max_given: the largest set of candidates that a test is given. restarts: of the climb."""

    alpha: float = 0.05
    max_given: int = 3
    least_rows: float = 5.0
    restarts: int = 5

    def __post_init__(self) -> None:
        METHODS.check_numbers(self, "alpha", least=5e-324, below=1.0)
        METHODS.check_numbers(self, "least_rows")
        METHODS.check_counts(self, "max_given", "restarts", least=0)

    def learn(self, task: Task) -> Outcome:
        """The best DAG with candidate edges."""
        tests = Tests(task, chi=False, adjusted=True, least_rows=self.least_rows)
        near = np.zeros((task.n_variables, task.n_variables), np.bool_)
        for x in range(task.n_variables):
            near[x, self._candidates(task, tests, x)] = True
            task.note(float(near.sum()), f"candidates of {task.names[x]}")
        climb(task, Walk(task, task.best, near & near.T | task.constraints.linked), self.restarts)
        return Outcome(task.best, "converged")

    def _candidates(self, task: Task, tests: Tests, x: int) -> list[int]:
        """Parents and children of x, as far as tests tell."""
        worst = {v: tests.p_value(x, v, ()) for v in range(task.n_variables) if v != x and self._may(task, x, v)}
        near = list[int]()
        while worst:
            best = min(worst, key=lambda v: (worst[v], v))
            if worst.pop(best) > self.alpha:
                break
            near.append(best)
            given = self._sets(near[:-1], best)
            worst = {v: max(p, *(tests.p_value(x, v, s) for s in given)) for v, p in worst.items()}
            task.clock.look()
        for v in list(near):
            others = [u for u in near if u != v]
            sets = (tuple(sorted(s)) for n in range(self.max_given + 1) for s in combinations(others, n))
            if any(tests.p_value(x, v, given) > self.alpha for given in sets):
                near.remove(v)
        return near

    def _may(self, task: Task, x: int, v: int) -> bool:
        return bool(task.constraints.allowed[x, v] or task.constraints.allowed[v, x])

    def _sets(self, others: list[int], new: int) -> list[tuple[int, ...]]:
        """Sets of candidates with the new one in them."""
        most = min(self.max_given - 1, len(others))
        return [tuple(sorted((*s, new))) for n in range(most + 1) for s in combinations(others, n)] or [()]
