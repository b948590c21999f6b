"""What a structured factor is: a table that is a formula of a few numbers and is never stored.

A Structured takes the place of a Template's basis. Its energy is still linear in its weights,

    h(y) = sum_q weights_q basis_q(y),        basis (Q, K1..Kn),

but only the weights (T, Q) are stored, and engines that know its `kind` send its messages without the table. `dense()`
gives the basis to engines that do not.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

from besag.arrays import Array, IntArray


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
