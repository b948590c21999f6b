"""Bucket elimination: messages go up a tree of cliques, and those of its roots are the answer.

In a plan that keeps some variables, the separators of the roots consist of kept variables. The messages of the roots,
and the factors on kept variables alone, are what the sum over all others leaves:

    sum over the rest of  prod_f psi_f  =  constant  x  prod over roots of m_root(kept)  x  prod over factors left out

all on the states that the plan leaves, and without evidence on the kept variables, which the caller adds.

Shapes: R rows, V variables, M entries of the messages of all roots.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from besag.arrays import Array, IntArray, Semiring, freeze
from besag.infer.junction.evidence_rows import Bound, GivenRows
from besag.infer.junction.kernels.roots import make_roots
from besag.infer.junction.kernels.rows import RowWork
from besag.infer.junction.numbers import numbers_of, one_group
from besag.infer.junction.plan import CliquePlan, Sketch
from besag.kernels.compile import kernel_of
from besag.kernels.factors import Factors


@dataclass(frozen=True, slots=True, eq=False)
class Left:
    """What elimination leaves for each row: a constant and tables on kept variables, in logarithms."""

    constants: Array  # (R,)
    scopes: list[IntArray]
    tables: list[Array]  # (R, counts of the scope)
    codes: IntArray  # (R, V) of variables with one state left


def eliminate(
    plan: CliquePlan, factors: Factors, given: GivenRows, *, n_threads: int | None = None, compile: bool = True
) -> Left:
    """Sum out everything that the plan does not keep; all variables are one group."""
    inside, outside = _split(plan, factors)
    plan = replace(plan, sketch=replace(plan.sketch, outside=inside))
    together = one_group(given.observed.shape[1])
    bound = Bound(numbers_of(plan, factors, Semiring.SUM, together), given)
    risen = _risen(bound, n_threads, compile)
    if risen is None:
        bound = Bound(numbers_of(plan, factors, Semiring.LOG_SUM, together), given)
        risen = _risen(bound, n_threads, compile)
    assert risen is not None, "the log domain is never too narrow"
    constants, values = risen
    scopes, tables = [], []
    for scope, table in (*_messages(plan, values), *(_sliced(bound, f) for f in outside)):
        if len(scope):
            scopes.append(scope)
            tables.append(table)
        else:
            constants = constants + table
    return Left(constants, scopes, tables, bound.codes)


def _split(plan: CliquePlan, factors: Factors) -> tuple[IntArray, IntArray]:
    """Factors without a clique: those with no free variable, and those on kept ones."""
    outside = plan.sketch.outside
    free = plan.sketch.counts > 1
    scopes = [factors.scope_variables[factors.scope_offsets[f] : factors.scope_offsets[f + 1]] for f in outside]
    kept = np.array([free[scope].any() for scope in scopes], np.bool_)
    return freeze(outside[~kept]), freeze(outside[kept])


def _risen(bound: Bound, n_threads: int | None, compile: bool) -> tuple[Array, Array] | None:
    """Constants (R,) and messages of roots (R, M); None if the range was too narrow."""
    join, n_rows = bound.plan.join, len(bound.log_z)
    size = int(np.diff(join.message_offsets)[join.parent < 0].sum())
    kernel = kernel_of(make_roots, int(bound.semiring), compile=compile)
    constants, values = np.empty(n_rows), np.empty((n_rows, size))

    def rows(work: RowWork, first: int, last: int) -> bool:
        narrow: bool = kernel(join, bound.rows, work, first, last, bound.log_z, constants, values)
        return narrow

    return None if bound.run(rows, n_threads) else (constants, values)


def _messages(plan: CliquePlan, values: Array) -> list[tuple[IntArray, Array]]:
    """The messages of roots by scope."""
    join, found, top = plan.join, [], 0
    for c in np.flatnonzero(join.parent < 0).tolist():
        axes = plan.axes[plan.axis_offsets[c] : plan.axis_offsets[c + 1]]
        scope = np.concatenate([axes[: plan.splits[c, 0]], axes[plan.splits[c, 2] :]])
        size = int(join.message_offsets[c + 1] - join.message_offsets[c])
        shape = (len(values), *plan.sketch.counts[scope].tolist())
        found.append((scope, values[:, top : top + size].reshape(shape)))
        top += size
    return found


def _sliced(bound: Bound, f: int) -> tuple[IntArray, Array]:
    """A factor's table, at the code of each variable with one state and at the remaining states of the others."""
    drawn, factors = bound.plan.sketch, bound.factors
    scope = factors.scope_variables[factors.scope_offsets[f] : factors.scope_offsets[f + 1]]
    free = scope[drawn.counts[scope] > 1]
    t = factors.table_of_factor[f]
    table = factors.log_potentials[factors.table_offsets[t] : factors.table_offsets[t + 1]]
    table = table.reshape(np.diff(factors.state_offsets)[scope])
    slices = [table[np.ix_(*(find_states_left(drawn, v, codes) for v in scope.tolist()))] for codes in bound.codes]
    return free, np.stack(slices).reshape(len(slices), *drawn.counts[free])


def find_states_left(drawn: Sketch, v: int, codes: IntArray) -> IntArray:
    """The states that a plan leaves to a variable, under the codes (V,) of a row."""
    if drawn.counts[v] == 1:
        return codes[v : v + 1]
    return drawn.codes[drawn.digit_offsets[v] : drawn.digit_offsets[v + 1]]
