"""Structure from rows with missing cells: completing rows and learning the structure, in turns (Friedman 1998).

    E    each row with a missing cell is completed m times, by draws from p(missing | observed) of the network as it
         stands, and each of these counts 1/m
    M    the CPTs that fit the completed rows best, 1/2 added to each count, and the structure of the highest score

It begins with the structure of rows whose cells are filled by draws from the others of their columns. The draws of a
turn depend on its number and the seed alone. It ends where the class of a structure comes back. A missing cell of the
task's codes (V, N) is any code from K on; the task's own scores are those of the rows as they were completed last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from besag.arrays import Array, IntArray
from besag.graph.directed.pdag import PDAG
from besag.graph.evidence import Evidence
from besag.learn.networks.families import count_families
from besag.learn.networks.structure.counter import Counter
from besag.learn.networks.structure.methods import METHODS
from besag.learn.networks.structure.task import Outcome, Task
from besag.model.bayes import from_parents
from besag.model.model import Model
from besag.model.variable import Variables, number_states
from besag.query.run import Options
from besag.query.verbs import draw

EXTRA = 0.5  # added to each count of a CPT
ROWS = 4096  # completed between two looks at the clock


@dataclass(frozen=True)
class StructuralEM:
    """method: of completed rows, with options in the text. draws: m. max_iterations: turns after the first."""

    method: str = "hill_climb"
    draws: int = 5
    max_iterations: int = 10

    takes_missing = True

    def __post_init__(self) -> None:
        METHODS.check_counts(self, "draws", "max_iterations")

    def learn(self, task: Task) -> Outcome:
        """Of complete rows: as the method."""
        rows = Completion(task)
        if not rows.holes.any():
            return METHODS.read(self.method).learn(task)
        dag, seen = self._turn(task, rows.filled(), is_first=True), set[bytes]()
        for _ in range(self.max_iterations):
            seen.add(dag.cpdag().matrix.tobytes())
            dag = self._turn(task, rows.completed(network(task, dag), self.draws))
            if dag.cpdag().matrix.tobytes() in seen:
                return Outcome(dag.matrix, "converged")
        return Outcome(dag.matrix, "max_iterations")

    def _turn(self, task: Task, rows: Counter, *, is_first: bool = False) -> PDAG:
        """The DAG of completed rows; one that was broken off counts in the first turn only."""
        turn = replace(task, counter=rows)  # its steps are steps of the task
        try:
            found = METHODS.read(self.method).learn(turn)
            turn.best = PDAG(task.names, found.matrix).extension(strict=False).matrix
            is_first = True
        finally:
            if is_first:
                task.counter, task.scores, task.best = rows, turn.scores, turn.best
        task.note(task.scores.total(PDAG(task.names, task.best).parents), f"{int(task.best.sum())} edges")
        return PDAG(task.names, task.best)


class Completion:
    """The rows of a task, and ways to fill their holes (V, N)."""

    def __init__(self, task: Task) -> None:
        self.counter, self.seed, self.turn = task.counter, task.seed, 0
        self.sizes, self.clock = task.counter.cardinalities, task.clock
        self.codes = task.counter.codes
        self.holes = self.codes >= self.sizes[:, None]
        self.weights = self.counter.weights if len(self.counter.weights) else np.ones(self.counter.n_rows)

    def filled(self) -> Counter:
        """By draws from the other cells of their columns."""
        rng, codes = np.random.default_rng([self.seed, 0]), self.codes.copy()
        for column, holes, k in zip(codes, self.holes, self.sizes.tolist(), strict=True):
            counts = np.bincount(column[~holes], self.weights[~holes], minlength=k) + EXTRA
            column[holes] = rng.choice(k, int(holes.sum()), p=counts / counts.sum())
        return self._counter(codes, self.weights)

    def completed(self, model: Model, m: int) -> Counter:
        """By m draws given the other cells of their rows."""
        self.turn += 1
        torn, drawn = self.holes.any(axis=0), list[IntArray]()
        rows = np.where(self.holes, -1, self.codes.astype(np.int64))[:, torn].T
        for start in range(0, len(rows), ROWS):
            self.clock.look()
            seed = int(np.random.default_rng([self.seed, self.turn, start]).integers(2**31))
            options: Options = {"seed": seed, "n_threads": self.counter.n_threads}
            samples = draw(model, m, Evidence(rows[start : start + ROWS]), options).samples
            drawn.append(samples.reshape(-1, len(self.sizes)).T.astype(self.codes.dtype))
        weights = np.concatenate([self.weights[~torn], np.repeat(self.weights[torn] / m, m)])
        return self._counter(np.concatenate([self.codes[:, ~torn], *drawn], axis=1), weights)

    def _counter(self, codes: IntArray, weights: Array) -> Counter:
        own = self.counter
        codes = np.ascontiguousarray(codes)
        return Counter(codes, self.sizes, weights, memory_limit=own.memory_limit, n_threads=own.n_threads)


def network(task: Task, dag: PDAG) -> Model:
    """The network with the CPTs of the rows as they were completed last."""
    rows, names, parents = task.counter, dag.names, dag.parents
    sizes = {name: number_states(int(k)) for name, k in zip(names, rows.cardinalities, strict=True)}
    kinds = [np.uint8 if k <= 255 else np.uint32 for k in rows.cardinalities]
    columns = [column.astype(kind, copy=False) for column, kind in zip(rows.codes, kinds, strict=True)]
    scopes = [(*above, child) for child, above in enumerate(parents)]
    tables = [table + EXTRA for table in count_families(columns, rows.cardinalities, scopes, rows.weights)]
    cpts = {name: table / table.sum(axis=-1, keepdims=True) for name, table in zip(names, tables, strict=True)}
    return from_parents(Variables.from_states(sizes), parents, cpts)
