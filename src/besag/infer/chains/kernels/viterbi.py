"""The best labelling of chains, 002 (42)-(44) on a path: max-sum forward, the best predecessors back.

    score_0(k) = initial(k) + e_0(k)      score_t(k) = e_t(k) + max_j (score_t-1(j) + transition(j, k))

e_t = unary[t], or unary[row[t]] where tokens share rows (`row` is () if they do not). unary (R, K), initial (K,) and
transition (K, K) are log-potentials, -inf where a label or a transition is ruled out; sequence n has tokens offsets[n]
to offsets[n + 1]. Ties go to the lower label. A sequence without a possible labelling gets -1.

Scores are kept, predecessors are not: on the way back they are found again for the one label that is asked for, so that
the way forward is nothing but sums and maxima, two of which are under way at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from besag.arrays import Array, IntArray
from besag.infer.chains.kernels.gradient import pad_columns
from besag.infer.chains.kernels.marginals import longest_of
from besag.kernels.compile import inlined

Kernel: TypeAlias = Callable[[Array, IntArray, Array, Array, IntArray, int, int, IntArray], None]


@inlined
def raise_scores(n: int, tables: Array, scores: Array, t: int, best: Array) -> None:
    """best_0 = the largest over j of scores_t(j) + table(j, k); n is even."""
    for k in range(n):
        best[0, k] = scores[t, 0] + tables[0, k]
        best[1, k] = scores[t, 1] + tables[1, k]
    for j in range(1, n // 2):
        for k in range(n):
            even = scores[t, 2 * j] + tables[2 * j, k]
            odd = scores[t, 2 * j + 1] + tables[2 * j + 1, k]
            best[0, k] = even if even > best[0, k] else best[0, k]
            best[1, k] = odd if odd > best[1, k] else best[1, k]
    for k in range(n):
        best[0, k] = best[1, k] if best[1, k] > best[0, k] else best[0, k]


@inlined
def best_before(n: int, tables: Array, scores: Array, t: int, label: int) -> int:
    """The first j where scores_t(j) + table(j, label) is largest."""
    largest, best = scores[t, 0] + tables[0, label], 0
    for j in range(1, n):
        value = scores[t, j] + tables[j, label]
        best = j if value > largest else best
        largest = value if value > largest else largest
    return best


def make_viterbi(n_states: int) -> Kernel:
    """The kernel for K labels: sequences [start, stop) -> codes (T,)."""
    width = max(2, (pad_columns(n_states) + 1) // 2 * 2)

    def kernel(
        unary: Array,
        row: IntArray,
        initial: Array,
        transition: Array,
        offsets: IntArray,
        start: int,
        stop: int,
        codes: IntArray,
    ) -> None:
        n = width
        scores = np.full((max(longest_of(offsets, start, stop), 1), n), -np.inf)
        tables, best = np.full((n, n), -np.inf), np.empty((2, n))
        for j in range(n_states):
            for k in range(n_states):
                tables[j, k] = transition[j, k]
        for s in range(start, stop):
            first, length = offsets[s], offsets[s + 1] - offsets[s]
            for t in range(length):
                r = row[first + t] if len(row) > 0 else first + t
                if t == 0:
                    for k in range(n_states):
                        scores[0, k] = initial[k] + unary[r, k]
                else:
                    raise_scores(n, tables, scores, t - 1, best)
                    for k in range(n_states):
                        scores[t, k] = best[0, k] + unary[r, k]
            last = 0
            for k in range(1, n_states):
                last = k if length > 0 and scores[length - 1, k] > scores[length - 1, last] else last
            possible = length > 0 and scores[length - 1, last] > -np.inf
            for i in range(length):
                t = length - 1 - i
                codes[first + t] = last if possible else -1
                if t > 0 and possible:
                    last = best_before(n, tables, scores, t - 1, last)

    return kernel
