"""What a structured factor is: a table that is a formula of a few numbers and is never stored.

A Structured takes the place of a Template's basis. Its energy is still linear in its weights,

    h(y) = sum_q weights_q basis_q(y),        basis (Q, K1..Kn),

but only the weights (T, Q) are stored, and engines that know its `kind` send its messages without the table. `dense()`
gives the basis to engines that do not.

A kind is a frozen dataclass, whose fields are numbers and arrays: that is what files keep of it, under its `name`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from besag.arrays import Array, IntArray


class Structured(ABC):
    """The interface of a structured factor."""

    __slots__ = ()

    kind: ClassVar[int]
    """The number that identifies it in kernels."""

    name: ClassVar[str]
    """The word for it in files and messages."""

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
