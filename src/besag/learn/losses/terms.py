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

from besag.arrays import AnyArray, Array, BoolArray, IntArray, Kind, distinct_rows, freeze, offsets_of
from besag.data.dataset import Batch
from besag.errors import EvidenceError
from besag.graph.problem import Problem
from besag.kernels.compile import kernel_of, worth_compiling
from besag.kernels.threads import run_chunks
from besag.learn.losses.base import Loss
from besag.learn.losses.kernels.terms import make_node_shares, make_node_sums, make_patterns, make_reach, make_sums
from besag.learn.objective import State
from besag.model.structured.base import without_hard_zeros

MOST_STATES = 8  # of every term, up to which the kernel is compiled for their number
SHARED_ENTRIES = 256  # of a block's tables, up to which links to them may be patterns
MOST_PATTERNS = 4096  # nodes; a power of two
CHUNK_TERMS = 1 << 14  # at least: enough that the cost of a call is negligible
MOST_CHUNKS = 16
KNOWN_KINDS = (Kind.TABLE, Kind.POTTS)


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """What links say by a formula: places (J, K) of the states of their terms, cells (J, Q), features (J, K, Q).

    ruled_out: the places of states that hard zeros leave out, whose features are 0 here.
    """

    places: IntArray
    cells: IntArray
    features: Array
    ruled_out: IntArray

    @classmethod
    def of(cls, places: IntArray, cells: IntArray, features: Array) -> Formula:
        """From features that are infinite at hard zeros."""
        hard = np.isinf(features)
        return cls(places, cells, without_hard_zeros(features), places[hard.any(axis=-1)])

    def add_logits(self, log_potentials: Array, logits: Array) -> None:
        """Adds what the links say of each state."""
        np.add.at(logits, self.places, np.einsum("jkq,jq->jk", self.features, log_potentials[self.cells]))
        logits[self.ruled_out] = -np.inf

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


def chunk_starts(n_terms: int) -> IntArray:
    """(C + 1,): where chunks of terms begin."""
    n_chunks = min(MOST_CHUNKS, max(1, n_terms // CHUNK_TERMS))
    return np.linspace(0, n_terms, n_chunks + 1).astype(np.int64)


def phases_of(arrays: TermArrays, n_numbers: int) -> tuple[range, ...]:
    """Every second chunk at a time, where only neighbours add to one of L numbers; else one at a time."""
    starts = chunk_starts(len(arrays.weights))
    chunks, lowest = range(len(starts) - 1), np.full(n_numbers, len(starts))
    if len(chunks) == 1:
        return (chunks,)
    find = kernel_of(make_reach, compile=worth_compiling(float(len(arrays.cells))))
    if find(freeze(starts), arrays.first, arrays.cells, arrays.steps, arrays.sizes, lowest) > 1:
        return tuple(range(c, c + 1) for c in chunks)
    return chunks[::2], chunks[1::2]


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
    """See the module.

    n_states: of every term, where they are alike and few; else 0. phases: chunks of terms that may be done side by side
    since no two of them add to one number; one phase after the other, whatever the number of threads.
    """

    arrays: TermArrays
    phases: tuple[range, ...]
    formulas: tuple[Formula, ...] = ()
    n_states: int = 0
    constant: float = 0.0

    def sums(self, log_potentials: Array, n_threads: int | None = 1) -> tuple[float, Array]:
        """The rest, and its gradient by the log-potentials, (L,)."""
        arrays, compile = self.arrays, worth_compiling(float(len(self.arrays.cells) + len(self.arrays.weights)))
        offsets = offsets_of(arrays.sizes) if self.formulas or not self.n_states else None
        given = np.zeros(int(offsets[-1]) if self.formulas and offsets is not None else 0)
        for formula in self.formulas:
            formula.add_logits(log_potentials, given)
        width = self.n_states or int(arrays.sizes.max(initial=1))
        sums, moments = np.zeros((arrays.nodes.shape[1], width)), np.zeros(len(log_potentials))
        kernel_of(make_node_sums, compile=compile)(arrays.nodes, log_potentials, sums)
        kernel = kernel_of(make_sums, self.n_states, int(bool(self.formulas)), compile=compile)
        starts = chunk_starts(len(arrays.weights))
        values, shares = np.zeros(len(starts) - 1), np.zeros((len(starts) - 1, *sums.shape))

        def add_chunk(c: int) -> None:
            offset = 0 if offsets is None else int(offsets[starts[c]])
            span = (int(starts[c]), int(starts[c + 1]), offset)
            values[c] = kernel(*span, *arrays[:6], freeze(sums), log_potentials, given, shares[c], moments)

        for phase in self.phases:
            run_chunks(lambda i, chunks=phase: add_chunk(chunks[i]), len(phase), n_threads)  # type: ignore[misc]
        kernel_of(make_node_shares, compile=compile)(arrays.nodes, shares.sum(axis=0), moments)
        for formula in self.formulas:
            formula.add_moments(given, moments)
        return self.constant + float(values.sum()), moments


@dataclass(frozen=True, slots=True, eq=False)
class TermsLoss(Loss):
    """A loss that is made of terms. support (P,): hard zeros of the model's tables. compiled: the terms of batches."""

    support: BoolArray | None = None
    n_threads: int | None = 1
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
        value, moments = terms.sums(problem.log_potentials, self.n_threads)
        slope = batch.graph.moments(moments)
        return value, np.negative(slope, out=slope), None

    def _problem(self, theta: Array, batch: Batch) -> Problem:
        return batch.graph.bind(theta, support=self.support)


def weighted_rows(batch: Batch) -> tuple[IntArray, Array, IntArray]:
    """Labels, weights, and instances of all variables, (R, V); equal rows are one, of all their weights together.

    The labels of instances without weight count as unknown, so that they may be impossible.
    """
    numbers = np.arange(len(batch)) if batch.numbers is None else batch.numbers
    weights = np.ones(len(batch)) if batch.weights is None else batch.weights
    if batch.is_rows:
        first, which = distinct_rows(batch.labels)
        rows, numbers = batch.labels[first], numbers[first, None]
        weights = np.bincount(which, weights)[:, None].astype(np.float64)
    else:
        rows, sizes = batch.labels, np.diff(batch.graph.instance_offsets)
        weights, numbers = np.repeat(weights, sizes)[None], np.repeat(numbers, sizes)[None]
    if not weights.all():
        rows = np.where(weights > 0, rows, -1)
    if batch.variable_weights is not None:
        weights = weights * batch.variable_weights
    return freeze(rows), freeze(np.broadcast_to(weights, rows.shape)), np.broadcast_to(numbers, rows.shape)


def impossible_labels(instance: int) -> EvidenceError:
    """For labels that meet a hard zero."""
    return EvidenceError(f"instance {instance} has labels of probability zero: they meet hard zeros")
