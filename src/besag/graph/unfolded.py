"""A problem whose factors on many variables are chains of small ones, with helper variables that nobody sees.

A Chained factor on y_1, .., y_n becomes tables on (y_1, a_1), (a_1, y_2, a_2), .., (a_{n-1}, y_n), where a_i is the
state of its automaton after y_i. The a_i are determined, so that log Z, marginals, samples and best labellings of the y
are those of the problem itself; or chosen, and then the last table is another one for maxima. Helpers come after all
variables, in the order of the factors; what an engine answers is cut off where they begin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from besag.arrays import AnyArray, Array, IntArray, Semiring, concatenate, freeze, offsets_of
from besag.errors import CapabilityError
from besag.graph.evidence import Evidence
from besag.graph.graph import Block, Graph
from besag.graph.problem import Problem, levels_from
from besag.model.structured.chained import Chained
from besag.model.template import Template
from besag.model.variable import NameList, Variables

LARGEST_TABLE = 2**8  # entries of a factor up to which it is a table and no chain


class ChainPart(NamedTuple):
    """Factors of one shape: a template of that shape, their scopes (F, n), tables (T, ..) and which each reads (F,)."""

    template: Template
    scopes: IntArray
    tables: AnyArray
    readers: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Unfolded:
    """A problem with chains, and what of its moments belongs to which block of the problem that was given."""

    given: Problem
    problem: Problem
    parts_of_block: tuple[tuple[int, ...], ...]  # the last part of each block has its levels

    def moments(self, moments: Array) -> Array:
        """Moments of the tables of this problem, (L',), as those of the given one, (L,)."""
        found = []
        for number, block in enumerate(self.given.graph.blocks):
            part = self.parts_of_block[number][-1]
            first, last = self.problem.first_tables[part : part + 2]
            own = moments[self.problem.table_offsets[first] : self.problem.table_offsets[last]]
            term = block.template.structured
            if len(self.parts_of_block[number]) > 1 and isinstance(term, Chained):
                values, levels = levels_from(block, self.given.block_tables(number)[0]), term.levels()
                own = term.level_moments(own.reshape(len(values), -1), values)
                own = own @ np.where(np.isfinite(levels), levels, 0.0).T
            found.append(own)
        return np.asarray(concatenate(found, np.float64))


def is_long(block: Block) -> bool:
    """Whether the factors of a block are better off as chains."""
    large = math.prod(block.template.shape) > LARGEST_TABLE and len(block.template.shape) > 2
    return large and len(block.scopes) > 0 and isinstance(block.template.structured, Chained)


def is_chosen(problem: Problem) -> bool:
    """Whether maxima are on another problem than sums."""
    terms = (block.template.structured for block in problem.graph.blocks if is_long(block))
    return any(isinstance(term, Chained) and term.chosen for term in terms)


def unfold(problem: Problem, semiring: Semiring = Semiring.SUM) -> Unfolded | None:
    """The problem with chains; None where no factor is better off as one."""
    graph = problem.graph
    if problem.levelled or not any(map(is_long, graph.blocks)):
        return None
    if graph.n_instances > 1:
        raise CapabilityError(
            "factors on many variables in a union of models are not supported; ask about one model at a time"
        )
    structure = graph.plans.get("unfolded", lambda: _structure(problem))
    return Unfolded(problem, _bound(problem, semiring, *structure), structure[1])


def _structure(problem: Problem) -> tuple[Graph, tuple[tuple[int, ...], ...], list[ChainPart]]:
    """The graph with helpers, the parts of each block, and the parts, whose own tables are those of links."""
    graph = problem.graph
    parts: list[ChainPart] = []
    parts_of_block, sizes = [], list[int]()
    for number, block in enumerate(graph.blocks):
        first = len(parts)
        if is_long(block):
            parts += _chain(block, len(graph.variables) + len(sizes), sizes)
        else:
            tables, readers = problem.block_tables(number)
            parts.append(ChainPart(block.template, block.scopes, tables[:0], readers))
        parts_of_block.append(tuple(range(first, len(parts))))
    starts = offsets_of(np.array([len(part.scopes) for part in parts]))
    blocks = tuple(Block(p.template, int(s), freeze(p.scopes), None) for p, s in zip(parts, starts, strict=False))
    n_factors = int(starts[-1])
    whole = Graph(
        variables=_with_helpers(graph.variables, sizes),
        layout=graph.layout,
        blocks=blocks,
        instance_offsets=freeze(np.array([0, len(graph.variables) + len(sizes)])),
        factor_order=freeze(np.arange(n_factors)),
        factor_offsets=freeze(np.array([0, n_factors])),
    )
    return whole, tuple(parts_of_block), parts


def _with_helpers(variables: Variables, sizes: list[int]) -> Variables:
    """The variables, and helpers of so many states."""
    spaces = [*variables.spaces]
    number = {n: len(spaces) + i for i, n in enumerate(sorted(set(sizes)))}
    spaces += [tuple(f"\x00{i}" for i in range(n)) for n in number]
    names = [variables.names[v] for v in range(len(variables))] + [f"\x00helper {i}" for i in range(len(sizes))]
    space_of = np.concatenate([variables.space_of, [number[n] for n in sizes]]).astype(np.int64)
    return Variables(NameList(names), spaces, space_of)


def _chain(block: Block, n_variables: int, sizes: list[int]) -> list[ChainPart]:
    """The parts of the chains of a block, helpers numbered from n_variables on; their sizes are added to sizes."""
    term = block.template.structured
    assert isinstance(term, Chained)
    links, (n_factors, n) = term.links(), block.scopes.shape
    sizes += [table.shape[2] for table in links] * n_factors
    helpers = n_variables + np.arange(n_factors * (n - 1)).reshape(n_factors, n - 1)
    found, name = [], block.template.name
    grouped: dict[bytes, list[int]] = {}
    for place, table in enumerate(links):
        grouped.setdefault(repr((place == 0, table.shape)).encode() + table.tobytes(), []).append(place)
    for places in grouped.values():
        table = links[places[0]]
        scopes = np.stack([helpers[:, np.array(places) - 1], block.scopes[:, places], helpers[:, places]], axis=2)
        scopes, table = scopes.reshape(-1, 3), table[None]
        if places[0] == 0:  # there is no state before the first variable
            scopes, table = scopes[:, 1:], table[:, 0]
        template = Template(f"{name} {places[0]}", table.shape[1:])
        found.append(ChainPart(template, scopes, table, np.zeros(len(scopes), np.int64)))
    last = np.column_stack([helpers[:, -1], block.scopes[:, -1]])
    ends = (links[-1].shape[2], block.template.shape[-1])
    return [
        *found,
        ChainPart(Template(f"{name} end", ends), last, np.zeros((0, *ends)), np.zeros(0, np.int64)),
    ]


def _bound(
    problem: Problem,
    semiring: Semiring,
    graph: Graph,
    parts_of_block: tuple[tuple[int, ...], ...],
    parts: list[ChainPart],
) -> Problem:
    """The numbers of a problem on the graph with helpers."""
    tables, readers = [part.tables for part in parts], [part.readers for part in parts]
    for number, block in enumerate(problem.graph.blocks):
        own, read = problem.block_tables(number)
        term, last = block.template.structured, parts_of_block[number][-1]
        if is_long(block) and isinstance(term, Chained):
            own = term.ends(levels_from(block, own), semiring)
        tables[last], readers[last] = own, read
    counts = np.array([len(table) for table in tables])
    first = offsets_of(counts)
    sizes = np.repeat([table[0].size if len(table) else 0 for table in tables], counts)
    read_tables = [read + start for read, start in zip(readers, first[:-1].tolist(), strict=True)]
    return Problem(
        graph,
        freeze(concatenate(tables, np.float64)),
        freeze(concatenate(read_tables, np.int64)),
        freeze(offsets_of(sizes)),
        tuple(first.tolist()),
        graph.kinds,
        _widened(problem.evidence, graph),
        problem.weights,
    )


def _widened(evidence: Evidence, graph: Graph) -> Evidence:
    """The evidence, with nothing known of helpers."""
    observed, weights = evidence.observed, evidence.log_weights
    n_more = graph.n_variables - observed.shape[1]
    wide = np.concatenate([observed, np.full((len(observed), n_more), -1)], axis=1)
    if weights is not None:
        more = int(graph.state_offsets[-1]) - weights.shape[1]
        weights = np.concatenate([weights, np.zeros((len(weights), more))], axis=1)
    return Evidence(wide, weights, evidence.batched, evidence.index)
