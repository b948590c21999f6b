"""The Potts term: two neighbours agree, or they do not.

energy(i, j) = weight [i != j]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from besag.arrays import Array, IntArray, Kind
from besag.errors import ModelError
from besag.model.structured.base import Levelled, whole_number


@dataclass(frozen=True, slots=True)
class Potts(Levelled):
    """The Potts term: one weight, energy weight * [i != j]; a positive weight makes neighbours agree.

    >>> Potts(2).dense()
    array([[[0., 1.],
            [1., 0.]]])
    """

    kind: ClassVar[int] = Kind.POTTS
    name: ClassVar[str] = "potts"
    n_states: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_states", whole_number(self.name, "the number of states", self.n_states))
        if self.n_states < 1:
            raise ModelError(f"potts needs at least one state, got {self.n_states}")

    @property
    def shape(self) -> tuple[int, ...]:
        """(K, K)."""
        return (self.n_states, self.n_states)

    def levels(self) -> Array:
        """0 where the states agree, 1 where they differ."""
        return np.array([[0.0, 1.0]])

    def level_of(self, labels: IntArray) -> IntArray:
        """[i != j]."""
        return np.asarray(labels[..., 0] != labels[..., 1], np.int64)


def potts(n_states: int) -> Potts:
    """The Potts term of `n_states` labels, log-potential -[i != j], for the `pairwise` argument of a builder.

    >>> import besag
    >>> model = besag.grid((2, 2), 3, pairwise=besag.potts(3), weights=0.5)
    >>> float(model.energy({"0,0": "0", "0,1": "1", "1,0": "0", "1,1": "0"}))
    1.0
    """
    return Potts(n_states)
