"""Sums over the states of many small terms, and their shares on table entries.

    s_t(k) = sum over links j of t of log_potentials[cells[j] + k steps[j]]          k = 0, .., n_t - 1

A link with step -1 - y is a Potts factor whose other end is at y: its one number counts at all states but y.

    M terms, J links: those of term t are first[t] to first[t + 1]; L table entries
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.infer.sampling.kernels.single_site import weigh
from besag.kernels.compile import at


def make_sums(n_states: int, with_given: int) -> Callable[..., float]:
    """Kernel: sum_t w_t log sum_k exp s_t(k); adds w_t p_t(k) to the table entries that s_t(k) is made of, (L,).

    n_states: of every term, 0 if they differ. with_given: whether `given` (sum of n_t) holds parts of s_t(k) that no
    link has; w_t p_t(k) takes their place.
    """

    def add_sums(
        first: AnyArray,
        cells: AnyArray,
        steps: AnyArray,
        sizes: IntArray,
        weights: Array,
        log_potentials: Array,
        given: Array,
        moments: Array,
    ) -> float:
        most, total, offset = 1, 0.0, 0
        if n_states == 0:
            for t in range(len(weights)):
                most = max(most, sizes[t])
        s = np.empty(n_states if n_states > 0 else most)
        for t in range(len(weights)):
            n = n_states if n_states > 0 else sizes[t]
            for k in range(n):
                s[k] = given[offset + k] if with_given else 0.0
            for j in range(first[t], first[t + 1]):
                cell, step = int(cells[j]), int(steps[j])
                if step >= 0:
                    for k in range(n):
                        s[k] += log_potentials[at(cell + k * step)]
                else:
                    for k in range(n):
                        s[k] += log_potentials[at(cell)]
                    s[-1 - step] -= log_potentials[at(cell)]
            top = s[0]
            for k in range(1, n):
                top = max(top, s[k])
            z = weigh(s, n)
            total += weights[t] * (top + math.log(z))
            share = weights[t] / z
            for k in range(n):
                s[k] *= share
            for j in range(first[t], first[t + 1]):
                cell, step = int(cells[j]), int(steps[j])
                if step >= 0:
                    for k in range(n):
                        moments[at(cell + k * step)] += s[k]
                else:
                    moments[at(cell)] += weights[t] - s[-1 - step]
            if with_given:
                for k in range(n):
                    given[offset + k] = s[k]
            offset += n
        return total

    return add_sums
