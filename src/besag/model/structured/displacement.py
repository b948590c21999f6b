"""How far apart two places of one grid are: the springs of pictorial structures.

    energy(i, j) = weight min(c, limit),    c = 1/2 sum over axes ((place of j - place of i - offset) / scale)^2

With weight 1 and no limit that is minus the logarithm of a Gaussian of mean `offset` and standard deviation `scale`,
but for its constant. A place (y, x) of a grid (H, W) is the state y W + x; a line is a grid with H = 1. There is a
level for each displacement, 4 K of them for K places, and nothing has K^2 entries.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from besag.arrays import Array, IntArray, Kind, Rebuilt, secure
from besag.errors import ModelError
from besag.model.given import numbers
from besag.model.structured.base import Levelled, real_number
from besag.model.structured.kernels.displacement import WIDEST


@dataclass(frozen=True, slots=True, eq=False)
class Displacement(Rebuilt, Levelled):
    """Two places of a grid (height, width), offset and scale (2,) down and across; a limit of inf is none.

    >>> Displacement(1, 3, np.array([0.0, 1.0]), np.ones(2), 1.5).dense()[0]
    array([[0.5, 0. , 0.5],
           [1.5, 0.5, 0. ],
           [1.5, 1.5, 0.5]])
    """

    kind: ClassVar[int] = Kind.DISPLACEMENT
    name: ClassVar[str] = "displacement"
    height: int
    width: int
    offset: Array
    scale: Array
    limit: float

    def __post_init__(self) -> None:
        if not (0 < self.height <= WIDEST and 0 < self.width <= WIDEST):
            raise ModelError(f"displacement: sides of a grid are from 1 to {WIDEST}, got {self.height}, {self.width}")
        for name in ("offset", "scale"):
            pair = secure(np.asarray(getattr(self, name), np.float64))
            if pair.shape != (2,) or not np.isfinite(pair).all():
                raise ModelError(f"displacement: {name} is a finite number for each axis, got {pair.tolist()}")
            object.__setattr__(self, name, pair)
        if not (self.scale > 0).all():
            raise ModelError(f"displacement: scale must be above 0, got {self.scale.tolist()}")
        object.__setattr__(self, "limit", real_number(self.name, "limit", self.limit))
        if not self.limit > 0.0:
            raise ModelError(f"displacement: limit must be a positive number, or None for none, got {self.limit!r}")

    def _key(self) -> tuple[object, ...]:
        return self.height, self.width, *self.offset.tolist(), *self.scale.tolist(), self.limit

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Displacement) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    @property
    def extent(self) -> int:
        """The width, and whether a displacement reaches the limit, in one number."""
        furthest = np.abs(self.offset) + np.array([self.height - 1, self.width - 1])
        return 2 * self.width + bool(0.5 * ((furthest / self.scale) ** 2).sum() > self.limit)

    @property
    def shape(self) -> tuple[int, ...]:
        """(H W, H W)."""
        return (self.height * self.width, self.height * self.width)

    def levels(self) -> Array:
        """The cost of each displacement, (2 H - 1) (2 W - 1) of them, and the limit if one reaches it."""
        down, across = np.arange(2.0 * self.height - 1), np.arange(1.0 - self.width, self.width)
        down = np.where(down % 2 == 1, (down + 1) / 2, -down / 2)  # 0, 1, -1, 2, -2, ..
        away = zip((down, across), self.offset, self.scale, strict=True)
        down, across = (0.5 * ((by - offset) / scale) ** 2 for by, offset, scale in away)
        costs = np.minimum(down[:, None] + across, self.limit).reshape(-1)
        return np.append(costs, self.limit)[None] if self.extent % 2 else costs[None]

    def level_of(self, labels: IntArray) -> IntArray:
        """The displacement of the second place from the first."""
        down, across = (
            f(labels[..., 1], self.width) - f(labels[..., 0], self.width) for f in (np.floor_divide, np.mod)
        )
        return np.asarray(np.where(down > 0, 2 * down - 1, -2 * down) * (2 * self.width - 1) + across + self.width - 1)


def displacement(
    shape: int | Sequence[int],
    offset: float | Sequence[float] = 0.0,
    scale: float | Sequence[float] = 1.0,
    limit: float | None = None,
) -> Displacement:
    """The log-potential -min(c, limit), c = 1/2 sum ((place of 2nd - place of 1st - offset) / scale)^2 over axes.

    The two variables of its scope are places on one grid of this shape, (H, W) or n, (y, x) being state y W + x; offset
    and scale are a number for each axis, or one for both. It is a Gaussian of standard deviation `scale`; where parts
    of a figure are (Felzenszwalb and Huttenlocher 2005). A message takes O(H W) in min-sum, and O(H W (H + W)) in
    sum-product, or O(H W D) with a limit that D displacements are below.

    >>> import besag
    >>> spring = besag.factors.displacement((3, 5), offset=(0, 2), scale=1.0)
    >>> model = besag.markov_network([15, 15], [(("0", "1"), spring)])
    >>> best = model.map(evidence={"0": "5"})  # (1, 0)
    >>> best.assignment["1"]  # (1, 2)
    '7'
    """
    sides = np.atleast_1d(numbers(shape, "displacement: shape"))
    if sides.shape not in ((1,), (2,)) or sides.dtype.kind not in "iu":
        raise ModelError(f"displacement: shape is (H, W), or the length of a line, got {shape!r}")
    pairs = []
    for name, given in (("offset", offset), ("scale", scale)):
        values = np.atleast_1d(numbers(given, f"displacement: {name}").astype(np.float64))
        if values.shape not in ((1,), sides.shape):
            raise ModelError(f"displacement: {name} is a number for each of {len(sides)} axes, or one, got {given!r}")
        values = np.broadcast_to(values, sides.shape)
        alone = 0.0 if name == "offset" else 1.0
        pairs.append(values.copy() if len(sides) == 2 else np.array([alone, values[0]]))
    height, width = (1, int(sides[0])) if len(sides) == 1 else (int(sides[0]), int(sides[1]))
    return Displacement(height, width, pairs[0], pairs[1], math.inf if limit is None else limit)
