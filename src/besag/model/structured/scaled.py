"""One shared table times a weight of each factor: no table a factor.

energy(y) = weight table[y]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from besag.arrays import Array, IntArray, Kind, Rebuilt, secure


@dataclass(frozen=True, slots=True, eq=False)
class Scaled(Rebuilt):
    """One shared table times a weight of each factor: energy weight * table[y]; no table per factor."""

    kind: ClassVar[int] = Kind.SCALED
    table: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", secure(np.asarray(self.table, np.float64)))

    @property
    def shape(self) -> tuple[int, ...]:
        """K1..Kn."""
        return self.table.shape

    @property
    def n_parameters(self) -> int:
        """One: the weight."""
        return 1

    def dense(self) -> Array:
        """The table, (1, K1..Kn)."""
        return self.table[None]

    def features(self, labels: IntArray) -> Array:
        """(..., n) codes -> (..., 1)."""
        return np.asarray(self.table[tuple(np.moveaxis(labels, -1, 0))][..., None])
