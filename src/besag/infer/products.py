"""Factor marginals and moments of a product distribution, p(y) = prod_v p_v(y_v).

    p_f(y) = prod over v in f of p_v(y_v)         probabilities (R, S) -> marginals (R, .) or moments (L,)

Blocks are done whole, factors of one variable too. `kept` (F,) leaves factors out: theirs come from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from besag.arrays import Array, BoolArray, IntArray
from besag.graph.graph import Block
from besag.graph.problem import Problem
from besag.infer.result import factor_offsets
from besag.kernels.factors import TABLE
from besag.model.structured.kernels.rules import expected_levels

SLAB_ENTRIES = 2**22  # of factor marginals made at a time


def multiply_marginals(problem: Problem, probabilities: Array, kept: BoolArray, out: Array) -> None:
    """Writes the marginals of kept factors into out (R, .), at `factor_offsets`."""
    offsets = factor_offsets(problem.graph)
    for _, block, numbers in _slabs(problem, kept):
        size = int(np.prod(block.template.shape))
        states = _states(problem, block, numbers)
        places = offsets[block.start + numbers][:, None] + np.arange(size)
        for p, cells in zip(probabilities, out, strict=True):
            cells[places] = _outer([p[s] for s in states])


def add_product_moments(problem: Problem, probabilities: Array, kept: BoolArray, moments: Array) -> None:
    """Adds the marginals of kept factors, times their weights, to the moments (L,) of their tables."""
    for number, block, numbers in _slabs(problem, kept):
        tables, readers = problem.block_tables(number)
        start = int(problem.table_offsets[problem.first_tables[number]])
        view = moments[start : start + tables.size].reshape(tables.shape)
        states, readers = _states(problem, block, numbers), readers[numbers]
        of_factors = problem.factor_weights[block.start + numbers]
        for p, of_row in zip(probabilities, problem.row_weights, strict=True):
            weights = of_row * of_factors
            vectors = [p[s] for s in states]
            kind = int(problem.kinds[block.start])
            if kind != TABLE:
                np.add.at(view, readers, weights[:, None] * expected_levels(kind, vectors))
                continue
            vectors[0] = vectors[0] * weights[:, None]
            if len(tables) == 1 and len(vectors) > 1:
                view += (_outer(vectors[:-1]).T @ vectors[-1]).reshape(view.shape)
            elif len(tables) == block.stop - block.start:  # a table for each factor
                view[readers] += _outer(vectors).reshape(len(numbers), *view.shape[1:])
            else:
                np.add.at(view, readers, _outer(vectors).reshape(len(numbers), *view.shape[1:]))


def _slabs(problem: Problem, kept: BoolArray) -> Iterator[tuple[int, Block, IntArray]]:
    """Kept factors of a block at a time, by their number in the block, few enough for their marginals to fit."""
    for number, block in enumerate(problem.graph.blocks):
        numbers = np.flatnonzero(kept[block.start : block.stop])
        size = max(1, SLAB_ENTRIES // int(np.prod(block.template.shape)))
        for start in range(0, len(numbers), size):
            yield number, block, numbers[start : start + size]


def _states(problem: Problem, block: Block, numbers: IntArray) -> list[IntArray]:
    """Where the states of each variable of some factors are, (F, K) for each axis."""
    first = problem.graph.state_offsets[block.scopes[numbers]]
    return [first[:, axis, None] + np.arange(k) for axis, k in enumerate(block.template.shape)]


def _outer(vectors: list[Array]) -> Array:
    """(F, K) for each axis -> (F, product of all K)."""
    cells = vectors[0]
    for vector in vectors[1:]:
        cells = (cells[:, :, None] * vector[:, None, :]).reshape(len(cells), -1)
    return cells
