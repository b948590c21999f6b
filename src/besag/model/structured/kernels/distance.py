"""The rules of a factor that reads the distance of two states, level min(|i - j|, D) of its D + 1 levels w.

    m(i) = (+)_{|i - j| < D} w_{|i - j|} (x) x(j)  (+)  w_D (x) (+)_{|i - j| >= D} x(j)

The second sum is two running sums, from both ends. The first one is a band, in O(K D), whatever the levels are; and in

    O(K) for w_d = w_0 - c d in MAX with c >= 0: a pass from either end, which keeps the best so far.
    O(K) for w_d = w_0 r^d, in any semiring: the sum over a window of D - 1 states is that of the window's part of one
        block of states and of its part of the next, both of them running sums that decay by r (van Herk 1992,
        Gil and Werman 1993). Nothing is subtracted.
    O(K) for w_d = w_0 - c d^2 in MAX with c >= 0: the lower envelope of parabolas (Felzenszwalb and Huttenlocher
        2012).

The two of MAX need no band, since w_0 - c d and w_0 - c d^2 are below w_D beyond it, nor do they need to know where
w_D counts, since it is below them within.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from besag.arrays import AnyArray, Array
from besag.kernels.compile import at, inlined
from besag.kernels.semiring import LOG_SUM, MAX, SUM, plus, times, zero_of
from besag.kernels.sums import share_of

NARROW = 6  # D up to which a band, whose loops are vectors, takes less time than a rule in O(K)


def expected_of(extent: int, marginals: Sequence[Array]) -> Array:
    """The probability of each level, of independent variables: (F, K) for each -> (F, D + 1)."""
    one, other = marginals
    found = np.zeros((len(one), extent + 1))
    found[:, 0] = (one * other).sum(axis=1)
    for d in range(1, min(extent, one.shape[1])):
        found[:, d] = (one[:, d:] * other[:, :-d]).sum(axis=1) + (one[:, :-d] * other[:, d:]).sum(axis=1)
    found[:, extent] = np.maximum(1.0 - found[:, :extent].sum(axis=1), 0.0)
    return found


@inlined
def level(extent: int, i: int, j: int) -> int:
    """min(|i - j|, D)."""
    return min(abs(i - j), extent)


@inlined
def add_far(
    semiring: int, extent: int, n: int, far: float, x: AnyArray, source: int, out: AnyArray, target: int
) -> None:
    """out(i) (+)= far (x) (+)_{|i - j| >= D} x(j)."""
    left, right = zero_of(semiring), zero_of(semiring)
    for i in range(extent, n):
        left = plus(semiring, left, x[source + i - extent])
        out[target + i] = plus(semiring, out[target + i], times(semiring, far, left))
    for i in range(n - 1 - extent, -1, -1):
        right = plus(semiring, right, x[source + i + extent])
        out[target + i] = plus(semiring, out[target + i], times(semiring, far, right))


@inlined
def whole_of(semiring: int, n: int, x: AnyArray, source: int) -> float:
    """The (+) of n entries of x, in SUM or MAX."""
    whole = x[source]
    for i in range(1, n):
        whole = whole + x[at(source + i)] if semiring == SUM else max(whole, x[at(source + i)])
    return whole  # type: ignore[no-any-return]


@inlined
def send_band(
    semiring: int, extent: int, n: int, weights: AnyArray, start: int, x: AnyArray, source: int, out: AnyArray,
    target: int,
) -> None:  # fmt: skip
    """The message, a distance at a time. Where w_D is the least level, it counts for all, others by their excess."""
    far, excess = weights[start + extent], semiring != LOG_SUM
    for d in range(min(extent, n)):
        excess = excess and weights[start + d] >= far
    far = far if excess else zero_of(semiring)
    less = far if semiring == SUM else 0.0
    everywhere = times(semiring, far, whole_of(MAX if semiring == LOG_SUM else semiring, n, x, source))
    everywhere = everywhere if excess else zero_of(semiring)
    for i in range(n):
        value = times(semiring, weights[start] - less, x[at(source + i)])
        out[at(target + i)] = plus(semiring, value, everywhere) if excess else value
    for d in range(1, min(extent, n)):
        weight = weights[start + d] - less
        for i in range(n - d):
            value = times(semiring, weight, x[at(source + d + i)])
            out[at(target + i)] = plus(semiring, out[at(target + i)], value)
        for i in range(n - d):
            value = times(semiring, weight, x[at(source + i)])
            out[at(target + d + i)] = plus(semiring, out[at(target + d + i)], value)
    if not excess:
        add_far(semiring, extent, n, weights[start + extent], x, source, out, target)


@inlined
def send_near(
    extent: int, n: int, weights: AnyArray, start: int, best: float, x: AnyArray, source: int, out: AnyArray,
    target: int,
) -> None:  # fmt: skip
    """The message in MAX of levels that fall from w_0 to w_D <= w_0, of which w_0 + best, its largest, is subtracted.

    best: the largest entry of x, which has D - 1 entries of -inf on either side: every entry of out is written in
    its turn and not read again, one vector after the other.
    """
    whole = weights[start]
    far = weights[start + extent] - whole
    for i in range(n):
        out[at(target + i)] = max(far, x[at(source + i)] - best)
    for d in range(1, min(extent, n)):
        less = weights[start + d] - whole - best
        for i in range(n):
            near = max(x[at(source + i - d)], x[at(source + i + d)])
            out[at(target + i)] = max(out[at(target + i)], near + less)


@inlined
def add_window(
    semiring: int, extent: int, n: int, weights: AnyArray, start: int, first: int, step: int, x: AnyArray, source: int,
    out: AnyArray, target: int,
) -> None:  # fmt: skip
    """out(i) (+)= (+)_{0 < d < D} w_0 r^d (x) x(i - d), states counted from `first` by `step`."""
    width, same = extent - 1, weights[start]
    back = 1.0 / same if semiring == SUM else -same
    ratio, running = times(semiring, weights[start + 1], back), zero_of(semiring)
    for i in range(n):
        here = target + first + step * i
        if i % width == 0:
            running = zero_of(semiring)
            for d in range(1, width + 1 if i > 0 else 1):  # from the last state of the block before to its first
                decay = times(semiring, weights[start + d - 1], back)
                running = plus(semiring, running, times(semiring, decay, x[source + first + step * (i - d)]))
                if i - d + width < n:
                    there = target + first + step * (i - d + width)
                    out[there] = plus(semiring, out[there], times(semiring, weights[start + width + 1 - d], running))
            running = zero_of(semiring)
        else:
            out[here] = plus(semiring, out[here], times(semiring, weights[start + 1], running))
        running = plus(semiring, times(semiring, ratio, running), x[source + first + step * i])


@inlined
def send_slopes(n: int, highest: float, slope: float, x: AnyArray, source: int, out: AnyArray, target: int) -> None:
    """out(i) = max_j highest - slope |i - j| + x(j), slope >= 0."""
    running = -math.inf
    for i in range(n):
        running = max(running - slope, highest + x[at(source + i)])
        out[at(target + i)] = running
    running = -math.inf
    for i in range(n - 1, -1, -1):
        running = max(running - slope, out[at(target + i)])
        out[at(target + i)] = running


@inlined
def cap(n: int, far: float, x: AnyArray, source: int, out: AnyArray, target: int) -> None:
    """out(i) = max of out(i) and far + max_j x(j): beyond D no more is lost, and within it far is below."""
    least = far + whole_of(MAX, n, x, source)
    for i in range(n):
        out[at(target + i)] = max(out[at(target + i)], least)


@inlined
def send_linear(
    semiring: int, extent: int, n: int, weights: AnyArray, start: int, x: AnyArray, source: int, out: AnyArray,
    target: int,
) -> None:  # fmt: skip
    """The message of levels w_0 r^d: n entries of x at source to n entries of out at target."""
    smallest = min(weights[start], weights[start + max(extent - 1, 0)])  # ratios of less may leave the range of numbers
    if extent <= NARROW or (semiring == SUM and not smallest > 1e-140):
        send_band(semiring, extent, n, weights, start, x, source, out, target)
    elif semiring == MAX and weights[start] >= weights[start + 1]:
        send_slopes(n, weights[start], weights[start] - weights[start + 1], x, source, out, target)
        cap(n, weights[start + extent], x, source, out, target)
    else:
        for i in range(n):
            out[at(target + i)] = times(semiring, weights[start], x[at(source + i)])
        add_window(semiring, extent, n, weights, start, 0, 1, x, source, out, target)
        add_window(semiring, extent, n, weights, start, n - 1, -1, x, source, out, target)
        add_far(semiring, extent, n, weights[start + extent], x, source, out, target)


@inlined
def send_parabolas(
    n: int, highest: float, curvature: float, x: AnyArray, source: int, out: AnyArray, target: int
) -> None:
    """out(i) = max_j highest - curvature (i - j)^2 + x(j), curvature > 0."""
    centre, left, last = np.empty(n, np.int64), np.empty(n), -1
    for j in range(n):
        if x[source + j] == -math.inf:
            continue
        meets = -math.inf
        while last >= 0:
            k = centre[last]
            meets = 0.5 * (k + j) + (x[source + k] - x[source + j]) / (2.0 * curvature * (j - k))
            if meets > left[last]:
                break
            last -= 1
            meets = -math.inf
        last += 1
        centre[last], left[last] = j, meets
    at_parabola = 0
    for i in range(n):
        if last < 0:
            out[target + i] = -math.inf
            continue
        while at_parabola < last and left[at_parabola + 1] < i:
            at_parabola += 1
        j = centre[at_parabola]
        out[target + i] = highest - curvature * (i - j) * (i - j) + x[source + j]


@inlined
def send_quadratic(
    semiring: int, extent: int, n: int, weights: AnyArray, start: int, x: AnyArray, source: int, out: AnyArray,
    target: int,
) -> None:  # fmt: skip
    """The message of levels w_0 - c d^2: n entries of x at source to n entries of out at target."""
    curvature = weights[start] - weights[start + 1]
    if semiring == MAX and extent > NARROW and 0.0 < curvature < math.inf:
        send_parabolas(n, weights[start], curvature, x, source, out, target)
        cap(n, weights[start + extent], x, source, out, target)
    else:
        send_band(semiring, extent, n, weights, start, x, source, out, target)


@inlined
def add_given(extent: int, n: int, levels: AnyArray, start: int, other: int, logits: AnyArray) -> None:
    """logits += the log-potentials given the other state."""
    for i in range(n):
        logits[i] += levels[start + min(abs(i - other), extent)]


@inlined
def expected_at(extent: int, n: int, levels: AnyArray, start: int, p: AnyArray, other: int, i: int) -> float:
    """The log-potential expected at state i, given the probabilities of the other variable, n entries of p at other."""
    far = levels[start + extent]
    total = float(far)
    for j in range(max(0, i - extent + 1), min(n, i + extent)):
        total += p[other + j] * (levels[start + abs(i - j)] - far)
    return total


@inlined
def add_shares(
    semiring: int, extent: int, n: int, weights: AnyArray, start: int, x: AnyArray, first: int, second: int,
    high: float, z: float, weight: float, moments: Array, slot: int,
) -> None:  # fmt: skip
    """moments[slot + l] += weight times the share of level l in the factor's marginal, x at first and second."""
    left, right = zero_of(semiring), zero_of(semiring)
    for i in range(n):
        for j in range(max(0, i - extent + 1), min(n, i + extent)):
            term = times(semiring, times(semiring, weights[start + abs(i - j)], x[first + i]), x[second + j])
            moments[slot + abs(i - j)] += weight * share_of(semiring, term, high, z)
    far = weights[start + extent]
    for i in range(extent, n):
        left = plus(semiring, left, x[second + i - extent])
        term = times(semiring, times(semiring, far, x[first + i]), left)
        moments[slot + extent] += weight * share_of(semiring, term, high, z)
    for i in range(n - 1 - extent, -1, -1):
        right = plus(semiring, right, x[second + i + extent])
        term = times(semiring, times(semiring, far, x[first + i]), right)
        moments[slot + extent] += weight * share_of(semiring, term, high, z)
