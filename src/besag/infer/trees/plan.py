"""The plan of message passing on a forest: who sends to whom, in which order, in which chunk.

A factor graph without cycles is a forest: trees (components) whose nodes are variables and factors. Each tree is hung
from a root variable; every factor of two or more variables then has one parent variable and one or more children, and
every variable but the root has one parent factor. Factors of one variable are left out: callers fold them into `base`.

Order. Upward messages follow `order` backwards, downward messages forwards. It is breadth first from the roots, so that
child factors of one variable are adjacent in it. The root is the centre of its tree: that halves the depth, and on a
long chain it makes adjacent factors independent of each other, so that the processor can overlap them.

Chunks. Trees, taken in the order of their lowest variable, are bundled into chunks, the unit of threading. A chunk
holds about CHUNK_STATES states, so that its messages stay in the L2 cache, or CHUNK_WORK table entries. Within a
chunk the search starts from all roots at once, again to make adjacent factors independent. Chunks depend on the problem
only.

Shapes: V variables, F factors, E scope entries, G factors of two or more variables, C components, H chunks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from besag.arrays import IntArray, freeze, offsets_of
from besag.infer.trees.kernels.plan import make_explore, make_layout
from besag.kernels.compile import kernel_of
from besag.kernels.incidence import make_incidence

CHUNK_STATES = 32768  # 256 KiB of float64 for each array over the states
CHUNK_WORK = 1 << 20
COMPILE_ABOVE = 20_000  # scope entries; below this Python is faster than loading numba


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Forest:
    """The plan. Positions count along `variables` and `order`; their entries are the caller's numbers."""

    roots: IntArray  # (C,) root variable of each component
    component: IntArray  # (V,) component of each variable
    variables: IntArray  # (V,) chunk by chunk, roots first, then children in the order of their parent factors
    child_factors: IntArray  # (V + 1,) child factors of variables[i] are order[child_factors[i]:child_factors[i + 1]]
    order: IntArray  # (G,) factors of two or more variables, from the roots outwards
    parent_axis: IntArray  # (G,) the axis of the factor's table that belongs to its parent
    message_offsets: IntArray  # (G + 1,) where the message to the parent starts in an array of all of them
    chunk_roots: IntArray  # (H + 1,) into roots
    chunk_variables: IntArray  # (H + 1,) into variables
    chunk_factors: IntArray  # (H + 1,) into order
    max_arity: int  # of the factors in order; 1 if there is none
    max_children: int  # most child factors of one variable
    work: int  # table entries of all factors in order, Potts factors as if they were tables
    contiguous: bool  # chunk h holds exactly the variables chunk_variables[h] <= v < chunk_variables[h + 1]

    @property
    def n_chunks(self) -> int:
        """H."""
        return len(self.chunk_roots) - 1


def plan_forest(
    state_offsets: IntArray,
    scope_offsets: IntArray,
    scope_variables: IntArray,
    root: int | None = None,
    *,
    compile: bool | None = None,
) -> Forest | None:
    """The plan of a factor graph, or None if it has a cycle; `root` hangs its component from that variable."""
    if compile is None:
        compile = len(scope_variables) > COMPILE_ABOVE
    n_variables, arities = len(state_offsets) - 1, np.diff(scope_offsets)
    n_linked = int(np.count_nonzero(arities >= 2))
    if n_linked and len(scope_variables) - np.count_nonzero(arities == 1) >= n_variables + n_linked:
        return None  # a forest has more nodes than edges
    graph = (freeze(state_offsets), freeze(scope_offsets), freeze(scope_variables))
    first, linked = kernel_of(make_incidence, compile=compile)(*graph)
    explored = np.empty((4, n_variables), np.int64)
    n_components = kernel_of(make_explore, compile=compile)(
        *graph, freeze(first), freeze(linked), -1 if root is None else root, explored
    )
    if n_components < 0:
        return None
    roots, n_states, work = (freeze(row[:n_components]) for row in explored[:3])
    chunk_roots = _bundle(n_states, work)
    variables, component, child_factors = (np.empty(n, np.int64) for n in (n_variables, n_variables, n_variables + 1))
    order, parent_axis, message_sizes = (np.empty(n_linked, np.int64) for _ in range(3))
    chunk_ends = np.zeros((2, len(chunk_roots)), np.int64)
    kernel_of(make_layout, compile=compile)(
        *graph,
        freeze(first),
        freeze(linked),
        roots,
        freeze(chunk_roots),
        variables,
        component,
        child_factors,
        order,
        parent_axis,
        message_sizes,
        chunk_ends,
    )
    return Forest(
        roots=roots,
        component=freeze(component),
        variables=freeze(variables),
        child_factors=freeze(child_factors),
        order=freeze(order),
        parent_axis=freeze(parent_axis),
        message_offsets=freeze(offsets_of(message_sizes)),
        chunk_roots=freeze(chunk_roots),
        chunk_variables=freeze(chunk_ends[0]),
        chunk_factors=freeze(chunk_ends[1]),
        max_arity=int(np.diff(scope_offsets)[order].max(initial=1)),
        max_children=int(np.diff(child_factors).max(initial=0)),
        work=int(work.sum()),
        contiguous=_contiguous(variables, chunk_ends[0]),
    )


def accumulators(forest: Forest, table_of_factor: IntArray, n_tables: int) -> tuple[IntArray, IntArray]:
    """Where sums over the factors of a table are kept while chunks run side by side.

    Returns the slot of each position of `order`, (G,), and the table of each slot. A slot belongs to one chunk and one
    table, so that no two threads add to the same one, and slots are in the order in which they have to be added up.
    """
    chunk = np.repeat(np.arange(forest.n_chunks), np.diff(forest.chunk_factors))
    slots, slot = np.unique(chunk * n_tables + table_of_factor[forest.order], return_inverse=True)
    return freeze(slot.astype(np.int64)), freeze(slots % max(n_tables, 1))


def _bundle(n_states: IntArray, work: IntArray) -> IntArray:
    """Offsets of chunks of consecutive components: each takes components until it is full."""
    share = np.cumsum(np.maximum(n_states / CHUNK_STATES, work / CHUNK_WORK))
    # A component belongs to the chunk in which its share starts.
    chunk = np.floor(np.concatenate([[0.0], share[:-1]])).astype(np.int64)[: len(share)]
    return np.concatenate([np.flatnonzero(np.diff(chunk, prepend=-1)), [len(share)]]).astype(np.int64)


def _contiguous(variables: IntArray, chunk_variables: IntArray) -> bool:
    if len(variables) == 0:
        return True
    starts = chunk_variables[:-1]
    lowest, highest = np.minimum.reduceat(variables, starts), np.maximum.reduceat(variables, starts)
    return bool(np.all(lowest == starts) and np.all(highest == chunk_variables[1:] - 1))
