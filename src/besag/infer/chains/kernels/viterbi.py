"""The best labelling of chains, 002 (42)-(44) on a path: max-sum forward, the best predecessors back.

    score_0(k) = initial(k) + e_0(k)      score_t(k) = e_t(k) + max_j (score_t-1(j) + transition(j, k))

e_t = unary[t], or unary[row[t]] where tokens share rows (`row` is () if they do not). unary (R, K), initial (K,) and
transition (K, K) are log-potentials, -inf where a label or a transition is ruled out; sequence n has tokens offsets[n]
to offsets[n + 1]. Ties go to the lower label. A sequence without a possible labelling gets -1.

Scores are kept, predecessors are not: on the way back they are found again for the one label that is asked for, so that
the way forward is nothing but sums and maxima.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from besag.arrays import Array, IntArray
from besag.infer.chains.kernels.gradient import pad_columns
from besag.kernels.compile import inlined

Kernel: TypeAlias = Callable[[Array, IntArray, Array, Array, IntArray, int, int, Array, IntArray], None]


@inlined
def raise_scores(n: int, tables: Array, scores: Array, t: int, best: Array) -> None:
    """best = the largest over j of scores_t(j) + table(j, k), of two j at a time; n is even."""
    for k in range(n):
        value, other = scores[t, 0] + tables[0, k], scores[t, 1] + tables[1, k]
        best[0, k] = value if value > other else other
    for i in range(1, n // 2):
        one, two = scores[t, 2 * i], scores[t, 2 * i + 1]
        for k in range(n):
            value, other = one + tables[2 * i, k], two + tables[2 * i + 1, k]
            value = value if value > other else other
            best[0, k] = value if value > best[0, k] else best[0, k]


@inlined
def add_unary(n: int, best: Array, unary: Array, r: int, scores: Array, t: int) -> None:
    """scores_t = best + unary_r."""
    for k in range(n):
        scores[t, k] = best[0, k] + unary[r, k]


@inlined
def best_before(n: int, transposed: Array, scores: Array, t: int, label: int) -> int:
    """The first j where scores_t(j) + table(j, label) is largest: among even ones and odd ones, then of the two."""
    even, first = scores[t, 0] + transposed[label, 0], 0
    odd, second = scores[t, 1] + transposed[label, 1], 1
    for i in range(1, n // 2):
        value, other = scores[t, 2 * i] + transposed[label, 2 * i], scores[t, 2 * i + 1] + transposed[label, 2 * i + 1]
        first = 2 * i if value > even else first
        even = value if value > even else even
        second = 2 * i + 1 if other > odd else second
        odd = other if other > odd else odd
    return second if odd > even or (odd == even and second < first) else first


def pad_labels(n_states: int) -> int:
    """W: an even number of columns for K labels."""
    return (pad_columns(n_states) + 1) // 2 * 2


def make_viterbi(n_states: int) -> Kernel:
    """The kernel for K labels: sequences [start, stop) -> codes (T,), by way of scores (longest sequence, W)."""
    width = pad_labels(n_states)

    def kernel(
        unary: Array,
        row: IntArray,
        initial: Array,
        transition: Array,
        offsets: IntArray,
        start: int,
        stop: int,
        scores: Array,
        codes: IntArray,
    ) -> None:
        n = width
        for k in range(n_states, n):
            scores[:, k] = -np.inf
        tables, transposed, best = np.full((n, n), -np.inf), np.full((n, n), -np.inf), np.empty((1, n))
        for j in range(n_states):
            for k in range(n_states):
                tables[j, k] = transition[j, k]
                transposed[k, j] = transition[j, k]
        for s in range(start, stop):
            first, length = offsets[s], offsets[s + 1] - offsets[s]
            for t in range(length):
                r = row[first + t] if len(row) > 0 else first + t
                if t == 0:
                    for k in range(n_states):
                        scores[0, k] = initial[k] + unary[r, k]
                else:
                    raise_scores(n, tables, scores, t - 1, best)
                    add_unary(n_states, best, unary, r, scores, t)
            last = 0
            for k in range(1, n_states):
                last = k if length > 0 and scores[length - 1, k] > scores[length - 1, last] else last
            possible = length > 0 and scores[length - 1, last] > -np.inf
            for i in range(length):
                t = length - 1 - i
                codes[first + t] = last if possible else -1
                if t > 0 and possible:
                    last = best_before(n, transposed, scores, t - 1, last)

    return kernel
