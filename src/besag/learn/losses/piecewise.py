"""Piecewise training (Sutton, McCallum), 001: every factor, or every tree, as a small model of its own.

    pieces=factors   L(theta) = - sum_n w_n sum_f log p_f(y_f | x),     p_f(y_f) = exp(-h_f(y_f)) / Z_f
                     gradient = sum_n w_n sum_f (phi_f(y_f) - E_f[phi_f])
    pieces=trees     L(theta) = sum_n w_n (H(y, x) + sum_j log Z_j),    Z_j of the energy sum_{f in tree j} h_f / m_f

001 prints L_PW with +<w, phi> although its p is exp(-<w, phi>); here all signs are those of p. Both are convex and, as
Z of a sum of energies is at most the product of their Zs over all labellings, upper bounds on the negative
log-likelihood if all labels are known and every variable is in a piece. With factors, L is a sum over templates, each
of its own theta.

Trees cover all factors, and one that is in m_f of them counts 1 / m_f in each: where the model is a forest, there is
one, and L is the negative log-likelihood. `besag.learn.losses.tree_pieces` says which they are.

A factor with an unknown label (-1) is left out as a piece, so that L stays convex; trees sum unknown labels out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, Kind, concatenate, offsets_of
from besag.data.dataset import Batch
from besag.graph.problem import Problem
from besag.infer.engine import ENGINES
from besag.kernels.compile import kernel_of, worth_compiling
from besag.learn.losses.base import OBJECTIVES, Loss
from besag.learn.losses.kernels.pieces import make_counted_pieces
from besag.learn.losses.terms import (
    KNOWN_KINDS,
    MOST_STATES,
    Formula,
    Terms,
    TermsLoss,
    impossible_labels,
    phases_of,
    plain_terms,
    weighted_rows,
)
from besag.learn.losses.tree_pieces import ForestCover, TreePieces

PIECES = ("factors", "trees")


@dataclass(frozen=True, slots=True)
class PiecewiseOptions:
    """pieces: factors or trees, see the module."""

    pieces: str = "factors"

    def __post_init__(self) -> None:
        OBJECTIVES.check_choice(self, "pieces", PIECES)

    def at_work(self, support: BoolArray | None, n_threads: int | None) -> Loss:
        """The loss for data of a model with these hard zeros."""
        if self.pieces == "trees":
            return TreePieces(ForestCover(ENGINES.read("tree", n_threads=n_threads)), support)
        return FactorPieces(support, n_threads)


@dataclass(frozen=True, slots=True, eq=False)
class FactorPieces(TermsLoss):
    """See the module."""

    surrogate = "piecewise"

    def compile(self, batch: Batch, problem: Problem) -> tuple[Terms, Array]:
        """A term for each table, its weight that of all factors that read it: their Z_f are the same."""
        rows, weights, instances = weighted_rows(batch)
        factors, n_factors = problem.factors, batch.graph.n_factors
        counts, of_tables = np.zeros(len(problem.log_potentials)), np.zeros(len(problem.table_offsets) - 1)
        count = kernel_of(make_counted_pieces, compile=worth_compiling(float(len(rows) * n_factors)))
        wrong = int(count(factors, rows, weights, counts, of_tables))
        if wrong >= 0:
            row, f = divmod(wrong, n_factors)
            raise impossible_labels(int(instances[row, batch.graph.scope(f)[0]]))
        _count_formulas(problem, rows, weights, instances, counts)
        return _terms(problem, of_tables), counts


def _count_formulas(problem: Problem, rows: IntArray, weights: Array, instances: IntArray, counts: Array) -> None:
    """Adds the features of structured factors that kernels do not know, at labels that are all known."""
    for block in problem.graph.blocks:
        structured = block.template.structured
        if structured is not None and structured.kind not in KNOWN_KINDS:
            row, f = np.nonzero((rows[:, block.scopes] >= 0).all(axis=2))
            scopes, tables = block.scopes[f], problem.table_of_factor[block.start + f]
            features = structured.features(rows[row[:, None], scopes])
            hard = np.flatnonzero(np.isinf(features).any(axis=1))
            if len(hard):
                raise impossible_labels(int(instances[row[hard[0]], scopes[hard[0], 0]]))
            cells = problem.table_offsets[tables][:, None] + np.arange(structured.n_parameters)
            np.add.at(counts, cells, features * weights[row, scopes[:, 0]][:, None])


def _terms(problem: Problem, of_tables: Array) -> Terms:
    """A term for each table with a weight, (T,).

    A Potts factor has K^2 states with K different sums: those of one end while the other one is at state 0, K times.
    """
    used, sizes, steps, formulas, constant, n_done = [], [], [], [], 0.0, 0
    for number, block in enumerate(problem.graph.blocks):
        first, last = problem.first_tables[number : number + 2]
        tables, structured = np.flatnonzero(of_tables[first:last]) + first, block.template.structured
        is_potts = block.template.kind == Kind.POTTS
        size = block.template.shape[0] if is_potts else math.prod(block.template.shape)
        if is_potts:
            constant += float(of_tables[tables].sum()) * math.log(size)
        elif structured is not None:
            basis = structured.dense().reshape(-1, size).T
            places = n_done + np.arange(len(tables) * size).reshape(-1, size)
            cells = problem.table_offsets[tables][:, None] + np.arange(structured.n_parameters)
            formulas.append(Formula.of(places, cells, np.broadcast_to(basis, (len(tables), *basis.shape))))
        used.append(tables)
        sizes.append(np.full(len(tables), size))
        steps.append(np.full(len(tables), -1 if is_potts else 1 if structured is None else 0))
        n_done += len(tables) * size
    tables, widths, step = (concatenate(parts, np.int64) for parts in (used, sizes, steps))
    links = offsets_of(step != 0), problem.table_offsets[tables[step != 0]], step[step != 0], widths, of_tables[tables]
    common = int(widths[0]) if len(widths) and (widths == widths[0]).all() else 0
    n_states = common if common <= MOST_STATES else 0
    arrays = plain_terms(*links)
    return Terms(arrays, phases_of(arrays, len(problem.log_potentials)), tuple(formulas), n_states, constant)
