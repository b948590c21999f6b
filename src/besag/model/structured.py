"""Structured factors: a factor whose table is a formula of a few numbers and is never stored.

A Structured takes the place of a Template's basis. Its energy is still linear in its weights,

    h(y) = sum_q weights_q basis_q(y),        basis (Q, K1..Kn),

but only the weights (T, Q) are stored, and engines that know its `kind` send its messages without the table. `dense()`
gives the basis to engines that do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from besag.arrays import Array, IntArray, Kind, Rebuilt, secure
from besag.errors import ModelError


class Structured(Protocol):
    """The interface of a structured factor."""

    kind: ClassVar[int]
    """The number that identifies it in kernels."""

    @property
    def shape(self) -> tuple[int, ...]:
        """K1..Kn."""

    @property
    def n_parameters(self) -> int:
        """Q."""

    def dense(self) -> Array:
        """The basis, (Q, K1..Kn)."""

    def features(self, labels: IntArray) -> Array:
        """The basis at labellings of the scope: (..., n) codes -> (..., Q)."""


@dataclass(frozen=True, slots=True)
class Potts:
    """The Potts term: one weight, energy weight * [i != j]; a positive weight makes neighbours agree.

    >>> Potts(2).dense()
    array([[[0., 1.],
            [1., 0.]]])
    """

    kind: ClassVar[int] = Kind.POTTS
    n_states: int

    def __post_init__(self) -> None:
        if self.n_states < 1:
            raise ModelError(f"potts needs at least one state, got {self.n_states}")

    @property
    def shape(self) -> tuple[int, ...]:
        """(K, K)."""
        return (self.n_states, self.n_states)

    @property
    def n_parameters(self) -> int:
        """One: the weight."""
        return 1

    def dense(self) -> Array:
        """[i != j], (1, K, K)."""
        return 1.0 - np.eye(self.n_states)[None]

    def features(self, labels: IntArray) -> Array:
        """(..., 2) codes -> (..., 1)."""
        return np.asarray((labels[..., 0] != labels[..., 1])[..., None], np.float64)


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


def potts(n_states: int) -> Potts:
    """The Potts term of `n_states` labels, log-potential -[i != j], for the `pairwise` argument of a builder.

    >>> import besag
    >>> model = besag.grid((2, 2), 3, pairwise=besag.potts(3), weights=0.5)
    >>> float(model.energy({"0,0": "0", "0,1": "1", "1,0": "0", "1,1": "0"}))
    1.0
    """
    return Potts(n_states)
