"""The rules of a Potts factor, c [i != j], whose two levels are 0 where its states agree and c where they differ.

    m(i) = w_0 (x) x(i)  (+)  w_1 (x) (+)_{j != i} x(j)        w the levels in the domain of the semiring

in O(K). The sums over j != i are made without subtracting anything large: of a vector alone, from its largest entry and
the sum of the rest; of vectors in lanes, by running sums from both ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from besag.arrays import AnyArray, Array
from besag.kernels.compile import at, inlined
from besag.kernels.semiring import MAX, SUM, plus, times, zero_of
from besag.kernels.sums import share_of


def levels_of(numbers: Array) -> Array:
    """0 and c: (T, 1) -> (T, 2)."""
    return np.hstack([np.zeros_like(numbers), numbers])


def expected_of(marginals: Sequence[Array]) -> Array:
    """P(i != j) of independent variables: (F, K) for each -> (F,)."""
    return np.asarray(1.0 - (marginals[0] * marginals[1]).sum(axis=1))


@inlined
def level(i: int, j: int) -> int:
    """0 where the states agree, 1 where they differ."""
    return 1 if i != j else 0


@inlined
def feature(i: int, j: int) -> float:
    """[i != j]."""
    return 1.0 if i != j else 0.0


@inlined
def add_given(numbers: Array, start: int, other: int, logits: Array) -> None:
    """c [i != j] is the constant c, minus c where they agree."""
    logits[other] -= numbers[start]


@inlined
def add_expected(n: int, numbers: AnyArray, start: int, p: AnyArray, other: int, logits: Array) -> None:
    """c times the probability of another state."""
    for k in range(n):
        logits[k] += numbers[start] * (1.0 - p[other + k])


@inlined
def expect(n: int, numbers: AnyArray, start: int, p: AnyArray, first: int, second: int) -> float:
    """c P(i != j)."""
    total = 0.0
    for k in range(n):
        total += numbers[start] * p[second + k] * (1.0 - p[first + k])
    return total


@inlined
def mix(semiring: int, n: int, same: float, other: float, x: AnyArray, source: int, out: AnyArray, target: int) -> None:
    """out(i) = same (x) x(i)  (+)  other (x) (+)_{j != i} x(j), of n entries of x at source and of out at target."""
    best, second, where = zero_of(semiring), zero_of(semiring), 0
    for i in range(n):
        q = x[at(source + i)]
        if q > best:
            second, best, where = best, q, i
        else:
            second = max(second, q)
    total = 0.0  # of all entries but the largest; of logarithms, relative to the second
    for i in range(n):
        if i != where and semiring == SUM:
            total += x[at(source + i)]
        elif i != where and semiring != MAX and second > -math.inf:
            total += math.exp(x[at(source + i)] - second)
    for i in range(n):
        q = x[at(source + i)]
        if semiring == SUM:
            rest = total if i == where else best + max(total - q, 0.0)
            out[at(target + i)] = same * q + other * rest
            continue
        highest = second if i == where else best
        if semiring == MAX or highest == -math.inf:
            out[at(target + i)] = max(same + q, other + highest)
        elif i == where:
            out[at(target + i)] = plus(semiring, same + q, other + second + math.log(total))
        else:
            rest = total * math.exp(second - best) - math.exp(q - best) if second > -math.inf else 0.0
            out[at(target + i)] = plus(semiring, same + q, other + best + math.log(1.0 + max(rest, 0.0)))


@inlined
def send(
    semiring: int, n: int, weights: AnyArray, start: int, x: AnyArray, source: int, out: AnyArray, target: int
) -> None:
    """The message from n entries of x at source to n entries of out at target."""
    mix(semiring, n, weights[start], weights[start + 1], x, source, out, target)


@inlined
def weigh(n: int, weights: AnyArray, start: int, x: Array, room: Array) -> tuple[float, float]:
    """sum_ij w(i, j) x(i) y(j), and the part of it where i and j differ; x and y at 0 and n of x, room (n,)."""
    same, equal, unequal = weights[start], 0.0, 0.0
    mix(SUM, n, 0.0, weights[start + 1], x, n, room, 0)
    for i in range(n):
        equal += same * x[at(i)] * x[at(n + i)]
        unequal += x[at(i)] * room[at(i)]
    return equal + unequal, unequal


@inlined
def sum_others(semiring: int, lanes: int, n: int, x: Array, source: int, room: Array, out: Array) -> None:
    """out(i) = (+)_{j != i} x(j), (n, lanes), by running sums from both ends; room (2, lanes)."""
    for r in range(lanes):
        room[0, r] = zero_of(semiring)
        room[1, r] = zero_of(semiring)
    for i in range(n):
        for r in range(lanes):
            out[i, r] = room[0, r]
            room[0, r] = plus(semiring, room[0, r], x[at(source + i), r])
    for i in range(n - 1, -1, -1):
        for r in range(lanes):
            out[i, r] = plus(semiring, out[i, r], room[1, r])
            room[1, r] = plus(semiring, room[1, r], x[at(source + i), r])


@inlined
def send_lanes(
    semiring: int, lanes: int, n: int, weights: Array, start: int, x: Array, source: int, room: Array, out: Array
) -> None:
    """The message from n rows of x at source to the first n rows of out."""
    same, other = weights[start], weights[start + 1]
    sum_others(semiring, lanes, n, x, source, room, out)
    for i in range(n):
        for r in range(lanes):
            equal = times(semiring, same, x[at(source + i), r])
            out[i, r] = plus(semiring, equal, times(semiring, other, out[i, r]))


@inlined
def add_moments(
    semiring: int, lanes: int, n: int, weights: Array, start: int, x: Array, room: Array, rest: Array,
    high: Array, z: Array, shares: Array, moments: Array, slot: int,
) -> None:  # fmt: skip
    """moments[slot] += the sum over lanes of shares (x) P(i != j), given both vectors, at rows 0 and n of x."""
    other, expected = weights[start + 1], 0.0
    sum_others(semiring, lanes, n, x, n, room, rest)
    for i in range(n):
        for r in range(lanes):
            term = times(semiring, times(semiring, other, rest[i, r]), x[i, r])
            expected += shares[r] * share_of(semiring, term, high[r], z[r])
    moments[slot] += expected
