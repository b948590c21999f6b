"""What engines for labellings answer with: the best labelling of each row so far, and bounds from below.

    energies (R,), or (N,) for a union: H, from the Problem, never from what a search has added up on its way
    bounds   the same shape: lower bounds on the least energy; inf where it is proven that there is no labelling

The instances of a union are independent: each keeps the best labelling that was ever offered for it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from besag.arrays import Array, BoolArray, IntArray
from besag.infer.engine import Bound
from besag.infer.map.landscape import Landscape
from besag.infer.result import Result

CLOSED = 1e-9  # relative: a gap that is none
ENDED = 0.5  # the tolerance of a search whose residual is 0 where it has ended, and inf before


class BestLabellings:
    """The best so far; see the module."""

    def __init__(self, landscape: Landscape, codes: IntArray) -> None:
        self.landscape, self.codes = landscape, np.array(codes)
        self.energies = landscape.energies(codes)
        self.bounds = np.full(len(self.energies), -np.inf)

    def offer(self, codes: IntArray) -> bool:
        """Takes what is better of labellings (R, V); whether any was."""
        energies = self.landscape.energies(codes)
        better = energies < self.energies
        if not better.any():
            return False
        self.codes = np.where(self.landscape.by_variable(better), codes, self.codes)
        self.energies = np.where(better, energies, self.energies)
        return True

    def offer_row(self, row: int, codes: IntArray) -> bool:
        """The same of one row of evidence, (V,)."""
        offered = self.codes.copy()
        offered[row] = codes
        return self.offer(offered)

    def raise_bounds(self, bounds: Array) -> None:
        """Other lower bounds, of which the higher ones count."""
        self.bounds = np.maximum(self.bounds, bounds)

    def raise_bound(self, number: int, bound: float) -> None:
        """The same of one row, or instance of a union."""
        bounds = np.full(len(self.bounds), -np.inf)
        bounds[number] = bound
        self.raise_bounds(bounds)

    def complete(self, row: int, instance: int, codes: IntArray) -> IntArray:
        """(V,): the best labelling of a row with that of one instance in its place."""
        low, high = self.landscape.graph.instance_offsets[instance : instance + 2]
        whole = np.array(self.codes[row])
        whole[low:high] = codes
        return whole

    @property
    def found(self) -> Array:
        """The least energies known: inf where there is none."""
        return np.where(self.landscape.possible, self.energies, np.inf)

    @property
    def proven(self) -> BoolArray:
        """The labellings that are proven to be optimal, or not to be possible."""
        energies = np.where(np.isfinite(self.found), self.found, np.nan)
        closed = energies - self.bounds <= CLOSED * np.maximum(1.0, np.abs(energies))
        return np.asarray(closed | (self.bounds == np.inf) | ~self.landscape.possible)

    @property
    def closed(self) -> bool:
        """Whether all are."""
        return bool(self.proven.all())

    def result(self, **fields: Any) -> Result:
        """The answer, without diagnostics."""
        energies = self.found
        bounds = np.where(self.proven, energies, np.minimum(self.bounds, energies))
        bound: Bound = "exact" if self.closed else "estimate"
        empty = self.landscape.setting.empty(bound)
        return replace(empty, codes=self.codes[:, None], energies=energies[:, None], energy_bounds=bounds, **fields)
