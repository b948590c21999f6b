"""What a method of structure learning gets, and what it gives.

A method is a frozen dataclass of options, found by text in METHODS, with

    learn(task) -> Outcome     the matrix (V, V) of a graph, [i, j] and not [j, i] for i -> j, both for i - j

Variables are numbered in an order of the task's own, which does not depend on that of the columns, and names and seed
are all that ties are broken by. A method calls `task.note` after each step, which keeps the trace, shows progress and
looks at the clock: OutOfTime, and Ctrl-C, come out of it, and the method gives the best it has.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from besag.arrays import BoolArray
from besag.infer.iterate import Clock, Stopped
from besag.learn.networks.structure.constraints import Constraints
from besag.learn.networks.structure.counter import Counter
from besag.learn.networks.structure.criteria import Criterion
from besag.learn.networks.structure.scores import FamilyScores


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
    """names: of the variables in this task's order. target: the class of `tan` and `naive`."""

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

    @property
    def n_variables(self) -> int:
        """V."""
        return len(self.names)

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


class SearchProgress:
    """A line on standard error, written over on a terminal, at most twice a second."""

    def __init__(self, what: str, seconds: float = 0.5) -> None:
        self.what, self.every, self.last = what, seconds, 0.0

    def __call__(self, row: SearchStep) -> None:
        """Show a step."""
        if row.seconds - self.last >= self.every:
            line = f"{self.what}: step {row.iteration}, {row.seconds:.1f} s, score {row.value:.6f}"
            sys.stderr.write(f"\r{line:<78}" if sys.stderr.isatty() else f"{line}\n")
            self.last = row.seconds


def matrix_of(parents: list[list[int]]) -> BoolArray:
    """The matrix of a DAG from the parents of each variable."""
    matrix = np.zeros((len(parents), len(parents)), np.bool_)
    for child, above in enumerate(parents):
        matrix[above, child] = True
    return matrix
