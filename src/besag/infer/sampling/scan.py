"""The order in which a sweep of single-site sampling visits the variables, and which visits may run in parallel.

    chromatic    colour by colour, no factor having two variables of one colour: all of one colour at once, on threads
    systematic   in the model's order
    random       in a new random order each sweep: a permutation, not indices drawn one by one (that is scan=single)

Each sweep visits every variable that evidence leaves more than one state exactly once. A stage is a list of pieces
(start, stop) of the order that may run in parallel; stages follow one another, and depend on the problem only. Pieces
are short enough to check the clock between them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from besag.arrays import IntArray, freeze, index_type
from besag.infer.iterate import Look, no_look
from besag.infer.prepared import Prepared
from besag.kernels.colouring import colours_of
from besag.kernels.threads import run_chunks

SCANS = ("chromatic", "systematic", "random")
PIECE = 1 << 15  # variables of one colour in a task
LONGEST = 1 << 17  # variables in a task that visits them one after the other
WORTH_THREADS = 1 << 16  # with fewer states drawn in a stage, a pool of threads costs more than it gives
SMALL_COLOUR = 16  # with fewer variables per colour, on average, colours are not worth their calls

Call = Callable[[IntArray, int, int, int, int, int, int], None]  # order, start, stop, block, first unit, last, part


class Scan:
    """The sweeps of a problem; `block` successive variables of the order are independent, at most `most`."""

    def __init__(self, kind: str, setting: Prepared, most: int) -> None:
        graph = setting.graph
        n_left = np.add.reduceat(setting.base > -np.inf, graph.state_offsets[:-1], axis=1)
        free = np.flatnonzero((n_left > 1).any(axis=0))
        self.kind, self.block, self.most, self.n_variables = kind, 1, most, graph.n_variables
        self.order = np.asarray(free)
        self.stages = [[(start, min(start + LONGEST, len(free)))] for start in range(0, max(len(free), 1), LONGEST)]
        if kind == "chromatic":
            self._by_colour(setting, free)
        self.order = freeze(self.order)
        self.n_pieces = sum(len(stage) for stage in self.stages)

    def _by_colour(self, setting: Prepared, free: IntArray) -> None:
        graph = setting.graph
        scopes = (graph.state_offsets, graph.scope_offsets, graph.scope_variables)
        colours = graph.plans.get("colours", lambda: freeze(colours_of(*scopes, compile=setting.compile)))
        self.order = free[np.argsort(colours[free], kind="stable")]
        sizes = np.bincount(colours[free])
        if len(free) < SMALL_COLOUR * len(sizes):
            return
        self.block = self.most
        ends = np.cumsum(sizes)
        self.stages = [
            [(start, min(start + PIECE, int(end))) for start in range(int(end - size), int(end), PIECE)]
            for size, end in zip(sizes, ends, strict=True)
            if size > 0  # all variables of a colour may be observed
        ]

    def renumber(self) -> IntArray:
        """(V,): the variables in the order of their visits, then the others; from now on `order` is 0, 1, ...

        This is for a sampler that keeps its arrays in that order.
        """
        n_variables, visited = self.n_variables, self.order
        self.order = freeze(np.arange(len(visited), dtype=index_type(n_variables)))
        left = np.ones(n_variables, np.bool_)
        left[visited] = False
        return np.concatenate([visited, np.flatnonzero(left)])

    def sweep(
        self, key: int, n_units: int, lanes: int, n_threads: int | None, call: Call, look: Look = no_look
    ) -> None:
        """Make one sweep of all units, each of `lanes` chains."""
        order = self.order
        if self.kind == "random":
            order = freeze(order[np.random.default_rng(key % 2**63).permutation(len(order))])
        part = 0
        for stage in self.stages:
            longest = max(stop - start for start, stop in stage)
            step = max(1, PIECE // max(1, longest * lanes))
            units = [(first, min(first + step, n_units)) for first in range(0, n_units, step)]
            tasks = [(start, stop, *span, part + i) for i, (start, stop) in enumerate(stage) for span in units]
            drawn = sum(stop - start for start, stop in stage) * n_units * lanes
            part += len(stage)

            def task(number: int, tasks: list[tuple[int, int, int, int, int]] = tasks) -> None:
                start, stop, first_unit, last_unit, where = tasks[number]
                look()
                call(order, start, stop, self.block, first_unit, last_unit, where)

            run_chunks(task, len(tasks), n_threads if drawn >= WORTH_THREADS else 1)
