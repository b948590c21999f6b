"""Unary factors and evidence, folded into one log-weight for each state: the `base` (B, S) of message passing.

    base[b, v, k] = sum over factors f on v alone of log-potential_f(k) + log_weights[b, v, k];  -inf where v is not k

and back: what a unary factor contributes to moments and to factor marginals is the marginal of its variable.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from besag import recycled
from besag.arrays import Array, IntArray
from besag.graph.graph import Block
from besag.graph.problem import Problem
from besag.infer.result import factor_offsets


def unary_blocks(problem: Problem) -> list[tuple[int, Block]]:
    """The blocks of factors on one variable, with their numbers."""
    return [
        (i, block) for i, block in enumerate(problem.graph.blocks) if block.scopes.shape[1] == 1 and len(block.scopes)
    ]


def base_rows(problem: Problem, start: int, stop: int) -> Array:
    """Rows start to stop of the base: (stop - start, S); the log-weights themselves where nothing is added to them."""
    graph = problem.graph
    observed, log_weights = problem.evidence.rows(start, stop)
    unary, clamped = unary_blocks(problem), bool((observed >= 0).any())
    shape = (stop - start, int(graph.state_offsets[-1]))
    if log_weights is not None and log_weights.shape == shape and not unary and not clamped:
        return log_weights
    base = recycled.empty(shape)
    base[...] = 0.0 if log_weights is None else log_weights
    for number, block in unary:
        tables, readers = problem.block_tables(number)
        _add(base, tables, readers, block, graph.state_offsets)
    if clamped:
        _clamp(base, observed, graph.state_offsets)
    return base


def evidence_at(problem: Problem, v: int) -> Array:
    """The evidence on one variable in the first row, as log-weights (K,): zeros where there is none."""
    offsets, evidence = problem.graph.state_offsets, problem.evidence
    values = np.zeros(int(offsets[v + 1] - offsets[v]))
    if evidence.log_weights is not None:
        values += evidence.log_weights[0, offsets[v] : offsets[v + 1]]
    code = int(evidence.observed[0, v])
    return values if code < 0 else np.where(np.arange(len(values)) == code, values, -np.inf)


def base_blocks(problem: Problem, row: int) -> Callable[[int, int], Array]:
    """(first, last) -> (last - first, K), the base of these variables in one row, where all have K states.

    A long base is needed once, piece by piece: what is made here stays in the cache, and nothing is made where there is
    nothing to add to the log-weights.
    """
    observed, log_weights = problem.evidence.rows(row, row + 1)
    n_states = int(problem.graph.state_offsets[1])
    ordered = [(block.scopes[:, 0], *problem.block_tables(number)) for number, block in unary_blocks(problem)]
    if (observed >= 0).any() or any((np.diff(variables) <= 0).any() for variables, _, _ in ordered):
        whole = base_rows(problem, row, row + 1).reshape(-1, n_states)
        return lambda first, last: whole[first:last]
    given = np.zeros((1, n_states)) if log_weights is None else log_weights.reshape(-1, n_states)

    def block(first: int, last: int) -> Array:
        shape = (last - first, n_states)
        base, shared = np.broadcast_to(given, shape) if len(given) == 1 else given[first:last], True
        for variables, tables, readers in ordered:
            low, high = np.searchsorted(variables, (first, last))
            if low < high:
                base, shared = np.array(base) if shared else base, False
                everywhere = high - low == last - first
                base[... if everywhere else variables[low:high] - first] += tables[readers[low:high]]
        return np.ascontiguousarray(base)

    return block


def _add(base: Array, tables: Array, readers: IntArray, block: Block, state_offsets: IntArray) -> None:
    n_states, variables = tables.shape[1], block.scopes[:, 0]
    if base.shape[1] == n_states * len(variables) and is_counting(variables):  # one factor on every variable, in order
        values = tables if len(tables) == 1 or is_counting(readers) else tables[readers]
        view = base.reshape(len(base), len(variables), n_states)
        view += values
        return
    total = np.zeros(base.shape[1])
    np.add.at(total, state_offsets[variables][:, None] + np.arange(n_states), tables[readers])
    base += total


def is_counting(numbers: IntArray) -> bool:
    """Whether they are 0, 1, 2, ..."""
    return bool((numbers == np.arange(len(numbers))).all())


def _clamp(base: Array, observed: IntArray, state_offsets: IntArray) -> None:
    """-inf at every state of an observed variable but the observed one."""
    rows, variables = np.nonzero(observed >= 0)
    kept = state_offsets[variables] + observed[rows, variables]
    values = base[rows, kept]
    sizes = np.diff(state_offsets)[variables]
    ends = np.cumsum(sizes)
    within = np.arange(int(ends[-1])) - np.repeat(ends - sizes, sizes)
    base[np.repeat(rows, sizes), np.repeat(state_offsets[variables], sizes) + within] = -np.inf
    base[rows, kept] = values


def add_unary_moments(problem: Problem, probabilities: Array, moments: Array, start: int = 0) -> None:
    """Adds the marginals of unary factors' variables, of rows from `start` on, to the moments (L,) of their tables."""
    graph, unary = problem.graph, unary_blocks(problem)
    if not unary:
        return
    weights = problem.row_weights[start : start + len(probabilities)]
    summed, of_factors = weights @ probabilities, problem.factor_weights
    for number, block in unary:
        tables, readers = problem.block_tables(number)
        variables, n_states = block.scopes[:, 0], tables.shape[1]
        if len(summed) == n_states * len(variables) and is_counting(variables):
            values = summed.reshape(-1, n_states)
        else:
            values = summed[graph.state_offsets[variables][:, None] + np.arange(n_states)]
        if problem.weights is not None:
            values = values * of_factors[block.start : block.stop, None]
        first = int(problem.table_offsets[problem.first_tables[number]])
        view = moments[first : first + tables.size].reshape(tables.shape)
        if len(tables) == 1:
            view += values.sum(axis=0)
        elif len(tables) == len(readers) and is_counting(readers):
            view += values
        else:
            np.add.at(view, readers, values)


def copy_unary_marginals(problem: Problem, probabilities: Array, factors: Array) -> None:
    """Copies the marginals (B, S) of unary factors' variables to their places among factor marginals."""
    graph, offsets = problem.graph, factor_offsets(problem.graph)
    for _, block in unary_blocks(problem):
        states = np.arange(block.template.shape[0])
        source = graph.state_offsets[block.scopes[:, 0]][:, None] + states
        target = offsets[block.start : block.stop][:, None] + states
        factors[:, target] = probabilities[:, source]
