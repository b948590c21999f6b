"""Counts of how often each table entry of a factor is visited: factor marginals, and moments of tables.

    cells (R, sum of table sizes)   in the order of `factor_offsets`, where every factor marginal is wanted
    table_cells (1, L)              summed over factors that share a table, and over rows, with weights

Rows and instances without a possible labelling are not counted.
"""

from __future__ import annotations

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, freeze
from besag.infer.answers import make_marginals, with_factors
from besag.infer.engine import Want
from besag.infer.prepared import Prepared
from besag.infer.result import Result, factor_offsets
from besag.infer.sampling.kernels.single_site import make_counts
from besag.infer.sampling.single_site import links_in
from besag.kernels.compile import kernel_of


class Counts:
    """How often each factor has been at each entry of its table."""

    def __init__(self, setting: Prepared, want: frozenset[Want], n_chains: int, possible: BoolArray) -> None:
        self.setting, self.n_chains, graph = setting, n_chains, setting.graph
        union = graph.n_instances > 1
        self.alive = np.ones(1) if union else possible.astype(np.float64)  # (R,)
        self.ones = possible[graph.factor_instances].astype(np.float64) if union else np.ones(graph.n_factors)
        self.cells = np.zeros((0, 0))
        if "factors" in want:
            self.cells = make_marginals(setting)
        self.table_cells = np.zeros((1, len(setting.problem.log_potentials) if "moments" in want else 0))

    def add(self, codes: IntArray) -> None:
        """Count one more sweep, codes (R, C, V)."""
        setting, graph = self.setting, self.setting.graph
        factors = type(setting.factors)(*(freeze(array) for array in setting.factors))
        count = kernel_of(make_counts, compile=setting.compile)
        states = freeze(codes.reshape(-1, graph.n_variables))
        shared = (factors, links_in(graph, setting).strides, states, self.n_chains)
        if self.cells.size:
            starts = freeze(factor_offsets(graph)[:-1])
            count(*shared, freeze(self.alive), starts, freeze(self.ones), False, self.cells)
        if self.table_cells.size:
            starts = freeze(factors.table_offsets[factors.table_of_factor])
            by_row, by_factor = self.alive * setting.problem.row_weights, self.ones * setting.problem.factor_weights
            count(*shared, freeze(by_row), starts, freeze(by_factor), True, self.table_cells)

    def add_to(self, result: Result, want: frozenset[Want], p: Array, n: int) -> Result:
        """The result with what is wanted of n sweeps: counts as shares."""
        n_codes = max(1, n * self.n_chains)
        marginals = self.cells / n_codes if "factors" in want else None
        moments = self.table_cells[0] / n_codes if "moments" in want else None
        return with_factors(self.setting, result, p, marginals, moments)
