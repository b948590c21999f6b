"""The plan of message passing on a tree of cliques: everything that depends on structure and not on numbers.

A plan is made for a Purpose: which factors count, which variables are fixed (observed in every row, or left with one
state), which states the others may take, which variables have evidence that differs from row to row, and what is to be
read. One plan serves all numbers and all codes of the fixed variables.

`make_sketch` chooses the order and the cliques, whose sizes give the cost; `make_plan` lays out the index maps.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, freeze, seal
from besag.infer.junction.kernels.clique_tree import make_outline, make_tree
from besag.infer.junction.kernels.index import Index, make_index
from besag.infer.junction.kernels.passes import Reads
from besag.infer.junction.kernels.tiles import Join
from besag.infer.junction.stages import Stages, cut_tree
from besag.infer.orders.search import EliminationOrder, find_order
from besag.infer.purpose import Purpose
from besag.kernels.compile import COMPILE_ABOVE, kernel_of
from besag.kernels.factors import Factors

# Bytes of index maps and of the pieces of large cliques, per table entry and per member of a clique.
PER_ENTRY, PER_MEMBER = 0.3, 100.0


EFFORT = 0.1  # share of the time of all marginals that the search for an order may take
EFFORT_UPWARDS = 0.04  # the same if nothing is read, so that messages go up only


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """Order and cliques: enough to know the cost."""

    order: EliminationOrder
    counts: IntArray  # (V,) how many states each variable has left; 1 if it is fixed
    codes: IntArray  # (.,) the codes of these states, flat at digit_offsets
    digit_offsets: IntArray  # (V + 1,)
    member_offsets: IntArray  # (C + 1,)
    members: IntArray
    n_separator: IntArray  # (C,)
    parent: IntArray  # (C,)
    clique_of: IntArray  # (V,) where a variable is eliminated, or -1
    clique_of_factor: IntArray  # (F,) or -1
    outside: IntArray  # factors in use that have no clique: their variables are fixed or kept
    entries: Array  # (C,) of cliques
    separator_entries: Array  # (C,)
    total: float = field(init=False)  # entries of all cliques
    bytes: float = field(init=False)  # of messages, beliefs that one clique gives to its children, index maps, pieces

    def __post_init__(self) -> None:
        inner = self.parent >= 0
        rooms = np.bincount(self.parent[inner], weights=self.separator_entries[inner], minlength=1)
        messages = self.separator_entries.sum() + rooms.max()
        object.__setattr__(self, "total", float(self.entries.sum()))
        taken = 8.0 * messages + PER_ENTRY * self.total + PER_MEMBER * len(self.members)
        object.__setattr__(self, "bytes", float(taken))


def make_sketch(factors: Factors, setting: Purpose, *, compile: bool = True) -> Sketch:
    """The best order found in a time proportional to the work, and its cliques."""
    made = kernel_of(make_outline, compile=compile)(
        factors.state_offsets,
        factors.scope_offsets,
        factors.scope_variables,
        setting.used,
        setting.fixed,
        setting.allowed,
    )
    counts, codes, digit_offsets, scope_offsets, scopes, first, others = seal(made)
    effort = EFFORT if setting.cells or setting.read.any() else EFFORT_UPWARDS
    order = _order(counts, first, others, freeze(setting.keep | (counts <= 1)), effort, compile)
    tree = kernel_of(make_tree, compile=compile)(
        order.variables, counts, scope_offsets, scopes, first, others, setting.used
    )
    return Sketch(order, counts, codes, digit_offsets, *seal(tree))


def _order(
    counts: IntArray, first: IntArray, others: IntArray, keep: BoolArray, effort: float, compile: bool
) -> EliminationOrder:
    """The best order found. Plain Python tries the first orders only; if more would pay, compiled code goes on."""
    if not compile:
        order = find_order(counts, first, others, keep=keep, effort=0.0, compile=False)
        if order.entries <= COMPILE_ABOVE:
            return order
    return find_order(counts, first, others, keep=keep, effort=effort)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class CliquePlan:
    """A tree of cliques, laid out; C cliques, O small tables."""

    setting: Purpose
    sketch: Sketch
    axis_offsets: IntArray
    axes: IntArray
    splits: IntArray
    join: Join
    reads: Reads
    fixed_offsets: IntArray  # (O + 1,) variables whose codes move the base of a table
    fixed_variables: IntArray
    fixed_strides: IntArray
    bases: IntArray  # (O,) of messages in the store, 0 for others
    of_factors: IntArray  # small tables that are factors, and
    factors: IntArray  # which
    of_evidence: IntArray  # small tables that are evidence, and
    soft: IntArray  # the variables
    single: IntArray  # variables with one state
    free_digits: IntArray | None  # digits of the other variables, and
    free_states: IntArray | None  # which states they are; None if these are all digits and all states
    outputs: IntArray  # (O,) where marginals of variables begin among all digits, 0 for other tables
    stages: Stages | None  # how it is cut for several threads
    largest_tile: int
    largest_room: int  # entries of the outputs of a clique

    @property
    def n_messages(self) -> int:
        """Entries of all messages."""
        return int(self.join.message_offsets[-1])


def make_plan(factors: Factors, setting: Purpose, drawn: Sketch, *, compile: bool = True) -> CliquePlan:
    """Lay out the index maps for a sketch."""
    offsets, parent = drawn.member_offsets, drawn.parent
    tree = (offsets, drawn.members, drawn.n_separator, parent, drawn.clique_of, drawn.clique_of_factor, drawn.entries)
    sizes = np.diff(factors.table_offsets)[factors.table_of_factor] if setting.cells else np.zeros(0, np.int64)
    found = Index(
        *kernel_of(make_index, compile=compile)(
            tree,
            (drawn.counts, drawn.codes, drawn.digit_offsets),
            (factors.state_offsets, factors.scope_offsets, factors.scope_variables),
            freeze(sizes),
            setting.soft,
            setting.read,
        )
    )
    for arrays in found[:-1]:
        seal(arrays)
    axes, splits = found.tree
    bases, outputs, of_factors, which, of_evidence, soft, single = found.places
    free_digits, free_states = found.free
    all_free = len(free_states) == factors.state_offsets[-1]
    return CliquePlan(
        setting=setting,
        sketch=drawn,
        axis_offsets=offsets,
        axes=axes,
        splits=splits,
        join=Join(found.join[0], parent, *found.join[1:]),
        reads=Reads(*found.reads),
        fixed_offsets=found.fixed[0],
        fixed_variables=found.fixed[1],
        fixed_strides=found.fixed[2],
        bases=bases,
        of_factors=of_factors,
        factors=which,
        of_evidence=of_evidence,
        soft=soft,
        single=single,
        free_digits=None if all_free else free_digits,
        free_states=None if all_free else free_states,
        outputs=outputs,
        stages=cut_tree(parent, drawn.entries),
        largest_tile=found.largest[0],
        largest_room=found.largest[1],
    )
