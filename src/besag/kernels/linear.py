"""Tables in the linear domain: exp(log-potential - largest entry of its table).

values (L,)     in [0, 1], the largest entry of a table being one, hard zeros 0
largest (T,)    the logarithms that were taken out; 0 of a table without a positive entry
spans (T,)      largest less smallest logarithm of the positive entries
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from besag.arrays import Array
from besag.kernels.factors import Factors


class Linear(NamedTuple):
    """All tables of a problem; see the module's arrays."""

    values: Array
    largest: Array
    spans: Array


def linear(factors: Factors) -> Linear:
    """The tables of factors, in the linear domain."""
    logs, starts = factors.log_potentials, factors.table_offsets[:-1]
    largest = np.maximum.reduceat(logs, starts)
    smallest = np.minimum.reduceat(logs, starts)
    if smallest.min(initial=0.0) == -np.inf:
        largest[largest == -np.inf] = 0.0
        smallest = np.minimum.reduceat(np.where(logs == -np.inf, np.inf, logs), starts)
        smallest[smallest == np.inf] = 0.0
    with np.errstate(under="ignore"):
        values = np.exp(logs - np.repeat(largest, np.diff(factors.table_offsets)))
    return Linear(values, largest, largest - smallest)
