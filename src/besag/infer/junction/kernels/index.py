"""All arrays of a plan in one call: a query on a small network takes a millisecond, so every kernel call counts.

The axes of cliques in walking order (`layout`), where each variable is read and the axes of small tables (`scopes`),
where these lie against the tiles (`maps`), and lists of which small table is what.

Shapes: V variables, S states, F factors, C cliques, A axes of all cliques, O small tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from besag.arrays import AnyArray, Array, BoolArray, IntArray
from besag.infer.junction.kernels.layout import walk
from besag.infer.junction.kernels.maps import EVIDENCE, FACTOR, MESSAGE, VARIABLE, maps, tables
from besag.infer.junction.kernels.scopes import find_reads, owners, scopes
from besag.kernels.compile import inlined


class Index(NamedTuple):
    """What the kernel gives; all but the last are tuples of arrays."""

    tree: tuple[AnyArray, ...]  # axes (A,), splits (C, 3)
    join: tuple[AnyArray, ...]  # as in `tiles.Join`, but for the parents
    reads: tuple[AnyArray, ...]  # as in `passes.Reads`
    fixed: tuple[AnyArray, ...]  # offsets (O + 1,), variables and strides that move the base of a table
    places: tuple[AnyArray, ...]  # see `list_tables`
    free: tuple[AnyArray, ...]  # digits of the variables that are free, and which states they are
    largest: tuple[int, int]  # entries of a tile, and of the outputs of a clique


Given = tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray, Array]


def make_index() -> Callable[..., tuple[Any, ...]]:
    """Kernel: the arrays of a plan, an Index.

    tree: member_offsets, members, n_separator, parent, clique_of, clique_of_factor, entries, as in the `Sketch` of
    `besag.infer.junction.plan`. digits: counts, codes, digit_offsets. factors: state_offsets, scope_offsets,
    scope_variables. factor_sizes (F,): table entries, or (0,) if marginals of factors are not wanted.
    """

    def index(
        tree: Given,
        digits: tuple[IntArray, IntArray, IntArray],
        factors: tuple[IntArray, IntArray, IntArray],
        factor_sizes: IntArray,
        soft: BoolArray,
        read: BoolArray,
    ) -> tuple[Any, ...]:
        offsets, members, n_separator, parent, clique_of, clique_of_factor, entries = tree
        counts, codes, digit_offsets = digits
        state_offsets, scope_offsets, scope_variables = factors
        n_cliques = len(parent)
        axes, splits, shape = walk(counts, offsets, members, n_separator, parent)
        separator_sizes, message_offsets = np.empty(n_cliques, np.int64), np.zeros(n_cliques + 1, np.int64)
        tile = 1
        for c in range(n_cliques):
            separator_sizes[c] = shape[c, 0] * shape[c, 3]
            message_offsets[c + 1] = message_offsets[c] + separator_sizes[c]
            tile = max(tile, shape[c, 2] * shape[c, 3])
        evidence, output, separator = owners(
            offsets, axes, splits, parent, separator_sizes, entries, counts, clique_of, soft, read
        )
        # Copies: numba compiles a loop over several arrays only if all of them are writable, or none is.
        listing = tables(clique_of_factor.copy(), parent.copy(), evidence, output)
        table_offsets, _, kinds, numbers = listing
        around = scopes(kinds, numbers, scope_offsets, scope_variables, state_offsets, counts, offsets, axes, splits)
        reads = find_reads(
            kinds,
            numbers,
            table_offsets,
            parent,
            offsets,
            axes,
            splits,
            counts,
            digit_offsets,
            separator,
            message_offsets,
            factor_sizes,
        )
        room = 1
        for c in range(n_cliques):
            room = max(room, reads[2][table_offsets[c + 1]] - reads[2][table_offsets[c]])
        drawn = maps(
            offsets,
            axes,
            splits,
            shape,
            table_offsets,
            around[0],
            around[1],
            around[2],
            kinds,
            len(factor_sizes) > 0,
            counts,
            codes,
            digit_offsets,
        )
        return (
            (axes, splits),
            (shape, message_offsets, *listing, *drawn),
            reads,
            around[3:],
            list_tables(kinds, numbers, message_offsets, digit_offsets, counts),
            free_states(state_offsets, counts, codes, digit_offsets),
            (tile, room),
        )

    return index


@inlined
def list_tables(
    kinds: IntArray, numbers: IntArray, message_offsets: IntArray, digit_offsets: IntArray, counts: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Which small table is what.

    -> bases (O,): of messages in the store, 0 for others; outputs (O,): where marginals of variables begin among all
    digits, 0 for others; the tables that are factors, and which; the tables that are evidence, and on which variables;
    the variables with one state.
    """
    n = len(kinds)
    bases, outputs = np.zeros(n, np.int64), np.zeros(n, np.int64)
    n_factors, n_evidence, n_single = 0, 0, 0
    for o in range(n):
        n_factors += kinds[o] == FACTOR
        n_evidence += kinds[o] == EVIDENCE
    for v in range(len(counts)):
        n_single += counts[v] == 1
    of_factors, which = np.empty(n_factors, np.int64), np.empty(n_factors, np.int64)
    of_evidence, soft = np.empty(n_evidence, np.int64), np.empty(n_evidence, np.int64)
    single = np.empty(n_single, np.int64)
    n_factors, n_evidence, n_single = 0, 0, 0
    for o in range(n):
        if kinds[o] == MESSAGE:
            bases[o] = message_offsets[numbers[o]]
        elif kinds[o] == VARIABLE:
            outputs[o] = digit_offsets[numbers[o]]
        elif kinds[o] == FACTOR:
            of_factors[n_factors], which[n_factors] = o, numbers[o]
            n_factors += 1
        else:
            of_evidence[n_evidence], soft[n_evidence] = o, numbers[o]
            n_evidence += 1
    for v in range(len(counts)):
        if counts[v] == 1:
            single[n_single] = v
            n_single += 1
    return bases, outputs, of_factors, which, of_evidence, soft, single


@inlined
def free_states(
    state_offsets: IntArray, counts: IntArray, codes: IntArray, digit_offsets: IntArray
) -> tuple[IntArray, IntArray]:
    """The digits of variables that are free, and the states that they are."""
    n = 0
    for v in range(len(counts)):
        n += counts[v] if counts[v] > 1 else 0
    free, states = np.empty(n, np.int64), np.empty(n, np.int64)
    n = 0
    for v in range(len(counts)):
        if counts[v] > 1:
            for d in range(digit_offsets[v], digit_offsets[v + 1]):
                free[n], states[n] = d, state_offsets[v] + codes[d]
                n += 1
    return free, states
