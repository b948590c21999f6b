"""exp(lp / rho) of tables, as `trw` reads it: each over its largest entry, whose lp / rho is `highs`.

Shapes: T tables, each with one rho; logs (T,) where a table begins in the log-potentials, weights (T + 1,) where in
`linear` (W,); of a Potts factor, which has one number there, the weights of equal and of unequal states.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from besag.arrays import Array, BoolArray, IntArray
from besag.kernels.compile import at


def make_linear() -> Callable[..., None]:
    """Kernel: highs and linear of tables first to last."""

    def fill(
        log_potentials: Array,
        potts: BoolArray,
        logs: IntArray,
        weights: IntArray,
        rho: Array,
        first: int,
        last: int,
        highs: Array,
        linear: Array,
    ) -> None:
        for t in range(first, last):
            start, to, n, share = logs[t], weights[t], weights[t + 1] - weights[t], rho[t]
            if potts[t]:
                linear[to], linear[to + 1] = 0.0, log_potentials[start]
            else:
                for i in range(n):
                    linear[at(to + i)] = log_potentials[at(start + i)]
            high = -math.inf
            for i in range(n):
                high = max(high, linear[at(to + i)])
            high = 0.0 if high == -math.inf else high
            highs[t] = high / share
            for i in range(n):
                linear[at(to + i)] = math.exp((linear[at(to + i)] - high) / share)

    return fill
