"""The rules of a Potts factor, whose two levels are 0 where its states agree and c where they differ.

    m(i) = w_0 (x) x(i)  (+)  w_1 (x) (+)_{j != i} x(j)        w the levels in the domain of the semiring

in O(K). Where w_0 >= w_1, that is w_1 times the sum of all, and (w_0 - w_1) x(i). Else the sums over j != i are made
without subtracting anything large: of a vector alone, from its largest entry and the sum of the rest; of vectors in
lanes, by running sums from both ends. What is no message goes by the rules of
distances with D = 1.
"""

from __future__ import annotations

import math

from besag.arrays import AnyArray, Array
from besag.kernels.compile import at, inlined
from besag.kernels.semiring import LOG_SUM, MAX, SUM, plus, times, zero_of


@inlined
def level(i: int, j: int) -> int:
    """0 where the states agree, 1 where they differ."""
    return 1 if i != j else 0


@inlined
def add_given(levels: AnyArray, start: int, other: int, logits: AnyArray) -> None:
    """c [i != j] is the constant c, minus c where they agree."""
    logits[other] -= levels[start + 1]


@inlined
def mix_alike(
    semiring: int, n: int, same: float, other: float, x: AnyArray, source: int, out: AnyArray, target: int
) -> None:
    """As `mix` where same >= other, in SUM or MAX: all states may stand for the others, and loops are vectors."""
    whole, more = x[source], same - other if semiring == SUM else same
    for i in range(1, n):
        whole = whole + x[at(source + i)] if semiring == SUM else max(whole, x[at(source + i)])
    rest = other * whole if semiring == SUM else other + whole
    for i in range(n):
        q = x[at(source + i)]
        out[at(target + i)] = rest + more * q if semiring == SUM else max(rest, more + q)


@inlined
def mix(semiring: int, n: int, same: float, other: float, x: AnyArray, source: int, out: AnyArray, target: int) -> None:
    """out(i) = same (x) x(i)  (+)  other (x) (+)_{j != i} x(j), of n entries of x at source and of out at target."""
    if semiring != LOG_SUM and same >= other:
        mix_alike(semiring, n, same, other, x, source, out, target)
        return
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
