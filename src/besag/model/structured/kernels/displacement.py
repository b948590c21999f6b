"""The rules of a factor that reads how far apart two places of one grid are, (H, W) places, a state y W + x for each.

    m(i) = (+)_j g(i - j) (x) x(j)        i - j a displacement, from -(H - 1) to H - 1 and from -(W - 1) to W - 1

The levels are the log-potentials of all displacements of the second place from the first, (2 H - 1, 2 W - 1): rows are
those of 0, 1, -1, 2, -2, .. down, so that H need not be known, columns those of -(W - 1) to W - 1. With a limit there
is one more, that of all that reach it. g (2 H - 1, 2 W - 1) are the levels in the domain, by displacement, turned round
in messages to the first place. The extent is 2 W, and 1 more where there is a limit.

Without a limit g(ky, kx) = a(ky) (x) b(kx), and a message is one along rows and then one along columns, K = H W states:

    MAX      the lower envelope of parabolas (Felzenszwalb and Huttenlocher 2012), O(K); O(K (H + W)) where the
             weight is negative
    SUM      O(K (H + W)), sums of products
    LOG_SUM  the same, weights relative to the largest of a line. A sum above TINY is right to rounding, since what was
             too small for a weight adds less than 1e-300; each of the others is made anew from its own largest term.

With a limit, in MAX that of the parabolas, capped. In SUM and LOG_SUM the displacements below the limit, O(K) for each,
and the sums from both ends of what lies beyond: nothing is subtracted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from besag.arrays import AnyArray, Array
from besag.kernels.compile import at, called, inlined
from besag.kernels.semiring import LOG_SUM, MAX, SUM, times, zero_of
from besag.kernels.sums import share_of

WIDEST = 2**22 - 1  # of a grid: an extent and a kind are 31 bits
TINY = 1e-280
LOST = -60.0  # logarithm of a share that adds nothing to a sum of 1e9 others


@inlined
def row_of(down: int) -> int:
    """The row of levels of a displacement down."""
    return 2 * down - 1 if down > 0 else -2 * down


@inlined
def level(extent: int, i: int, j: int) -> int:
    """The displacement of the second place j from the first one i."""
    width = extent // 2
    return row_of(j // width - i // width) * (2 * width - 1) + j % width - i % width + width - 1


def expected_of(extent: int, marginals: Sequence[Array]) -> Array:
    """The probability of each level, of independent variables: (F, H W) for each -> (F, L)."""
    width = extent // 2
    one, other = (p.reshape(len(p), -1, width) for p in marginals)
    height = one.shape[1]
    found = np.zeros((len(one), 2 * height - 1, 2 * width - 1))
    columns = np.arange(width)
    across = (columns - columns[:, None] + width - 1).ravel()
    for f in range(len(one)):
        for d in range(1 - height, height):
            above = one[f, max(0, -d) : height - max(0, d)]
            below = other[f, max(0, d) : height - max(0, -d)]
            found[f, row_of(d)] = np.bincount(across, (above.T @ below).ravel(), 2 * width - 1)
    flat = found.reshape(len(found), -1)
    return np.hstack([flat, np.zeros((len(flat), 1))]) if extent % 2 else flat


@called
def turned(height: int, width: int, axis: int, weights: AnyArray, start: int) -> Array:
    """g (2 H - 1, 2 W - 1), by the displacement of the place that a message goes to, of the axis, from the other."""
    columns = 2 * width - 1
    g = np.empty((2 * height - 1, columns))
    for r in range(len(g)):
        down = r - (height - 1)
        row = start + row_of(down if axis == 1 else -down) * columns
        for c in range(columns):
            g[r, c] = weights[row + (c if axis == 1 else columns - 1 - c)]
    return g


@called
def placed(height: int, width: int, x: AnyArray, source: int) -> Array:
    """x as (H, W)."""
    grid = np.empty((height, width))
    for r in range(height):
        for c in range(width):
            grid[r, c] = x[source + r * width + c]
    return grid


@called
def reach_of(g: Array) -> tuple[int, int, float]:
    """The place of the largest entry, and the least one."""
    row, column, least = 0, 0, g[0, 0]
    for r in range(g.shape[0]):
        for c in range(g.shape[1]):
            least = min(least, g[r, c])
            if g[r, c] > g[row, column]:
                row, column = r, c
    return row, column, least


@called
def exponentials(x: Array, high: float) -> Array:
    """exp(x - high) of (n, m) numbers, 0 of -inf."""
    found = np.zeros(x.shape)
    for r in range(x.shape[0]):
        for c in range(x.shape[1]):
            if x[r, c] > -math.inf:
                found[r, c] = math.exp(x[r, c] - high)
    return found


@called
def fit_parabola(values: Array, far: float) -> tuple[float, float]:
    """The curvature and the vertex of the parabola that the values above far lie on; curvature 0 where they say none.

    values: of displacements from -(n - 1) to n - 1. The three points are as far apart as they can be.
    """
    n, low, high = (len(values) + 1) // 2, 0, len(values) - 1
    while low < high and not values[low] > far:
        low += 1
    while high > low and not values[high] > far:
        high -= 1
    if high - low < 2:
        return 0.0, 0.0
    middle = (low + high) // 2
    left = (values[middle] - values[low]) / (middle - low)
    right = (values[high] - values[middle]) / (high - middle)
    curvature = (left - right) / (high - low)
    if not 0.0 < curvature < math.inf:
        return 0.0, 0.0
    return curvature, 0.5 * (left / curvature + low + middle) - (n - 1)


@called
def send_parabolas(curvature: float, vertex: float, b: Array, x: Array, out: Array) -> None:
    """out(i) = max_j b(i - j) + x(j), b a parabola."""
    n, last = len(x), -1
    centre, left = np.empty(n, np.int64), np.empty(n)
    for j in range(n):
        if x[j] == -math.inf:
            continue
        meets = -math.inf
        while last >= 0:
            k = centre[last]
            meets = vertex + 0.5 * (k + j) + (x[k] - x[j]) / (2.0 * curvature * (j - k))
            if meets > left[last]:
                break
            last -= 1
            meets = -math.inf
        last += 1
        centre[last], left[last] = j, meets
    here = 0
    for i in range(n):
        out[i] = -math.inf
        while here < last and left[here + 1] < i:
            here += 1
        for k in range(max(0, here - 1), min(here + 1, last) + 1):  # the neighbours too: where they meet is rounded
            out[i] = max(out[i], b[n - 1 + i - centre[k]] + x[centre[k]])


@called
def add_all(semiring: int, b: Array, x: Array, out: Array) -> None:
    """out(i) = (+)_j b(i - j) (x) x(j), in SUM or MAX."""
    n = len(x)
    for i in range(n):
        out[i] = zero_of(semiring)
    for j in range(n):
        shift, q = n - 1 - j, x[j]
        if q == zero_of(semiring):
            continue
        if semiring == SUM:
            for i in range(n):
                out[i] += b[at(shift + i)] * q
        else:
            for i in range(n):
                out[i] = max(out[i], b[at(shift + i)] + q)


@called
def send_line(semiring: int, curvature: float, vertex: float, b: Array, shares: Array, x: Array, out: Array) -> None:
    """out(i) = (+)_j b(i - j) (x) x(j); shares exp(b), which LOG_SUM reads."""
    if semiring == MAX and curvature > 0.0:
        send_parabolas(curvature, vertex, b, x, out)
        return
    if semiring != LOG_SUM:
        add_all(semiring, b, x, out)
        return
    n, high, y = len(x), -math.inf, np.zeros(len(x))
    for j in range(n):
        high = max(high, x[j])
    for j in range(n):
        if x[j] > -math.inf:
            y[j] = math.exp(x[j] - high)
    add_all(SUM, shares, y, out)
    for i in range(n):
        if high == -math.inf:
            out[i] = -math.inf
        elif out[i] >= TINY:
            out[i] = high + math.log(out[i])
        else:
            most, total = -math.inf, 0.0
            for j in range(n):
                most = max(most, b[n - 1 + i - j] + x[j])
            for j in range(n):
                term = b[n - 1 + i - j] + x[j] - most
                total += math.exp(term) if term > LOST else 0.0
            out[i] = most + math.log(total)


@called
def send_apart(semiring: int, far: float, g: Array, x: Array) -> Array:
    """The message of g(ky, kx) = a(ky) (x) b(kx), along rows and then along columns, (H, W).

    What is not above far may be less than a (x) b.
    """
    height, width = x.shape
    row, column, _ = reach_of(g)
    lines, highest = np.zeros((2, max(g.shape[0], g.shape[1]))), g[row, column]
    a, b = lines[0, : 2 * height - 1], lines[1, : 2 * width - 1]
    for k in range(len(a)):
        a[k] = g[k, column]
    for k in range(len(b)):
        b[k] = g[row, k]
    (curve_a, vertex_a), (curve_b, vertex_b) = fit_parabola(a, far), fit_parabola(b, far)
    for k in range(len(a)):  # of both, the largest is one
        a[k] = a[k] / highest if semiring == SUM else a[k] - highest
    for k in range(len(b)):
        b[k] = b[k] / highest if semiring == SUM else b[k] - highest
    shares = exponentials(lines, 0.0) if semiring == LOG_SUM else lines
    turned_round, line = np.empty((width, height)), np.empty(width)
    for r in range(height):
        send_line(semiring, curve_b, vertex_b, b, shares[1, : len(b)], x[r], line)
        for c in range(width):
            turned_round[c, r] = line[c]
    made, line = np.empty((height, width)), np.empty(height)
    for c in range(width):
        send_line(semiring, curve_a, vertex_a, a, shares[0, : len(a)], turned_round[c], line)
        for r in range(height):
            made[r, c] = times(semiring, highest, line[r])
    return made


@called
def send_window(semiring: int, g: Array, far: float, x: Array) -> Array:
    """(+)_j g(i - j) (x) x(j), (H, W), in SUM or MAX; all of g but an interval of each row is far."""
    height, width = x.shape
    zero = zero_of(semiring)
    before, after, out = np.empty((height, width + 1)), np.empty((height, width + 1)), np.empty((height, width))
    for r in range(height):
        before[r, 0], after[r, width] = zero, zero
        for c in range(width):
            before[r, c + 1] = before[r, c] + x[r, c] if semiring == SUM else max(before[r, c], x[r, c])
        for c in range(width - 1, -1, -1):
            after[r, c] = after[r, c + 1] + x[r, c] if semiring == SUM else max(after[r, c + 1], x[r, c])
    for i in range(height):
        beyond, made = zero, out[i]
        for c in range(width):
            made[c] = zero
        for j in range(height):
            k, low, high = i - j + height - 1, 0, 2 * width - 2
            while low <= high and g[k, low] == far:
                low += 1
            while high >= low and g[k, high] == far:
                high -= 1
            if low > high:
                beyond = beyond + before[j, width] if semiring == SUM else max(beyond, before[j, width])
                continue
            for c in range(width):
                left = before[j, min(max(c + width - 1 - high, 0), width)]
                right = after[j, min(max(c + width - low, 0), width)]
                if semiring == SUM:
                    made[c] += far * (left + right)
                else:
                    made[c] = max(made[c], far + max(left, right))
            for d in range(low, high + 1):
                weight, shift = g[k, d], d - (width - 1)
                first, source = max(0, shift), max(0, -shift)
                if semiring == SUM:
                    for c in range(width - abs(shift)):
                        made[at(first + c)] += weight * x[j, at(source + c)]
                else:
                    for c in range(width - abs(shift)):
                        made[at(first + c)] = max(made[at(first + c)], weight + x[j, at(source + c)])
        for c in range(width):
            made[c] = made[c] + far * beyond if semiring == SUM else max(made[c], far + beyond)
    return out


@called
def log_entry(g: Array, x: Array, i: int, k: int) -> float:
    """log sum exp of the terms of one entry, (i, k)."""
    height, width = x.shape
    most, total = -math.inf, 0.0
    for again in range(2):
        for r in range(height):
            for c in range(width):
                term = g[i - r + height - 1, k - c + width - 1] + x[r, c]
                if again == 0:
                    most = max(most, term)
                elif term - most > LOST:
                    total += math.exp(term - most)
    return most + math.log(total)


@called
def send_limited(semiring: int, far: float, g: Array, x: Array) -> Array:
    """The message where far is the level of all displacements that reach the limit, (H, W)."""
    row, column, least = reach_of(g)
    high, top = -math.inf, g[row, column]
    for r in range(x.shape[0]):
        for c in range(x.shape[1]):
            high = max(high, x[r, c])
    if semiring == SUM or (semiring == MAX and least < far):
        return send_window(semiring, g, far, x)
    if semiring == MAX:
        made = send_apart(MAX, far, g, x)
    else:
        made = send_window(SUM, exponentials(g, top), math.exp(far - top), exponentials(x, high))
    for r in range(x.shape[0]):
        for c in range(x.shape[1]):
            if semiring == MAX:
                made[r, c] = max(made[r, c], far + high)
            elif high == -math.inf:
                made[r, c] = -math.inf
            else:
                made[r, c] = top + high + math.log(made[r, c]) if made[r, c] >= TINY else log_entry(g, x, r, c)
    return made


@inlined
def send(
    semiring: int, extent: int, axis: int, n: int, weights: AnyArray, start: int, x: AnyArray, source: int,
    out: AnyArray, target: int,
) -> None:  # fmt: skip
    """The message to the place of an axis, from n = H W entries of x at source to as many of out at target."""
    height, width = n // (extent // 2), extent // 2
    g, y = turned(height, width, axis, weights, start), placed(height, width, x, source)
    if extent % 2 == 1:
        made = send_limited(semiring, float(weights[start + g.size]), g, y)
    else:
        made = send_apart(semiring, -math.inf, g, y)
    for i in range(n):
        out[target + i] = made[i // width, i % width]


@inlined
def add_given(extent: int, axis: int, n: int, levels: AnyArray, start: int, other: int, logits: AnyArray) -> None:
    """logits of the place of an axis += the log-potentials given the other place."""
    for i in range(n):
        logits[i] += levels[start + (level(extent, i, other) if axis == 0 else level(extent, other, i))]


@called
def add_expected(
    extent: int, axis: int, n: int, levels: AnyArray, start: int, p: AnyArray, other: int, logits: Array
) -> None:
    """logits of the place of an axis += the log-potentials expected under the probabilities of the other place."""
    height, width, limited = n // (extent // 2), extent // 2, extent % 2
    g, q = turned(height, width, axis, levels, start), placed(height, width, p, other)
    if limited == 1:
        far, whole, excess = levels[start + g.size], 0.0, np.empty(g.shape)
        for r in range(g.shape[0]):
            for c in range(g.shape[1]):
                excess[r, c] = g[r, c] - far
        for r in range(height):
            for c in range(width):
                whole += q[r, c]
        new = send_window(SUM, excess, 0.0, q)
        for i in range(height * width):
            logits[i] += far * whole + new[i // width, i % width]
        return
    row, column, _ = reach_of(g)
    rows, columns = np.zeros(height), np.zeros(width)
    for r in range(height):
        for c in range(width):
            rows[r] += q[r, c]
            columns[c] += q[r, c]
    down, across = np.zeros(height), np.zeros(width)
    for i in range(height):
        for r in range(height):
            down[i] += g[i - r + height - 1, column] * rows[r]
    for i in range(width):
        for c in range(width):
            across[i] += (g[row, i - c + width - 1] - g[row, column]) * columns[c]
    for r in range(height):
        for c in range(width):
            logits[r * width + c] += down[r] + across[c]


@called
def add_shares(
    semiring: int, extent: int, n: int, weights: AnyArray, start: int, x: AnyArray, first: int, second: int,
    high: float, z: float, weight: float, moments: Array, slot: int,
) -> None:  # fmt: skip
    """moments[slot + l] += weight times the share of level l in the factor's marginal, x at first and second."""
    width = extent // 2
    for i in range(n):
        if x[first + i] == zero_of(semiring):
            continue
        for j in range(n):
            place = level(extent, i, j - j % width) + j % width
            term = times(semiring, times(semiring, weights[start + place], x[first + i]), x[second + j])
            if semiring == SUM or term - high > LOST:
                moments[slot + place] += weight * share_of(semiring, term, high, z)
