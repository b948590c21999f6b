"""One shared table times a weight of each factor: no table a factor.

energy(y) = weight table[y]

The model stores one number a factor, and learning reads no more than that. For inference it has no rules and is turned
into tables: a message through it needs all K1 x K2 entries anyway, in the sum-product domain one exponential each, so
that without tables of its own a factor would take as many operations a message and K1 x K2 exponentials more. What
tables cost is memory (256 x 256 variables of 16 states: 0.27 GB), and `memory_limit` counts them. A table that is a
formula of few levels, as that of `potts`, is worth a kind with rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from besag.arrays import Array, IntArray, Kind, Rebuilt, secure
from besag.model.structured.base import Structured


@dataclass(frozen=True, slots=True, eq=False)
class Scaled(Rebuilt, Structured):
    """One shared table times a weight of each factor: energy weight * table[y]; no table per factor."""

    kind: ClassVar[int] = Kind.SCALED
    name: ClassVar[str] = "scaled"
    table: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", secure(np.asarray(self.table, np.float64)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scaled) and np.array_equal(self.table, other.table)

    def __hash__(self) -> int:
        return hash(self.table.tobytes())

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
