"""The plan of message passing on a tree of cliques: everything that depends on structure and not on numbers.

What is planned for is a Setting: which factors count, which variables are fixed (observed in every row, or left with
one state), which states the others may take, which variables have evidence that differs from row to row, and what is
to be read. One plan serves all numbers and all codes of the fixed variables.

`sketch` chooses the order and the cliques, whose sizes say what the work will take; `plan` lays out the index maps.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, frozen, offsets_of
from besag.kernels.cliques import clique_entries, make_cliques
from besag.kernels.compile import COMPILE_ABOVE, kernel_of
from besag.kernels.gathered import WORTHWHILE, make_gathered
from besag.kernels.join_layout import make_walk
from besag.kernels.join_maps import EVIDENCE, FACTOR, MESSAGE, VARIABLE, make_maps, make_tables
from besag.kernels.join_passes import Reads
from besag.kernels.join_scopes import make_reading, make_scopes
from besag.kernels.join_stages import Stages, cut
from besag.kernels.join_tiles import Join
from besag.kernels.order import Order, best_order, neighbours
from besag.kernels.prepare import Factors

# Bytes that index maps and the pieces of large cliques take, by table entry and by member of a clique.
PER_ENTRY, PER_MEMBER = 0.3, 100.0


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """What a plan is for; V variables, F factors, S states."""

    used: BoolArray  # (F,) factors that count
    fixed: BoolArray  # (V,) variables whose code comes with the row
    allowed: BoolArray  # (S,) states that a variable may take
    soft: BoolArray  # (V,) variables with weights on their states in some row
    read: BoolArray  # (V,) variables whose marginals are wanted
    keep: BoolArray  # (V,) variables that are not summed out
    cells: bool = False  # whether marginals of factors are wanted


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """Order and cliques: enough to know the cost."""

    order: Order
    counts: IntArray  # (V,) states that are left of each variable; 1 where it is fixed
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


def sketch(factors: Factors, setting: Setting, *, compile: bool = True) -> Sketch:
    """The best order that is found in a time in proportion to the work, and its cliques."""
    n = len(factors.state_offsets) - 1
    counts, codes = _states(factors.state_offsets, setting)
    inside = setting.used.repeat(np.diff(factors.scope_offsets)) & (counts[factors.scope_variables] > 1)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(inside)])[factors.scope_offsets]
    free = frozen(factors.scope_variables[inside])
    first, others = neighbours(n, frozen(starts), free, compile=compile)
    order = _order(counts, first, others, frozen(setting.keep | (counts <= 1)), compile)
    found = kernel_of(make_cliques, compile=compile)(frozen(order.variables), first, others)
    offsets, members, n_separator, parent, clique_of = (frozen(part) for part in found)
    clique_of_factor, outside = _factor_cliques(factors, setting, order, clique_of)
    entries = clique_entries(counts, offsets, members)
    if (entries >= WORTHWHILE).any():
        tree = (offsets, members, n_separator, parent, frozen(entries), clique_of_factor)
        between = kernel_of(make_gathered, compile=compile)(counts, *tree, frozen(starts), free)
        offsets, members, n_separator, parent, clique_of_factor, number = (frozen(part) for part in between)
        clique_of = frozen(np.where(clique_of >= 0, number[clique_of], -1))
        entries = clique_entries(counts, offsets, members)
    sizes = np.diff(offsets)
    in_separator = np.arange(len(members)) - np.repeat(offsets[:-1], sizes) < np.repeat(n_separator, sizes)
    separators = clique_entries(np.where(in_separator, counts[members], 1), offsets, np.arange(len(members)))
    return Sketch(
        order=order,
        counts=counts,
        codes=codes,
        digit_offsets=frozen(offsets_of(counts)),
        member_offsets=offsets,
        members=members,
        n_separator=n_separator,
        parent=parent,
        clique_of=clique_of,
        clique_of_factor=clique_of_factor,
        outside=outside,
        entries=entries,
        separator_entries=separators,
    )


def _order(counts: IntArray, first: IntArray, others: IntArray, keep: BoolArray, compile: bool) -> Order:
    """The best order; a search in plain Python ends with the first orders, and is left to compiled code if it pays."""
    if not compile:
        order = best_order(counts, first, others, keep=keep, effort=0.0, compile=False)
        if order.entries <= COMPILE_ABOVE:
            return order
    return best_order(counts, first, others, keep=keep)


def _factor_cliques(factors: Factors, setting: Setting, order: Order, clique_of: IntArray) -> tuple[IntArray, IntArray]:
    """The clique of each factor in use, where the first of its variables is eliminated; and those that have none."""
    n = len(clique_of)
    position = np.full(n, n, np.int64)
    position[order.variables] = np.arange(len(order.variables))
    first = np.full(len(factors.table_of_factor), n, np.int64)
    filled = np.diff(factors.scope_offsets) > 0
    if filled.any():
        first[filled] = np.minimum.reduceat(position[factors.scope_variables], factors.scope_offsets[:-1][filled])
    held = setting.used & (first < n)
    found = np.full(len(first), -1, np.int64)
    found[held] = clique_of[order.variables[first[held]]]
    return frozen(found), frozen(np.flatnonzero(setting.used & ~held))


def _states(state_offsets: IntArray, setting: Setting) -> tuple[IntArray, IntArray]:
    """How many states are left of each variable, and their codes; a fixed one has one, code 0 until a row comes."""
    cardinalities = np.diff(state_offsets)
    allowed = setting.allowed
    if setting.fixed.any():
        allowed = allowed & ~setting.fixed.repeat(cardinalities)
        allowed[state_offsets[:-1][setting.fixed]] = True
    if allowed.all():
        counts = cardinalities
    else:
        counts = np.add.reduceat(allowed, state_offsets[:-1], dtype=np.int64)
    flat = np.flatnonzero(allowed)
    return frozen(counts), frozen(flat - np.repeat(state_offsets[:-1], counts))


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Plan:
    """A tree of cliques, laid out; C cliques, O small tables."""

    setting: Setting
    sketch: Sketch
    axis_offsets: IntArray
    axes: IntArray
    splits: IntArray
    join: Join
    reads: Reads
    fixed_offsets: IntArray  # (O + 1,) variables whose codes move the base of a table
    fixed_variables: IntArray
    fixed_strides: IntArray
    bases: IntArray  # (O,) of messages in the store, 0 of others
    of_factors: IntArray  # small tables that are factors, and
    factors: IntArray  # which
    of_evidence: IntArray  # small tables that are evidence, and
    soft: IntArray  # the variables
    single: IntArray  # variables of one state
    free_digits: IntArray | None  # digits of the other variables, and
    free_states: IntArray | None  # which states they are; None where that is all digits and all states
    outputs: IntArray  # (O,) where marginals of variables begin among all digits, 0 of other tables
    stages: Stages | None  # how it is cut for several threads
    largest_tile: int
    largest_room: int  # entries of the outputs of a clique

    @property
    def n_messages(self) -> int:
        """Entries of all messages."""
        return int(self.join.message_offsets[-1])


def plan(factors: Factors, setting: Setting, drawn: Sketch, *, compile: bool = True) -> Plan:
    """Index maps for a sketch."""
    counts, offsets, members, parent = drawn.counts, drawn.member_offsets, drawn.members, drawn.parent
    walk = kernel_of(make_walk, compile=compile)
    axes, splits, shape = (frozen(part) for part in walk(counts, offsets, members, drawn.n_separator, parent))
    separator_sizes = shape[:, 0] * shape[:, 3]
    message_offsets = frozen(offsets_of(separator_sizes))
    owners = _owners(setting, drawn, axes, splits, separator_sizes)
    tables = kernel_of(make_tables, compile=compile)
    table_offsets, n_operands, kinds, numbers = (
        frozen(part) for part in tables(drawn.clique_of_factor, parent, owners.evidence, owners.output)
    )
    scopes = kernel_of(make_scopes, compile=compile)
    cardinalities = frozen(np.diff(factors.state_offsets))
    tree = (offsets, axes, splits)
    free_offsets, free_variables, free_strides, *fixed = (
        frozen(part)
        for part in scopes(kinds, numbers, factors.scope_offsets, factors.scope_variables, cardinalities, counts, *tree)
    )
    factor_sizes = np.zeros(0, np.int64)
    if setting.cells:
        factor_sizes = np.diff(factors.table_offsets)[factors.table_of_factor]
    reading = kernel_of(make_reading, compile=compile)
    reads = Reads(
        *(
            frozen(part)
            for part in reading(
                kinds,
                numbers,
                table_offsets,
                parent,
                *tree,
                counts,
                drawn.digit_offsets,
                owners.separator,
                message_offsets,
                frozen(factor_sizes),
            )
        )
    )
    plain = frozen(np.arange(drawn.digit_offsets[-1]) - np.repeat(drawn.digit_offsets[:-1], counts))
    output = frozen((kinds == MESSAGE) | (kinds == VARIABLE) | (setting.cells & (kinds == FACTOR)))
    maps = kernel_of(make_maps, compile=compile)(
        *tree,
        shape,
        table_offsets,
        free_offsets,
        free_variables,
        free_strides,
        frozen(kinds == FACTOR),
        output,
        counts,
        drawn.codes,
        plain,
        drawn.digit_offsets,
    )
    join = Join(
        shape, parent, message_offsets, table_offsets, n_operands, kinds, numbers, *(frozen(part) for part in maps)
    )
    bases = np.zeros(len(kinds), np.int64)
    bases[kinds == MESSAGE] = message_offsets[numbers[kinds == MESSAGE]]
    outputs = np.zeros(len(kinds), np.int64)
    outputs[kinds == VARIABLE] = drawn.digit_offsets[numbers[kinds == VARIABLE]]
    of_factors, of_evidence = np.flatnonzero(kinds == FACTOR), np.flatnonzero(kinds == EVIDENCE)
    free_digits, free_states = _free_states(factors.state_offsets, drawn)
    return Plan(
        setting=setting,
        sketch=drawn,
        axis_offsets=offsets,
        axes=axes,
        splits=splits,
        join=join,
        reads=reads,
        fixed_offsets=fixed[0],
        fixed_variables=fixed[1],
        fixed_strides=fixed[2],
        bases=bases,
        of_factors=of_factors,
        factors=numbers[of_factors],
        of_evidence=of_evidence,
        soft=numbers[of_evidence],
        single=np.flatnonzero(counts == 1),
        free_digits=free_digits,
        free_states=free_states,
        outputs=frozen(outputs),
        stages=cut(parent, drawn.entries),
        largest_tile=int((shape[:, 2] * shape[:, 3]).max(initial=1)),
        largest_room=int(np.diff(reads.rooms[table_offsets]).max(initial=1)),
    )


def _free_states(state_offsets: IntArray, drawn: Sketch) -> tuple[IntArray | None, IntArray | None]:
    """The digits of variables that are free, and the states that they are; None where that is all of them."""
    if drawn.digit_offsets[-1] == state_offsets[-1] and (drawn.counts > 1).all():
        return None, None
    free = np.flatnonzero(np.repeat(drawn.counts > 1, drawn.counts))
    return free, (np.repeat(state_offsets[:-1], drawn.counts) + drawn.codes)[free]


@dataclass(frozen=True, slots=True, eq=False)
class _Owners:
    """(V,) or -1: the clique of a variable's evidence, the clique and the separator that its marginal is read off."""

    evidence: IntArray
    output: IntArray
    separator: IntArray


