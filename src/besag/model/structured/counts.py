"""Factors on n binary variables that read how many of them are 1, or whether any, all or an odd number are.

    count        log-potential f(y_1 + .. + y_n), any f, -inf included: exactly k, at most k, a preference
    any_of       the last variable is 1 exactly where one of the n before it is: OR
    all_of       the last variable is 1 exactly where all of the n before it are: AND
    parity       an even number of the n variables are 1: XOR, the check of a code

Counts at which f has reached its last value are one state, so that at-most-k takes O(n k), not O(n^2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from besag.arrays import Array, IntArray, Kind, Rebuilt, secure
from besag.errors import ModelError
from besag.model.given import numbers
from besag.model.structured.base import Structured, whole_number
from besag.model.structured.chained import Chained


@dataclass(frozen=True, slots=True, eq=False)
class Count(Rebuilt, Chained):
    """energy weight * costs[how many of n binary variables are 1]; costs (n + 1,), inf a hard zero.

    >>> Count(np.array([0.0, 1.0, 5.0])).dense()[0]
    array([[0., 1.],
           [1., 5.]])
    """

    kind: ClassVar[int] = Kind.CHAINED
    name: ClassVar[str] = "count"
    costs: Array

    def __post_init__(self) -> None:
        costs = secure(np.asarray(self.costs, np.float64))
        if costs.ndim != 1 or len(costs) < 2 or np.isnan(costs).any() or (costs == -np.inf).any():
            raise ModelError("count needs n + 1 log-potentials, for 0 to n ones: numbers or -inf")
        if not (costs < np.inf).any():
            raise ModelError("count rules every number of ones out; leave one of them a log-potential above -inf")
        object.__setattr__(self, "costs", costs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Count) and np.array_equal(self.costs, other.costs)

    def __hash__(self) -> int:
        return hash(self.costs.tobytes())

    @property
    def shape(self) -> tuple[int, ...]:
        """(2,) * n."""
        return (2,) * (len(self.costs) - 1)

    @property
    def _saturated(self) -> int:
        """The least count from which on all costs are the same."""
        differs = np.flatnonzero(self.costs != self.costs[-1])
        return int(differs[-1]) + 1 if len(differs) else 0

    def levels(self) -> Array:
        """The cost of each count, up to the one from which it does not change."""
        return self.costs[None, : self._saturated + 1]

    def step(self, place: int) -> IntArray:
        """One more where the variable is 1."""
        before = np.arange(min(place, self._saturated) + 1)
        return np.asarray(np.minimum(before[:, None] + np.arange(2), self._saturated))


@dataclass(frozen=True, slots=True)
class _Relation(Chained):
    """A relation between binary variables: level 0 where it holds, 1 where it does not."""

    kind: ClassVar[int] = Kind.CHAINED
    n_variables: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_variables", whole_number(self.name, "the number of variables", self.n_variables))
        if self.n_variables < 1:
            raise ModelError(f"{self.name} needs at least one variable, got {self.n_variables}")

    @property
    def shape(self) -> tuple[int, ...]:
        """(2,) * n, and one more where there is an outcome."""
        return (2,) * self.n_variables

    def levels(self) -> Array:
        """0, and inf for a hard zero."""
        return np.array([[0.0, np.inf]])


@dataclass(frozen=True, slots=True)
class Parity(_Relation):
    """An even number of n binary variables are 1.

    >>> Parity(2).dense()[0]
    array([[ 0., inf],
           [inf,  0.]])
    """

    name: ClassVar[str] = "parity"

    def step(self, place: int) -> IntArray:
        """Odd or even so far."""
        before = np.arange(1 if place == 0 else 2)
        return np.asarray(before[:, None] ^ np.arange(2))


@dataclass(frozen=True, slots=True)
class _WithAnswer(_Relation):
    """The last variable says whether the n before it are of a kind."""

    asked: ClassVar[int]

    @property
    def shape(self) -> tuple[int, ...]:
        """(2,) * (n + 1)."""
        return (2,) * (self.n_variables + 1)

    def step(self, place: int) -> IntArray:
        """Whether a variable was `asked` so far; at the end, whether the last one says so."""
        before = np.arange(1 if place == 0 else 2)[:, None]
        if place < self.n_variables:
            return np.asarray(np.maximum(before, np.arange(2) == self.asked))
        said = np.arange(2) if self.asked == 1 else 1 - np.arange(2)
        return np.asarray(before != said, np.int64)


@dataclass(frozen=True, slots=True)
class AnyOf(_WithAnswer):
    """The last variable is the OR of the n before it."""

    name: ClassVar[str] = "any_of"
    asked: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class AllOf(_WithAnswer):
    """The last variable is the AND of the n before it."""

    name: ClassVar[str] = "all_of"
    asked: ClassVar[int] = 0


def count(log_potentials: Any) -> Structured:
    """Log-potential f(k) where k of n binary variables are 1, given f(0), .., f(n); -inf rules a count out.

    >>> import besag
    >>> one = besag.factors.count([float("-inf"), 0, float("-inf"), float("-inf")])  # exactly one of three
    >>> model = besag.markov_network([2, 2, 2], [(("0", "1", "2"), one), ("0", [0.0, 1.0])])
    >>> model.marginals()["0"].round(3)
    array([0.424, 0.576])
    """
    return Count(-numbers(log_potentials, "count").astype(np.float64) + 0.0)


def parity(n_variables: int) -> Structured:
    """An even number of n binary variables are 1; with a variable more it says that this one is their XOR.

    >>> import besag
    >>> model = besag.markov_network([2, 2, 2], [(("0", "1", "2"), besag.factors.parity(3))])
    >>> model.marginals(evidence={"0": "1", "1": "0"})["2"]
    array([0., 1.])
    """
    return Parity(n_variables)


def any_of(n_variables: int) -> Structured:
    """The last variable of the scope is 1 exactly where one of the n binary variables before it is.

    With evidence 1 on the last variable it says that at least one of them is.

    >>> import besag
    >>> model = besag.markov_network([2, 2, 2], [(("0", "1", "2"), besag.factors.any_of(2))])
    >>> model.marginals(evidence={"2": "1"})["0"].round(3)
    array([0.333, 0.667])
    """
    return AnyOf(n_variables)


def all_of(n_variables: int) -> Structured:
    """The last variable of the scope is 1 exactly where all of the n binary variables before it are.

    >>> import besag
    >>> model = besag.markov_network([2, 2, 2], [(("0", "1", "2"), besag.factors.all_of(2))])
    >>> model.marginals(evidence={"2": "0"})["0"].round(3)
    array([0.667, 0.333])
    """
    return AllOf(n_variables)
