"""What tree-reweighted sweeps need of a structure, and of tables with weights.

Order. A forest is swept from the roots outwards and back, any other graph by the highest variable of each factor: what
comes to a variable from before it has been updated when the factors to those after it are.

Chunks. A large graph is cut into chunks of consecutive factors, as many as its size says and at most MAX_CHUNKS. A
variable between chunks has its total at its own states in the first of them, and a copy after all states for each other
chunk; copies are made equal again after each sweep.

Shapes: G factors of two or more variables, E entries of their scopes, M entries of all messages, S states of all
variables, S' with copies, H chunks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from besag import recycled
from besag.arrays import Array, IntArray, freeze, index_type, offsets_of
from besag.graph.graph import Graph
from besag.graph.problem import Problem
from besag.infer.memory import count_linked, message_entries
from besag.infer.trees.engine import forest_of
from besag.infer.trw.forests import Covered
from besag.infer.trw.kernels.messages import SweepLinks, SweepTables
from besag.kernels.compile import kernel_of
from besag.kernels.domain import make_linear
from besag.kernels.factors import Factors
from besag.kernels.threads import run_chunks

CHUNK_WORK = 2**20
MAX_CHUNKS = 16
ENTRIES_OF_CHUNK = 1 << 16  # of tables whose weights are made at a time
STATE_WORK = 16  # table entries that are as much work as one entry of a message: an exponential and a logarithm


@dataclass(frozen=True, slots=True, eq=False)
class SweepPlan:
    """See the module."""

    order: IntArray  # (G,) factors
    links: SweepLinks
    owners: IntArray  # (E,) position of the factor
    incident: IntArray  # (V + 1,) entries of scopes that are of variable v: entries[incident[v]:incident[v + 1]]
    entries: IntArray  # (E,)
    message_states: IntArray  # (M,) the state, on axis S, that a message's entry is about
    message_owners: IntArray  # (M,) the position of the factor that it is from
    chunks: IntArray  # (H + 1,) into positions
    between: IntArray  # variables with copies
    copied: IntArray  # (S' - S,) the state that each copy is of
    work: float  # of a sweep of one row, in table entries
    max_size: int  # entries of the largest table
    n_states: int  # of every variable, where all factors are pairs of such; else 0

    @property
    def n_chunks(self) -> int:
        """H."""
        return len(self.chunks) - 1


def plan_of(graph: Graph) -> SweepPlan:
    """The plan of a graph, made once."""
    return graph.plans.get("trw", lambda: _plan(graph))


def count_bytes(problem: Problem, n_rows: int) -> int:
    """What sweeps take with their plan, at the most: while the plan is made, or while bounds are."""
    graph = problem.graph
    entries, messages, factors = count_linked(graph), message_entries(graph), graph.n_factors
    states = int(graph.state_offsets[-1])
    of_plan = 8 * entries + 2 * messages + 8 * factors + 2 * len(problem.log_potentials)
    return 8 * (of_plan + n_rows * (2 * messages + 7 * states + 2 * factors + graph.n_variables))


def _plan(graph: Graph) -> SweepPlan:
    order = _order(graph)
    arity = np.diff(graph.scope_offsets)[order]
    starts = offsets_of(arity)
    places = np.repeat(graph.scope_offsets[order] - starts[:-1], arity) + np.arange(starts[-1])
    variables = graph.scope_variables[places]
    sizes = np.diff(graph.state_offsets)[variables]
    owners = np.repeat(np.arange(len(order)), arity)
    table_sizes = np.multiply.reduceat(sizes, starts[:-1]) if len(order) else np.zeros(0, np.int64)
    states = np.add.reduceat(sizes, starts[:-1]) if len(order) else np.zeros(0, np.int64)
    work = table_sizes + STATE_WORK * states
    chunks = _chunks(work)
    homes, between, copied = _copies(graph.state_offsets, variables, owners, chunks)
    messages = offsets_of(sizes)
    within = np.arange(messages[-1]) - np.repeat(messages[:-1], sizes)
    alike = len(sizes) > 0 and bool((arity == 2).all() and (sizes == sizes[0]).all())
    return SweepPlan(
        order=freeze(order),
        links=SweepLinks(
            freeze(starts),
            freeze(variables),
            freeze(sizes),
            freeze(homes),
            freeze(messages[:-1]),
            int(arity.max(initial=1)),
            int(states.max(initial=1)),
        ),
        owners=freeze(owners),
        incident=freeze(offsets_of(np.bincount(variables, minlength=graph.n_variables))),
        entries=freeze(np.argsort(variables, kind="stable")),
        message_states=freeze(np.repeat(graph.state_offsets[variables], sizes) + within),
        message_owners=freeze(np.repeat(owners, sizes)),
        chunks=freeze(chunks),
        between=freeze(between),
        copied=freeze(copied),
        work=float(work.sum()),
        max_size=int(table_sizes.max(initial=1)),
        n_states=int(sizes[0]) if alike else 0,
    )


def _order(graph: Graph) -> IntArray:
    forest = forest_of(graph)
    if forest is not None:
        return forest.order
    linked = np.flatnonzero(np.diff(graph.scope_offsets) >= 2)
    highest = np.maximum.reduceat(graph.scope_variables, graph.scope_offsets[:-1])
    return np.asarray(linked[np.argsort(highest[linked], kind="stable")])


def _chunks(work: IntArray) -> IntArray:
    total = int(work.sum())
    n = min(max(total // CHUNK_WORK, 1), MAX_CHUNKS)
    before = np.concatenate([[0], np.cumsum(work)])
    return np.asarray(np.searchsorted(before, np.arange(n + 1) * total / n))


def _copies(
    state_offsets: IntArray, variables: IntArray, owners: IntArray, chunks: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Where each entry of a scope finds its total, which variables have copies, and of which states."""
    n_chunks = len(chunks) - 1
    if n_chunks == 1:
        return state_offsets[variables], np.zeros(0, np.int64), np.zeros(0, np.int64)
    chunk = np.searchsorted(chunks, owners, side="right") - 1
    met, which = _numbered(variables * n_chunks + chunk, (len(state_offsets) - 1) * n_chunks)
    variable = met // n_chunks
    is_copy = np.diff(variable, prepend=-1) == 0
    sizes = np.where(is_copy, np.diff(state_offsets)[variable], 0)
    places = np.where(is_copy, state_offsets[-1] + np.cumsum(sizes) - sizes, state_offsets[variable])
    first = np.repeat(state_offsets[variable] - (np.cumsum(sizes) - sizes), sizes)
    return places[which], np.unique(variable[is_copy]), first + np.arange(len(first))


