"""What a structured factor is: a table that is a formula of a few numbers and is never stored.

A Structured takes the place of a Template's basis. Its energy is still linear in its weights,

    h(y) = sum_q weights_q basis_q(y),        basis (Q, K1..Kn),

but only the weights (T, Q) are stored. A basis of inf is a hard zero, whatever the weight. Most tables have few
different entries: `levels` (Q, L) are those of the basis, and `level_of` says which of them an entry is,

    basis_q(y) = levels[q, level_of(y)].

Engines get the L levels of a factor in the place of its numbers (`Problem.expanded`), which they shift, divide and
bring into the domain of a semiring as they do with the entries of tables; the rules of the kind do the rest. A kind
without levels is turned into tables.

A kind is a frozen dataclass, whose fields are numbers and arrays: that is what files keep of it, under its `name`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from besag.arrays import Array, IntArray
from besag.errors import ModelError, TooLargeError

LARGEST_TABLE = 2**27  # entries, one gigabyte


class Structured(ABC):
    """The interface of a structured factor."""

    __slots__ = ()

    kind: ClassVar[int]
    """The number that identifies it in kernels."""

    name: ClassVar[str]
    """The word for it in files and messages."""

    conditional: ClassVar[bool] = False
    """Whether with weight 1 it is the distribution of its last variable given the others."""

    @property
    def extent(self) -> int:
        """A whole number that its rules need besides levels and states."""
        return 0

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """K1..Kn."""

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """Q."""

    @abstractmethod
    def dense(self) -> Array:
        """The basis, (Q, K1..Kn)."""

    @abstractmethod
    def features(self, labels: IntArray) -> Array:
        """The basis at labellings of the scope: (..., n) codes -> (..., Q)."""

    def levels(self) -> Array | None:
        """The different entries of the basis, (Q, L); None for a kind without rules."""
        return None

    def refuse_table(self) -> None:
        """TooLargeError where the table has more than LARGEST_TABLE entries."""
        size = math.prod(self.shape)
        if size > LARGEST_TABLE:
            raise TooLargeError(
                f"{self.name}: a table of {len(self.shape)} variables with {size:.3g} entries would take "
                f"{8 * size:.3g} bytes; engines tree and bp go by the rules of the factor instead"
            )

    def statistics(self) -> Array:
        """The basis with 0 at hard zeros, which have no probability and count for nothing in moments."""
        return without_hard_zeros(self.dense())


def whole_number(kind: str, what: str, value: object) -> int:
    """A number of states or variables as an int, or a ModelError."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ModelError(f"{kind}: {what} must be a whole number, got {value!r}")
    return int(value)


def real_number(kind: str, what: str, value: object) -> float:
    """A number as a float, or a ModelError."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ModelError(f"{kind}: {what} must be a number, got {value!r}")
    return float(value)


def without_hard_zeros(basis: Array) -> Array:
    """A basis, levels or features with 0 in the place of inf, so that weights of 0 or less may multiply them."""
    return np.where(np.isinf(basis), 0.0, basis)


class Levelled(Structured):
    """A structured factor with few different entries."""

    __slots__ = ()

    @abstractmethod
    def levels(self) -> Array:
        """The different entries of the basis, (Q, L)."""

    @abstractmethod
    def level_of(self, labels: IntArray) -> IntArray:
        """Which level the entries at labellings of the scope are: (..., n) codes -> (...)."""

    @property
    def n_parameters(self) -> int:
        """Q, one where the kind does not say otherwise: the weight."""
        return 1

    def dense(self) -> Array:
        """The basis, (Q, K1..Kn); TooLargeError where it has more than LARGEST_TABLE entries."""
        self.refuse_table()
        return np.asarray(self.levels()[:, self.level_of(np.moveaxis(np.indices(self.shape), 0, -1))])

    def features(self, labels: IntArray) -> Array:
        """The basis at labellings of the scope: (..., n) codes -> (..., Q)."""
        return np.asarray(np.moveaxis(self.levels()[:, self.level_of(labels)], 0, -1))