def _owners(setting: Setting, drawn: Sketch, axes: IntArray, splits: IntArray, separator_sizes: IntArray) -> _Owners:
    n, n_cliques, offsets = len(drawn.counts), len(drawn.parent), drawn.member_offsets
    clique = np.repeat(np.arange(n_cliques), np.diff(offsets))
    place = np.arange(len(axes)) - offsets[clique]
    in_separator = (place < splits[clique, 0]) | (place >= splits[clique, 2])
    below = in_separator & (drawn.parent[clique] >= 0)
    separator = _smallest(n, axes[below], clique[below], separator_sizes)
    separator[~setting.read | (drawn.counts <= 1)] = -1
    output = np.where(setting.read & (drawn.counts > 1) & (separator < 0), drawn.clique_of, -1)
    evidence = np.full(n, -1, np.int64)
    if setting.soft.any():
        evidence = _smallest(n, axes, clique, drawn.entries)
        evidence[~setting.soft | (drawn.counts <= 1)] = -1
    return _Owners(frozen(evidence), frozen(output), frozen(separator))


def _smallest(n: int, variables: IntArray, owners: IntArray, sizes: Array | IntArray) -> IntArray:
    """For each of n variables the owner of least size, or -1."""
    best = np.full(n, -1, np.int64)
    order = np.argsort(-np.asarray(sizes)[owners], kind="stable")
    best[variables[order]] = owners[order]  # of several, the last is kept
    return best
