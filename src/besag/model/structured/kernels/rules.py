"""What engines ask of a structured factor, by the number of its kind and its extent.

A factor has L levels, the log-potentials that its table consists of; `level` says which of them an entry is. Engines
read levels where tables have entries: levels are brought into the domain of a semiring, shifted and divided as entries
are. `kind` is what a Problem keeps of a factor, EXTENTS times the extent and the number of the kind; it is that of a
structured factor, since a table's own rules differ from engine to engine, and stay there.

All kinds are on two variables of n states each, i the state of the first one, axis 0, and j of the second. What is
said to one of them takes its axis; symmetric kinds do not look at it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from besag.arrays import EXTENTS, AnyArray, Array, Kind
from besag.kernels.compile import inlined
from besag.kernels.factors import POTTS, TABLE
from besag.kernels.semiring import times, zero_of
from besag.kernels.sums import add_term
from besag.model.structured.kernels import displacement, distance, potts

LINEAR, QUADRATIC = int(Kind.TRUNCATED_LINEAR), int(Kind.TRUNCATED_QUADRATIC)
DISPLACEMENT = int(Kind.DISPLACEMENT)

# extent, marginals of independent variables, (F, n) each -> the probability of each level, (F, L)
EXPECTED: dict[int, Callable[[int, Sequence[Array]], Array]] = {
    POTTS: lambda _, marginals: distance.expected_of(1, marginals),
    LINEAR: distance.expected_of,
    QUADRATIC: distance.expected_of,
    DISPLACEMENT: displacement.expected_of,
}
KINDS = frozenset({TABLE, *EXPECTED})  # those that need not be turned into tables


def expected_levels(kind: int, marginals: Sequence[Array]) -> Array:
    """The probability of each level of factors on independent variables: (F, n) each -> (F, L)."""
    return EXPECTED[kind % EXTENTS](kind // EXTENTS, marginals)


@inlined
def extent_of(kind: int) -> int:
    """The least distance of the last level."""
    return 1 if kind == POTTS else kind // EXTENTS


@inlined
def level(kind: int, i: int, j: int) -> int:
    """Which of its levels an entry of the table is."""
    if kind == POTTS:
        return potts.level(i, j)
    if kind % EXTENTS == DISPLACEMENT:
        return displacement.level(kind // EXTENTS, i, j)
    return distance.level(kind // EXTENTS, i, j)


@inlined
def send_structured(
    semiring: int,
    kind: int,
    axis: int,
    n: int,
    weights: AnyArray,
    start: int,
    x: AnyArray,
    source: int,
    out: AnyArray,
    target: int,
) -> None:
    """The message to an axis, from n entries of x at source to n of out at target; weights: levels in the domain."""
    if kind == POTTS:
        potts.send(semiring, n, weights, start, x, source, out, target)
    elif kind % EXTENTS == LINEAR:
        distance.send_linear(semiring, kind // EXTENTS, n, weights, start, x, source, out, target)
    elif kind % EXTENTS == DISPLACEMENT:
        displacement.send(semiring, kind // EXTENTS, axis, n, weights, start, x, source, out, target)
    else:
        distance.send_quadratic(semiring, kind // EXTENTS, n, weights, start, x, source, out, target)


@inlined
def weigh_structured(
    semiring: int, kind: int, n: int, weights: AnyArray, start: int, x: AnyArray, first: int, second: int, room: Array
) -> tuple[float, float]:
    """The sum of the factor's marginal, as of `add_term`; vectors of n entries of x at first and second, room (n,)."""
    highest, total = zero_of(semiring), 0.0
    send_structured(semiring, kind, 0, n, weights, start, x, second, room, 0)
    for i in range(n):
        highest, total = add_term(semiring, highest, total, times(semiring, x[first + i], room[i]))
    return highest, total


@inlined
def add_shares(
    semiring: int,
    kind: int,
    n: int,
    weights: AnyArray,
    start: int,
    x: AnyArray,
    first: int,
    second: int,
    high: float,
    z: float,
    weight: float,
    moments: Array,
    slot: int,
) -> None:
    """moments[slot + l] += weight times the probability of level l; high and z: the sum of the factor's marginal."""
    extent = extent_of(kind)
    if kind % EXTENTS == DISPLACEMENT:
        displacement.add_shares(semiring, extent, n, weights, start, x, first, second, high, z, weight, moments, slot)
    else:
        distance.add_shares(semiring, extent, n, weights, start, x, first, second, high, z, weight, moments, slot)


@inlined
def send_lanes(
    semiring: int,
    kind: int,
    axis: int,
    lanes: int,
    n: int,
    weights: Array,
    start: int,
    x: Array,
    source: int,
    room: Array,
    out: Array,
) -> None:
    """The message to an axis, from n rows of x at source to the first n of out, lane by lane; room (2, lanes)."""
    if kind == POTTS:
        potts.send_lanes(semiring, lanes, n, weights, start, x, source, room, out)
    else:
        for r in range(lanes):
            send_structured(semiring, kind, axis, n, weights, start, x[:, r], source, out[:, r], 0)


@inlined
def add_given(kind: int, axis: int, n: int, levels: AnyArray, start: int, other: int, logits: AnyArray) -> None:
    """logits of an axis += the log-potentials given the other state, up to a constant."""
    if kind == POTTS:
        potts.add_given(levels, start, other, logits)
    elif kind % EXTENTS == DISPLACEMENT:
        displacement.add_given(kind // EXTENTS, axis, n, levels, start, other, logits)
    else:
        distance.add_given(kind // EXTENTS, n, levels, start, other, logits)


@inlined
def add_expected_structured(
    kind: int, axis: int, n: int, levels: AnyArray, start: int, p: AnyArray, other: int, logits: Array
) -> None:
    """logits of an axis += the log-potentials expected under the probabilities of the other one, n of p at other."""
    if kind == POTTS:
        for i in range(n):
            logits[i] += levels[start + 1] * (1.0 - p[other + i])
    elif kind % EXTENTS == DISPLACEMENT:
        displacement.add_expected(kind // EXTENTS, axis, n, levels, start, p, other, logits)
    else:
        for i in range(n):
            logits[i] += distance.expected_at(kind // EXTENTS, n, levels, start, p, other, i)


@inlined
def expect_structured(kind: int, n: int, levels: AnyArray, start: int, p: AnyArray, first: int, second: int) -> float:
    """The log-potential expected of independent variables, whose probabilities are at first and second."""
    value = 0.0
    if kind % EXTENTS == DISPLACEMENT:
        logits = np.zeros(n)
        displacement.add_expected(kind // EXTENTS, 0, n, levels, start, p, second, logits)
        for i in range(n):
            value += p[first + i] * logits[i]
        return value
    for i in range(n):
        if kind == POTTS:
            value += p[second + i] * levels[start + 1] * (1.0 - p[first + i])
        else:
            value += p[first + i] * distance.expected_at(kind // EXTENTS, n, levels, start, p, second, i)
    return value
