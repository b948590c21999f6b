"""One factor: from vectors on all axes but one to the vector on that axis, and to the factor's marginal.

    message(y_t) = (+)_{y_a, a != t} table(y) (x) prod_{a != t} incoming_a(y_a)

`incoming` holds the vectors of all axes one after the other, that of axis a at rows starts[a] to starts[a] + sizes[a];
all arrays have the lanes of `semiring` as their last axis. A table is walked once, row by row of its last axis, with
products over the axes before it kept in `partial`. LOG_SUM walks twice: once for the maxima, once for the sums below
them.

Structured factors are never expanded: their rules are in `besag.model.structured`.
"""

from __future__ import annotations

import math

from besag.arrays import Array, IntArray
from besag.kernels.compile import at, inlined
from besag.kernels.semiring import LOG_SUM, MAX, SUM, one_of, plus, times, zero_of
from besag.kernels.sums import add_term, share_of
from besag.model.structured.kernels.rules import add_shares, level, send_lanes


@inlined
def renew(
    semiring: int,
    lanes: int,
    axis: int,
    last: int,
    skip: int,
    starts: IntArray,
    digits: IntArray,
    incoming: Array,
    partial: Array,
) -> None:
    """partial[a + 1] = partial[a] (x) incoming_a(digit a), for all axes from `axis` to the one before the last."""
    for a in range(axis, last):
        for r in range(lanes):
            if a == skip:
                partial[a + 1, r] = partial[a, r]
            else:
                partial[a + 1, r] = times(semiring, partial[a, r], incoming[starts[a] + digits[a], r])


@inlined
def advance(last: int, sizes: IntArray, digits: IntArray) -> int:
    """Count up the digits before the last axis; returns the first axis that changed, -1 at the end."""
    axis = last - 1
    while axis >= 0:
        digits[axis] += 1
        if digits[axis] < sizes[axis]:
            return axis
        digits[axis] = 0
        axis -= 1
    return axis


