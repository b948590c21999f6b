"""Messages on a forest of factors of any arity, in any semiring: the two passes.

With p the parent variable of a factor f and c its children, in the notation of `semiring`,

    up_c = base_c (x) prod_{g below c} m_g      m_f(y_p) = (+)_{rest} table_f (x) prod_c up_c(y_c)          upwards
    q_f = base_p (x) d_p (x) prod_{g below p, g != f} m_g                                                   downwards
    d_c(y_c) = (+)_{rest} table_f (x) q_f(y_p) (x) prod_{c' != c} up_c'(y_c')
    belief_c = up_c (x) d_c        belief_f = table_f (x) q_f (x) prod_c up_c        log Z = (+) up_root

q_f leaves out m_f by running products over the siblings of f from both ends: no division, and O(degree).

This is the general form. `pair_passes`, and `marginals` and `gradient` of `besag.infer.chains`, are the same recursion
on forests and chains of pairwise tables; they are held to this one by tests, and say why they stand apart.

A kernel call does one chunk of the forest for some rows, `lanes` of them at a time: a block. A scale holds the
logarithm of all factors taken out below (up, messages) or outside (down): log true vector = log stored vector + scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from besag.arrays import Array, IntArray
from besag.infer.trees.kernels.contract import (
    contract,
    emit,
    emit_structured,
    weigh,
    weigh_structured,
    weigh_vector,
)
from besag.kernels.compile import inlined
from besag.kernels.factors import TABLE
from besag.kernels.semiring import LOG_SUM, MAX, SUM, copy, fill, multiply, normalise, one_of, total
from besag.kernels.sums import share_of
from besag.model.structured.kernels.rules import send_lanes


class FlatFactors(NamedTuple):
    """Factors as kernels read them; values are in the domain of the semiring."""

    state_offsets: IntArray  # (V + 1,)
    scope_offsets: IntArray  # (F + 1,)
    scope_variables: IntArray  # (E,)
    kinds: IntArray  # (F,)
    table_of_factor: IntArray  # (F,)
    table_offsets: IntArray  # (T + 1,)
    values: Array  # (L',) levels in the place of the numbers of structured factors
    shifts: Array  # (T,) what was taken out of each table, to be added to a scale


class ForestLinks(NamedTuple):
    """Arrays of `besag.infer.trees.plan.Forest`."""

    variables: IntArray
    child_factors: IntArray
    roots: IntArray
    order: IntArray
    parent_axis: IntArray
    message_offsets: IntArray


class PassWork(NamedTuple):
    """Messages, one entry on the first axis for each block of rows; the downward arrays may have length 0."""

    up: Array  # (blocks, S, lanes)
    up_scale: Array  # (blocks, V, lanes)
    messages: Array  # (blocks, M, lanes)
    message_scale: Array  # (blocks, G, lanes)
    down: Array  # (blocks, S, lanes)
    down_scale: Array  # (blocks, V, lanes)


class Span(NamedTuple):
    """The part of the forest in one call: positions in variables, roots and order, and its rows."""

    first_variable: int
    last_variable: int
    first_root: int
    last_root: int
    first_factor: int
    last_factor: int
    first_row: int
    n_rows: int


class Sizes(NamedTuple):
    """Sizes of scratch arrays, and the limits of the SUM domain."""

    max_arity: int
    max_states: int  # states of a scope, added up
    max_siblings: int  # entries of all messages to one variable
    max_settings: int  # entries of a table
    delta: float
    window: float


@inlined
def load(
    semiring: int,
    lanes: int,
    graph: FlatFactors,
    v: int,
    first_row: int,
    n_rows: int,
    base: Array,
    base_scale: Array,
    x: Array,
    start: int,
    scale: Array,
    where: int,
) -> None:
    """x = base of variable v, with rows as lanes; padding lanes repeat the last row."""
    first, n = graph.state_offsets[v], graph.state_offsets[v + 1] - graph.state_offsets[v]
    for r in range(lanes):
        row = first_row + min(r, n_rows - 1)
        for i in range(n):
            x[start + i, r] = base[row, first + i]
        scale[where, r] = base_scale[row, v] if semiring == SUM else 0.0


@inlined
def gather(
    lanes: int, graph: FlatFactors, f: int, skip: int, up: Array, sizes: IntArray, starts: IntArray, incoming: Array
) -> int:
    """Lay out the scope of f in incoming and fill in the upward vectors of all axes but skip; returns how many axes."""
    n_axes, start = graph.scope_offsets[f + 1] - graph.scope_offsets[f], 0
    for a in range(n_axes):
        v = graph.scope_variables[graph.scope_offsets[f] + a]
        sizes[a] = graph.state_offsets[v + 1] - graph.state_offsets[v]
        starts[a] = start
        if a != skip:
            copy(lanes, up, graph.state_offsets[v], sizes[a], incoming, start)
        start += sizes[a]
    return n_axes  # type: ignore[no-any-return]


@inlined
def send(
    semiring: int,
    lanes: int,
    graph: FlatFactors,
    f: int,
    n_axes: int,
    target: int,
    sizes: IntArray,
    starts: IntArray,
    digits: IntArray,
    incoming: Array,
    partial: Array,
    outgoing: Array,
    sums: Array,
) -> None:
    """outgoing = the message of f to its axis target."""
    start = graph.table_offsets[graph.table_of_factor[f]]
    if graph.kinds[f] != TABLE:
        source, room, kind = starts[1 - target], partial, graph.kinds[f]
        send_lanes(semiring, kind, target, lanes, sizes[0], graph.values, start, incoming, source, room, outgoing)
    else:
        contract(
            semiring,
            lanes,
            graph.values,
            start,
            n_axes,
            target,
            sizes,
            starts,
            digits,
            incoming,
            partial,
            outgoing,
            sums,
        )


def make_upward(semiring: int, lanes: int) -> Callable[..., bool]:
    """Kernel: up, messages and log Z of the span's roots; True if the SUM domain was too narrow.

    base (R, S) in the domain of the semiring, base_scale (R, V) what was taken out of it, log_z (R, C).
    """

    def upward(
        graph: FlatFactors,
        links: ForestLinks,
        sizes_: Sizes,
        span: Span,
        base: Array,
        base_scale: Array,
        work: PassWork,
        log_z: Array,
    ) -> bool:
        incoming = np.empty((sizes_.max_states, lanes))
        outgoing, sums = np.empty((sizes_.max_states, lanes)), np.empty((sizes_.max_states, lanes))
        partial = np.empty((sizes_.max_arity + 2, lanes))
        high, low, sum_ = np.empty(lanes), np.empty(lanes), np.empty(lanes)
        sizes, starts, digits = (
            np.empty(sizes_.max_arity, np.int64),
            np.empty(sizes_.max_arity, np.int64),
            np.empty(sizes_.max_arity, np.int64),
        )
        delta, window, narrow = sizes_.delta, sizes_.window, False
        for block in range((span.n_rows + lanes - 1) // lanes):
            first_row, n_rows = span.first_row + block * lanes, min(lanes, span.n_rows - block * lanes)
            up, up_scale, messages, message_scale = (
                work.up[block],
                work.up_scale[block],
                work.messages[block],
                work.message_scale[block],
            )
            for i in range(span.first_variable, span.last_variable):
                v = links.variables[i]
                load(
                    semiring,
                    lanes,
                    graph,
                    v,
                    first_row,
                    n_rows,
                    base,
                    base_scale,
                    up,
                    graph.state_offsets[v],
                    up_scale,
                    v,
                )
            for k in range(span.last_factor - 1, span.first_factor - 1, -1):
                f, target = links.order[k], links.parent_axis[k]
                n_axes = gather(lanes, graph, f, target, up, sizes, starts, incoming)
                send(
                    semiring, lanes, graph, f, n_axes, target, sizes, starts, digits, incoming, partial, outgoing, sums
                )
                for r in range(lanes):
                    message_scale[k, r] = graph.shifts[graph.table_of_factor[f]]
                for a in range(n_axes):
                    if a != target:
                        c = graph.scope_variables[graph.scope_offsets[f] + a]
                        for r in range(lanes):
                            message_scale[k, r] += up_scale[c, r]
                n = sizes[target]
                narrow = (
                    normalise(semiring, lanes, outgoing, 0, n, message_scale, k, high, low, delta, window) or narrow
                )
                copy(lanes, outgoing, 0, n, messages, links.message_offsets[k])
                p = graph.scope_variables[graph.scope_offsets[f] + target]
                start = graph.state_offsets[p]
                multiply(semiring, lanes, outgoing, 0, n, up, start)
                for r in range(lanes):
                    up_scale[p, r] += message_scale[k, r]
                narrow = normalise(semiring, lanes, up, start, n, up_scale, p, high, low, delta, window) or narrow
                if narrow:
                    return True
            for j in range(span.first_root, span.last_root):
                v = links.roots[j]
                start = graph.state_offsets[v]
                total(semiring, lanes, up, start, graph.state_offsets[v + 1] - start, sum_, high)
                for r in range(n_rows):
                    value = sum_[r]
                    if semiring == SUM:
                        value = math.log(value) if value > 0.0 else -math.inf
                    log_z[first_row + r, j] = value + up_scale[v, r]
        return False

    return upward


def make_downward(semiring: int, lanes: int) -> Callable[..., bool]:
    """Kernel: down, and the answers from it, after upward; True if the SUM domain was too narrow.

    variables (R, S): marginals; for MAX the logarithm of the weight of the best labelling with that state. row_weights
    (R,) and weights (V,), constant on a component, multiply moments (A,), which are added to: see `emit` for them and
    for factors (R, .); slots (G,) is where the sums of a position start. Outputs that are not wanted may have length 0;
    MAX has no moments and no factors.
    """

    def downward(
        graph: FlatFactors,
        links: ForestLinks,
        sizes_: Sizes,
        span: Span,
        base: Array,
        base_scale: Array,
        work: PassWork,
        variables: Array,
        row_weights: Array,
        weights: Array,
        slots: IntArray,
        moments: Array,
        factor_offsets: IntArray,
        factors: Array,
    ) -> bool:
        incoming = np.empty((sizes_.max_states, lanes))
        outgoing, sums = np.empty((sizes_.max_states, lanes)), np.empty((sizes_.max_states, lanes))
        partial = np.empty((sizes_.max_arity + 2, lanes))
        rest, rest_scale = np.empty((sizes_.max_siblings, lanes)), np.empty((1, lanes))
        q, q_scale = np.empty((sizes_.max_siblings, lanes)), np.empty((sizes_.max_siblings, lanes))
        high, low, z, lane_weights = np.empty(lanes), np.empty(lanes), np.empty(lanes), np.empty(lanes)
        sizes, starts, digits = (
            np.empty(sizes_.max_arity, np.int64),
            np.empty(sizes_.max_arity, np.int64),
            np.empty(sizes_.max_arity, np.int64),
        )
        delta, window, narrow = sizes_.delta, sizes_.window, False
        for block in range((span.n_rows + lanes - 1) // lanes):
            first_row, n_rows = span.first_row + block * lanes, min(lanes, span.n_rows - block * lanes)
            rows = factors[first_row:]
            up, up_scale, messages, message_scale = (
                work.up[block],
                work.up_scale[block],
                work.messages[block],
                work.message_scale[block],
            )
            down, down_scale = work.down[block], work.down_scale[block]
            for j in range(span.first_root, span.last_root):
                v = links.roots[j]
                fill(
                    lanes,
                    down,
                    graph.state_offsets[v],
                    graph.state_offsets[v + 1] - graph.state_offsets[v],
                    one_of(semiring),
                )
                for r in range(lanes):
                    down_scale[v, r] = 0.0
            for i in range(span.first_variable, span.last_variable):
                v = links.variables[i]
                here, n = graph.state_offsets[v], graph.state_offsets[v + 1] - graph.state_offsets[v]
                # The belief of v.
                if len(variables) > 0:
                    copy(lanes, up, here, n, outgoing, 0)
                    multiply(semiring, lanes, down, here, n, outgoing, 0)
                    if semiring != MAX:
                        weigh_vector(semiring, lanes, n, outgoing, high, z)
                    for s in range(n):
                        for r in range(n_rows):
                            if semiring == MAX:
                                value = outgoing[s, r] + up_scale[v, r] + down_scale[v, r]
                            else:
                                value = share_of(semiring, outgoing[s, r], high[r], z[r])
                            variables[first_row + r, here + s] = value
                first, last = links.child_factors[i], links.child_factors[i + 1]
                if first == last:
                    continue
                # q of each child factor: the product so far from the left, then times the product from the right.
                load(semiring, lanes, graph, v, first_row, n_rows, base, base_scale, rest, 0, rest_scale, 0)
                multiply(semiring, lanes, down, here, n, rest, 0)
                for r in range(lanes):
                    rest_scale[0, r] += down_scale[v, r]
                narrow = normalise(semiring, lanes, rest, 0, n, rest_scale, 0, high, low, delta, window) or narrow
                for k in range(first, last):
                    copy(lanes, rest, 0, n, q, (k - first) * n)
                    copy(lanes, rest_scale, 0, 1, q_scale, k - first)
                    if k + 1 < last:
                        multiply(semiring, lanes, messages, links.message_offsets[k], n, rest, 0)
                        for r in range(lanes):
                            rest_scale[0, r] += message_scale[k, r]
                        narrow = (
                            normalise(semiring, lanes, rest, 0, n, rest_scale, 0, high, low, delta, window) or narrow
                        )
                fill(lanes, rest, 0, n, one_of(semiring))
                fill(lanes, rest_scale, 0, 1, 0.0)
                for k in range(last - 2, first - 1, -1):
                    multiply(semiring, lanes, messages, links.message_offsets[k + 1], n, rest, 0)
                    for r in range(lanes):
                        rest_scale[0, r] += message_scale[k + 1, r]
                    narrow = normalise(semiring, lanes, rest, 0, n, rest_scale, 0, high, low, delta, window) or narrow
                    multiply(semiring, lanes, rest, 0, n, q, (k - first) * n)
                    for r in range(lanes):
                        q_scale[k - first, r] += rest_scale[0, r]
                    narrow = (
                        normalise(semiring, lanes, q, (k - first) * n, n, q_scale, k - first, high, low, delta, window)
                        or narrow
                    )
                for k in range(first, last):
                    f, parent = links.order[k], links.parent_axis[k]
                    n_axes = gather(lanes, graph, f, parent, up, sizes, starts, incoming)
                    copy(lanes, q, (k - first) * n, n, incoming, starts[parent])
                    scope, table = graph.scope_offsets[f], graph.table_of_factor[f]
                    for target in range(n_axes):
                        if target == parent:
                            continue
                        send(
                            semiring,
                            lanes,
                            graph,
                            f,
                            n_axes,
                            target,
                            sizes,
                            starts,
                            digits,
                            incoming,
                            partial,
                            outgoing,
                            sums,
                        )
                        c = graph.scope_variables[scope + target]
                        below = graph.state_offsets[c]
                        copy(lanes, outgoing, 0, sizes[target], down, below)
                        for r in range(lanes):
                            down_scale[c, r] = q_scale[k - first, r] + graph.shifts[table]
                        for a in range(n_axes):
                            if a != target and a != parent:
                                for r in range(lanes):
                                    down_scale[c, r] += up_scale[graph.scope_variables[scope + a], r]
                        if semiring == SUM:
                            multiply(semiring, lanes, up, below, sizes[target], outgoing, 0)
                            weigh_vector(semiring, lanes, sizes[target], outgoing, low, z)
                        narrow = (
                            normalise(
                                semiring, lanes, down, below, sizes[target], down_scale, c, high, low, delta, window
                            )
                            or narrow
                        )
                    if semiring != MAX and (len(moments) > 0 or len(factors) > 0):
                        for r in range(lanes):
                            lane_weights[r] = row_weights[first_row + r] * weights[v] if r < n_rows else 0.0
                        start, out = graph.table_offsets[table], factor_offsets[f] if len(factors) > 0 else 0
                        kind = graph.kinds[f]
                        if kind != TABLE:
                            if semiring == LOG_SUM:
                                weigh_structured(
                                    kind, lanes, sizes[0], graph.values, start, incoming, partial, outgoing, high, z
                                )
                            emit_structured(
                                semiring, kind, graph.values, start, sizes[0], incoming, high, z,
                                lane_weights, moments, slots[k], rows, n_rows, out,
                            )  # fmt: skip
                        else:
                            if semiring == LOG_SUM:
                                weigh(
                                    lanes, graph.values, start, n_axes, sizes, starts, digits, incoming, partial,
                                    high, z,
                                )  # fmt: skip
                            emit(
                                semiring, lanes, graph.values, start, n_axes, sizes, starts, digits, incoming, partial,
                                high, z, lane_weights, moments, slots[k], rows, n_rows, out,
                            )  # fmt: skip
                if narrow:
                    return True
        return False

    return downward
