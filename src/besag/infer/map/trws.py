"""Sequential tree-reweighted message passing, TRW-S: a bound on the least energy of a pairwise model, and labellings.

A step is a pass over all variables and one back (`kernels/sequential`), after which the lower bound on the energy holds
and is no lower than before; it converges where a step gains less than `tolerance`, relative. A labelling is read off
whenever somebody looks, every READ_EVERY steps, and at the end; what is shown goes through iterated conditional modes
first, which take a few sweeps. Messages of structured factors take O(K) and no table,
so that a step of a grid of N variables takes O(N K) operations and memory.

A factor of more than two variables is refused: `dual` has the same bound for any arity, and takes longer for it.

    R rows of evidence, V variables, S states, G factors of two variables
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, freeze, offsets_of
from besag.errors import CapabilityError
from besag.graph.graph import Graph
from besag.graph.problem import Problem
from besag.infer.bounds.narrowing import ROUNDING
from besag.infer.engine import Capabilities, Want
from besag.infer.iterate import Process
from besag.infer.map.dual import measure_gain
from besag.infer.map.kernels.sequential import Pairs, make_pass, make_read
from besag.infer.map.labeller import WANTS, Labeller
from besag.infer.map.labellings import BestLabellings
from besag.infer.map.landscape import Landscape
from besag.infer.memory import count_linked, message_entries, refuse
from besag.infer.prepared import Prepared
from besag.infer.result import Result
from besag.kernels.compile import kernel_of

READ_EVERY = 10  # steps, where nobody looks
MAX_CONSTANT = 32  # more states than this reach the kernels at run time
WORTHWHILE = 2**17  # numbers of messages from which a kernel of its own for each number of states pays


@dataclass(frozen=True, slots=True)
class TRWS(Labeller):
    """Sequential tree-reweighted message passing for pairwise models: labellings with a lower bound.

    tolerance: of what a step adds to the bound, relative.
    """

    name: ClassVar[str] = "trws"
    capabilities: ClassVar[Capabilities] = Capabilities(
        WANTS, "estimate", "factors of at most two variables", starts_from="labelling"
    )
    max_iterations: int = 1000
    tolerance: float = 1e-6
    memory_limit: int | None = None

    def begin(
        self, problem: Problem, warm: Result | None, rng: np.random.Generator | None, *, singly: bool, patient: bool
    ) -> Process:
        """Passes forwards and backwards."""
        return Sending(Landscape(problem, self.memory_limit), warm, rng)


def is_pairwise(graph: Graph) -> bool:
    """Whether no factor has more than two variables."""
    return bool((np.diff(graph.scope_offsets) <= 2).all())


class Messages:
    """The messages of all rows of evidence, and bounds (R,), or (N,) for a union, on the energies from below."""

    def __init__(self, setting: Prepared) -> None:
        self.setting, graph = setting, setting.graph
        if not is_pairwise(graph):
            raise CapabilityError(
                f"engine 'trws' takes factors of at most two variables; one here has "
                f"{int(np.diff(graph.scope_offsets).max())}: engine='dual' takes factors of any size"
            )
        states, linked = int(graph.state_offsets[-1]), count_linked(graph)
        needed = 8.0 * (setting.n_rows * (message_entries(graph) + 2 * states) + 5 * linked)
        refuse("all messages", needed, setting.limit, "use more memory, or ask for fewer rows at a time")
        self.pairs = pairs_of(setting)
        self.base = np.where(setting.spread(setting.possible), setting.base, 0.0)
        self.messages = np.zeros((setting.n_rows, int(self.pairs.offsets[-1])))
        self.terms = np.zeros((setting.n_rows, graph.n_variables))
        self.magnitude = self._magnitude()
        self.constants = self._constants()

    def _constants(self) -> tuple[int, int]:
        """What the kernel is compiled for."""
        n, kinds = self.setting.graph.variables.common_cardinality, self.pairs.kinds
        pays = n is not None and 2 <= n <= MAX_CONSTANT and self.messages.size >= WORTHWHILE
        return (int(n or 0), int(kinds[0])) if pays and len(kinds) and (kinds == kinds[0]).all() else (0, -1)

    def _magnitude(self) -> Array:
        """(R,), or (N,): of the largest numbers of variables and factors together, which rounding is relative to."""
        setting = self.setting
        offsets, factors = setting.graph.state_offsets, setting.factors
        of_variables = np.maximum.reduceat(_sizes(self.base), offsets[:-1], axis=1)
        if not len(factors.table_of_factor):
            return setting.totals(of_variables, None)
        largest = np.maximum.reduceat(_sizes(factors.log_potentials), factors.table_offsets[:-1])
        of_factors = np.broadcast_to(largest[factors.table_of_factor], (setting.n_rows, setting.graph.n_factors))
        return setting.totals(of_variables, of_factors)

    def send(self, row: int, *, backwards: bool, slack: Array | None = None) -> None:
        """A pass; slack (S,): by how much the bound of the pass before falls for labellings with a state."""
        setting, slack = self.setting, np.empty(0) if slack is None else slack
        shared = (setting.graph.state_offsets, self.pairs, setting.factors.log_potentials)
        kernel = kernel_of(make_pass, *self.constants, compile=setting.goes_on())
        kernel(*shared, backwards, freeze(self.base[row]), self.messages[row], self.terms[row], slack)

    def read(self, row: int, *, backwards: bool = False) -> IntArray:
        """(V,): the labelling that messages speak for; backwards: those of a pass forwards."""
        setting, codes = self.setting, np.zeros(self.setting.graph.n_variables, np.int64)
        shared = (setting.graph.state_offsets, self.pairs, setting.factors.log_potentials)
        kernel = kernel_of(make_read, *self.constants, compile=setting.goes_on())
        kernel(*shared, backwards, freeze(self.base[row]), freeze(self.messages[row]), codes)
        return codes

    def ascend(self, row: int) -> list[IntArray]:
        """A pass forwards and one backwards; the labellings, (V,), that messages spoke for after each."""
        self.send(row, backwards=False)
        after = self.read(row, backwards=True)
        self.send(row, backwards=True)
        return [after, self.read(row)]

    def restrict(self, row: int, allowed: BoolArray) -> None:
        """From now on bounds are on labellings of these states (S,), of which one must be possible."""
        self.base[row, ~allowed] = -np.inf

    def slack(self, row: int) -> tuple[float, Array]:
        """A lower bound on the energies of a row, and how much higher it is for labellings with each state, (S,).

        Of a pass forwards and one backwards, of which each one's slack is above the bound before it.
        """
        found = np.empty((2, self.base.shape[1]))
        bounds = [float(self.bounds()[row])]
        for backwards in (False, True):
            self.send(row, backwards=backwards, slack=found[int(backwards)])
            bounds.append(float(self.bounds()[row]))
        return bounds[1], np.maximum(found[0] - (bounds[1] - bounds[0]), found[1])

    def bounds(self) -> Array:
        """Lower bounds on the energies, of the last pass of each row: what rounding may have done is taken off."""
        size = self.setting.totals(np.abs(self.terms), None) + self.magnitude
        return -self.setting.totals(self.terms, None) - ROUNDING * (1.0 + size)


def _sizes(values: Array) -> Array:
    """Absolute values, of hard zeros 0."""
    return np.where(values > -np.inf, np.abs(values), 0.0)


def pairs_of(setting: Prepared) -> Pairs:
    """The factors of two variables of a problem; their structure is kept with the graph."""
    graph, factors = setting.graph, setting.factors
    numbers, arrays = graph.plans.get("trws", lambda: _structure(graph))
    tables = factors.table_offsets[factors.table_of_factor[numbers]]
    return Pairs._make((*arrays, freeze(factors.kinds[numbers]), freeze(tables)))


def _structure(graph: Graph) -> tuple[IntArray, tuple[IntArray, ...]]:
    """Which factors are pairs, in order, and the arrays of Pairs that do not depend on numbers."""
    numbers, n = np.flatnonzero(np.diff(graph.scope_offsets) == 2), graph.n_variables
    one, other = (graph.scope_variables[graph.scope_offsets[numbers] + i] for i in (0, 1))
    starts, ends = np.minimum(one, other), np.maximum(one, other)
    order = np.argsort(starts * n + ends, kind="stable")
    numbers, starts, ends, flipped = numbers[order], starts[order], ends[order], (one > other)[order]
    sizes = np.diff(graph.state_offsets)
    arrays = (
        offsets_of(np.bincount(starts, minlength=n)),
        ends,
        offsets_of(np.bincount(ends, minlength=n)),
        np.argsort(ends, kind="stable"),
        starts,
        flipped.astype(np.int64),
        offsets_of(np.maximum(sizes[starts], sizes[ends])),
    )
    return freeze(numbers), tuple(freeze(array) for array in arrays)


class Sending:
    """Messages of all rows: a Process."""

    def __init__(self, landscape: Landscape, warm: Result | None, rng: np.random.Generator | None) -> None:
        rng = np.random.default_rng(0) if rng is None else rng
        self.landscape, self.messages = landscape, Messages(landscape.setting)
        self.best = BestLabellings(landscape, landscape.start(warm, rng))
        self.steps, self.unread = 0, True

    def step(self) -> float:
        """A pass forwards and one backwards; what they added to the bound, relative; 0 where no gap is left."""
        before = self.best.bounds.copy()
        for row in range(self.landscape.n_rows):
            self.messages.send(row, backwards=False)
            self.messages.send(row, backwards=True)
        self.best.raise_bounds(self.messages.bounds())
        self.steps, self.unread = self.steps + 1, True
        if self.steps % READ_EVERY == 0:
            self._read()
        return 0.0 if self.best.closed else measure_gain(before, self.best.bounds)

    def _read(self) -> None:
        self.best.offer(np.array([self.messages.read(row) for row in range(self.landscape.n_rows)]))

    def answer(self, want: frozenset[Want]) -> Result:
        """The best labellings so far, which no flip betters, and bounds."""
        if self.unread:
            self._read()
            settled = [self.landscape.settle(row, codes) for row, codes in enumerate(self.best.codes)]
            self.best.offer(np.array(settled))
            self.unread = False
        return self.best.result()

    def details(self) -> Mapping[str, Any]:
        """Nothing more."""
        return {}
