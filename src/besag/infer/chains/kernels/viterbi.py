"""The best labelling of chains, 002 (42)-(44) on a path: max-sum forward, the best predecessors back.

    score_0(k) = unary_0(k)        score_t(k) = unary_t(k) + max_j (score_t-1(j) + transition(j, k))

unary (T, K) and transition (K, K) are log-potentials, -inf where a label or a transition is ruled out; sequence n has
rows offsets[n] to offsets[n + 1]. Ties go to the lower label. A sequence without a possible labelling gets -1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from besag.arrays import Array, IntArray
from besag.kernels.compile import at

Kernel: TypeAlias = Callable[[Array, Array, IntArray, int, int, IntArray], None]


def make_viterbi(n_states: int) -> Kernel:
    """The kernel for K labels: sequences [start, stop) of flat unary (T K) and transition (K K) -> codes (T,)."""

    def kernel(unary: Array, transition: Array, offsets: IntArray, start: int, stop: int, codes: IntArray) -> None:
        longest = 0
        for n in range(start, stop):
            longest = max(longest, offsets[n + 1] - offsets[n])
        came_from = np.empty(longest * n_states, np.int64)
        score, best, arg = np.empty(n_states), np.empty(n_states), np.empty(n_states, np.int64)
        for n in range(start, stop):
            first, length = offsets[n], offsets[n + 1] - offsets[n]
            if length == 0:
                continue
            for k in range(n_states):
                score[k] = unary[at(first * n_states + k)]
            for t in range(1, length):
                for k in range(n_states):
                    best[k], arg[k] = score[0] + transition[k], 0
                for j in range(1, n_states):
                    for k in range(n_states):
                        value = score[j] + transition[at(j * n_states + k)]
                        better = value > best[k]
                        best[k] = value if better else best[k]
                        arg[k] = j if better else arg[k]
                for k in range(n_states):
                    score[k] = best[k] + unary[at((first + t) * n_states + k)]
                    came_from[at(t * n_states + k)] = arg[k]
            last = 0
            for k in range(1, n_states):
                if score[k] > score[last]:
                    last = k
            possible = score[last] > -np.inf
            for t in range(length - 1, -1, -1):
                codes[first + t] = last if possible else -1
                if t > 0:
                    last = came_from[t * n_states + last]

    return kernel
