"""A restricted Boltzmann machine: visible units v, hidden units h, and nothing within a layer.

    log p(v, h) = <b, v> + <c, h> + v^T W h - log Z          S visible units, H hidden units, W (S, H)

A visible variable is one unit, 0 or 1, or K units of which exactly one is 1: a Potts variable of K states. Given one
layer the units, or variables, of the other are independent,

    p(h_j = 1 | v) = 1 / (1 + exp(-(c + v W)_j))
    p(v_s = 1 | h) = 1 / (1 + exp(-(b + W h)_s)), or for the units of one variable their softmax,

and the hidden layer is summed out in closed form, p(v) = exp(-F(v)) / Z,

    F(v) = -<b, v> - sum over j of log(1 + exp(c + v W)_j)

Arrays are float32 as they are learnt; what is summed over many units is float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from besag.arrays import AnyArray, Array, IntArray, Rebuilt, freeze
from besag.kernels.compile import compiled
from besag.learn.rbm.kernels.layers import make_draw_hidden, make_draw_visible

ROWS = 1 << 12  # of data at a time


@dataclass(frozen=True, slots=True, eq=False)
class Machine(Rebuilt):
    """The numbers: weights (S, H), visible (S,), hidden (H,), all float32.

    offsets (V + 1,): where the units of each visible variable begin; one unit each where they are binary.
    base (S,): the visible biases of the machine without hidden units that is closest to the data, for annealing.
    """

    weights: AnyArray
    visible: AnyArray
    hidden: AnyArray
    base: AnyArray
    offsets: IntArray
    is_binary: bool

    def __post_init__(self) -> None:
        for name in ("weights", "visible", "hidden", "base"):
            object.__setattr__(self, name, freeze(np.asarray(getattr(self, name), np.float32)))
        object.__setattr__(self, "offsets", freeze(np.asarray(self.offsets, np.int64)))

    @property
    def n_units(self) -> int:
        """S."""
        return len(self.visible)

    @property
    def n_hidden(self) -> int:
        """H."""
        return len(self.hidden)

    @property
    def n_visible(self) -> int:
        """V."""
        return len(self.offsets) - 1

    def odds(self, units: AnyArray) -> AnyArray:
        """(N, H): the log-odds of the hidden units given visible ones (N, S)."""
        return np.asarray(units.astype(np.float32, copy=False) @ self.weights + self.hidden)

    def expect_hidden(self, units: AnyArray) -> AnyArray:
        """(N, H): p(h = 1 | v)."""
        return np.asarray(sigmoid(self.odds(units)))

    def expect_visible(self, hidden: AnyArray) -> AnyArray:
        """(N, S): p(v = 1 | h), h in [0, 1]."""
        odds = hidden.astype(np.float32, copy=False) @ self.weights.T + self.visible
        if self.is_binary:
            return np.asarray(sigmoid(odds))
        odds -= np.repeat(np.maximum.reduceat(odds, self.offsets[:-1], axis=1), np.diff(self.offsets), axis=1)
        weights = np.exp(odds)
        return np.asarray(weights / np.repeat(self.sums(weights), np.diff(self.offsets), axis=1))

    def sums(self, units: AnyArray) -> AnyArray:
        """(N, S) -> (N, V): over the units of each variable."""
        return np.asarray(np.add.reduceat(units, self.offsets[:-1], axis=1))

    def free_energy(self, units: AnyArray) -> Array:
        """(N,): F(v)."""
        found = np.empty(len(units))
        for start in range(0, len(units), ROWS):
            part = units[start : start + ROWS]
            linear = part.astype(np.float64) @ self.visible.astype(np.float64)
            found[start : start + ROWS] = -linear - np.logaddexp(0.0, self.odds(part), dtype=np.float64).sum(axis=1)
        return found

    def gibbs(self, units: AnyArray, n_sweeps: int, rng: np.random.Generator) -> AnyArray:
        """(N, S): visible units after so many sweeps, each of them hidden units and then visible ones."""
        units, key = np.array(units, np.float32), int(rng.integers(2**62))
        draw_hidden, draw_visible = compiled(make_draw_hidden), compiled(make_draw_visible)
        hidden = np.empty((len(units), self.n_hidden), np.float32)
        for sweep in range(n_sweeps):
            np.matmul(units, self.weights, out=hidden)
            draw_hidden(self.hidden, key, 2 * sweep, hidden)
            np.matmul(hidden, self.weights.T, out=units)
            draw_visible(self.visible, self.offsets, self.is_binary, key, 2 * sweep + 1, units)
        return units

    def draw_visible(self, hidden: AnyArray, rng: np.random.Generator) -> AnyArray:
        """(N, S): visible units given hidden ones (N, H)."""
        units = np.ascontiguousarray(hidden @ self.weights.T)
        kernel = compiled(make_draw_visible)
        kernel(self.visible, self.offsets, self.is_binary, int(rng.integers(2**62)), 0, units)
        return units

    def starts(self, n: int, rng: np.random.Generator) -> AnyArray:
        """(n, S): draws of the machine without hidden units."""
        units = np.zeros((n, self.n_units), np.float32)
        compiled(make_draw_visible)(self.base, self.offsets, self.is_binary, int(rng.integers(2**62)), 0, units)
        return units


def sigmoid(x: AnyArray) -> AnyArray:
    """1 / (1 + exp(-x)), of the same dtype, without overflow."""
    e = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1, e) / (1 + e))
