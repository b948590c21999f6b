"""Marginals and log Z of chains that share their transitions: forward and backward, in the linear or the log domain.

unary (T, K) and transition (K, K) are log-potentials, -inf where a label or a transition is ruled out; sequence n has
rows offsets[n] to offsets[n + 1]. known (T,), or () if no label is: codes, -1 = free; a known label rules out all
others. With e_t = exp(unary_t - its largest) and T = exp(transition - its largest), normalised as one goes,

    a_0 = e_0 / c_0,    a_t = (a_t-1 T) e_t / c_t       log Z = sum_t log c_t + all largest entries taken out
    b_L = 1,            b_t-1 = T (e_t b_t / c_t)       p(y_t) = a_t b_t

The steps of the recursion are those of `besag.infer.trees.kernels.pair_passes`, which goes through a plan of a forest;
a chain needs none, and no Graph. `gradient` has the recursion fused with sums over features.

probabilities (T, K), or (0, K) if log Z (N,) alone is wanted: then nothing is kept, and there is no backward pass. A
sequence without a possible labelling has log Z = -inf and probabilities 0; one without tokens has log Z = 0.

Range, as in `besag.infer.trees.kernels.pair_passes`: entries of e, T and a are zero or at least DELTA times the
largest, so that the products of a step are normal numbers, and an exact zero comes from hard zeros only. A sequence for
which this does not hold is marked in `lost` (N,), and is left to the second kernel, which is the same with log-add-exp.
The backward pass needs no check: p(y_t-1, y_t) <= p(y_t), so that what underflows in b affects no probability above
1e-300. Where a_t is 0, b_t is unbounded, and is taken as 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from besag.arrays import Array, BoolArray, IntArray
from besag.infer.chains.kernels.gradient import LOWEST, pad_columns
from besag.infer.trees.kernels.pair_passes import assign, is_lossy, multiply, scale, spread_outwards
from besag.kernels.compile import inlined

Kernel: TypeAlias = Callable[[Array, Array, IntArray, IntArray, int, int, Array, Array, BoolArray], int]


@inlined
def longest_of(offsets: IntArray, start: int, stop: int) -> int:
    """The length of the longest sequence of [start, stop)."""
    longest = 0
    for s in range(start, stop):
        longest = max(longest, offsets[s + 1] - offsets[s])
    return longest


@inlined
def code_of(known: IntArray, i: int) -> int:
    """The label of token i, -1 = free."""
    return int(known[i]) if len(known) > 0 else -1


@inlined
def weigh_transitions(k: int, transition: Array, tables: Array) -> tuple[float, bool]:
    """tables (2, W, W) = T and its transpose; the largest log-potential, and whether others are too far below."""
    largest, narrow = -math.inf, False
    for i in range(k):
        for j in range(k):
            largest = max(largest, transition[i, j])
    if largest == -math.inf:
        return 0.0, False
    for i in range(k):
        for j in range(k):
            below = transition[i, j] - largest
            narrow = narrow or -math.inf < below < LOWEST
            tables[0, i, j] = math.exp(below)
            tables[1, j, i] = tables[0, i, j]
    return largest, narrow


@inlined
def weigh(k: int, n: int, unary: Array, i: int, code: int, e: Array, row: int) -> tuple[float, bool]:
    """e_row (W,) = exp(unary_i - its largest); returns the largest, and whether others are too far below."""
    for c in range(n):
        e[row, c] = 0.0
    if code >= 0:
        e[row, code] = 1.0
        return unary[i, code], False
    largest, narrow = -math.inf, False
    for c in range(k):
        largest = max(largest, unary[i, c])
    if largest == -math.inf:
        return largest, False
    for c in range(k):
        below = unary[i, c] - largest
        narrow = narrow or -math.inf < below < LOWEST
        e[row, c] = math.exp(below)
    return largest, narrow


@inlined
def believe(k: int, a: Array, t: int, b: Array, probabilities: Array, i: int) -> float:
    """probabilities_i (K,) = a_t b, normalised since rounding adds up on the way back; returns the factor."""
    total = 0.0
    for c in range(k):
        value = a[t, c] * b[0, c]
        probabilities[i, c] = value
        total += value
    share = 1.0 / total
    for c in range(k):
        probabilities[i, c] *= share
    return share


@inlined
def send_back(n: int, e: Array, a: Array, t: int, share: float, b: Array, x: Array) -> None:
    """x = e_t b where a_t is not 0; e_t includes its 1 / c_t."""
    for c in range(n):
        x[0, c] = e[t, c] * (share * b[0, c]) if a[t, c] > 0.0 else 0.0


def make_sums(n_states: int) -> Kernel:
    """The kernel for K labels, linear: sequences [start, stop) -> probabilities, log Z, lost, and how many are lost."""
    width = pad_columns(n_states)

    def kernel(
        unary: Array,
        transition: Array,
        offsets: IntArray,
        known: IntArray,
        start: int,
        stop: int,
        probabilities: Array,
        log_z: Array,
        lost: BoolArray,
    ) -> int:
        n, n_lost, backward = width, 0, len(probabilities) > 0
        tables, b, x = np.zeros((2, n, n)), np.empty((1, n)), np.empty((1, n))
        rows = longest_of(offsets, start, stop) if backward else 2
        e, a = np.empty((rows, n)), np.empty((rows, n))
        largest, narrow = weigh_transitions(n_states, transition, tables)
        for s in range(start, stop):
            first, length = offsets[s], offsets[s + 1] - offsets[s]
            value, beyond, before = 0.0, narrow and length > 1, 0
            for t in range(length):
                row = t if backward else t & 1
                highest, far = weigh(n_states, n, unary, first + t, code_of(known, first + t), e, row)
                beyond = beyond or far
                if beyond:
                    break
                if t == 0:
                    total = assign(n, e, 0, 1.0, a, 0)
                else:
                    spread_outwards(n, tables, 0, a, before, b, 0)
                    total = multiply(n, e, row, b, 0, a, row)
                    highest += largest
                if highest == -math.inf or total == 0.0:
                    value = -math.inf
                    break
                scale(n, a, row, 1.0 / total)
                scale(n, e, row, 1.0 / total)  # not on the way back, where e b alone might underflow
                value += highest + math.log(total)
                beyond, before = is_lossy(n, a, row), row
                if beyond:
                    break
            log_z[s], lost[s] = value, beyond
            n_lost += 1 if beyond else 0
            if beyond or not backward:
                continue
            if value == -math.inf:
                probabilities[first : first + length] = 0.0
                continue
            for c in range(n):
                b[0, c] = 1.0
            for t in range(length - 1, -1, -1):
                share = believe(n_states, a, t, b, probabilities, first + t)
                send_back(n, e, a, t, share, b, x)
                spread_outwards(n, tables, 1, x, 0, b, 0)
        return n_lost

    return kernel


@inlined
def log_forward(before: Array, transition: Array, k: int) -> float:
    """ln sum_j exp(before_j + transition_jk)."""
    highest, total = -math.inf, 0.0
    for j in range(len(before)):
        highest = max(highest, before[j] + transition[j, k])
    if highest == -math.inf:
        return highest
    for j in range(len(before)):
        total += math.exp(before[j] + transition[j, k] - highest)
    return highest + math.log(total)


@inlined
def level(x: Array) -> float:
    """x -= its largest entry, which is returned; nothing is done if that is -inf."""
    highest = -math.inf
    for c in range(len(x)):
        highest = max(highest, x[c])
    if highest > -math.inf:
        for c in range(len(x)):
            x[c] -= highest
    return highest


@inlined
def log_believe(a: Array, b: Array, probabilities: Array) -> None:
    """probabilities (K,) = exp(a + b), normalised."""
    highest, total = -math.inf, 0.0
    for c in range(len(a)):
        highest = max(highest, a[c] + b[c])
    for c in range(len(a)):
        probabilities[c] = math.exp(a[c] + b[c] - highest)
        total += probabilities[c]
    for c in range(len(a)):
        probabilities[c] /= total


def make_log_sums() -> Kernel:
    """The same in the log domain for the sequences that are lost, which stay marked; returns how many there were."""

    def kernel(
        unary: Array,
        transition: Array,
        offsets: IntArray,
        known: IntArray,
        start: int,
        stop: int,
        probabilities: Array,
        log_z: Array,
        lost: BoolArray,
    ) -> int:
        n, n_lost, backward = unary.shape[1], 0, len(probabilities) > 0
        transposed = transition.T.copy()
        rows = longest_of(offsets, start, stop) if backward else 2
        a, b, x = np.empty((rows, n)), np.empty(n), np.empty(n)
        for s in range(start, stop):
            if not lost[s]:
                continue
            n_lost += 1
            first, length = offsets[s], offsets[s + 1] - offsets[s]
            value, before = 0.0, 0
            for t in range(length):
                row, code = t if backward else t & 1, code_of(known, first + t)
                for c in range(n):
                    if code >= 0 and c != code:
                        a[row, c] = -math.inf
                    elif t == 0:
                        a[row, c] = unary[first, c]
                    else:
                        a[row, c] = unary[first + t, c] + log_forward(a[before], transition, c)
                value += level(a[row])
                before = row
                if value == -math.inf:
                    break
            if value > -math.inf:
                total = 0.0
                for c in range(n):
                    total += math.exp(a[before, c])
                value += math.log(total)
            log_z[s] = value
            if not backward:
                continue
            if value == -math.inf:
                probabilities[first : first + length] = 0.0
                continue
            b[:] = 0.0
            for t in range(length - 1, -1, -1):
                log_believe(a[t], b, probabilities[first + t])
                for c in range(n):
                    x[c] = -math.inf if a[t, c] == -math.inf else b[c] + unary[first + t, c]
                for c in range(n):
                    b[c] = log_forward(x, transposed, c)
                level(b)
        return n_lost

    return kernel
