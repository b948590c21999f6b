"""Losses that are sums over few states at a time: what pseudolikelihood and piecewise training share.

    rest(theta) = constant + sum_t w_t log sum_k exp s_t(k),      s_t(k) = sum over links j of t of what j says of k

A term t has states k = 0, .., n_t - 1 and a weight w_t. Labels do not change while theta does, so the terms of a batch
are compiled once. A link is a cell of log_potentials and a step, see `kernels.terms`; a Structured that kernels do not
know has Formulas in place of links, and is never expanded into tables that are stored:

    s_t(k) += sum_q log_potentials[cell + q] features[k, q]

    M terms, J links, L table entries, R rows of labels, of which equal ones are merged
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from besag.arrays import AnyArray, Array, BoolArray, IntArray, Kind, freeze
from besag.data.dataset import Batch
from besag.errors import EvidenceError
from besag.graph.problem import Problem
from besag.kernels.compile import kernel_of, worth_compiling
from besag.learn.losses.base import Loss
from besag.learn.losses.kernels.terms import make_patterns, make_sums
from besag.learn.objective import State

MOST_STATES = 8  # of every term, up to which the kernel is compiled for their number
SHARED_ENTRIES = 256  # of a block's tables, up to which links to them may be patterns
MOST_PATTERNS = 4096  # nodes; a power of two
KNOWN_KINDS = (Kind.TABLE, Kind.POTTS)


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """What links say by a formula: places (J, K) of the states of their terms, cells (J, Q), features (J, K, Q)."""

    places: IntArray
    cells: IntArray
    features: Array

    def add_logits(self, log_potentials: Array, logits: Array) -> None:
        """Adds what the links say of each state."""
        np.add.at(logits, self.places, np.einsum("jkq,jq->jk", self.features, log_potentials[self.cells]))

    def add_moments(self, shares: Array, moments: Array) -> None:
        """The adjoint: shares of states, onto the numbers of the factors."""
        np.add.at(moments, self.cells, np.einsum("jkq,jk->jq", self.features, shares[self.places]))


class TermArrays(NamedTuple):
    """What kernels read of terms."""

    first: AnyArray  # (M + 1,) the links of term t are first[t] to first[t + 1]
    cells: AnyArray  # (J,)
    steps: AnyArray  # (J,)
    sizes: IntArray  # (M,) how many states a term has
    weights: Array  # (M,)
    pattern: AnyArray  # (M,) the node at which the shared links of a term end
    nodes: IntArray  # (3, G) parent, cell and step of each shared link


def plain_terms(first: AnyArray, cells: AnyArray, steps: AnyArray, sizes: IntArray, weights: Array) -> TermArrays:
    """Terms without patterns."""
    nodes = np.zeros((3, 1), np.int64)
    return TermArrays(*map(freeze, (first, cells, steps, sizes, weights, np.zeros(len(weights), np.int16), nodes)))


def share_links(arrays: TermArrays, problem: Problem) -> TermArrays:
    """The same terms, with links to small tables of many factors as patterns if there are few of these.

    All terms must have the same number of states.
    """
    shared = np.zeros(len(problem.log_potentials), np.bool_)
    for number, block in enumerate(problem.graph.blocks):
        first, last = (int(problem.table_offsets[t]) for t in problem.first_tables[number : number + 2])
        shared[first:last] = last - first <= min(SHARED_ENTRIES, len(block.scopes))
    cells, steps, own_first = (np.array(array) for array in (arrays.cells, arrays.steps, arrays.first))
    pattern, nodes = np.zeros(len(arrays.weights), np.int16), np.zeros((3, MOST_PATTERNS), np.int64)
    find = kernel_of(make_patterns, compile=worth_compiling(float(len(cells))))
    slots = np.full(4 * MOST_PATTERNS, -1)
    count = find(arrays.first, cells, steps, freeze(shared), pattern, nodes, slots, own_first)
    if count == 0:
        return arrays
    left = (own_first, cells[: own_first[-1]].copy(), steps[: own_first[-1]].copy())
    return TermArrays(*map(freeze, (*left, arrays.sizes, arrays.weights, pattern, nodes[:, :count].copy())))


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """See the module. n_states: of every term, where they are alike and few; else 0."""

    arrays: TermArrays
    formulas: tuple[Formula, ...] = ()
    n_states: int = 0
    constant: float = 0.0

    def sums(self, log_potentials: Array) -> tuple[float, Array]:
        """The rest, and its gradient by the log-potentials, (L,)."""
        n_places = int(self.arrays.sizes.sum()) if self.formulas else 0
        moments, shares = np.zeros(len(log_potentials)), np.zeros(n_places)
        for formula in self.formulas:
            formula.add_logits(log_potentials, shares)
        compile = worth_compiling(float(len(self.arrays.cells) + len(self.arrays.weights)))
        kernel = kernel_of(make_sums, self.n_states, int(bool(self.formulas)), compile=compile)
        value = kernel(*self.arrays, log_potentials, shares, moments)
        for formula in self.formulas:
            formula.add_moments(shares, moments)
        return self.constant + float(value), moments


@dataclass(frozen=True, slots=True, eq=False)
class TermsLoss(Loss):
    """A loss that is made of terms. support (P,): hard zeros of the model's tables. compiled: the terms of batches."""

    support: BoolArray | None = None
    compiled: WeakKeyDictionary[Batch, Terms] = field(default_factory=WeakKeyDictionary)

    def compile(self, batch: Batch, problem: Problem) -> tuple[Terms, Array]:
        """The terms of a batch, and how often each number of the problem counts in its labels, (L,)."""
        raise NotImplementedError

    def statistics(self, batch: Batch) -> Array:
        """(P,): what the energies at the labels are linear in."""
        problem = self._problem(np.zeros(batch.graph.layout.n_parameters), batch)
        self.compiled[batch], counts = self.compile(batch, problem)
        return batch.graph.moments(counts)

    def value_and_grad(self, theta: Array, batch: Batch, state: State) -> tuple[float, Array, State]:
        """The rest, and its gradient (P,)."""
        problem, terms = self._problem(theta, batch), self.compiled.get(batch)
        if terms is None:
            terms = self.compiled[batch] = self.compile(batch, problem)[0]
        value, moments = terms.sums(problem.log_potentials)
        slope = batch.graph.moments(moments)
        return value, np.negative(slope, out=slope), None

    def _problem(self, theta: Array, batch: Batch) -> Problem:
        return batch.graph.bind(theta, support=self.support)


def weighted_rows(batch: Batch) -> tuple[IntArray, Array, IntArray]:
    """Labels, weights, and instances of all variables, (R, V); equal rows are one, of all their weights together."""
    numbers = np.arange(len(batch)) if batch.numbers is None else batch.numbers
    weights = np.ones(len(batch)) if batch.weights is None else batch.weights
    if batch.is_rows:
        rows, first, which = np.unique(batch.labels, axis=0, return_index=True, return_inverse=True)
        weights, numbers = np.bincount(which.reshape(-1), weights)[:, None].astype(np.float64), numbers[first, None]
    else:
        rows, sizes = batch.labels, np.diff(batch.graph.instance_offsets)
        weights, numbers = np.repeat(weights, sizes)[None], np.repeat(numbers, sizes)[None]
    return freeze(rows), freeze(np.broadcast_to(weights, rows.shape)), np.broadcast_to(numbers, rows.shape)


def impossible_labels(instance: int) -> EvidenceError:
    """For labels that meet a hard zero."""
    return EvidenceError(f"instance {instance} has labels of probability zero: they meet hard zeros")
