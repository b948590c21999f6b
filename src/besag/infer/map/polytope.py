"""The local polytope of one row of evidence as sparse arrays: what linear and integer programs are made of.

    minimise  c x     x >= 0
        x_vk    state k of variable v                    sum over k of x_vk = 1
        z_fe    entry e of the table of factor f         sum over e with e_i = k of z_fe = x_vk,   v the i-th of f

c has energies, those of a factor less its least one, which goes into `constant`. States that are ruled out and entries
with a hard zero have no column. Where x is a labelling, z is its entries, and c x + constant its energy. Multipliers of
the rows move energy between factors and variables: each of them gives a bound (`bound_of`), rounded ones too.

    N columns, M rows; the first columns are those of the states, the first rows those of the variables
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, concatenate, freeze, offsets_of
from besag.infer.memory import refuse
from besag.infer.prepared import Prepared

BYTES_A_NUMBER = 120  # of the matrix: our own copies, HiGHS's, and its presolve's
ROUNDING = 1e-12  # of a bound, relative to all that is added up


@dataclass(frozen=True, slots=True, eq=False)
class Polytope:
    """See the module."""

    costs: Array  # (N,)
    constant: float
    states: IntArray  # (n,): the state, among all of all variables, of each of the first columns
    variables: IntArray  # (n,): whose they are, counted from the first variable of the instance
    groups: IntArray  # (G + 1,): where the columns of each factor begin
    rows: IntArray  # (E,), columns (E,), signs (E,): the matrix
    columns: IntArray
    signs: Array
    n_variables: int
    n_rows: int

    @property
    def n_states(self) -> int:
        """How many of the columns are states."""
        return len(self.states)

    def matrix(self) -> Any:
        """(M, N), sparse."""
        from scipy.sparse import csr_array

        return csr_array((self.signs, (self.rows, self.columns)), shape=(self.n_rows, len(self.costs)))

    @property
    def sides(self) -> Array:
        """(M,): what the rows are to be equal to."""
        sides = np.zeros(self.n_rows)
        sides[: self.n_variables] = 1.0
        return sides

    def bound_of(self, multipliers: Array) -> float:
        """A lower bound on the least energy, by multipliers (M,) of the rows, whatever these are."""
        moved = self.signs * multipliers[self.rows]
        moved[self.rows < self.n_variables] = 0.0
        left = self.costs - np.bincount(self.columns, weights=moved, minlength=len(self.costs))
        of_variables = np.full(self.n_variables, math.inf)
        np.minimum.at(of_variables, self.variables, left[: self.n_states])
        of_factors = np.minimum.reduceat(left, self.groups[:-1]) if len(self.groups) > 1 else np.zeros(0)
        size = abs(self.constant) + np.abs(of_variables).sum() + np.abs(of_factors).sum() + np.abs(moved).max(initial=0)
        return float(self.constant + of_variables.sum() + of_factors.sum() - ROUNDING * (1.0 + size))

    def columns_of(self, states: IntArray) -> IntArray:
        """The columns of some states, given by number among all of all variables; they must have some."""
        return np.searchsorted(self.states, states)

    def codes_of(self, x: Array, state_offsets: IntArray) -> IntArray:
        """The labelling that takes the largest state of each variable, the first of equal ones."""
        first = offsets_of(np.bincount(self.variables, minlength=self.n_variables))[:-1]
        values = x[: self.n_states]
        highest = np.maximum.reduceat(values, first)[self.variables]
        states = np.where(values == highest, self.states, np.iinfo(np.int64).max)
        return np.asarray(np.minimum.reduceat(states, first) - state_offsets)


def count_numbers(setting: Prepared) -> float:
    """Of the matrix of all variables, at the most."""
    numbers = float(setting.graph.state_offsets[-1])
    for block in setting.graph.blocks:
        shape = block.template.shape
        if len(shape) > 1:
            numbers += len(block.scopes) * (float(math.prod(shape)) * (1 + len(shape)) + sum(shape))
    return numbers


def refuse_polytope(setting: Prepared) -> None:
    """TooLargeError where the program would not fit."""
    refuse("the integer program", BYTES_A_NUMBER * count_numbers(setting), setting.limit, "take engine='local_search'")


def make_polytope(setting: Prepared, row: int, instance: int) -> Polytope | None:
    """The polytope of one instance under one row of evidence; None where a hard zero leaves it empty.

    setting: of a problem whose factors are tables.
    """
    graph, base = setting.graph, setting.base[row]
    low, high = (int(v) for v in graph.instance_offsets[instance : instance + 2])
    first, last = int(graph.state_offsets[low]), int(graph.state_offsets[high])
    states = first + np.flatnonzero(base[first:last] > -np.inf)
    variables = np.searchsorted(graph.state_offsets, states, side="right") - 1 - low
    if len(np.unique(variables)) < high - low:
        return None
    work = _Assembly(states, variables, base, int(graph.state_offsets[-1]), high - low)
    for number, block in enumerate(graph.blocks):
        if len(block.template.shape) > 1 and len(block.scopes):
            tables, readers = setting.problem.block_tables(number)
            mine = (block.scopes[:, 0] >= low) & (block.scopes[:, 0] < high)
            if not work.add(block.scopes[mine], tables, readers[mine], graph.state_offsets):
                return None
    return work.finish()


class _Assembly:
    """A polytope in the making."""

    def __init__(self, states: IntArray, variables: IntArray, base: Array, n_all_states: int, n_variables: int) -> None:
        self.states, self.variables, self.n_variables = states, variables, n_variables
        self.column_of = np.full(n_all_states, -1)
        self.column_of[states] = np.arange(len(states))
        self.costs, self.sizes, self.constant = [-base[states]], [np.zeros(0, np.int64)], 0.0
        self.rows, self.columns, self.signs = [variables], [np.arange(len(states))], [np.ones(len(states))]
        self.n_columns, self.n_rows = len(states), n_variables

    def add(self, scopes: IntArray, tables: Array, readers: IntArray, state_offsets: IntArray) -> bool:
        """Factors of one shape; whether each has an entry that is left."""
        shape = tables.shape[1:]
        digits = np.indices(shape).reshape(len(shape), -1)
        values = tables.reshape(len(tables), -1)[readers]
        kept = values > -np.inf
        for i in range(len(shape)):
            kept &= self.column_of[state_offsets[scopes[:, i], None] + digits[i]] >= 0
        sizes = kept.sum(axis=1)
        if not sizes.all():
            return False
        factor, entry = np.nonzero(kept)
        highest = np.where(kept, values, -np.inf).max(axis=1, initial=-np.inf)
        self.constant -= float(highest.sum())
        self.costs.append((highest[:, None] - values)[kept])
        self.sizes.append(sizes)
        own = self.n_columns + np.arange(len(factor))
        self.n_columns += len(factor)
        for i, n in enumerate(shape):
            self._link(kept, scopes[:, i], digits[i], n, own, factor, entry, state_offsets)
        return True

    def _link(
        self,
        kept: BoolArray,
        variables: IntArray,
        digits: IntArray,
        n: int,
        own: IntArray,
        factor: IntArray,
        entry: IntArray,
        state_offsets: IntArray,
    ) -> None:
        """A row for each factor and state that is left of one of its variables."""
        columns = self.column_of[state_offsets[variables, None] + np.arange(n)]
        numbers = np.full(columns.shape, -1)
        numbers[columns >= 0] = self.n_rows + np.arange(int((columns >= 0).sum()))
        self.n_rows += int((columns >= 0).sum())
        self.rows += [numbers[factor, digits[entry]], numbers[columns >= 0]]
        self.columns += [own, columns[columns >= 0]]
        self.signs += [np.ones(len(own)), -np.ones(int((columns >= 0).sum()))]

    def finish(self) -> Polytope:
        sizes = concatenate(self.sizes, np.int64)
        return Polytope(
            freeze(concatenate(self.costs, np.float64)),
            self.constant,
            freeze(self.states),
            freeze(self.variables),
            freeze(len(self.states) + offsets_of(sizes)),
            freeze(concatenate(self.rows, np.int64)),
            freeze(concatenate(self.columns, np.int64)),
            freeze(concatenate(self.signs, np.float64)),
            self.n_variables,
            self.n_rows,
        )
