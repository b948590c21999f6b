"""The robust P^n Potts term: all variables of a segment have one label, but for a few that pay each, up to a limit.

    energy = weight min(limit, min over labels l of least_l + slope_l #{i: y_i != l})          Kohli, Ladicky, Torr 2009

At most one label may cost less than the limit at a time, as in the paper, where fewer than half of the variables may
differ. Then with z a label or "none", and c_z the cost of z,

    exp(-energy) = exp(-limit) + sum_z [exp(-c_z) - exp(-limit)]        = max(exp(-limit), max_z exp(-c_z))

and no term is negative: the sum over z and the counts of z's automaton is the factor in sum-product, with the weights
of the first form, and in min-sum with those of the second. So z is chosen by the helpers of the chain, not determined
by y. With D_l counts of label l below the limit, a state is (l, count) or none, M = sum D_l + 1 of them, and the
messages take O(n K M^2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from besag.arrays import Array, IntArray, Kind, Rebuilt, Semiring, secure
from besag.errors import ModelError
from besag.model.given import numbers
from besag.model.structured.base import Structured, real_number, whole_number
from besag.model.structured.chained import Chained


@dataclass(frozen=True, slots=True, eq=False)
class RobustPotts(Rebuilt, Chained):
    """n variables of K states; least and slope (K,).

    >>> RobustPotts(3, np.zeros(2), np.ones(2), 1.5).dense()[0, 0]
    array([[0., 1.],
           [1., 1.]])
    """

    kind: ClassVar[int] = Kind.CHAINED
    name: ClassVar[str] = "robust_potts"
    chosen: ClassVar[bool] = True
    n_variables: int
    least: Array
    slope: Array
    limit: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_variables", whole_number(self.name, "the number of variables", self.n_variables))
        object.__setattr__(self, "limit", real_number(self.name, "limit", self.limit))
        for name in ("least", "slope"):
            numbers = secure(np.asarray(getattr(self, name), np.float64))
            if numbers.ndim != 1 or not np.isfinite(numbers).all() or (name == "slope" and not (numbers > 0).all()):
                raise ModelError(f"robust_potts: {name} is a finite number for each label, slopes above 0")
            object.__setattr__(self, name, numbers)
        if self.n_variables < 1 or len(self.least) < 1 or len(self.least) != len(self.slope):
            raise ModelError("robust_potts needs one variable and one label or more, least and slope for each label")
        if not -math.inf < self.limit < math.inf:
            raise ModelError(f"robust_potts: limit must be a finite number, got {self.limit!r}")
        two = np.sort(self._below())[-2:]
        if len(two) == 2 and two[0] > 0 and two.sum() - 2 >= self.n_variables:
            raise ModelError(
                f"robust_potts: two labels may cost less than the limit {self.limit} at once, where {two[0] - 1} and "
                f"{two[1] - 1} of {self.n_variables} variables differ; use a lower limit or steeper slopes"
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RobustPotts) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self.n_variables, *self.least.tolist(), *self.slope.tolist(), self.limit

    def _below(self) -> IntArray:
        """(K,): the number of counts at which a label costs less than the limit."""
        costs = self.least[:, None] + self.slope[:, None] * np.arange(self.n_variables + 1)
        return np.asarray((costs < self.limit).sum(axis=1))

    def _states(self) -> tuple[IntArray, IntArray]:
        """The label and the count of each state but the last."""
        below = self._below()
        labels = np.repeat(np.arange(len(below)), below)
        return labels, np.arange(len(labels)) - np.repeat(np.cumsum(below) - below, below)

    @property
    def shape(self) -> tuple[int, ...]:
        """(K,) * n."""
        return (len(self.least),) * self.n_variables

    def levels(self) -> Array:
        """The cost of each label and count below the limit, and the limit."""
        labels, counts = self._states()
        return np.append(self.least[labels] + self.slope[labels] * counts, self.limit)[None]

    def level_of(self, labels: IntArray) -> IntArray:
        """The label and count that cost less than the limit, or the last level."""
        of, counts = self._states()
        found = np.full(labels.shape[:-1], len(of))
        differ = [(labels != label).sum(axis=-1) for label in range(len(self.least))]
        for number, (label, count) in enumerate(zip(of.tolist(), counts.tolist(), strict=True)):
            found = np.where(differ[label] == count, number, found)
        return found

    def step(self, place: int) -> IntArray:
        """(M, K): the state after a label, -1 where a count has reached the limit; at the first place (M, K) too."""
        labels, counts = self._states()
        n, below = len(labels), self._below()
        other = labels[:, None] != np.arange(len(self.least))
        counts = np.zeros(n, np.int64) if place == 0 else counts
        first = np.cumsum(below) - below
        after = counts[:, None] + other
        found = np.where(after < below[labels][:, None], first[labels][:, None] + after, -1)
        return np.vstack([found, np.full((1, len(self.least)), n)])

    def links(self) -> list[Array]:
        """(M, K, M), the first one (1, K, M): which label the counts are of is chosen there."""
        n = len(self.levels()[0])
        begins = self.step(0)
        starts = np.where(np.arange(n)[:, None] == begins[self._starts()].reshape(-1), 0.0, -np.inf)
        first = starts.reshape(n, -1, len(self.least)).max(axis=1).T[None]
        after = self.step(1)
        middle = np.where(after[..., None] == np.arange(n), 0.0, -np.inf)
        return [first] + [middle] * (self.n_variables - 2) if self.n_variables > 1 else []

    def _starts(self) -> IntArray:
        """One state of each label that has any, and the last state."""
        labels, counts = self._states()
        return np.append(np.flatnonzero(counts == 0), len(labels))

    def ends(self, values: Array, semiring: Semiring) -> Array:
        """Levels (T, L) -> log-potentials (T, M, K) of the last place."""
        spread = values[:, :-1] - values[:, -1:]
        if (spread < 0).any():
            raise ModelError("robust_potts of many variables: a weight must be 0 or above")
        if semiring != Semiring.MAX:
            with np.errstate(divide="ignore"):
                values = np.append(values[:, :-1] + np.log(-np.expm1(-spread)), values[:, -1:], axis=1)
        after = self.step(self.n_variables - 1)
        return np.where(after >= 0, values[:, after], -np.inf)

    def level_moments(self, own: Array, values: Array) -> Array:
        """Moments (T, M K) of the last place as those of levels (T, L)."""
        after, n = self.step(self.n_variables - 1).reshape(-1), values.shape[1]
        found = own @ (after[:, None] == np.arange(n))
        inside = np.where(found[:, :-1] > 0, values[:, :-1] - values[:, -1:], 1.0)
        with np.errstate(divide="ignore"):
            more = found[:, :-1] / np.expm1(inside)  # exp(limit) beside what is above it
        return np.hstack([found[:, :-1] + more, found[:, -1:] - more.sum(axis=1, keepdims=True)])


def robust_potts(
    n_variables: int, n_states: int, slope: Any = 1.0, limit: float | None = None, least: Any = 0.0
) -> Structured:
    """Log-potential -min(limit, min over labels of least + slope times how many of n variables have another label).

    slope and least: a number, or one for each label; limit: by default that of a quarter of the variables. Kohli,
    Ladicky and Torr (2009).

    >>> import besag
    >>> segment = besag.factors.robust_potts(5, 3, slope=1.0, limit=2.0)
    >>> model = besag.markov_network([3] * 5, [(tuple("01234"), segment)])
    >>> [float(model.energy(dict(zip("01234", labels)))) for labels in ("11111", "11121", "11220")]
    [0.0, 1.0, 2.0]
    """
    n = max(whole_number("robust_potts", "the number of states", n_states), 0)
    number = whole_number("robust_potts", "the number of variables", n_variables)
    steep, low = (_of_labels(given, n, what) for given, what in ((slope, "slope"), (least, "least")))
    if limit is None:
        limit = float((low + steep * number / 4).min()) if n > 0 else 0.0
    return RobustPotts(number, low, steep, limit)


def _of_labels(given: Any, n_states: int, what: str) -> Array:
    """A number for each label."""
    values = numbers(given, f"robust_potts: {what}").astype(np.float64)
    if values.shape not in ((), (n_states,)):
        raise ModelError(f"robust_potts: {what} is a number, or one for each of {n_states} labels, got {given!r}")
    return np.broadcast_to(values, (n_states,)).copy()
