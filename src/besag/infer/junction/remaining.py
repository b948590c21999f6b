"""What bucket elimination leaves: tables on the kept variables, their joint table and its best entry.

    log sum over the rest of exp(-H(y))  =  constant + sum over tables of t(y_scope),     for each y on the kept ones

The joint table is their sum, broadcast; the best joint state is found by max-product on a junction tree of these tables
alone, and no table on all of the kept variables is ever made.

Shapes: R rows, n kept variables, K states of one of them, of which k <= K are left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from besag.arrays import Array, IntArray, Semiring, concatenate, freeze, offsets_of
from besag.infer.junction import propagate
from besag.infer.junction.evidence_rows import GivenRows
from besag.infer.junction.numbers import numbers_of, one_group
from besag.infer.junction.plan import Sketch, make_plan, make_sketch
from besag.infer.purpose import Purpose
from besag.kernels.compile import worth_compiling
from besag.kernels.factors import Factors


@dataclass(frozen=True, slots=True, eq=False)
class Remaining:
    """Tables on kept variables, in logarithms, for some rows."""

    cardinalities: IntArray  # (n,)
    states: list[list[IntArray]]  # of each row and variable: the codes that are left
    constants: Array  # (R,)
    scopes: list[IntArray]  # positions among the kept variables
    tables: list[Array]  # (R, k of the scope)

    @property
    def counts(self) -> IntArray:
        """(n,): how many states each variable has left."""
        return np.array([len(codes) for codes in self.states[0]], np.int64)

    def alone(self) -> list[Remaining]:
        """Each variable with its own tables and without the constant; for tables that never join two variables."""
        found = []
        for i in range(len(self.cardinalities)):
            tables = [table for scope, table in zip(self.scopes, self.tables, strict=True) if scope[0] == i]
            states = [[codes[i]] for codes in self.states]
            first = [np.zeros(1, np.int64)] * len(tables)
            found.append(Remaining(self.cardinalities[[i]], states, np.zeros(len(states)), first, tables))
        return found

    def joint(self) -> Array:
        """(R, K1..Kn): log sum over the rest of exp(-H), -inf at states ruled out."""
        counts = self.counts
        total = np.zeros((len(self.constants), *counts))
        total += self.constants.reshape(-1, *[1] * len(counts))
        for scope, table in zip(self.scopes, self.tables, strict=True):
            order = np.argsort(scope)
            shape = np.ones(len(counts), np.int64)
            shape[scope] = counts[scope]
            total += table.transpose(0, *(1 + order)).reshape(-1, *shape)
        full = np.full((len(total), *self.cardinalities), -np.inf)
        for b, codes in enumerate(self.states):
            full[b : b + 1][np.ix_(np.zeros(1, np.int64), *codes)] = total[b]
        return full

    def best(self, refuse: Callable[[Sketch], None]) -> tuple[Array, IntArray]:
        """(R,) the largest entry of the joint table, and where it is: codes (R, n). `refuse` looks at the cost."""
        factors = self._factors()
        n = len(self.cardinalities)
        nothing, states = freeze(np.zeros(n, np.bool_)), freeze(np.ones(int(factors.state_offsets[-1]), np.bool_))
        used = freeze(np.ones(len(self.scopes), np.bool_))
        setting = Purpose(used, nothing, states, soft=nothing, read=nothing, keep=nothing)
        drawn = make_sketch(factors, setting, compile=worth_compiling(20.0 * len(factors.scope_variables)))
        refuse(drawn)
        compile = worth_compiling(drawn.entries.sum() * len(self.constants))
        made = make_plan(factors, setting, drawn, compile=compile)
        given = GivenRows(freeze(np.full((1, n), -1)))
        values, found = np.array(self.constants), np.empty((len(self.constants), n), np.int64)
        for b, left in enumerate(self.states):
            of_row = factors._replace(
                log_potentials=freeze(concatenate([table[b] for table in self.tables], np.float64))
            )
            numbers = numbers_of(made, of_row, Semiring.MAX, one_group(n))
            value, digits = propagate.max_product(numbers, given, n_threads=1, compile=compile)
            values[b] += value[0, 0]
            found[b] = [codes[digit] for codes, digit in zip(left, digits[0].tolist(), strict=True)]
        return values, found

    def _factors(self) -> Factors:
        """The tables as factors; their numbers are those of the first row."""
        sizes = np.array([table[0].size for table in self.tables], np.int64)
        return Factors.of(
            offsets_of(self.counts),
            offsets_of(np.array([len(scope) for scope in self.scopes], np.int64)),
            concatenate(self.scopes, np.int64),
            np.zeros(len(sizes), np.int64),
            np.arange(len(sizes)),
            offsets_of(sizes),
            concatenate([table[0] for table in self.tables], np.float64),
        )
