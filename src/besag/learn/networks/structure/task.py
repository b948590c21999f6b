"""What a method of structure learning gets, and what it gives.

A method is a frozen dataclass of options, found by text in METHODS, with

    learn(task) -> Outcome     the matrix (V, V) of a graph, [i, j] and not [j, i] for i -> j, both for i - j
    takes_missing              True for one that takes rows with missing cells

Variables are numbered in an order of the task's own, which does not depend on that of the columns, and names and seed
are all that ties are broken by. A method calls `task.note` after each step, which keeps the trace, shows progress and
looks at the clock. OutOfTime and Ctrl-C may come out of anything that a method calls. It lets them pass: the answer is
then the best DAG that it has given to `task.keep`, in the beginning the one with what constraints require alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from besag.arrays import BoolArray
from besag.infer.iterate import Clock, Stopped, drive
from besag.learn.networks.structure.constraints import Constraints
from besag.learn.networks.structure.counter import Counter
from besag.learn.networks.structure.criteria import Criterion
from besag.learn.networks.structure.scores import FamilyScores
from besag.query.progress import ProgressLine

ROUNDING = 1e-11  # of a score, relative to the score of the empty graph


class SearchStep(NamedTuple):
    """A step of a search: the score after it, and what it did."""

    iteration: int
    seconds: float
    value: float
    move: str


OnSearchStep = Callable[[SearchStep], object]


class Outcome(NamedTuple):
    """A graph as a matrix (V, V), and why the method stopped."""

    matrix: BoolArray
    stopped: Stopped


@dataclass
class Task:
    """names: of the variables in this task's order. target: the class of `tan` and `naive`. best: see `keep`."""

    names: tuple[str, ...]
    counter: Counter
    criterion: Criterion
    constraints: Constraints
    target: int | None = None
    seed: int = 0
    clock: Clock = field(default_factory=Clock)
    on_step: OnSearchStep | None = None
    rows: list[SearchStep] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scores = FamilyScores(self.counter, self.criterion)
        self.rng = np.random.default_rng(self.seed)
        self.best = matrix_of(self.constraints.extend(self.names))
        self.best_score = -np.inf

    @property
    def n_variables(self) -> int:
        """V."""
        return len(self.names)

    @cached_property
    def slack(self) -> float:
        """Scores that differ by no more are equal."""
        return ROUNDING * abs(self.scores.total([()] * self.n_variables)) + 1e-12

    def keep(self, matrix: BoolArray, score: float) -> None:
        """A DAG that is the answer from now on, unless there was a better one."""
        if score > self.best_score + self.slack:
            self.best, self.best_score = matrix.copy(), score

    def note(self, value: float, move: str) -> None:
        """A step was taken; OutOfTime where there is no time for another."""
        row = SearchStep(len(self.rows), self.clock.seconds, value, move)
        self.rows.append(row)
        if self.on_step is not None:
            self.on_step(row)
        self.clock.look()


class StructureMethod(Protocol):
    """See the module."""

    def learn(self, task: Task) -> Outcome:
        """The best graph that the method finds."""


class SearchProgress(ProgressLine):
    """How far a search has come, on standard error; `also` is called with each step too."""

    def __init__(self, what: str, also: OnSearchStep | None = None) -> None:
        super().__init__()
        self.what, self.also = what, also

    def __call__(self, row: SearchStep) -> None:
        """Show a step."""
        self.show(f"{self.what}: step {row.iteration}, {row.seconds:.1f} s, score {row.value:.6f}")
        if self.also is not None:
            self.also(row)


def run_method(method: StructureMethod, task: Task) -> Outcome:
    """What a method gives, or the best that it has kept where the time is over or Ctrl-C comes."""
    found: list[Outcome] = []

    def advance() -> Stopped:
        found.append(method.learn(task))
        return found[0].stopped

    stopped = drive(advance)
    return found[0] if found else Outcome(task.best, stopped)


def matrix_of(parents: list[list[int]]) -> BoolArray:
    """The matrix of a DAG from the parents of each variable."""
    matrix = np.zeros((len(parents), len(parents)), np.bool_)
    for child, above in enumerate(parents):
        matrix[above, child] = True
    return matrix
