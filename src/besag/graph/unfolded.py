"""A problem whose factors on many variables are chains of small ones, with helper variables that nobody sees.

A Chained factor on y_1, .., y_n becomes tables on (y_1, a_1), (a_1, y_2, a_2), .., (a_{n-1}, y_n), where a_i is the
state of its automaton after y_i. The a_i are determined, so that log Z, marginals, samples and best labellings of the y
are those of the problem itself; or chosen, and then the last table is another one for maxima. Helpers come after all
variables, in the order of the factors; what an engine answers is cut off where they begin.

A noisy-MAX is a chain too (`besag.model.structured.noisy`), of conditional distributions: a child that nobody asks
about stays barren. Its helpers are random, so that log Z, marginals and samples are those of the problem, but best
labellings are not: `condensed` is for these. All chains take parents in the order of the variables: then k noisy-ORs on
the same parents are no wider than k + 2 variables, however many parents there are. Where every row of evidence has the
child in its weakest state, no chain is needed, nor a table however small: it says something of each parent alone,

    log p(weakest | x) = log q_0 + sum_i log q_i(x_i)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from besag.arrays import AnyArray, Array, BoolArray, IntArray, Semiring, concatenate, freeze, offsets_of
from besag.errors import CapabilityError
from besag.graph.evidence import Evidence
from besag.graph.graph import Block, Graph
from besag.graph.problem import Problem, levels_from
from besag.model.structured.base import without_hard_zeros
from besag.model.structured.chained import Chained
from besag.model.structured.noisy import NoisyMax
from besag.model.template import Template
from besag.model.variable import NameList, Variables

HELPER = "\x00helper "  # how the names of helpers begin
LARGEST_TABLE = 2**8  # entries of a factor up to which it is a table and no chain


class ChainPart(NamedTuple):
    """Factors of one shape: a template of that shape, their scopes (F, n), tables (T, ..) and which each reads (F,).

    children (F,): as of a Problem.
    """

    template: Template
    scopes: IntArray
    tables: AnyArray
    readers: IntArray
    children: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Unfolded:
    """A problem with chains, and what of its moments belongs to which block of the problem that was given."""

    given: Problem
    problem: Problem
    parts_of_block: tuple[tuple[int, ...], ...]  # the last part of each block has its levels; () where it is in pieces
    is_random: bool  # whether there are helpers that the variables do not determine

    def moments(self, moments: Array) -> Array:
        """Moments of the tables of this problem, (L',), as those of the given one, (L,)."""
        found = []
        for number, block in enumerate(self.given.graph.blocks):
            part = self.parts_of_block[number][-1]
            first, last = self.problem.first_tables[part : part + 2]
            own = moments[self.problem.table_offsets[first] : self.problem.table_offsets[last]]
            term = block.template.structured
            if len(self.parts_of_block[number]) > 1 and isinstance(term, Chained):
                values = levels_from(block, self.given.block_tables(number)[0])
                own = term.level_moments(own.reshape(len(values), -1), values)
                own = own @ without_hard_zeros(term.levels()).T
            found.append(own)
        return np.asarray(concatenate(found, np.float64))


def is_long(block: Block) -> bool:
    """Whether the factors of a block are better off as chains."""
    large = len(block.template.shape) > 2 and math.prod(block.template.shape) > LARGEST_TABLE
    return large and len(block.scopes) > 0 and isinstance(block.template.structured, (Chained, NoisyMax))


def long_blocks(problem: Problem) -> tuple[int, ...]:
    """The numbers of the blocks that are chains; a noisy-MAX of another weight than 1 is none."""
    long = (number for number, block in enumerate(problem.graph.blocks) if is_long(block))
    return tuple(number for number in long if not _is_noisy(problem, number) or _is_plain(problem, number))


def _is_noisy(problem: Problem, number: int) -> bool:
    return isinstance(problem.graph.blocks[number].template.structured, NoisyMax)


def _is_plain(problem: Problem, number: int) -> bool:
    return bool((problem.block_tables(number)[0] == -1.0).all())


def plain_noisy(problem: Problem) -> frozenset[int]:
    """The kind of noisy-MAX, for an engine that knows it: where one is long, and all have the weight 1."""
    numbers = [number for number in range(len(problem.graph.blocks)) if _is_noisy(problem, number)]
    long = any(is_long(problem.graph.blocks[number]) for number in numbers)
    return frozenset({int(NoisyMax.kind)} if long and all(_is_plain(problem, number) for number in numbers) else ())


def has_positive_noisy(problem: Problem) -> bool:
    """Whether there are long noisy-MAX factors, of weight 1, and none of all has a hard zero."""
    numbers = [number for number in range(len(problem.graph.blocks)) if _is_noisy(problem, number)]
    terms = [problem.graph.blocks[number].template.structured for number in numbers]
    positive = all(term.is_positive for term in terms if isinstance(term, NoisyMax))
    return positive and bool(plain_noisy(problem))


def is_chosen(problem: Problem) -> bool:
    """Whether maxima are on another problem than sums."""
    terms = (block.template.structured for block in problem.graph.blocks if is_long(block))
    return any(isinstance(term, Chained) and term.chosen for term in terms)


def unfold(
    problem: Problem,
    semiring: Semiring = Semiring.SUM,
    *,
    absorb: bool = False,
    chains: bool = True,
    determined: bool = True,
) -> Unfolded | None:
    """The problem with chains; None where no factor is better off as one.

    absorb: noisy-MAX factors of any size whose child is seen in its weakest state become factors of each parent.
    chains=False leaves all others as they are. determined=False leaves those whose helpers are: a sampler that moves
    one variable at a time would be held fast by them.
    """
    graph = problem.graph
    if problem.levelled:
        return None
    long, absorbed = long_blocks(problem) if chains else (), find_absorbed(problem) if absorb else {}
    if not determined:
        long = tuple(number for number in long if _is_noisy(problem, number))
        absorbed = absorbed if long else {}  # nothing gets narrower, and answers are about the problem's own factors
    if not long and not absorbed:
        return None
    if graph.n_instances > 1:
        raise CapabilityError(
            "factors on many variables in a union of models are not supported; ask about one model at a time"
        )
    key = ("unfolded", long, *((number, mask.tobytes()) for number, mask in absorbed.items()))
    structure = graph.plans.get(key, lambda: _structure(problem, long, absorbed))
    bound = _bound(problem, semiring, structure, long, absorbed)
    return Unfolded(problem, bound, structure.parts_of_block, structure.is_random)


def find_absorbed(problem: Problem) -> dict[int, BoolArray]:
    """Of each block of noisy-MAX factors those (F,) whose child is in its weakest state in every row of evidence."""
    observed, found = problem.evidence.observed, {}
    first, alike = observed[0], (observed == observed[0]).all(axis=0)
    for number, block in enumerate(problem.graph.blocks):
        term = block.template.structured
        if isinstance(term, NoisyMax) and _is_plain(problem, number):
            child = block.scopes[:, -1]
            mask = alike[child] & (first[child] >= 0) & (term.ranks[first[child]] == 0)
            if mask.any():
                found[number] = mask
    return found


class UnfoldedGraph(NamedTuple):
    """The graph with helpers, the parts of each block, and the parts, whose own tables are those of links."""

    graph: Graph
    parts_of_block: tuple[tuple[int, ...], ...]
    parts: list[ChainPart]
    is_random: bool


def _structure(problem: Problem, long: tuple[int, ...], absorbed: dict[int, BoolArray]) -> UnfoldedGraph:
    graph, sizes, links = problem.graph, list[int](), TablePools("noisy_max")
    parts: list[ChainPart] = []
    parts_of_block: list[tuple[int, ...]] = []
    for number, block in enumerate(graph.blocks):
        first = len(parts)
        if not _is_noisy(problem, number):
            n_before = len(graph.variables) + len(sizes)
            parts += _chain(block, n_before, sizes) if number in long else [part_of(problem, number)]
        elif number not in long and not absorbed.get(number, np.zeros(1)).all():
            parts.append(_rest_of(part_of(problem, number), absorbed.get(number)))
        parts_of_block.append(tuple(range(first, len(parts))))
    n_determined = len(sizes)
    for number, term, scope, is_absorbed in _noisy_factors(problem, absorbed):
        if is_absorbed:
            for v, table in zip(scope, term.weakest(), strict=True):
                links.add([v], table)
        elif number in long:
            _add_noisy_chain(links, term, scope, len(graph.variables), sizes)
    parts += links.parts()
    whole = graph_of(graph, _with_helpers(graph.variables, sizes), parts)
    return UnfoldedGraph(whole, tuple(parts_of_block), parts, len(sizes) > n_determined)


def _noisy_factors(problem: Problem, absorbed: dict[int, BoolArray]) -> Iterator[tuple[int, NoisyMax, list[int], bool]]:
    """Block, term and scope of each noisy-MAX, and whether it is absorbed."""
    for number, block in enumerate(problem.graph.blocks):
        term = block.template.structured
        if isinstance(term, NoisyMax):
            mask = absorbed.get(number, np.zeros(len(block.scopes), np.bool_))
            for scope, is_absorbed in zip(block.scopes.tolist(), mask.tolist(), strict=True):
                yield number, term, scope, is_absorbed


def _rest_of(part: ChainPart, absorbed: BoolArray | None) -> ChainPart:
    """The factors of a part that are not absorbed."""
    if absorbed is None:
        return part
    kept = ~absorbed
    return part._replace(scopes=part.scopes[kept], readers=part.readers[kept], children=part.children[kept])


def part_of(problem: Problem, number: int) -> ChainPart:
    """The factors of a block as they are, their tables left out."""
    block = problem.graph.blocks[number]
    tables, readers = problem.block_tables(number)
    none = np.full(len(block.scopes), -1)
    children = none if problem.children is None else problem.children[block.start : block.stop]
    return ChainPart(block.template, block.scopes, tables[:0], readers, children)


def graph_of(given: Graph, variables: Variables, parts: list[ChainPart]) -> Graph:
    """The Graph of these variables with these factors."""
    starts = offsets_of(np.array([len(part.scopes) for part in parts]))
    blocks = tuple(Block(p.template, int(s), freeze(p.scopes), None) for p, s in zip(parts, starts, strict=False))
    n_factors = int(starts[-1])
    return Graph(
        variables=variables,
        layout=given.layout,
        blocks=blocks,
        instance_offsets=freeze(np.array([0, len(variables)])),
        factor_order=freeze(np.arange(n_factors)),
        factor_offsets=freeze(np.array([0, n_factors])),
    )


class TablePools:
    """Factors with tables of their own, those of one shape together."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.pools: dict[tuple[int, ...], tuple[list[list[int]], list[Array], list[int]]] = {}

    def add(self, scope: list[int], table: Array, child: int = -1) -> None:
        """One more; child as in a Problem."""
        pool = self.pools.setdefault(table.shape, ([], [], []))
        for values, value in zip(pool, (scope, table, child), strict=True):
            values.append(value)  # type: ignore[attr-defined]

    def parts(self) -> list[ChainPart]:
        """A part for each shape."""
        return [
            ChainPart(
                Template(f"{self.name}[{','.join(map(str, shape))}]", shape),
                np.array(scopes, np.int64),
                np.stack(tables),
                np.arange(len(tables)),
                np.array(children, np.int64),
            )
            for shape, (scopes, tables, children) in self.pools.items()
        ]


def _add_noisy_chain(links: TablePools, term: NoisyMax, scope: list[int], n_variables: int, sizes: list[int]) -> None:
    """The links of a noisy-MAX, helpers as in `_chain`."""
    n_parents, first = len(scope) - 1, n_variables + len(sizes)
    order = np.argsort(scope[:-1], kind="stable").tolist()
    after = [*range(first, first + n_parents - 1), scope[-1]]
    sizes += [term.shape[-1]] * (n_parents - 1)
    for place, table in enumerate(term.links(order)):
        before = after[place - 1 : place] if place else []
        links.add([*before, scope[order[place]], after[place]], table, after[place])


def _with_helpers(variables: Variables, sizes: list[int]) -> Variables:
    """The variables, and helpers of so many states."""
    spaces = [*variables.spaces]
    number = {n: len(spaces) + i for i, n in enumerate(sorted(set(sizes)))}
    spaces += [tuple(f"\x00{i}" for i in range(n)) for n in number]
    names = [variables.names[v] for v in range(len(variables))] + [f"{HELPER}{i}" for i in range(len(sizes))]
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
        found.append(ChainPart(template, scopes, table, np.zeros(len(scopes), np.int64), np.full(len(scopes), -1)))
    last = np.column_stack([helpers[:, -1], block.scopes[:, -1]])
    ends = (links[-1].shape[2], block.template.shape[-1])
    nothing, nobody = np.zeros(0, np.int64), np.full(len(last), -1)
    return [*found, ChainPart(Template(f"{name} end", ends), last, np.zeros((0, *ends)), nothing, nobody)]


def _bound(
    problem: Problem,
    semiring: Semiring,
    made: UnfoldedGraph,
    long: tuple[int, ...],
    absorbed: dict[int, BoolArray],
) -> Problem:
    """The numbers of a problem on the graph with helpers."""
    filled = list(made.parts)
    for number, block in enumerate(problem.graph.blocks):
        if made.parts_of_block[number]:
            own, read = problem.block_tables(number)
            term, last = block.template.structured, made.parts_of_block[number][-1]
            if number in long and isinstance(term, Chained):
                tables = term.ends(levels_from(block, own), semiring)
                filled[last] = filled[last]._replace(tables=tables, readers=read)
            else:
                filled[last] = _rest_of(part_of(problem, number)._replace(tables=own), absorbed.get(number))
    return problem_of(problem, made.graph, filled)


def problem_of(problem: Problem, graph: Graph, parts: list[ChainPart]) -> Problem:
    """A Problem of these parts, with the evidence of the one given."""
    tables, readers = [part.tables for part in parts], [part.readers for part in parts]
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
        None if problem.children is None else freeze(concatenate([part.children for part in parts], np.int64)),
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
