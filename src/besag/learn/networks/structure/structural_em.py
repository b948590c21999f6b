"""Structure from rows with missing cells: completing rows and learning the structure, in turns (Friedman 1998).

    E    each row with a missing cell is completed m times, by draws from p(missing | observed) of the network as it
         stands, and each of these counts 1/m
    M    the CPTs that fit the completed rows best, 1/2 added to each count, and the structure of the highest score

It begins with the structure of rows whose cells are filled by draws from the others of their columns. The draws of an
iteration depend on its number and the seed alone. It ends where a structure comes back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.graph.evidence import Evidence
from besag.infer.iterate import Clock, Stopped, drive
from besag.learn.networks.families import count_families
from besag.learn.networks.structure.learn import LearnedStructure, learn_structure
from besag.learn.networks.structure.methods import METHODS
from besag.learn.networks.structure.task import Outcome, SearchStep, Task
from besag.model.bayes import from_parents
from besag.model.model import Model
from besag.model.variable import Variables, number_states


@dataclass(frozen=True)
class StructuralEM:
    """method: of complete rows, with options in the text. draws: m. max_iterations: after the first structure."""

    method: str = "hill_climb"
    draws: int = 5
    max_iterations: int = 10

    def __post_init__(self) -> None:
        METHODS.check_counts(self, "draws", "max_iterations")

    def learn(self, task: Task) -> Outcome:
        """Of complete rows: as the method."""
        return METHODS.read(self.method).learn(task)

    def learn_incomplete(
        self, rows: IntArray, sizes: IntArray, weights: Array | None, options: Mapping[str, Any]
    ) -> LearnedStructure:
        """From codes (N, V), -1 = missing; options: of `learn_structure`. The score is of rows as completed last."""
        turns = _Turns(self, rows, sizes, weights, options)
        turns.learn(turns.filled())
        stopped = drive(turns.advance)
        return replace(turns.found, rows=tuple(turns.rows), stopped=stopped)


@dataclass(frozen=True, slots=True, eq=False)
class Completed:
    """Rows without missing cells: a column of codes each, and weights."""

    codes: list[AnyArray]
    weights: Array


class _Turns:
    """The search as it stands."""

    found: LearnedStructure
    data: Completed

    def __init__(
        self, way: StructuralEM, rows: IntArray, sizes: IntArray, weights: Array | None, options: Mapping[str, Any]
    ) -> None:
        self.way, self.observed, self.sizes = way, rows, sizes
        self.weights = np.ones(len(rows)) if weights is None else weights
        self.options = {**options, "method": way.method, "progress": False, "on_step": None}
        self.seed, self.clock = int(options["random_state"]), Clock(options["time_limit"])
        self.incomplete = (rows < 0).any(axis=1)
        self.rows: list[SearchStep] = []
        self.seen = set[bytes]()
        self.tell = options["on_step"]

    def advance(self) -> Stopped | None:
        """An iteration."""
        form = self.found.cpdag.matrix.tobytes()
        if not self.incomplete.any() or form in self.seen:
            return "converged"
        if len(self.rows) > self.way.max_iterations:
            return "max_iterations"
        self.clock.look()
        self.seen.add(form)
        self.learn(self.completed(self.model()))
        return None

    def learn(self, data: Completed) -> None:
        """The structure of the highest score on completed rows."""
        left = None if self.clock.left == np.inf else max(self.clock.left, 0.0)
        found = learn_structure(data.codes, self.sizes, data.weights, **{**self.options, "time_limit": left})
        if found.stopped == "interrupted" and self.rows:
            raise KeyboardInterrupt
        self.data, self.found = data, found
        self.rows.append(SearchStep(len(self.rows), self.clock.seconds, found.score, f"{len(found.edges)} edges"))
        if self.tell is not None:
            self.tell(self.rows[-1])

    def model(self) -> Model:
        """The network with the CPTs of the rows as they were completed last."""
        names, parents = self.found.graph.names, [list(above) for above in self.found.parents]
        variables = Variables.from_states(
            {name: number_states(int(k)) for name, k in zip(names, self.sizes, strict=True)}
        )
        scopes = [(*above, child) for child, above in enumerate(parents)]
        counts = count_families(self.data.codes, self.sizes, scopes, self.data.weights)
        tables = [np.asarray(table) + 0.5 for table in counts]
        cpts = {name: table / table.sum(axis=-1, keepdims=True) for name, table in zip(names, tables, strict=True)}
        return from_parents(variables, parents, cpts)

    def filled(self) -> Completed:
        """Missing cells by draws from the other cells of their columns."""
        rng, rows = np.random.default_rng([self.seed, 0]), self.observed.copy()
        for v, k in enumerate(self.sizes.tolist()):
            missing = rows[:, v] < 0
            counts = np.bincount(rows[~missing, v], minlength=k) + 0.5
            rows[missing, v] = rng.choice(k, int(missing.sum()), p=counts / counts.sum())
        return self._data(rows, self.weights)

    def completed(self, model: Model) -> Completed:
        """Missing cells by draws given the other cells of their rows."""
        from besag.query.verbs import draw

        seed = int(np.random.default_rng([self.seed, len(self.rows)]).integers(2**31))
        m, whole = self.way.draws, ~self.incomplete
        samples = draw(model, m, Evidence(self.observed[self.incomplete]), {"seed": seed}).samples
        rows = np.concatenate([self.observed[whole], samples.reshape(-1, len(self.sizes))])
        shares = np.repeat(self.weights[self.incomplete] / m, m)
        return self._data(rows, np.concatenate([self.weights[whole], shares]))

    def _data(self, rows: IntArray, weights: Array) -> Completed:
        kinds = [np.uint8 if k <= 255 else np.uint32 for k in self.sizes]
        return Completed([np.ascontiguousarray(rows[:, v], dtype=kind) for v, kind in enumerate(kinds)], weights)
