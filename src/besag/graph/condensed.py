"""A problem for best labellings: a noisy-MAX on many variables is what one row of evidence leaves of it.

The largest of sums over helpers is not the sum of largest, so that chains (`besag.graph.unfolded`) do not serve here.
Parents that are observed are no axes of its table, and a child that is observed in its weakest state leaves a factor of
each parent (`NoisyMax.weakest`). What is left beyond that is a table, if it fits.
"""

from __future__ import annotations

import math

from besag.errors import TooLargeError
from besag.graph.graph import Block
from besag.graph.problem import Problem
from besag.graph.unfolded import TablePools, graph_of, long_blocks, part_of, problem_of
from besag.model.structured.noisy import NoisyMax

BYTES_OF_ENTRY = 40  # while a table is made
MOST_BYTES = 2**26  # of all tables: larger ones take longer to make than a search for the labelling


def condense(problem: Problem, memory_limit: int) -> Problem:
    """The problem of one row with tables on what is free of each long noisy-MAX, or TooLargeError."""
    graph, observed = problem.graph, problem.evidence.observed[0].tolist()
    parts, pools, long = [], TablePools("noisy_max"), long_blocks(problem)
    noisy = [number for number in long if isinstance(graph.blocks[number].template.structured, NoisyMax)]
    _refuse(problem, [graph.blocks[number] for number in noisy], observed, min(memory_limit, MOST_BYTES))
    for number, block in enumerate(graph.blocks):
        term = block.template.structured
        if number in noisy and isinstance(term, NoisyMax):
            for scope in block.scopes.tolist():
                _add(pools, term, scope, observed)
        else:
            tables, readers = problem.block_tables(number)
            parts.append(part_of(problem, number)._replace(tables=tables, readers=readers))
    parts += pools.parts()
    return problem_of(problem, graph_of(graph, graph.variables, parts), parts)


def _refuse(problem: Problem, blocks: list[Block], observed: list[int], limit: int) -> None:
    """TooLargeError where the tables of all these blocks would take too much."""
    cardinalities, left = problem.graph.variables.cardinalities.tolist(), limit
    for block in blocks:
        term = block.template.structured
        assert isinstance(term, NoisyMax)
        for *parents, child in block.scopes.tolist():
            if observed[child] >= 0 and term.ranks[observed[child]] == 0:
                continue
            free = [v for v in parents if observed[v] < 0]
            needed = BYTES_OF_ENTRY * math.prod(cardinalities[v] for v in [*free, child])
            left -= needed
            if left < 0:
                name = problem.graph.variables.names[child]
                raise TooLargeError(
                    f"the best labelling needs a table on {name!r} and the {len(free)} of its parents that are not "
                    f"observed, of {needed:.3g} bytes, more than is left of {limit}"
                )


def _add(pools: TablePools, term: NoisyMax, scope: list[int], observed: list[int]) -> None:
    """Add what is left of one factor."""
    known = [observed[v] if observed[v] >= 0 else None for v in scope]
    if known[-1] is not None and term.ranks[known[-1]] == 0:
        for v, table in zip(scope, term.weakest(), strict=True):
            pools.add([v], table)
    else:
        free = [v for v, code in zip(scope[:-1], known, strict=False) if code is None]
        pools.add([*free, scope[-1]], term.conditioned(known[:-1]))
