"""Gibbs sampling as 001 has it: select an index at random, draw that variable anew, and output the labelling.

A step draws one variable of each chain, selected evenly among those that the evidence of its row leaves more than one
state, by each chain for itself. What is added up at each step is, of every variable, the conditional that its state
was last drawn from: which variable is selected does not depend on any state, so the mean is that of the labellings
themselves, with less noise. Until it is selected a variable counts with the state that it began in. A chain's score is
the sum of the last log-weights of its variables. They are rounded to multiples of GRID, so that steps back and forth
add up to exactly what was there: diagnostics rank scores, and would take the drift of rounding errors for a chain
that never settles.

    R rows, C chains, U = R C; V variables, S states
"""

from __future__ import annotations

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, freeze
from besag.infer.iterate import Look, no_look
from besag.infer.prepared import Prepared
from besag.infer.sampling.kernels.single_site import make_sweep
from besag.infer.sampling.single_site import SingleSite
from besag.kernels.compile import kernel_of
from besag.kernels.random import stream, uniform

GRID = 2.0**-20


class SingleUpdate(SingleSite):
    """Any factors, one variable of each chain in a step.

    A conditional is added to the sums when the next one takes its place, times the steps that it has stood for, so that
    a step takes no longer where there are more variables.
    """

    def __init__(self, setting: Prepared, n_chains: int, dtype: str) -> None:
        super().__init__(setting, n_chains, "systematic", 1, dtype)
        self.offsets = setting.graph.state_offsets
        left = np.add.reduceat(setting.base > -np.inf, self.offsets[:-1], axis=1)
        self.free = [freeze(np.flatnonzero(row > 1)) for row in left]
        self.last = np.zeros_like(self.added)  # the conditionals
        self.n_steps, self.since = 0, np.zeros(self.states.shape, np.int64)  # that count; when each was last added
        self.scores, self.totals = np.zeros(self.states.shape), np.zeros(len(self.states))
        self.selected = np.repeat(left <= 1, n_chains, axis=0)

    @property
    def sums(self) -> Array:
        """(U, S), up to the last step."""
        self.added += np.repeat(self.n_steps - self.since, np.diff(self.offsets), axis=1) * self.last
        self.since[:] = self.n_steps
        return self.added

    @sums.setter
    def sums(self, zeros: Array) -> None:
        self.added = zeros

    @property
    def moved(self) -> BoolArray:
        """(R, V): the variables that every chain has drawn, and those that there is no need to draw."""
        return np.asarray(self.selected.reshape(self.setting.n_rows, self.n_chains, -1).all(axis=1))

    def start(self, codes: IntArray) -> None:
        """Begin at labellings (R, C, V)."""
        super().start(codes)
        self.last[:] = 0.0
        np.put_along_axis(self.last, self.offsets[:-1] + self.states, 1.0, axis=1)

    def sweep(self, key: int, keep: bool, look: Look = no_look) -> Array:
        """One step."""
        look()
        for u in range(len(self.states)):
            free = self.free[u // self.n_chains]
            if len(free):
                self._draw(u, free, int(uniform(stream(key, u, 1), 0) * len(free)), key)
        self.n_steps += keep
        return np.array(self.totals.reshape(self.setting.n_rows, self.n_chains))

    def _draw(self, u: int, free: IntArray, i: int, key: int) -> None:
        """Draw variable free[i] of a chain."""
        kernel, v = kernel_of(make_sweep, compile=self.setting.compile), int(free[i])
        states, score = slice(*self.offsets[v : v + 2]), self.scores[u, v]
        self.added[u, states] += (self.n_steps - self.since[u, v]) * self.last[u, states]
        self.since[u, v] = self.n_steps
        self.last[u, states] = 0.0
        kernel(
            self.factors, self.links, self.base, self.n_chains, free, i, i + 1, u, u + 1, key,
            self.states, True, self.last, self.scores, v,
        )  # fmt: skip
        self.scores[u, v] = np.round(self.scores[u, v] / GRID) * GRID
        self.totals[u] += self.scores[u, v] - score
        self.selected[u, v] = True


def update_bytes(setting: Prepared, n_chains: int) -> int:
    """Bytes of what is kept of the last draws."""
    graph = setting.graph
    return setting.n_rows * n_chains * (8 * int(graph.state_offsets[-1]) + 17 * graph.n_variables)
