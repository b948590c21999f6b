"""Exact inference on a tree of cliques: arrays in, arrays out.

The functions here bind rows of evidence to a plan with numbers and run the kernels of `kernels/rows`. Sums are tried in
the SUM domain and done again in LOG_SUM if its range is too narrow (see `kernels/passes`), so they take a function that
gives the numbers in a domain; the numbers used are part of the answer.

Shapes: R rows, V variables, S states of all variables, F factors, G groups of components (the instances of a union), D
states that are left of the free variables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from besag.arrays import Array, IntArray, Semiring, freeze
from besag.infer.junction.evidence_rows import Bound, GivenRows
from besag.infer.junction.kernels.lanes import lanes_serve
from besag.infer.junction.kernels.rows import RowWork, make_decode, make_draw, make_propagate
from besag.infer.junction.numbers import CliqueNumbers

NumbersIn: TypeAlias = Callable[[Semiring], CliqueNumbers]


@dataclass(frozen=True, slots=True, eq=False)
class Propagated:
    """The answers; a group without a labelling has log Z = -inf and zeros."""

    log_partition: Array  # (R, G)
    variables: Array | None  # (R, S)
    cells: Array | None  # (R, .), or (1, .) where they are added up over rows
    semiring: Semiring


def sum_product(
    numbers_in: NumbersIn,
    given: GivenRows,
    *,
    want_variables: bool = True,
    cell_offsets: IntArray | None = None,
    row_weights: Array | None = None,
    n_threads: int | None = None,
    compile: bool = True,
) -> Propagated:
    """log Z, marginals of the variables that the plan reads, and of all factors if cell_offsets (F + 1,) is given.

    row_weights (R,): those of factors are wanted as a sum over rows with these weights.
    """
    for semiring in (Semiring.SUM, Semiring.LOG_SUM):
        bound = Bound(numbers_in(semiring), given)
        answer = _propagate(bound, want_variables, cell_offsets, row_weights, n_threads, compile)
        if answer is not None:
            return answer
    raise AssertionError("the log domain is never too narrow")


def max_product(
    numbers: CliqueNumbers, given: GivenRows, *, n_threads: int | None = None, compile: bool = True
) -> tuple[Array, IntArray]:
    """The logarithm of the weight of a heaviest labelling, (R, G), and its codes (R, V); numbers in MAX."""
    bound, tree = Bound(numbers, given), (numbers.plan.join, numbers.walk)
    digits = np.zeros(given.observed.shape, np.int64)

    def rows(work: RowWork, first: int, last: int) -> bool:
        wide = bound.wide(work, n_threads, compile)
        if wide is not None:
            wide.rise(bound.log_z, down=False)
        question = (*tree, bound.rows, work, first, last, bound.log_z, digits, np.empty(bound.numbers.longest))
        numbers.call(make_decode, (int(wide is None),), question, compile)
        return False

    bound.run(rows, n_threads)
    return bound.log_z, bound.codes_of(digits)


def sample(
    numbers_in: NumbersIn,
    given: GivenRows,
    n_samples: int,
    key: int,
    *,
    n_threads: int | None = None,
    compile: bool = True,
) -> tuple[Array, IntArray]:
    """log Z (R, G), and n_samples independent labellings for each row, (R, n, V); the same key gives the same ones."""
    key = (int(key) + 2**63) % 2**64 - 2**63  # a signed word
    for semiring in (Semiring.SUM, Semiring.LOG_SUM):
        drawn = _draw(Bound(numbers_in(semiring), given), n_samples, key, n_threads, compile)
        if drawn is not None:
            return drawn
    raise AssertionError("the log domain is never too narrow")


def _draw(
    bound: Bound, n_samples: int, key: int, n_threads: int | None, compile: bool
) -> tuple[Array, IntArray] | None:
    numbers, (n_rows, n) = bound.numbers, bound.given.observed.shape
    digits = np.zeros((n_rows, n_samples, n), np.int64)

    def rows(work: RowWork, first: int, last: int) -> bool:
        wide = bound.wide(work, n_threads, compile)
        if wide is not None and wide.rise(bound.log_z, down=False):
            return True
        tree, room = (bound.plan.join, numbers.walk), np.empty(bound.numbers.longest)
        question = (*tree, bound.rows, work, first, last, key, bound.log_z, digits, room)
        narrow: bool = numbers.call(make_draw, (int(bound.semiring), int(wide is None)), question, compile)
        return narrow

    return None if bound.run(rows, n_threads) else (bound.log_z, bound.codes_of(digits))


def _propagate(
    bound: Bound,
    want_variables: bool,
    cell_offsets: IntArray | None,
    row_weights: Array | None,
    n_threads: int | None,
    compile: bool,
) -> Propagated | None:
    plan, n_rows = bound.plan, len(bound.log_z)
    wanted = want_variables or cell_offsets is not None
    n_digits, n_cells = int(plan.sketch.digit_offsets[-1]), 0 if cell_offsets is None else int(cell_offsets[-1])
    marginals = np.zeros((n_rows if wanted else 0, n_digits))
    out_bases = plan.outputs
    if cell_offsets is not None:
        out_bases = out_bases.copy()
        out_bases[plan.of_factors] = cell_offsets[plan.factors]
        out_bases = freeze(out_bases)
    serves = bound.semiring == Semiring.SUM and (cell_offsets is None or row_weights is not None)
    if serves and lanes_serve(plan.setting.fixed, n_rows, plan.n_messages):
        weights, total = np.ones(n_rows) if row_weights is None else row_weights, np.zeros(n_cells)
        outputs = (out_bases, marginals, weights, total)
        if bound.run_lanes(*outputs, down=wanted, n_threads=n_threads, compile=compile):
            return None
        if cell_offsets is not None:
            bound.add_outside(total, cell_offsets, weights)
        return _propagated(bound, marginals, want_variables, None if cell_offsets is None else total[None])
    cells = np.zeros((n_rows, n_cells))

    def rows(work: RowWork, first: int, last: int) -> bool:
        wide = bound.wide(work, n_threads, compile)
        if wide is not None:
            if wide.rise(bound.log_z, down=wanted):
                return True
            if wanted:
                wide.sink(out_bases, marginals[0], cells[0])
            return False
        tree = (plan.join, plan.reads, bound.rows, work)
        question = (*tree, first, last, out_bases, bound.log_z, marginals, cells)
        narrow: bool = bound.numbers.call(make_propagate, (int(bound.semiring),), question, compile)
        return narrow

    if bound.run(rows, n_threads):
        return None
    if cell_offsets is None:
        return _propagated(bound, marginals, want_variables, None)
    cells = bound.with_outside(cells, cell_offsets)
    return _propagated(bound, marginals, want_variables, cells if row_weights is None else (row_weights @ cells)[None])


def _propagated(bound: Bound, marginals: Array, want_variables: bool, cells: Array | None) -> Propagated:
    return Propagated(bound.log_z, bound.probabilities(marginals) if want_variables else None, cells, bound.semiring)
