"""The M best labellings of one chain: as `viterbi`, with the M best paths to every label.

    score_t(k, m)    the m-th best of score_t-1(j, r) + transition(j, k) over all j and r, plus unary_t(k)

and for each of them the j and r that it came from, as j M + r. Ties go to the lower label, then to the better path.
Paths that are ruled out are left out: there may be fewer than M.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from besag.arrays import Array, IntArray
from besag.kernels.compile import inlined


@inlined
def insert(value: float, came: int, n: int, scores: Array, sources: IntArray) -> int:
    """Insert a path among the n best so far, in falling order of score; returns how many there are then."""
    most = len(scores)
    if n == most and not value > scores[most - 1]:
        return n
    m = min(n, most - 1)
    while m > 0 and scores[m - 1] < value:
        scores[m], sources[m] = scores[m - 1], sources[m - 1]
        m -= 1
    scores[m], sources[m] = value, came
    return min(n + 1, most)


def make_best() -> Callable[..., int]:
    """Kernel: unary (T, K), transition (K, K) -> codes (M, T) and scores (M,), best first; and their number."""

    def best(unary: Array, transition: Array, codes: IntArray, scores: Array) -> int:
        n_tokens, n_states = unary.shape
        most = len(scores)
        before, now = np.empty((n_states, most)), np.empty((n_states, most))
        had, has = np.zeros(n_states, np.int64), np.zeros(n_states, np.int64)
        sources = np.empty((n_tokens, n_states, most), np.int64)
        for k in range(n_states):
            now[k, 0] = unary[0, k]
            has[k] = 1 if unary[0, k] > -np.inf else 0
        for t in range(1, n_tokens):
            before, now = now, before
            had, has = has, had
            for k in range(n_states):
                has[k] = 0
                for j in range(n_states):
                    for r in range(had[j]):
                        value = before[j, r] + transition[j, k] + unary[t, k]
                        full = has[k] == most and not value > now[k, most - 1]
                        if full or value == -np.inf:
                            break  # those after it are no better
                        has[k] = insert(value, j * most + r, has[k], now[k], sources[t, k])
        ends, n = np.empty(most, np.int64), 0
        for k in range(n_states):
            for r in range(has[k]):
                n = insert(now[k, r], k * most + r, n, scores, ends)
        for m in range(n):
            end = ends[m]
            for i in range(n_tokens):
                t = n_tokens - 1 - i
                codes[m, t] = end // most
                end = sources[t, end // most, end % most] if t > 0 else 0
        return n

    return best
