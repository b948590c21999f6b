"""Constraints that a WCSP file gives by a keyword and parameters, as tables of costs.

On two variables x and y, where top is a cost that no solution may have:

    >=  c d    x >= y + c: by how much it is missed if that is at most d, else top; the same for >, <=, < and =
    disj  cx cy p            0 if x >= y + cy or y >= x + cx, else p
    sdisj cx cy ex ey px py  px if x = ex, plus py if y = ey; if neither, 0 where disj is satisfied, else top

On any number of variables, with a cost p for each violation:

    salldiff var p           how many variables have to change until all differ
    salldiff dec p           how many pairs are equal; decbi means the same

All other keywords (sgcc, sregular, knapsack, ...) are for constraints on more variables than a table can hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from besag.arrays import Array

METRICS = (b"var", b"dec", b"decbi")


class Constraint(NamedTuple):
    """A kind of constraint: how many numbers follow its keyword, and the table it makes of them.

    table: from the states of each variable, as open grids, the numbers, and the cost of forbidden entries.
    """

    n_numbers: int
    table: Callable[[Sequence[Array], Sequence[float], float], Array]
    n_variables: int | None = 2


def _missing(miss: Callable[[Array, Array], Array]) -> Constraint:
    """A comparison: miss(x, y + c) is by how much x violates it, and at most 0 if x satisfies it."""

    def table(states: Sequence[Array], numbers: Sequence[float], top: float) -> Array:
        offset, most = numbers
        missed = miss(states[0], states[1] + offset)
        return np.where(missed <= most, np.maximum(missed, 0.0), top)

    return Constraint(2, table)


def _apart(states: Sequence[Array], gap_x: float, gap_y: float) -> Array:
    x, y = states
    return np.asarray((x >= y + gap_y) | (y >= x + gap_x))


def _disjunctive(states: Sequence[Array], numbers: Sequence[float], top: float) -> Array:
    gap_x, gap_y, penalty = numbers
    return np.where(_apart(states, gap_x, gap_y), 0.0, penalty)


def _special_disjunctive(states: Sequence[Array], numbers: Sequence[float], top: float) -> Array:
    gap_x, gap_y, absent_x, absent_y, cost_x, cost_y = numbers
    x, y = states
    no_x, no_y = x == absent_x, y == absent_y
    return np.where(_apart(states, gap_x, gap_y) | no_x | no_y, cost_x * no_x + cost_y * no_y, top)


def _changes(states: Sequence[Array], numbers: Sequence[float], top: float) -> Array:
    """How many variables have the state of an earlier one, times the cost: those have to change."""
    total = np.zeros([one.size for one in states])
    for i in range(1, len(states)):
        taken = np.zeros(total.shape, np.bool_)
        for j in range(i):
            taken |= states[i] == states[j]
        total += taken
    return total * numbers[0]


def _equal_pairs(states: Sequence[Array], numbers: Sequence[float], top: float) -> Array:
    total = np.zeros([one.size for one in states])
    for one, other in combinations(states, 2):
        total += one == other
    return total * numbers[0]


CONSTRAINTS = {
    b">=": _missing(lambda x, y: y - x),
    b">": _missing(lambda x, y: y + 1 - x),
    b"<=": _missing(lambda x, y: x - y),
    b"<": _missing(lambda x, y: x + 1 - y),
    b"=": _missing(lambda x, y: np.abs(x - y)),
    b"disj": Constraint(3, _disjunctive),
    b"sdisj": Constraint(6, _special_disjunctive),
    b"salldiff var": Constraint(1, _changes, None),
    b"salldiff dec": Constraint(1, _equal_pairs, None),
    b"salldiff decbi": Constraint(1, _equal_pairs, None),
}


def constraint_table(keyword: bytes, shape: Sequence[int], numbers: Sequence[float], top: float) -> Array:
    """The table (K1..Kn) of a constraint among CONSTRAINTS on variables with so many states."""
    states = np.ix_(*(np.arange(k, dtype=np.float64) for k in shape))
    return np.broadcast_to(CONSTRAINTS[keyword].table(states, numbers, top), shape)