def _numbered(keys: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """The different ones of keys below n, in order, and the number of each key among them; without sorting."""
    met = np.zeros(n, np.bool_)
    met[keys] = True
    number = np.cumsum(met, dtype=index_type(n))
    return np.flatnonzero(met), number[keys].astype(np.int64) - 1


def reweigh_tables(
    factors: Factors, order: IntArray, rho: Array, *, compile: bool, n_threads: int | None = None
) -> SweepTables:
    """exp(lp / rho) of all factors at their positions, once for each pair of a table and a rho."""
    levels, level = np.unique(rho, return_inverse=True)
    keys, pair = np.unique(factors.table_of_factor[order] * max(len(levels), 1) + level, return_inverse=True)
    table, of_pair = keys // max(len(levels), 1), levels[keys % max(len(levels), 1)]
    logs, offsets = factors.log_potentials, factors.table_offsets
    weights = offsets_of(offsets[table + 1] - offsets[table])
    highs, linear = np.empty(len(table)), recycled.empty((int(weights[-1]),))
    kernel, n_chunks = kernel_of(make_linear, compile=compile), max(1, int(weights[-1]) // ENTRIES_OF_CHUNK)
    cuts = np.searchsorted(weights, weights[-1] * np.arange(n_chunks + 1) / n_chunks).tolist()
    given = (freeze(logs), freeze(offsets[table]), freeze(weights), freeze(of_pair))
    run_chunks(lambda c: kernel(*given, cuts[c], cuts[c + 1], highs, linear), n_chunks, n_threads)
    return SweepTables(
        kinds=freeze(factors.kinds[order]),
        rho=freeze(rho),
        logs=freeze(factors.table_offsets[factors.table_of_factor[order]]),
        weights=freeze(weights[:-1][pair]),
        highs=freeze(highs[pair]),
        log_potentials=freeze(factors.log_potentials),
        linear=freeze(linear),
    )


def shares_of(scopes: Covered, rho: Array, damping: float) -> Array:
    """(G,): how much of its way a message goes."""
    most = 1.0 - damping
    if (rho == 1.0).all():
        return np.asarray(freeze(np.full(len(rho), most)))
    owners = np.repeat(np.arange(len(rho)), np.diff(scopes.starts))
    free = np.bincount(owners, weights=~scopes.fixed[scopes.variables], minlength=len(rho))
    return np.asarray(freeze(most * np.minimum(1.0, 2.0 / np.maximum(free, 1.0))))
