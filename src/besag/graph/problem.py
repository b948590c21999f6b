"""Problem: a Graph with numbers, what an engine gets.

    log_potentials (L,)      all tables one after the other, float64, in the log domain; a structured factor has its Q
                             weights, or its levels in an expanded problem
    table_of_factor (F,)     which of the T tables a factor reads: equal tables are stored once
    table_offsets (T + 1,)   where each table begins in log_potentials
    first_tables             the first table of each block, and T
    kinds (F,)               plain table or structured; an expanded problem has fewer structured ones than its Graph
    evidence                 observed codes and log-weights, B rows
    weights or None          of the instances (N,), or of the rows of evidence (B,); they multiply moments only
    levelled                 whether structured factors have levels, see `expanded`
    children (F,) or None    the child of a factor that is a conditional distribution, so that its sum over the child is
                             one, else -1; None where there is none

N > 1 instances or B > 1 rows, not both. `energy` is the one home of H.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from besag.arrays import EXTENTS, Array, IntArray, Kind, Rebuilt, concatenate, freeze, offsets_of, secure
from besag.errors import EvidenceError, ModelError, TooLargeError
from besag.graph.evidence import Evidence
from besag.graph.graph import Block, Graph
from besag.kernels.factors import Factors
from besag.model.structured.base import Levelled

LARGEST_NOISY = 2**23  # bytes of tables of a noisy-MAX, which take long to make
SLAB_ENTRIES = 2**20  # log-potentials that labellings are looked up in at a time


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, repr=False)
class Problem(Rebuilt):
    """Numbers bound to a Graph; see the module's arrays."""

    graph: Graph
    log_potentials: Array
    table_of_factor: IntArray
    table_offsets: IntArray
    first_tables: tuple[int, ...]
    kinds: IntArray
    evidence: Evidence
    weights: Array | None = None
    children: IntArray | None = None
    levelled: bool = False

    def __post_init__(self) -> None:
        self.evidence.check(self.graph.variables)
        if self.graph.n_instances > 1 and self.evidence.n_rows > 1:
            raise EvidenceError(
                f"a union of {self.graph.n_instances} instances takes one row of evidence, got {self.evidence.n_rows}"
            )
        if self.weights is not None:
            weights = secure(np.asarray(self.weights, np.float64))
            fits = weights.shape in ((self.graph.n_instances,), (max(self.graph.n_instances, self.evidence.n_rows),))
            if not fits or not np.isfinite(weights).all():
                raise ModelError(
                    f"weights must be {self.graph.n_instances} finite numbers, one for each instance, or "
                    f"{self.evidence.n_rows}, one for each row of evidence, got shape {weights.shape}"
                )
            object.__setattr__(self, "weights", weights)

    def __repr__(self) -> str:
        return f"Problem({self.graph!r}, {len(self.log_potentials)} table entries, {self.evidence.n_rows} rows)"

    @property
    def factors(self) -> Factors:
        """The arrays that kernels read."""
        graph = self.graph
        return Factors(
            graph.state_offsets,
            graph.scope_offsets,
            graph.scope_variables,
            self.kinds,
            self.table_of_factor,
            self.table_offsets,
            self.log_potentials,
        )

    @property
    def row_weights(self) -> Array:
        """(B,): the weight of each row of evidence; ones for a union, whose instances have theirs."""
        rows = self.evidence.n_rows
        if self.weights is None or self.graph.n_instances > 1:
            return np.ones(rows)
        return np.broadcast_to(self.weights, (rows,))

    @property
    def factor_weights(self) -> Array:
        """(F,): the weight of each factor's instance; ones where there is one instance, whose rows have theirs."""
        if self.weights is None or self.graph.n_instances == 1:
            return np.ones(self.graph.n_factors)
        return self.weights[self.graph.factor_instances]

    def with_evidence(self, evidence: Evidence) -> Problem:
        """The same numbers under other evidence."""
        if evidence is self.evidence:
            return self
        shared = (self.graph, self.log_potentials, self.table_of_factor, self.table_offsets, self.first_tables)
        return Problem(*shared, self.kinds, evidence, self.weights, self.children, self.levelled)

    def block_tables(self, number: int) -> tuple[Array, IntArray]:
        """The tables of a block (T, *entry_shape) and which of them each of its factors reads (F,)."""
        block = self.graph.blocks[number]
        first, last = self.first_tables[number : number + 2]
        flat = self.log_potentials[self.table_offsets[first] : self.table_offsets[last]]
        readers = self.table_of_factor[block.start : block.stop] - first
        return flat.reshape(last - first, *self.entry_shape(block)), readers

    def entry_shape(self, block: Block) -> tuple[int, ...]:
        """What one stored table of a block is: K1..Kn, or (Q,) or (L,) where it is structured."""
        structured = block.template.structured
        if structured is None or self._is_expanded(block):
            return block.template.shape
        levelled = self.levelled and block.start < block.stop
        return (_levels(block).shape[1],) if levelled else block.template.entry_shape

    def _is_expanded(self, block: Block) -> bool:
        return block.start < block.stop and self.kinds[block.start] != block.template.kind

    def table(self, factor: int) -> Array:
        """The log-potentials of one factor, as a table K1..Kn."""
        block = self.graph.block_of(factor)
        t = int(self.table_of_factor[factor])
        values = self.log_potentials[self.table_offsets[t] : self.table_offsets[t + 1]]
        if self._is_expanded(block):
            return values.reshape(block.template.shape)
        if self.levelled and isinstance(block.template.structured, Levelled):
            levels = block.template.structured.level_of(_all_labels(block))
            return np.asarray(values[levels])
        return np.asarray(_dense(block, values[None])[0])

    def expanded(self, kinds: frozenset[int], memory_limit: int) -> Problem:
        """The same problem with levels for weights of structured factors, and tables for those of other kinds."""
        blocks = [b for b in enumerate(self.graph.blocks) if b[1].template.kind != Kind.TABLE and len(b[1].scopes)]
        dense = [(number, block) for number, block in blocks if block.template.kind % EXTENTS not in kinds]
        if not blocks:
            return self
        for number, block in dense:
            self._refuse(block, self.first_tables[number + 1] - self.first_tables[number], memory_limit)
        if dense:
            log_potentials, table_offsets, now = self._expand(kinds)
        else:  # the same arrays for the same numbers: engines keep what they make of them
            made = self.graph.plans.get_for("levels", self.log_potentials, lambda: self._expand(kinds))
            log_potentials, table_offsets, now = made
        return replace(self, log_potentials=log_potentials, table_offsets=table_offsets, kinds=now, levelled=True)

    def _expand(self, kinds: frozenset[int]) -> tuple[Array, IntArray, IntArray]:
        """log_potentials, table_offsets and kinds of `expanded`."""
        tables, sizes, now = [], [], np.array(self.kinds)
        for number, block in enumerate(self.graph.blocks):
            values, _ = self.block_tables(number)
            structured = block.template.kind != Kind.TABLE and block.start < block.stop
            if structured and block.template.kind % EXTENTS in kinds:
                values = levels_from(block, values)
            elif structured:
                values = _dense(block, values)
                now[block.start : block.stop] = Kind.TABLE
            tables.append(values)
            sizes.append(np.full(len(values), values[0].size if len(values) else 0))
        return (
            freeze(concatenate(tables, np.float64)),
            freeze(offsets_of(concatenate(sizes, np.int64))),
            freeze(now),
        )

    def _refuse(self, block: Block, n_tables: int, memory_limit: int) -> None:
        needed, structured = 8 * n_tables * math.prod(block.template.shape), block.template.structured
        if structured is not None and structured.conditional:
            memory_limit = min(memory_limit, LARGEST_NOISY)
        if needed > memory_limit:
            raise TooLargeError(
                f"the {n_tables} tables of {block.template.name!r} would take {needed} bytes, "
                f"more than memory_limit={memory_limit}"
            )

    def contracted(self, expanded: Problem, moments: Array) -> Array:
        """Moments of the expanded problem, (L',), as moments of this one, (L,)."""
        if expanded is self:
            return moments
        parts = []
        for number, block in enumerate(self.graph.blocks):
            first, last = (int(expanded.table_offsets[t]) for t in self.first_tables[number : number + 2])
            part = moments[first:last]
            structured = block.template.structured
            if structured is not None and block.start < block.stop:
                whole = expanded._is_expanded(block)
                basis = structured.dense().reshape(structured.n_parameters, -1) if whole else _levels(block)
                part = part.reshape(-1, basis.shape[1]) @ np.where(np.isinf(basis), 0.0, basis).T
            parts.append(part)
        return np.asarray(concatenate(parts, np.float64))

    def energy(self, labels: IntArray) -> Array:
        """H of labellings: (V,) -> (N,), or (B, V) on one instance -> (B,).

        Evidence counts: a label that is not the observed one, or not allowed, has energy +inf.
        """
        graph, observed = self.graph, self.evidence.observed
        rows = np.atleast_2d(np.asarray(labels, np.int64))
        if rows.shape[1] != graph.n_variables:
            raise ModelError(f"a labelling has {graph.n_variables} codes, got {rows.shape[1]}")
        if (rows < 0).any() or (rows >= graph.variables.cardinalities).any():
            raise ModelError("a labelling has codes of states, from 0 to K - 1")
        if np.ndim(labels) == 2 and graph.n_instances > 1:
            raise ModelError("rows of labellings need a graph of one instance")
        contrary = np.where((observed >= 0) & (observed != rows), np.inf, 0.0)
        return self.energy_of_answers(rows) + self._by_instance(contrary, np.arange(graph.n_variables))

    def energy_of_answers(self, rows: IntArray) -> Array:
        """H of labellings (B, V) that an engine made, which are taken to be codes that agree with what was observed."""
        size = max(1, SLAB_ENTRIES // max(self.graph.n_factors, self.graph.n_variables, 1))
        if len(rows) <= size:
            return self._energy_of(rows, self.evidence.log_weights)
        parts = ((start, min(start + size, len(rows))) for start in range(0, len(rows), size))
        return np.concatenate([self._energy_of(rows[a:b], self.evidence.rows(a, b)[1]) for a, b in parts])

    def _energy_of(self, rows: IntArray, log_weights: Array | None) -> Array:
        """H of labellings (B, V), with the log-weights of these rows."""
        graph = self.graph
        starts = graph.plans.get_for("starts", self.table_offsets, self._starts)
        if starts is not None:
            values = self.log_potentials[starts + graph.configurations(rows)]
        else:
            blocks = enumerate(graph.blocks)
            values = np.hstack([block_values(block, *self.block_tables(number), rows) for number, block in blocks])
        total = self._by_instance(values, graph.scope_variables[graph.scope_offsets[:-1]])
        if log_weights is not None:
            total = total + self._by_instance(self._weights_at(rows, log_weights), np.arange(graph.n_variables))
        return -total

    def _starts(self) -> IntArray | None:
        """(F,): where the table of each factor begins in log_potentials; None where a factor is not a table."""
        return freeze(self.table_offsets[self.table_of_factor]) if (self.kinds == Kind.TABLE).all() else None

    def _weights_at(self, rows: IntArray, log_weights: Array) -> Array:
        """(B, V): the log-weight of each label."""
        at = self.graph.state_offsets[:-1] + rows
        return np.take_along_axis(np.broadcast_to(log_weights, (len(at), log_weights.shape[1])), at, axis=1)

    def _by_instance(self, values: Array, variables: IntArray) -> Array:
        """Values (B, n) that belong to variables (n,), added up: (B,), or (N,) for a union."""
        graph = self.graph
        if graph.n_instances == 1:
            return np.asarray(values.sum(axis=1))
        instance = np.searchsorted(graph.instance_offsets, variables, side="right") - 1
        return np.bincount(instance, weights=values[0], minlength=graph.n_instances).astype(np.float64)


def block_values(block: Block, tables: Array, readers: IntArray, rows: IntArray) -> Array:
    """The log-potential of every factor of a block at labellings (B, V): (B, F)."""
    codes = rows[:, block.scopes]
    structured = block.template.structured
    if structured is not None:
        weights, features = tables[readers], structured.features(codes)
        counts = (features != 0) & ~np.isinf(features)
        products = np.where(counts, weights * np.where(counts, features, 1.0), 0.0)
        return np.asarray(np.where(np.isinf(features), -np.inf, products).sum(axis=-1))
    config = np.ravel_multi_index(tuple(np.moveaxis(codes, -1, 0)), block.template.shape)
    return np.asarray(tables.reshape(len(tables), math.prod(block.template.shape))[readers, config])


def _levels(block: Block) -> Array:
    """The levels of a structured block that are made of its weights, (Q, L)."""
    structured = block.template.structured
    levels = None if structured is None else structured.levels()
    assert levels is not None, f"{block.template.name!r} has no levels"
    return levels


def _all_labels(block: Block) -> IntArray:
    """(K1..Kn, n): the codes of each entry of a table."""
    return np.asarray(np.moveaxis(np.indices(block.template.shape), 0, -1))


def _dense(block: Block, values: Array) -> Array:
    structured = block.template.structured
    if structured is None:
        return values.reshape(-1, *block.template.shape)
    tables = _finite(block, values, structured.dense().reshape(structured.n_parameters, -1))
    return tables.reshape(-1, *block.template.shape)


def levels_from(block: Block, values: Array) -> Array:
    """The levels of factors of a block, (T, L), from their weights (T, Q)."""
    return _finite(block, values, _levels(block))


def _finite(block: Block, values: Array, basis: Array) -> Array:
    """weights (T, Q) times a basis (Q, .), -inf where the basis is inf; ModelError where that is not finite."""
    hard = np.isinf(basis).any(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        tables = values @ np.where(hard, 0.0, basis)
    if not np.isfinite(tables).all():
        raise ModelError(f"template {block.template.name!r}: its tables overflow; the weights are too large")
    tables[:, hard] = -np.inf
    return np.asarray(tables)
