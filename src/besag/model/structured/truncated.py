"""Costs that grow with the distance of two labels, up to a limit: edges of images and of disparities stay sharp.

    linear       energy(i, j) = weight min(|i - j|, limit)
    quadratic    energy(i, j) = weight min((i - j)^2, limit)

The extent is the least distance D that has reached the limit, so that there are D + 1 levels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from besag.arrays import Array, IntArray, Kind
from besag.errors import ModelError
from besag.model.structured.base import Levelled, real_number, whole_number


@dataclass(frozen=True, slots=True)
class _Truncated(Levelled):
    """A cost of |i - j|: its power, up to the limit."""

    power: ClassVar[int]
    n_states: int
    limit: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_states", whole_number(self.name, "the number of states", self.n_states))
        object.__setattr__(self, "limit", real_number(self.name, "limit", self.limit))
        if self.n_states < 1:
            raise ModelError(f"{self.name} needs at least one state, got {self.n_states}")
        if not 0.0 < self.limit <= math.inf:
            raise ModelError(f"{self.name}: limit must be a positive number, or inf for none, got {self.limit!r}")
        object.__setattr__(self, "limit", float(min(self.limit, self._largest)))

    @property
    def _largest(self) -> float:
        """The cost of the two labels that are furthest apart; 1 where there is one label."""
        return float(max(self.n_states - 1, 1) ** self.power)

    @property
    def extent(self) -> int:
        """The least distance that costs the limit."""
        near = math.isqrt(math.floor(self.limit)) if self.power == 2 else math.floor(self.limit)
        return near if near**self.power >= self.limit else near + 1

    @property
    def shape(self) -> tuple[int, ...]:
        """(K, K)."""
        return (self.n_states, self.n_states)

    def levels(self) -> Array:
        """The cost of each distance up to the extent, (1, D + 1)."""
        return np.asarray(np.minimum(np.arange(self.extent + 1.0) ** self.power, self.limit)[None])

    def level_of(self, labels: IntArray) -> IntArray:
        """min(|i - j|, D)."""
        return np.asarray(np.minimum(np.abs(labels[..., 0] - labels[..., 1]), self.extent))


@dataclass(frozen=True, slots=True)
class TruncatedLinear(_Truncated):
    """energy weight * min(|i - j|, limit).

    >>> TruncatedLinear(4, 2).dense()[0]
    array([[0., 1., 2., 2.],
           [1., 0., 1., 2.],
           [2., 1., 0., 1.],
           [2., 2., 1., 0.]])
    """

    kind: ClassVar[int] = Kind.TRUNCATED_LINEAR
    name: ClassVar[str] = "truncated_linear"
    power: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class TruncatedQuadratic(_Truncated):
    """energy weight * min((i - j)^2, limit).

    >>> TruncatedQuadratic(4, 5).dense()[0]
    array([[0., 1., 4., 5.],
           [1., 0., 1., 4.],
           [4., 1., 0., 1.],
           [5., 4., 1., 0.]])
    """

    kind: ClassVar[int] = Kind.TRUNCATED_QUADRATIC
    name: ClassVar[str] = "truncated_quadratic"
    power: ClassVar[int] = 2


def truncated_linear(n_states: int, limit: float = math.inf) -> TruncatedLinear:
    """The log-potential -min(|i - j|, limit) of two variables of `n_states` labels, for `pairwise` of a builder.

    A message takes O(K) in min-sum (a distance transform, Felzenszwalb and Huttenlocher 2006) and in sum-product.

    >>> import besag
    >>> model = besag.grid((1, 2), 5, pairwise=besag.truncated_linear(5, 2), weights=0.5)
    >>> float(model.energy({"0,0": "0", "0,1": "4"}))
    1.0
    """
    return TruncatedLinear(n_states, limit)


def truncated_quadratic(n_states: int, limit: float = math.inf) -> TruncatedQuadratic:
    """The log-potential -min((i - j)^2, limit) of two variables of `n_states` labels, for `pairwise` of a builder.

    A message takes O(K) in min-sum (the lower envelope of parabolas, where the weight is positive), and O(K D) in
    sum-product, D the least distance that costs the limit: a band beside a constant.

    >>> import besag
    >>> model = besag.grid((1, 2), 5, pairwise=besag.truncated_quadratic(5, 9), weights=0.5)
    >>> float(model.energy({"0,0": "0", "0,1": "2"}))
    2.0
    """
    return TruncatedQuadratic(n_states, limit)
