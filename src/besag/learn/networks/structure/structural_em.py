"""Structure from a table with missing cells: completing rows and learning the structure, in turns (Friedman 1998).

    E    each row with a missing cell is completed m times, by draws from p(missing | observed) of the network as it
         stands, and each of these counts 1/m
    M    the CPTs that fit the completed rows best, a pseudocount of 1/2 added to each entry, and the structure of the
         highest score on them

It begins with the structure that complete rows, each column filled by draws from its own values, give. The draws of an
iteration depend on its number and the seed alone. It ends where a structure comes back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.data.tables.code_table import CodeTable
from besag.data.tables.reading import refuse_no_rows
from besag.errors import CapabilityError
from besag.graph.evidence import Evidence
from besag.infer.iterate import Clock, Stopped, drive
from besag.learn.networks.families import count_families
from besag.learn.networks.structure.learn import LearnedStructure, learn_structure
from besag.learn.networks.structure.task import SearchStep
from besag.model.bayes import from_parents
from besag.model.model import Model
from besag.registry import is_whole

if TYPE_CHECKING:
    from besag.learn.networks.structure.task import StructureMethod


@dataclass(frozen=True, slots=True, eq=False)
class Completed:
    """Rows without missing cells: a column of codes each, and weights."""

    codes: list[AnyArray]
    weights: Array


def structural_em(
    table: CodeTable,
    *,
    method: str | StructureMethod = "hill_climb",
    n_draws: int = 5,
    max_iterations: int = 10,
    random_state: int = 0,
    time_limit: float | None = None,
    **options: Any,
) -> LearnedStructure:
    """As `learn_structure`, whose options it takes, from a table with missing cells; the score is of completed rows."""
    refuse_no_rows(table)
    for name, value in (("n_draws", n_draws), ("max_iterations", max_iterations)):
        if not is_whole(value) or value < 1:
            raise CapabilityError(f"{name} must be a whole number of at least 1, got {value!r}")
    turn = _Turns(table, n_draws, random_state, Clock(time_limit), max_iterations)
    turn.options = {"names": table.names, "method": method, "random_state": random_state, **options}
    turn.learn(turn.filled())
    stopped = drive(turn.advance)
    return replace(turn.found, rows=tuple(turn.rows), stopped=stopped)


class _Turns:
    """The search as it stands."""

    found: LearnedStructure

    def __init__(self, table: CodeTable, n_draws: int, seed: int, clock: Clock, most: int) -> None:
        self.table, self.n_draws, self.seed, self.clock, self.most = table, n_draws, seed, clock, most
        self.options: dict[str, Any] = {}
        self.rows: list[SearchStep] = []
        self.seen = set[bytes]()
        self.incomplete = table.incomplete()
        self.observed = table.observed()

    def advance(self) -> Stopped | None:
        """An iteration."""
        if not self.incomplete.any() or self.found.cpdag.matrix.tobytes() in self.seen:
            return "converged"
        if len(self.rows) > self.most:
            return "max_iterations"
        self.clock.look()
        self.seen.add(self.found.cpdag.matrix.tobytes())
        data = self.completed(self.model())
        self.learn(data)
        return None

    def learn(self, data: Completed) -> None:
        """The structure of the highest score on completed rows."""
        self.data = data
        left = None if self.clock.left == np.inf else max(self.clock.left, 0.0)
        self.found = learn_structure(
            data.codes, self.table.cardinalities, data.weights, time_limit=left, **self.options
        )
        row = SearchStep(len(self.rows), self.clock.seconds, self.found.score, f"{len(self.found.edges)} edges")
        self.rows.append(row)
        if self.found.stopped == "interrupted":
            raise KeyboardInterrupt

    def model(self) -> Model:
        """The network with the CPTs of the rows as they were completed last."""
        variables, parents = self.table.variables, [list(above) for above in self.found.parents]
        scopes = [(*above, child) for child, above in enumerate(parents)]
        counts = count_families(self.data.codes, self.table.cardinalities, scopes, self.data.weights)
        tables = [np.asarray(table) + 0.5 for table in counts]
        cpts = {variables.names[v]: table / table.sum(axis=-1, keepdims=True) for v, table in enumerate(tables)}
        return from_parents(variables, parents, cpts)

    def filled(self) -> Completed:
        """Missing cells by draws from the other cells of their columns."""
        rng, columns = np.random.default_rng([self.seed, 0]), []
        for v, k in enumerate(self.table.cardinalities.tolist()):
            column = self.observed[:, v].copy()
            missing = column < 0
            counts = np.bincount(column[~missing], minlength=k) + 0.5
            column[missing] = rng.choice(k, int(missing.sum()), p=counts / counts.sum())
            columns.append(column)
        return self._data(np.stack(columns, axis=1), self._weights())

    def completed(self, model: Model) -> Completed:
        """Missing cells by draws given the other cells of their rows."""
        from besag.query.verbs import draw

        seed = int(np.random.default_rng([self.seed, len(self.rows)]).integers(2**31))
        given = Evidence(self.observed[self.incomplete])
        samples = draw(model, self.n_draws, given, {"seed": seed}).samples.reshape(-1, len(self.table.names))
        weights, whole = self._weights(), ~self.incomplete
        rows = np.concatenate([self.observed[whole], samples])
        shares = np.repeat(weights[self.incomplete] / self.n_draws, self.n_draws)
        return self._data(rows, np.concatenate([weights[whole], shares]))

    def _weights(self) -> Array:
        return np.ones(self.table.n_rows) if self.table.weights is None else self.table.weights

    def _data(self, rows: IntArray, weights: Array) -> Completed:
        columns = [
            np.ascontiguousarray(rows[:, v], dtype=own.dtype) for v, own in enumerate(self.table.codes)
        ]
        return Completed(columns, weights)