@inlined
def walk(
    semiring: int,
    lanes: int,
    values: Array,
    start: int,
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
    """outgoing (+)= the contraction, for SUM and MAX; for LOG_SUM sums += exp(term - outgoing), outgoing the maxima.

    The last row of partial is work space.
    """
    last = n_axes - 1
    work = n_axes + 1
    entry, axis = start, 0
    for a in range(n_axes):
        digits[a] = 0
    for r in range(lanes):
        partial[0, r] = one_of(semiring)
    while axis >= 0:
        renew(semiring, lanes, axis, last, target, starts, digits, incoming, partial)
        if target == last:
            for j in range(sizes[last]):
                value = values[at(entry + j)]
                for r in range(lanes):
                    term = times(semiring, partial[last, r], value)
                    if semiring != LOG_SUM:
                        outgoing[j, r] = plus(semiring, outgoing[j, r], term)
                    elif outgoing[j, r] > -math.inf:
                        sums[j, r] += math.exp(term - outgoing[j, r])
        else:
            row = digits[target]
            for r in range(lanes):
                partial[work, r] = 0.0 if semiring == LOG_SUM else zero_of(semiring)
            for j in range(sizes[last]):
                value = values[at(entry + j)]
                for r in range(lanes):
                    term = times(semiring, value, incoming[at(starts[last] + j), r])
                    if semiring != LOG_SUM:
                        partial[work, r] = plus(semiring, partial[work, r], term)
                    elif outgoing[row, r] > -math.inf:
                        partial[work, r] += math.exp(term + partial[last, r] - outgoing[row, r])
            for r in range(lanes):
                if semiring != LOG_SUM:
                    term = times(semiring, partial[last, r], partial[work, r])
                    outgoing[row, r] = plus(semiring, outgoing[row, r], term)
                else:
                    sums[row, r] += partial[work, r]
        entry += sizes[last]
        axis = advance(last, sizes, digits)


@inlined
def contract(
    semiring: int,
    lanes: int,
    values: Array,
    start: int,
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
    """outgoing = the message to axis target."""
    for i in range(sizes[target]):
        for r in range(lanes):
            outgoing[i, r] = zero_of(semiring)
    walk(
        SUM if semiring == SUM else MAX,
        lanes, values, start, n_axes, target, sizes, starts, digits, incoming, partial, outgoing, sums,
    )  # fmt: skip
    if semiring == LOG_SUM:
        for i in range(sizes[target]):
            for r in range(lanes):
                sums[i, r] = 0.0
        walk(
            LOG_SUM,
            lanes, values, start, n_axes, target, sizes, starts, digits, incoming, partial, outgoing, sums,
        )  # fmt: skip
        for i in range(sizes[target]):
            for r in range(lanes):
                if outgoing[i, r] > -math.inf:
                    outgoing[i, r] += math.log(sums[i, r])


@inlined
def weigh_vector(semiring: int, lanes: int, n: int, x: Array, high: Array, z: Array) -> None:
    """The sum of a vector, in the form that `share_of` takes."""
    for r in range(lanes):
        high[r], z[r] = -math.inf, 0.0
    for i in range(n):
        for r in range(lanes):
            if semiring == SUM:
                z[r] += x[i, r]
            else:
                high[r], z[r] = add_term(LOG_SUM, high[r], z[r], x[i, r])


@inlined
def weigh(
    lanes: int,
    values: Array,
    start: int,
    n_axes: int,
    sizes: IntArray,
    starts: IntArray,
    digits: IntArray,
    incoming: Array,
    partial: Array,
    high: Array,
    z: Array,
) -> None:
    """The same for all terms of a factor's marginal, table (x) all incoming, in LOG_SUM."""
    last, entry, axis = n_axes - 1, 0, 0
    for a in range(n_axes):
        digits[a] = 0
    for r in range(lanes):
        partial[0, r], high[r], z[r] = 0.0, -math.inf, 0.0
    while axis >= 0:
        renew(LOG_SUM, lanes, axis, last, -1, starts, digits, incoming, partial)
        for j in range(sizes[last]):
            for r in range(lanes):
                term = values[at(start + entry + j)] + incoming[at(starts[last] + j), r] + partial[last, r]
                high[r], z[r] = add_term(LOG_SUM, high[r], z[r], term)
        entry += sizes[last]
        axis = advance(last, sizes, digits)


@inlined
def weigh_structured(
    kind: int, lanes: int, n: int, values: Array, start: int, incoming: Array, room: Array, outgoing: Array,
    high: Array, z: Array,
) -> None:  # fmt: skip
    """The same for a structured factor; room (2, lanes), outgoing (n, lanes)."""
    for r in range(lanes):
        high[r], z[r] = -math.inf, 0.0
    send_lanes(LOG_SUM, kind, 0, lanes, n, values, start, incoming, n, room, outgoing)
    for i in range(n):
        for r in range(lanes):
            high[r], z[r] = add_term(LOG_SUM, high[r], z[r], incoming[i, r] + outgoing[i, r])


@inlined
def emit(
    semiring: int,
    lanes: int,
    values: Array,
    start: int,
    n_axes: int,
    sizes: IntArray,
    starts: IntArray,
    digits: IntArray,
    incoming: Array,
    partial: Array,
    high: Array,
    z: Array,
    weights: Array,
    moments: Array,
    moments_start: int,
    factors: Array,
    n_rows: int,
    factors_start: int,
) -> None:
    """The factor's marginal, table (x) all incoming / z: to factors as it is, to moments summed over weighted lanes.

    moments (entries,) and factors (rows, entries) may have length 0. Lanes from n_rows on are padding.
    """
    last = n_axes - 1
    entry, axis = 0, 0
    for a in range(n_axes):
        digits[a] = 0
    for r in range(lanes):
        partial[0, r] = one_of(semiring)
    while axis >= 0:
        renew(semiring, lanes, axis, last, -1, starts, digits, incoming, partial)
        for j in range(sizes[last]):
            value, expected = values[at(start + entry + j)], 0.0
            for r in range(lanes):
                term = times(semiring, times(semiring, value, incoming[at(starts[last] + j), r]), partial[last, r])
                p = share_of(semiring, term, high[r], z[r])
                expected += weights[r] * p
                if len(factors) > 0 and r < n_rows:
                    factors[r, at(factors_start + entry + j)] = p
            if len(moments) > 0:
                moments[at(moments_start + entry + j)] += expected
        entry += sizes[last]
        axis = advance(last, sizes, digits)


@inlined
def emit_structured(
    semiring: int, kind: int, values: Array, start: int, n: int, incoming: Array, high: Array, z: Array,
    weights: Array, moments: Array, moments_start: int, factors: Array, n_rows: int, factors_start: int,
) -> None:  # fmt: skip
    """As emit: moments get the levels, factors the whole table. The vectors are at rows 0 and n."""
    if len(moments) > 0:
        for r in range(n_rows):
            add_shares(
                semiring, kind, n, values, start, incoming[:, r], 0, n, high[r], z[r], weights[r], moments,
                moments_start,
            )  # fmt: skip
    if len(factors) > 0:
        for i in range(n):
            for j in range(n):
                value = values[at(start + level(kind, i, j))]
                for r in range(n_rows):
                    term = times(semiring, times(semiring, incoming[i, r], incoming[n + j, r]), value)
                    factors[r, factors_start + i * n + j] = share_of(semiring, term, high[r], z[r])
