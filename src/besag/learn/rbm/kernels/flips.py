"""Conditionals of visible variables given all other ones, for the pseudo-likelihood of a machine.

    p(v = s | rest) is proportional to exp(b_s + sum over j of log(1 + exp(c + v' W)_j)),   v' the row with s in place

One column of log-odds changes with s, so that a variable takes as many terms as it has states and hidden units.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.learn.rbm.kernels.partition import soft_sum


def make_conditionals() -> Callable[..., None]:
    """Kernel: out[i, m] = log p(units of variable picks[i, m] | the rest of row i); grey ones by their shares."""

    def conditionals(
        units: AnyArray,
        odds: AnyArray,
        weights: AnyArray,
        visible: AnyArray,
        offsets: IntArray,
        is_binary: bool,
        picks: IntArray,
        first: int,
        last: int,
        out: Array,
    ) -> None:
        rest, moved, n_hidden = np.empty(odds.shape[1]), np.empty(odds.shape[1]), odds.shape[1]
        for i in range(first, last):
            for m in range(picks.shape[1]):
                start, stop = offsets[picks[i, m]], offsets[picks[i, m] + 1]
                for j in range(n_hidden):
                    rest[j] = odds[i, j]
                for s in range(start, stop):
                    for j in range(n_hidden):
                        rest[j] -= units[i, s] * weights[s, j]
                top, z, found = -math.inf, 0.0, 0.0
                if is_binary:
                    top, z = soft_sum(1.0, rest), 1.0
                    found = (1.0 - units[i, start]) * top
                for s in range(start, stop):
                    for j in range(n_hidden):
                        moved[j] = rest[j] + weights[s, j]
                    score = visible[s] + soft_sum(1.0, moved)
                    found += units[i, s] * score
                    if score > top:
                        z, top = z * math.exp(top - score) + 1.0, score
                    else:
                        z += math.exp(score - top)
                out[i, m] = found - top - math.log(z)

    return conditionals
