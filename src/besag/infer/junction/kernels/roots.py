"""Messages that arrive at the roots of a tree of cliques, for rows of evidence."""

from __future__ import annotations

import math
from collections.abc import Callable

from besag.arrays import Array
from besag.infer.junction.kernels.rows import LN2, RowNumbers, RowWork, rise
from besag.infer.junction.kernels.tiles import Join
from besag.kernels.semiring import SUM


def make_roots(semiring: int) -> Callable[..., bool]:
    """Kernel: constants (R,) and messages of roots (R, M), in logarithms; True if the range was too narrow."""

    def roots(
        join: Join,
        rows: RowNumbers,
        work: RowWork,
        first: int,
        last: int,
        log_z: Array,
        constants: Array,
        values: Array,
    ) -> bool:
        for b in range(first, last):
            if rise(semiring, join, rows, b, work, log_z):
                return True
            scale, top = 0.0, 0
            for c in range(len(join.parent)):
                scale += work.scales[c]
                if join.parent[c] >= 0:
                    continue
                for i in range(join.message_offsets[c], join.message_offsets[c + 1]):
                    value = work.store[i]
                    if semiring == SUM:
                        value = math.log(value) if value > 0.0 else -math.inf
                    values[b, top] = value
                    top += 1
            constants[b] = rows.constants[b, 0] + scale * (LN2 if semiring == SUM else 1.0)
        return False

    return roots
