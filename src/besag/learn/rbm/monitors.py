"""How a fit gets on, by numbers that the likelihood's gradient does not give.

    pseudo_likelihood   mean over rows of V times the mean log p(v | all other variables), of some variables of each row
    reconstruction      mean squared difference of units and p(v | E[h | v])
    energy_gap          mean free energy of the chains minus that of the data: it grows where chains fall behind
    free_energy_gap     mean free energy of held-out rows minus that of the data: it grows where the fit is too close

The rows and the variables that are looked at stay the same, so that a curve shows the fit and not the draw.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from besag.arrays import AnyArray, Array, IntArray, freeze
from besag.kernels.compile import compiled
from besag.kernels.threads import run_chunks
from besag.learn.rbm.kernels.flips import make_conditionals
from besag.learn.rbm.machine import Machine

ROWS = 500  # looked at
FLIPS = 4  # variables of a row
AT_ONCE = 32  # rows of a chunk


def pseudo_likelihood(machine: Machine, units: AnyArray, picks: IntArray, n_threads: int | None = None) -> Array:
    """(N,): V times the mean of log p(v | rest) over the picked variables (N, M) of each row."""
    units, odds = freeze(np.asarray(units, np.float32)), freeze(machine.odds(units))
    picks, found = freeze(np.asarray(picks, np.int64)), np.empty(picks.shape)
    kernel = compiled(make_conditionals)

    def task(chunk: int) -> None:
        first = chunk * AT_ONCE
        given = machine.weights, machine.visible, machine.offsets, machine.is_binary
        kernel(units, odds, *given, picks, first, min(first + AT_ONCE, len(units)), found)

    run_chunks(task, -(-len(units) // AT_ONCE), n_threads)
    return np.asarray(machine.n_visible * found.mean(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class Monitors:
    """Rows to look at: of the data, with the variables picked in each, and held-out ones."""

    units: AnyArray
    picks: IntArray
    held_out: AnyArray | None

    @classmethod
    def of(cls, units: AnyArray, held_out: AnyArray | None, n_visible: int, seed: int) -> Monitors:
        """Some rows of both, by the seed."""
        rng = np.random.default_rng([seed, 3])
        some = units[np.sort(rng.choice(len(units), size=min(ROWS, len(units)), replace=False))]
        picks = rng.integers(n_visible, size=(len(some), FLIPS))
        if held_out is not None:
            held_out = held_out[np.sort(rng.choice(len(held_out), size=min(ROWS, len(held_out)), replace=False))]
        return cls(some, picks, held_out)

    def look(self, machine: Machine, chains: AnyArray) -> dict[str, float]:
        """The numbers of a machine; chains (C, H): hidden units of persistent ones, C = 0 where there are none."""
        units = self.units
        found = {
            "pseudo_likelihood": float(pseudo_likelihood(machine, units, self.picks).mean()),
            "reconstruction": float(np.square(units - machine.expect_visible(machine.expect_hidden(units))).mean()),
        }
        energy = float(machine.free_energy(units).mean())
        if len(chains):
            fantasies = machine.draw_visible(chains, np.random.default_rng(len(chains)))
            found["energy_gap"] = float(machine.free_energy(fantasies).mean()) - energy
        if self.held_out is not None:
            found["free_energy_gap"] = float(machine.free_energy(self.held_out).mean()) - energy
        return found
