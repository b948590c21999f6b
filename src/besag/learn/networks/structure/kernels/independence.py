"""The statistic of a test of independence of x and y in every stratum of z.

    G^2   2 sum n_xyz log(n_xyz n_z / (n_xz n_yz))        chi^2   sum (n_xyz - e)^2 / e,  e = n_xz n_yz / n_z

Degrees of freedom are (K_x - 1)(K_y - 1) for each stratum; adjusted, only states with a count in a stratum count in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from besag.arrays import AnyArray, Array
from besag.kernels.compile import inlined
from besag.learn.networks.structure.kernels.families import joined_with, tally


def make_independence() -> Callable[..., tuple[float, int]]:
    """Kernel: (statistic, adjusted degrees of freedom); ids (N,) the strata, x and y columns (N,)."""

    def independence(
        ids: AnyArray, n_ids: int, x: AnyArray, kx: int, y: AnyArray, ky: int, weights: Array, chi: int, table: AnyArray
    ) -> tuple[float, int]:
        tally(joined_with(ids, kx, x), y, ky, weights, n_ids * kx * ky, table)
        statistic, freedom = 0.0, 0
        of_x, of_y = np.zeros(kx), np.zeros(ky)
        for z in range(n_ids):
            start = z * kx * ky
            total = margins(table, start, kx, ky, of_x, of_y)
            if total > 0.0:
                freedom += int((np.count_nonzero(of_x) - 1) * (np.count_nonzero(of_y) - 1))
            statistic += stratum(table, start, of_x, of_y, total, chi)
        return statistic, freedom

    return independence


@inlined
def margins(table: AnyArray, start: int, kx: int, ky: int, of_x: Array, of_y: Array) -> float:
    """Row and column sums of one stratum, and its total."""
    total = 0.0
    of_x[:], of_y[:] = 0.0, 0.0
    for i in range(kx):
        for j in range(ky):
            count = table[start + i * ky + j]
            of_x[i] += count
            of_y[j] += count
            total += count
    return total


@inlined
def stratum(table: AnyArray, start: int, of_x: Array, of_y: Array, total: float, chi: int) -> float:
    """What one stratum adds to the statistic."""
    added = 0.0
    for i in range(len(of_x)):
        for j in range(len(of_y)):
            expected = of_x[i] * of_y[j] / total if total > 0.0 else 0.0
            count = table[start + i * len(of_y) + j]
            if expected > 0.0 and chi:
                added += (count - expected) ** 2 / expected
            elif count > 0:
                added += 2.0 * count * math.log(count / expected)
    return added
