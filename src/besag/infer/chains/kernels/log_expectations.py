"""`expectations` in logarithms, for the sequences whose numbers are too far apart for the linear domain.

rows (R, W), initial (1, W) and transition (K, K) are logarithms, -inf where something is ruled out; nothing was taken
out of them. Pairs have their factor T. Sequences that are not marked in `lost` are left out; marked ones stay so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from besag.arrays import Array, BoolArray, IntArray
from besag.infer.chains.kernels.expectations import BY_ROW, BY_TOKEN
from besag.infer.chains.kernels.marginals import level, log_forward, longest_of
from besag.kernels.compile import inlined

Kernel: TypeAlias = Callable[..., None]


@inlined
def log_total(n: int, x: Array, y: Array) -> float:
    """ln sum exp(x + y)."""
    highest, total = -math.inf, 0.0
    for k in range(n):
        highest = max(highest, x[k] + y[k])
    if highest == -math.inf:
        return highest
    for k in range(n):
        total += math.exp(x[k] + y[k] - highest)
    return highest + math.log(total)


@inlined
def add_log_marginal(n: int, x: Array, y: Array, total: float, counts: Array) -> None:
    """counts += exp(x + y - total)."""
    for k in range(n):
        counts[k] += math.exp(x[k] + y[k] - total)


def make_log_expectations(n_states: int, marginals: int, paired: int) -> Kernel:
    """The kernel for K states: counts (R, W) by row, or (T, W) of tokens; all else as for `make_expectations`."""

    def kernel(
        rows: Array,
        row: IntArray,
        initial: Array,
        transition: Array,
        offsets: IntArray,
        start: int,
        stop: int,
        counts: Array,
        begun: Array,
        pairs: Array,
        log_z: Array,
        lost: BoolArray,
    ) -> None:
        n = n_states
        transposed, longest = transition.T.copy(), longest_of(offsets, start, stop)
        a, b, x = np.empty((longest, n)), np.empty(n), np.empty(n)
        for s in range(start, stop):
            if not lost[s]:
                continue
            first, length = offsets[s], offsets[s + 1] - offsets[s]
            value = 0.0
            if marginals == BY_TOKEN:
                counts[first : first + length] = 0.0
            for t in range(length):
                for k in range(n):
                    before = initial[0, k] if t == 0 else log_forward(a[t - 1], transition, k)
                    a[t, k] = before + rows[row[first + t], k]
                value += level(a[t])
                if value == -math.inf:
                    break
            b[:] = 0.0
            if value > -math.inf and length > 0:
                value += log_total(n, a[length - 1], b)
            log_z[s] = value
            if value == -math.inf or marginals + paired == 0:
                continue
            for i in range(length):
                t = length - 1 - i
                total = log_total(n, a[t], b)
                if marginals == BY_ROW:
                    add_log_marginal(n, a[t], b, total, counts[row[first + t]])
                if marginals == BY_TOKEN:
                    add_log_marginal(n, a[t], b, total, counts[first + t])
                if t == 0:
                    if paired:
                        add_log_marginal(n, a[0], b, total, begun[0])
                    break
                for k in range(n):
                    x[k] = -math.inf if a[t, k] == -math.inf else b[k] + rows[row[first + t], k]
                level(x)
                for k in range(n):
                    b[k] = log_forward(x, transposed, k)
                if paired:
                    total = log_total(n, a[t - 1], b)
                    for j in range(n):
                        for k in range(n):
                            pairs[j, k] += math.exp(a[t - 1, j] + transition[j, k] + x[k] - total)

    return kernel
