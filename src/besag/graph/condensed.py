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


def condensed(problem: Problem, memory_limit: int) -> Problem:
    """The problem of one row with tables on what is free of each long noisy-MAX; TooLargeError if one is too large."""
    graph, observed = problem.graph, problem.evidence.observed[0].tolist()
    left, parts, pools = memory_limit, [], TablePools("noisy_max")
    long = long_blocks(problem)
    for number, block in enumerate(graph.blocks):
        term = block.template.structured
        if number in long and isinstance(term, NoisyMax):
            left -= sum(_add(pools, problem, block, term, scope, observed, left) for scope in block.scopes.tolist())
        else:
            tables, readers = problem.block_tables(number)
            parts.append(part_of(problem, number)._replace(tables=tables, readers=readers))
    parts += pools.parts()
    return problem_of(problem, graph_of(graph, graph.variables, parts), parts)


def _add(
    pools: TablePools, problem: Problem, block: Block, term: NoisyMax, scope: list[int], observed: list[int], left: int
) -> int:
    """Add what is left of one factor; the bytes that it takes."""
    known = [observed[v] if observed[v] >= 0 else None for v in scope]
    if known[-1] is not None and term.ranks[known[-1]] == 0:
        tables = term.weakest()
        for v, table in zip(scope, tables, strict=True):
            pools.add([v], table)
        return 0
    free = [v for v, code in zip(scope[:-1], known, strict=False) if code is None]
    needed = BYTES_OF_ENTRY * math.prod(problem.graph.variables.cardinalities[[*free, scope[-1]]].tolist())
    if needed > left:
        name = problem.graph.variables.names[scope[-1]]
        raise TooLargeError(
            f"the best labelling needs a table of {block.template.name!r} on {name!r} and the {len(free)} of its "
            f"parents that are not observed, which would take {needed} bytes, more than is left of memory_limit, {left}"
        )
    pools.add([*free, scope[-1]], term.conditioned(known[:-1]))
    return needed
