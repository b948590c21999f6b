"""Trees as pieces: forests that cover all factors, and the sum of their log Zs.

    log Z  is replaced by  sum_j log Z_j,    log-potentials of tree j: those of its factors f, divided by m_f

m_f is the number of forests that f is in. Factors of two or more variables are in one each: a forest takes, in their
order, every one that is left and closes no cycle in it. A factor of one variable is in those forests in which the
variable has a factor of the others, in the first one if there is none; log Z_j sums over the variables that are in it.

With a label unknown, each log Z_j is also computed with the known labels as evidence and subtracted, as `likelihood`
does it. Tables of forests are cells of the log-potentials that are bound once, times 1 / m_f: no input is read twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, freeze, offsets_of
from besag.graph.graph import Block, Graph
from besag.graph.problem import Problem
from besag.infer.engine import Capabilities, Engine, Want
from besag.infer.result import Result
from besag.infer.trw.forests import Covered, grow_forest
from besag.kernels.compile import worth_compiling
from besag.learn.losses.likelihood import Likelihood


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A forest: its structure; which table each factor reads, (F_j,); where tables begin; the first one of each block.

    cells (L_j,): the number of the whole problem that each of its own is; shares (L_j,): 1 / m_f. outside (V,): the
    variables that are not in it.
    """

    graph: Graph
    table_of_factor: IntArray
    table_offsets: IntArray
    first_tables: tuple[int, ...]
    cells: IntArray
    shares: Array
    outside: BoolArray

    def bind(self, whole: Problem) -> Problem:
        """The forest with the numbers of the whole problem."""
        numbers = freeze(whole.log_potentials[self.cells] * self.shares)
        tables = (self.table_of_factor, self.table_offsets, self.first_tables)
        return Problem(self.graph, numbers, *tables, self.graph.kinds, whole.evidence, whole.weights)

    def log_partitions(self, problem: Problem, result: Result) -> Array:
        """(N,): without the log K of unknown variables outside, over which the engine sums too."""
        graph, unknown = self.graph, np.flatnonzero(self.outside & (problem.evidence.observed[0] < 0))
        instances = np.searchsorted(graph.instance_offsets, unknown, side="right") - 1
        sizes = np.log(graph.variables.cardinalities[unknown])
        return np.asarray(result.log_partition - np.bincount(instances, sizes, graph.n_instances))


@dataclass(frozen=True, slots=True)
class ForestCover:
    """In place of an engine: log Z is the sum of those of the pieces, and moments are its gradient."""

    capabilities: ClassVar[Capabilities] = Capabilities(frozenset({"log_partition", "moments"}), "exact")
    tree: Engine

    def infer(self, problem: Problem, want: frozenset[Want], *, warm: Result | None = None, **_: Any) -> Result:
        """The sums."""
        graph = problem.graph
        pieces = graph.plans.get_for("pieces", problem.table_of_factor, lambda: list(_pieces(problem)))
        results = [self.tree.infer(piece.bind(problem), want) for piece in pieces]
        moments = np.zeros(len(problem.log_potentials))
        for piece, result in zip(pieces, results, strict=True):
            moments += np.bincount(piece.cells, result.moments * piece.shares, len(moments))
        log_z = np.sum([piece.log_partitions(problem, own) for piece, own in zip(pieces, results, strict=True)], axis=0)
        return replace(results[0], graph=graph, log_partitions=log_z, table_moments=moments)


@dataclass(frozen=True, slots=True, eq=False)
class TreePieces(Likelihood):
    """The likelihood with the sum over forests in place of log Z; its engine is a ForestCover."""

    surrogate = "piecewise"


def _pieces(problem: Problem) -> Iterator[Piece]:
    """The forests, and how many of them each factor is in."""
    graph, forests = problem.graph, list(_forests(problem.graph))
    alone = np.flatnonzero(np.diff(graph.scope_offsets) == 1)
    variables = graph.scope_variables[graph.scope_offsets[alone]]
    touched = np.zeros((len(forests), graph.n_variables), np.bool_)
    for own, forest in zip(touched, forests, strict=True):
        own[np.concatenate([graph.scope(f) for f in forest]) if len(forest) else []] = True
    touched[0] |= ~touched.any(axis=0)
    counts = np.ones(graph.n_factors, np.int64)
    counts[alone] = touched.sum(axis=0)[variables]
    for own, forest in zip(touched, forests, strict=True):
        yield _piece(problem, np.sort(np.concatenate([forest, alone[own[variables]]])), counts, ~own)


def _forests(graph: Graph) -> Iterator[IntArray]:
    """Factors of two or more variables in forests, each factor in one; one forest at least."""
    compile = worth_compiling(float(len(graph.scope_variables)))
    fixed, left = freeze(np.zeros(graph.n_variables, np.bool_)), np.flatnonzero(np.diff(graph.scope_offsets) > 1)
    while True:
        sizes = np.diff(graph.scope_offsets)[left]
        starts = offsets_of(sizes)
        edges = np.repeat(graph.scope_offsets[left] - starts[:-1], sizes) + np.arange(starts[-1])
        scopes = Covered(freeze(starts), freeze(graph.scope_variables[edges]), fixed)
        chosen = grow_forest(scopes, np.arange(len(left)), compile=compile)
        yield left[chosen]
        left = left[~chosen]
        if not len(left):
            return


def _piece(problem: Problem, factors: IntArray, counts: IntArray, outside: BoolArray) -> Piece:
    """The forest of some factors; tables that are read by factors of different counts are several here."""
    graph, most = problem.graph, int(counts.max(initial=1)) + 1
    keys, readers = np.unique(problem.table_of_factor[factors] * most + counts[factors], return_inverse=True)
    tables, times = np.divmod(keys, most)
    sizes = np.diff(problem.table_offsets)[tables]
    offsets = offsets_of(sizes)
    cells = np.repeat(problem.table_offsets[tables] - offsets[:-1], sizes) + np.arange(offsets[-1])
    first, shares = tuple(np.searchsorted(tables, problem.first_tables).tolist()), np.repeat(1.0 / times, sizes)
    read = (freeze(readers.reshape(-1)), freeze(offsets), first)
    return Piece(_structure(graph, factors), *read, cells, shares, outside)


def _structure(graph: Graph, factors: IntArray) -> Graph:
    """Some factors of a graph, without inputs: nothing is bound to it."""
    blocks, n = [], 0
    for block in graph.blocks:
        own = factors[(factors >= block.start) & (factors < block.stop)] - block.start
        blocks.append(Block(block.template, n, freeze(block.scopes[own]), None))
        n += len(own)
    of_instances = offsets_of(np.bincount(graph.factor_instances[factors], minlength=graph.n_instances))
    numbers = (freeze(np.arange(n)), freeze(of_instances))
    return Graph(graph.variables, graph.layout, tuple(blocks), graph.instance_offsets, *numbers)
