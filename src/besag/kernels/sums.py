"""Sums of terms one by one: in SUM the sum itself; in logarithms the largest term, and the sum of all relative to it.

The logarithm of a sum would not do: of terms near 1e17 it is the same for one term and for two.
"""

from __future__ import annotations

import math

from besag.kernels.compile import inlined
from besag.kernels.semiring import SUM


@inlined
def add_term(semiring: int, highest: float, total: float, x: float) -> tuple[float, float]:
    """The largest term of a sum, and the sum relative to it (in SUM the sum itself), with one more term."""
    if semiring == SUM:
        return highest, total + x
    if x > highest:
        return x, total * math.exp(highest - x) + 1.0
    return highest, total + math.exp(x - highest) if x > -math.inf else total


@inlined
def log_of(semiring: int, highest: float, total: float) -> float:
    """The logarithm of a sum; -inf of zero."""
    if not total > 0.0:
        return -math.inf
    return math.log(total) if semiring == SUM else highest + math.log(total)


@inlined
def share_of(semiring: int, x: float, highest: float, total: float) -> float:
    """A term's share of a sum; 0 where that is zero."""
    if not total > 0.0:
        return 0.0
    return x / total if semiring == SUM else math.exp(x - highest) / total
