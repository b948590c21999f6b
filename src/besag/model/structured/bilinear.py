"""The bilinear term between two layers: every visible variable with every hidden one, as in a Boltzmann machine.

energy(i, j) = sum_q weight_q [i = q + 1] [j = 1],    i a state of a visible variable, j of a hidden one, 0 or 1

State 0 of either is the reference. With two states it is weight i j, and the factors of a whole machine are one matrix
of weights (V, H). For inference by messages it has no rules and is turned into tables, which have hardly more entries
than it has weights; samplers read the matrix (`besag.infer.sampling.layers`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from besag.arrays import Array, IntArray, Kind
from besag.errors import ModelError
from besag.model.structured.base import Structured


@dataclass(frozen=True, slots=True)
class Bilinear(Structured):
    """A pair of a variable with n_states and one with 2: a weight for each state but the first.

    >>> Bilinear(2).dense()
    array([[[0., 0.],
            [0., 1.]]])
    """

    kind: ClassVar[int] = Kind.BILINEAR
    name: ClassVar[str] = "bilinear"
    n_states: int

    def __post_init__(self) -> None:
        if self.n_states < 2:
            raise ModelError(f"bilinear needs at least two states, got {self.n_states}")

    @property
    def shape(self) -> tuple[int, ...]:
        """(K, 2)."""
        return (self.n_states, 2)

    @property
    def n_parameters(self) -> int:
        """K - 1."""
        return self.n_states - 1

    def dense(self) -> Array:
        """[i = q + 1][j = 1], (K - 1, K, 2)."""
        basis = np.zeros((self.n_parameters, *self.shape))
        basis[:, :, 1] = np.eye(self.n_states)[1:]
        return basis

    def features(self, labels: IntArray) -> Array:
        """(..., 2) codes -> (..., K - 1)."""
        ones = labels[..., :1] == np.arange(1, self.n_states)
        return np.asarray(ones & (labels[..., 1:] == 1), np.float64)
