"""The Hessian of log Z of all instances, exactly: the covariance of their statistics, 002 (21), 004.

    sum_n w_n Cov_n(phi) = sum_n w_n ( sum_c p_nc a_c E_n[phi | c]^T  -  E_n[phi] E_n[phi]^T )

c are the cells of instance n, the entries of the tables of its factors, with probabilities p_nc and statistics a_c
(P,), as in `besag.query.covariance`. Instances know nothing of each other, so the union is inferred as one graph, and
row r of a batch of evidence clamps the r-th cell of every instance at once: there are as many rows as the largest
instance has cells, however many instances there are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, freeze
from besag.graph.evidence import Evidence
from besag.graph.graph import Graph
from besag.infer.engine import Engine, Want
from besag.infer.result import factor_offsets
from besag.query.covariance import statistics_of_cells

CELLS: frozenset[Want] = frozenset({"log_partition", "factors"})
CHUNK = 2**22  # marginals of cells at a time


def n_rows(graph: Graph) -> int:
    """How many rows of evidence it takes: the cells of the largest instance."""
    sizes = np.diff(factor_offsets(graph))
    return int(np.bincount(graph.factor_instances, weights=sizes, minlength=1).max(initial=0))


def summed_covariance(
    graph: Graph,
    theta: Array,
    engine: Engine,
    *,
    weights: Array | None = None,
    support: BoolArray | None = None,
    known: IntArray | None = None,
) -> Array:
    """(P, P): sum_n w_n Cov_n(phi), given the labels `known` (V,), -1 = unknown."""
    from scipy.sparse import csr_array

    whole = graph.plans.get("as_one", lambda: _as_one(graph))
    observed = np.full(graph.n_variables, -1) if known is None else known
    problem = whole.bind(theta, evidence=Evidence(observed), support=support)
    p = engine.infer(problem, CELLS).factor_marginals
    assert p is not None
    instance = np.repeat(graph.factor_instances, np.diff(factor_offsets(graph)))  # (C,): of each cell
    order, n_cells = np.argsort(instance, kind="stable"), np.bincount(instance, minlength=graph.n_instances)
    of_cells, scale = statistics_of_cells(graph, {})[order], np.ones(graph.n_instances) if weights is None else weights

    def expected(marginals: Array) -> csr_array:
        """(R N, P): E_n[phi] in each row."""
        ends = np.concatenate([[0], np.cumsum(np.tile(n_cells, len(marginals)))])
        columns = np.tile(np.arange(len(order)), len(marginals))
        picked = csr_array((marginals[:, order].ravel(), columns, ends), shape=(len(ends) - 1, len(order)))
        return csr_array(picked @ of_cells)

    mean = expected(p)
    total = -(mean.multiply(scale[:, None]).T @ mean).toarray()
    cells = _cells_by_row(p[0][order], n_cells)
    step = max(1, CHUNK // max(len(order), 1))
    for start in range(0, len(cells), step):
        rows = cells[start : start + step]
        at, n = np.nonzero(rows >= 0)
        chosen = rows[at, n]  # numbers of cells, sorted by instance
        batch = _clamped(whole, observed, order[chosen], at, len(rows))
        marginals = engine.infer(problem.with_evidence(batch), CELLS).factor_marginals
        assert marginals is not None
        left = csr_array((p[0][order[chosen]] * scale[n], (at * len(n_cells) + n, chosen)), (rows.size, len(order)))
        total += ((left @ of_cells).T @ expected(marginals)).toarray()
    return np.asarray((total + total.T) / 2)


def _as_one(graph: Graph) -> Graph:
    """The union as one instance, which may have rows of evidence."""
    ends = np.array([0, graph.n_variables]), np.array([0, graph.n_factors])
    return replace(graph, instance_offsets=freeze(ends[0]), factor_offsets=freeze(ends[1]), shape=None)


def _cells_by_row(p: Array, n_cells: IntArray) -> IntArray:
    """(R, N): the r-th possible cell of each instance, -1 where there are no more; p of the cells by instance."""
    possible = np.flatnonzero(p > 0)
    instance = np.repeat(np.arange(len(n_cells)), n_cells)[possible]
    counts = np.bincount(instance, minlength=len(n_cells))
    rank = np.arange(len(possible)) - np.repeat(np.cumsum(counts) - counts, counts)
    cells = np.full((int(counts.max(initial=0)), len(n_cells)), -1)
    cells[rank, instance] = possible
    return cells


def _clamped(graph: Graph, observed: IntArray, cells: IntArray, at: IntArray, n_rows: int) -> Evidence:
    """Rows of evidence, with the variables of each cell's factor at its configuration in row `at`."""
    rows, offsets = np.repeat(observed[None], n_rows, axis=0), factor_offsets(graph)
    factors = np.searchsorted(offsets, cells, side="right") - 1
    for block in graph.blocks:
        own = np.flatnonzero((factors >= block.start) & (factors < block.stop))
        codes = np.unravel_index(cells[own] - offsets[factors[own]], block.template.shape)
        rows[at[own, None], block.scopes[factors[own] - block.start]] = np.stack(codes, axis=1)
    return Evidence(rows, batched=True)
