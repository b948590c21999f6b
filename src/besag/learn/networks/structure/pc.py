"""PC: edges that no test of independence takes away, directed as far as the tests tell (Spirtes and Glymour 1991).

Beginning with all edges, x - y goes where x and y are independent given n of the neighbours of x or of y, for n = 0, 1,
2, ... In each round neighbours are those at its beginning, so that the order of tests makes no difference (Colombo and
Maathuis 2014). Then x -> z <- y where z is not in the set that parted x and y; colliders that contradict one another
leave the edge undirected. Meek's rules direct what follows.

    g2, chi2     the statistic; adjusted: degrees of freedom count only states that occur in a stratum
    alpha        two variables are joined as long as every p-value is below it
    max_given    the largest set of neighbours
    least_rows   rows for each degree of freedom below which a test has no power and is not made
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from math import prod

import numpy as np

from besag.arrays import BoolArray
from besag.graph.directed.orientation import along_order, apply_rules
from besag.infer.iterate import Stopped, drive
from besag.learn.networks.structure.methods import METHODS
from besag.learn.networks.structure.task import Outcome, Task


@dataclass(frozen=True)
class PC:
    """See the module."""

    alpha: float = 0.01
    test: str = "g2"
    adjusted: bool = True
    max_given: int | None = None
    least_rows: float = 0.0

    def __post_init__(self) -> None:
        METHODS.check_numbers(self, "alpha", least=5e-324, below=1.0)
        METHODS.check_choice(self, "test", ("g2", "chi2"))
        METHODS.check_choice(self, "adjusted", (True, False))
        METHODS.check_counts(self, "max_given", least=0)
        METHODS.check_numbers(self, "least_rows")

    def learn(self, task: Task) -> Outcome:
        """A PDAG; a CPDAG where the tests contradict neither each other nor the constraints."""
        tests = Tests(task, self.test == "chi2", self.adjusted, self.least_rows)
        skeleton = Skeleton(task, lambda x, y, given: tests.p_value(x, y, given) > self.alpha, self.max_given)
        stopped = drive(skeleton.advance)
        return Outcome(direct(task, skeleton.joined, skeleton.parted_by), stopped)


@dataclass
class Tests:
    """p-values, each computed once."""

    __test__ = False  # nothing for pytest

    task: Task
    chi: bool
    adjusted: bool
    least_rows: float
    kept: dict[tuple[int, int, tuple[int, ...]], float] = field(default_factory=dict)

    def p_value(self, x: int, y: int, given: tuple[int, ...]) -> float:
        """Of x and y independent given others; 0 where the test would have no power, which keeps the edge."""
        key = (min(x, y), max(x, y), given)
        if key not in self.kept:
            self.kept[key] = self._compute(*key)
        return self.kept[key]

    def _compute(self, x: int, y: int, given: tuple[int, ...]) -> float:
        from scipy.special import chdtrc

        sizes = self.task.counter.cardinalities
        full = float(sizes[x] - 1) * float(sizes[y] - 1) * prod(float(sizes[z]) for z in given)
        if self.task.counter.total < self.least_rows * full:
            return 0.0
        statistic, adjusted = self.task.counter.test(x, y, given, self.chi)
        freedom = float(adjusted) if self.adjusted else full
        return float(chdtrc(freedom, statistic)) if freedom > 0 else 1.0


@dataclass
class Skeleton:
    """joined (V, V): what no test has parted. parted_by: of each pair that one has."""

    task: Task
    independent: Callable[[int, int, tuple[int, ...]], bool]
    max_given: int | None
    joined: BoolArray = field(init=False)
    parted_by: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)
    size: int = 0

    def __post_init__(self) -> None:
        allowed = self.task.constraints.allowed
        self.joined = allowed | allowed.T

    def advance(self) -> Stopped | None:
        """A round of tests given sets of one size."""
        near = [np.flatnonzero(row).tolist() for row in self.joined]
        most = max((len(ids) for ids in near), default=0) - 1
        if self.size > most or (self.max_given is not None and self.size > self.max_given):
            return "converged"
        for x, y in np.argwhere(np.triu(self.joined) & ~self.task.constraints.linked).tolist():
            found = self._parting(x, y, near)
            if found is not None:
                self.joined[x, y] = self.joined[y, x] = False
                self.parted_by[x, y] = found
            self.task.clock.look()
        self.task.note(float(self.joined.sum() / 2), f"tested given {self.size}")
        self.size += 1
        return None

    def _parting(self, x: int, y: int, near: list[list[int]]) -> tuple[int, ...] | None:
        for a, b in ((x, y), (y, x)):
            for given in combinations([v for v in near[a] if v != b], self.size):
                if self.independent(x, y, given):
                    return given
            if self.size == 0:
                return None
        return None


def direct(task: Task, joined: BoolArray, parted_by: dict[tuple[int, int], tuple[int, ...]]) -> BoolArray:
    """A PDAG of colliders, constraints, and what follows from them."""
    limits = task.constraints
    matrix = joined & limits.allowed & ~limits.required.T
    into = np.zeros_like(joined)
    for (x, y), given in parted_by.items():
        for z in np.flatnonzero(joined[x] & joined[y]).tolist():
            if z not in given and matrix[x, z] and matrix[y, z]:
                into[x, z] = into[y, z] = True
    matrix &= ~(into.T & ~into)
    ruled = apply_rules(matrix)
    return ruled if along_order(ruled) is not None else _without_cycles(ruled)


def _without_cycles(matrix: BoolArray) -> BoolArray:
    """The same with arrows on cycles undirected, where tests have contradicted each other."""
    arrows = matrix & ~matrix.T
    reach = arrows.copy()
    for v in range(len(reach)):
        reach |= np.outer(reach[:, v], reach[v])
    return np.asarray(matrix | (arrows & reach.T).T)
