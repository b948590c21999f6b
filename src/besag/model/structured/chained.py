"""Factors on many variables that are read one after the other, by an automaton of few states.

The automaton begins in state 0; `step(i)` (M, K_i) is its state after the variable at place i, and after the last one
that is the level of the factor. As a table such a factor has K1 x ... x Kn entries. As a chain of factors on the
automaton's state before, the variable and the state after it has n M K M, and the states, which are determined, are
summed or maximised out without a trace: `besag.graph.unfolded`. So every engine that passes messages or eliminates
takes it, in any semiring, with a message to each of n variables in O(n M^2) altogether.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from besag.arrays import Array, IntArray, Semiring
from besag.model.structured.base import Levelled


class Chained(Levelled):
    """A structured factor on many variables, as an automaton."""

    __slots__ = ()

    chosen: ClassVar[bool] = False
    """Whether states are not determined but chosen, so that sums and maxima over them read other numbers."""

    @abstractmethod
    def step(self, place: int) -> IntArray:
        """(M, K): the state after the variable at a place, for each state before it; the level, after the last one."""

    def level_of(self, labels: IntArray) -> IntArray:
        """The state at the end."""
        state = np.zeros(labels.shape[:-1], np.int64)
        for place in range(labels.shape[-1]):
            state = self.step(place)[state, labels[..., place]]
        return state

    def links(self) -> list[Array]:
        """Log-potentials (M, K, M) of the state before, the variable and the state after; not of the last place."""
        found: dict[bytes, Array] = {}
        tables = []
        for place in range(len(self.shape) - 1):
            after = self.step(place)
            n_after = len(self.step(place + 1))
            table = np.where(after[..., None] == np.arange(n_after), 0.0, -np.inf)
            tables.append(found.setdefault(table.tobytes(), table))
        return tables

    def ends(self, values: Array, semiring: Semiring) -> Array:
        """Levels (T, L) -> log-potentials (T, M, K) of the state before the last place and the variable there."""
        return np.asarray(values[:, self.step(len(self.shape) - 1)])

    def level_moments(self, own: Array, values: Array) -> Array:
        """Moments (T, M K) of the last place as those of levels, whose log-potentials are values, (T, L)."""
        return np.asarray(own @ (self.step(len(self.shape) - 1).reshape(-1, 1) == np.arange(values.shape[1])))
