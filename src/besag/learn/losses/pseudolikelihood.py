"""Pseudolikelihood (Besag), 001: every variable given all others, one small sum each in place of log Z.

    L(theta)  = - sum_n w_n sum_i log p(y_i | y_N(i), x)
              = sum_n w_n sum_i (H_i(y) + log sum_k exp(-H_i(y, y_i = k))),     H_i = sum over factors f on i of h_f
    gradient  = sum_n w_n sum_i sum over f on i of (phi_f(y) - sum_k p(y_i = k | y_N(i)) phi_f(y, y_i = k))

001 prints L_PL with +<w, phi> although its p is exp(-<w, phi>); here all signs are those of p. L is convex, and where
the model is right its minimum tends to the true theta as instances become many. It bounds no likelihood.

The term of i is left out where its label, or that of a neighbour, is unknown (-1). Each term is one of
`besag.learn.losses.terms`: its links are the factors on i, its neighbours at their labels. Labels that meet a hard zero
in a term are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, freeze, index_type, offsets_of
from besag.data.dataset import Batch
from besag.errors import DataWarning, warn
from besag.graph.problem import Problem
from besag.kernels.compile import kernel_of, worth_compiling
from besag.learn.losses.kernels.conditionals import make_counted, make_kept, make_linked
from besag.learn.losses.terms import (
    KNOWN_KINDS,
    MOST_STATES,
    Formula,
    TermArrays,
    Terms,
    TermsLoss,
    impossible_labels,
    phases_of,
    plain_terms,
    share_links,
    weighted_rows,
)

FEW = 0.1  # of the labels that are known


@dataclass(frozen=True, slots=True)
class PseudolikelihoodOptions:
    """It has none."""

    def at_work(self, support: BoolArray | None, n_threads: int | None) -> Pseudolikelihood:
        """The loss for data of a model with these hard zeros."""
        return Pseudolikelihood(support, n_threads)


@dataclass(frozen=True, slots=True, eq=False)
class Pseudolikelihood(TermsLoss):
    """See the module."""

    surrogate = "pseudolikelihood"
    weighs_variables = True

    def warn_of(self, batches: Sequence[Batch]) -> None:
        """A DataWarning where few of the known labels have terms."""
        known = sum(int((weighted_rows(batch)[0] >= 0).sum()) for batch in batches)
        used = sum(len(self.compiled[batch].arrays.weights) for batch in batches)
        if used < FEW * known:
            warn(
                DataWarning(
                    f"pseudolikelihood learns from {used} of {known} labels, those whose neighbours are all known "
                    "too; likelihood and marginal_loss learn from every label, piecewise from known neighbours"
                )
            )

    def compile(self, batch: Batch, problem: Problem) -> tuple[Terms, Array]:
        """A term for each variable of each row that has one."""
        graph, factors = batch.graph, problem.factors
        rows, weights, instances = weighted_rows(batch)
        compile = worth_compiling(float(len(rows) * len(graph.scope_variables)))
        kept, counts = np.ones(rows.shape, np.bool_), np.zeros(rows.shape, np.int64)
        kernel_of(make_kept, compile=compile)(factors, rows, kept, counts)
        first = offsets_of(counts[kept])
        index = index_type(max(int(first[-1]), len(problem.log_potentials)))
        cells, steps = np.empty(first[-1], index), np.empty(first[-1], index)
        free = np.full(rows.shape, -1)
        free[kept] = first[:-1]
        kernel_of(make_linked, compile=compile)(factors, rows, free, cells, steps)
        sizes = np.broadcast_to(np.diff(graph.state_offsets), rows.shape)[kept]
        n_states = graph.variables.common_cardinality or 0
        arrays = plain_terms(first.astype(index), cells, steps, sizes, weights[kept])
        formulas = tuple(_formulas(problem, rows, kept, offsets_of(sizes)[:-1]))
        found, wrong = _label_counts(arrays, formulas, rows[kept], problem.log_potentials, compile=compile)
        if wrong >= 0:
            raise impossible_labels(int(instances[kept][wrong]))
        if 0 < n_states <= MOST_STATES:
            arrays = share_links(arrays, problem)
        phases = phases_of(arrays, len(problem.log_potentials))
        return Terms(arrays, phases, formulas, n_states if n_states <= MOST_STATES else 0), found


def _label_counts(
    arrays: TermArrays, formulas: tuple[Formula, ...], labels: IntArray, log_potentials: Array, *, compile: bool
) -> tuple[Array, int]:
    """(L,): the weights of terms on what their labels (M,) look up; and a term whose label is impossible, or -1."""
    counts, count = np.zeros(len(log_potentials)), kernel_of(make_counted, compile=compile)
    first, cells, steps, sizes, weights, _, _ = arrays
    wrong = int(count(first, cells, steps, freeze(labels), weights, log_potentials, counts))
    if formulas:
        shares, places = np.zeros(int(sizes.sum())), offsets_of(sizes)[:-1] + labels
        shares[places] = weights
        for formula in formulas:
            formula.add_moments(shares, counts)
            ruled_out = np.isin(places, formula.ruled_out)
            wrong = int(np.argmax(ruled_out)) if wrong < 0 and ruled_out.any() else wrong
    return counts, wrong


def _formulas(problem: Problem, rows: IntArray, kept: BoolArray, starts: IntArray) -> Iterator[Formula]:
    """One for each axis of each block that kernels do not know; starts (M,): of the states of each term."""
    number = np.cumsum(kept.reshape(-1)).reshape(kept.shape) - 1
    for block in problem.graph.blocks:
        structured = block.template.structured
        if structured is None or structured.kind in KNOWN_KINDS or block.start == block.stop:
            continue
        tables = problem.table_offsets[problem.table_of_factor[block.start : block.stop]]
        for axis, n_states in enumerate(block.template.shape):
            row, f = np.nonzero(kept[:, block.scopes[:, axis]])
            codes = np.repeat(rows[row[:, None], block.scopes[f]][:, None], n_states, axis=1)
            codes[:, :, axis] = np.arange(n_states)
            places = starts[number[row, block.scopes[f, axis]]][:, None] + np.arange(n_states)
            cells = tables[f][:, None] + np.arange(structured.n_parameters)
            yield Formula.of(places, cells, structured.features(codes))
