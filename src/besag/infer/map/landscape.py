"""A Prepared problem as moves of a labelling read it: `Landscape`, the same for all rows of evidence.

R rows of evidence, one for a union; V variables; S states
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from besag.arrays import EXTENTS, AnyArray, Array, IntArray, Kind, freeze
from besag.errors import CapabilityError
from besag.graph.problem import Problem
from besag.graph.unfolded import plain_noisy
from besag.infer.map.kernels.descent import make_sweep
from besag.infer.map.kernels.scores import Axes, make_axes
from besag.infer.memory import refuse
from besag.infer.prepared import KINDS, Prepared
from besag.infer.result import Result
from besag.infer.zeros.starts import draw_starts, independent_codes, read_codes
from besag.kernels.compile import kernel_of
from besag.kernels.factors import Factors

SEVERITY = 1e4  # of a hard zero, in units of the largest number


class Landscape:
    """See the module. possible (R,), or (N,) for a union: False where it is proven that there is no labelling."""

    def __init__(self, problem: Problem, memory_limit: int | None, *, noisy: bool = False) -> None:
        """noisy: the moves read noisy-MAX factors as they are."""
        self.setting = setting = Prepared(
            problem, KINDS | (plain_noisy(problem) if noisy else frozenset()), memory_limit
        )
        self.graph, self.n_rows = setting.graph, setting.n_rows
        n_entries, n_states = len(self.graph.scope_variables), int(self.graph.state_offsets[-1])
        refuse("the search", 8.0 * (4 * n_entries + 3 * self.n_rows * n_states), setting.limit, "use more memory")
        self.factors = Factors.of(*setting.factors)
        self.possible = np.array(setting.possible)

    @cached_property
    def axes(self) -> Axes:
        """Where each variable is in the tables; kept with the graph."""
        return self.graph.plans.get("map.landscape", self._axes)

    def _axes(self) -> Axes:
        n_entries, arities = len(self.graph.scope_variables), np.diff(self.graph.scope_offsets)
        sizes = (self.graph.n_variables + 1, int(arities[arities > 1].sum()), n_entries, n_entries)
        arrays = [np.zeros(size, np.int64) for size in sizes]
        kernel_of(make_axes, compile=self.setting.compile)(self.factors, *arrays)
        return Axes(*map(freeze, arrays))

    def base(self, row: int) -> Array:
        """(S,): what unary factors and evidence say, -inf at states that are ruled out."""
        return freeze(self.setting.base[row])

    @cached_property
    def visits(self) -> float:
        """How many states a flip reads in noisy-MAX factors, on average and at least 1."""
        arities = np.diff(self.graph.scope_offsets)[self.setting.problem.kinds % EXTENTS == Kind.NOISY]
        return max(1.0, (float((arities.astype(np.float64) ** 2).sum()) / self.graph.n_variables) ** 2)

    @cached_property
    def penalty(self) -> float:
        """What a hard zero weighs in moves that may pass through labellings which meet some: much, but finite."""
        values = self.factors.log_potentials
        finite = np.abs(values[values > -np.inf])
        base = self.setting.base
        return SEVERITY * (1.0 + float(finite.max(initial=0.0)) + float(np.abs(base[base > -np.inf]).max(initial=0.0)))

    @cached_property
    def soft_factors(self) -> Factors:
        """The factors with penalties for hard zeros."""
        values = self.factors.log_potentials
        if not self.setting.has_zeros:
            return self.factors
        return self.factors._replace(log_potentials=freeze(np.where(values == -np.inf, -self.penalty, values)))

    def soft_base(self, row: int) -> Array:
        """(S,): the same of a row's base."""
        base = self.setting.base[row]
        return freeze(np.where(base == -np.inf, -self.penalty, base))

    def best_alone(self) -> IntArray:
        """(R, V): each variable at its best state by `base` alone, the first of equal ones."""
        base, offsets = self.setting.base, self.graph.state_offsets
        highest = np.repeat(np.maximum.reduceat(base, offsets[:-1], axis=1), np.diff(offsets), axis=1)
        states = np.where(base == highest, np.arange(base.shape[1]), base.shape[1])
        return np.asarray(np.minimum.reduceat(states, offsets[:-1], axis=1) - offsets[:-1])

    def start(self, warm: Result | None, rng: np.random.Generator) -> IntArray:
        """(R, V): the labelling that is given; else each variable at its best, unless hard zeros rule that out."""
        if warm is not None:
            given = read_codes(self.setting, warm, 1)
            if given is None:
                raise CapabilityError("init must have a labelling of each row of evidence: the Result of a `map`")
            return np.array(given[:, 0])
        codes = self.best_alone()
        alone = np.isfinite(self.energies(codes)) | ~self.possible
        if alone.all():
            return codes
        found = self.draw(rng)
        return np.where(self.by_variable(alone), codes, found)

    def draw(self, rng: np.random.Generator) -> IntArray:
        """(R, V): labellings that hard zeros allow, as far as a search finds them, drawn far apart."""
        try:
            found, possible = draw_starts(self.setting, 1, rng)
        except CapabilityError:  # none was found, and none was proven not to be
            return independent_codes(self.setting, 1, rng)[:, 0]
        self.possible &= possible
        return np.array(found[:, 0])

    def settle(self, row: int, codes: IntArray) -> IntArray:
        """(V,): where sweeps of iterated conditional modes end that begin at a labelling of a row."""
        codes = np.array(codes)
        kernel = kernel_of(make_sweep, compile=self.setting.goes_on())
        while kernel(self.factors, self.axes, self.base(row), codes):
            pass
        return codes

    def energies(self, codes: IntArray) -> Array:
        """H of labellings (R, V), from the Problem: (R,), or (N,) for a union."""
        return np.where(self.possible, self.setting.energies(codes), np.inf)

    def by_variable(self, of_rows: AnyArray) -> AnyArray:
        """(R,) -> (R, 1), or (N,) -> (1, V) for a union: what belongs to each variable's row or instance."""
        if self.graph.n_instances == 1:
            return of_rows[:, None]
        return np.repeat(of_rows, np.diff(self.graph.instance_offsets))[None]
