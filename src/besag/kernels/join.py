"""Exact inference on a tree of cliques: arrays in, arrays out.

The functions here bind numbers and rows of evidence to a `join_plan.Plan` and run the kernels of `join_rows`. Sums are
tried in the SUM domain and done again in LOG_SUM where that is too narrow (see `join_passes`); what was used is part of
the answer.

Shapes: R rows, V variables, S states of all variables, F factors, L table entries, G groups of components (the
instances of a union), D states that are left of the free variables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from besag.arrays import Array, IntArray, Semiring, frozen
from besag.kernels.compile import kernel_of
from besag.kernels.join_bound import Bound, Given
from besag.kernels.join_lanes import LANES, MOST_LANE_MESSAGES, lanes_serve
from besag.kernels.join_plan import Plan
from besag.kernels.join_rows import Work, make_decode, make_draw, make_propagate
from besag.kernels.linear import Linear
from besag.kernels.prepare import Factors

__all__ = ["LANES", "MOST_LANE_MESSAGES", "Answer", "Given", "max_product", "sample", "sum_product"]


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What was wanted; a group without a labelling has log Z -inf and zeros."""

    log_partition: Array  # (R, G)
    variables: Array | None  # (R, S)
    cells: Array | None  # (R, .)
    semiring: Semiring


def sum_product(
    plan: Plan,
    factors: Factors,
    given: Given,
    scaled: Linear | None = None,
    *,
    want_variables: bool = True,
    cell_offsets: IntArray | None = None,
    n_threads: int | None = None,
    compile: bool = True,
) -> Answer:
    """log Z, marginals of the variables that the plan reads, and of all factors if cell_offsets (F + 1,) is given."""
    for semiring in (Semiring.SUM, Semiring.LOG_SUM):
        bound = Bound(plan, factors, given, semiring, scaled)
        answer = _propagate(bound, want_variables, cell_offsets, n_threads, compile)
        if answer is not None:
            return answer
    raise AssertionError("the log domain is never too narrow")


def max_product(
    plan: Plan, factors: Factors, given: Given, *, n_threads: int | None = None, compile: bool = True
) -> tuple[Array, IntArray]:
    """The logarithm of the weight of a heaviest labelling, (R, G), and its codes (R, V)."""
    bound = Bound(plan, factors, given, Semiring.MAX)
    digits = np.zeros(given.observed.shape, np.int64)

    def rows(work: Work, first: int, last: int) -> bool:
        wide = bound.wide(work, n_threads, compile)
        if wide is not None:
            wide.rise(bound.log_z, down=False)
        decode = kernel_of(make_decode, int(wide is None), compile=compile)
        decode(plan.join, bound.walk, bound.rows, work, first, last, bound.log_z, digits, np.empty(bound.longest))
        return False

    bound.run(rows, n_threads)
    return bound.log_z, bound.codes_of(digits)


def sample(
    plan: Plan,
    factors: Factors,
    given: Given,
    n_samples: int,
    key: int,
    *,
    n_threads: int | None = None,
    compile: bool = True,
) -> tuple[Array, IntArray]:
    """log Z (R, G), and n_samples independent labellings for each row, (R, n, V); the same key gives the same ones."""
    key = (int(key) + 2**63) % 2**64 - 2**63  # a signed word
    for semiring in (Semiring.SUM, Semiring.LOG_SUM):
        drawn = _draw(Bound(plan, factors, given, semiring), n_samples, key, n_threads, compile)
        if drawn is not None:
            return drawn
    raise AssertionError("the log domain is never too narrow")


def _draw(
    bound: Bound, n_samples: int, key: int, n_threads: int | None, compile: bool
) -> tuple[Array, IntArray] | None:
    plan, (n_rows, n) = bound.plan, bound.given.observed.shape
    digits = np.zeros((n_rows, n_samples, n), np.int64)

    def rows(work: Work, first: int, last: int) -> bool:
        wide = bound.wide(work, n_threads, compile)
        if wide is not None and wide.rise(bound.log_z, down=False):
            return True
        draw = kernel_of(make_draw, int(bound.semiring), int(wide is None), compile=compile)
        room = np.empty(bound.longest)
        narrow: bool = draw(plan.join, bound.walk, bound.rows, work, first, last, key, bound.log_z, digits, room)
        return narrow

    return None if bound.run(rows, n_threads) else (bound.log_z, bound.codes_of(digits))


def _propagate(
    bound: Bound, want_variables: bool, cell_offsets: IntArray | None, n_threads: int | None, compile: bool
) -> Answer | None:
    plan, n_rows = bound.plan, len(bound.log_z)
    wanted = want_variables or cell_offsets is not None
    n_digits = int(plan.sketch.digit_offsets[-1])
    marginals = np.zeros((n_rows if wanted else 0, n_digits))
    cells = np.zeros((n_rows, 0 if cell_offsets is None else int(cell_offsets[-1])))
    out_bases = plan.outputs
    if cell_offsets is not None:
        out_bases = out_bases.copy()
        out_bases[plan.of_factors] = cell_offsets[plan.factors]
        out_bases = frozen(out_bases)
    serves = bound.semiring == Semiring.SUM and cell_offsets is None
    if serves and lanes_serve(plan.setting.fixed, n_rows, plan.n_messages):
        if bound.run_lanes(out_bases, wanted, marginals, n_threads, compile):
            return None
        return Answer(bound.log_z, bound.probabilities(marginals) if want_variables else None, None, bound.semiring)
    propagate = kernel_of(make_propagate, int(bound.semiring), compile=compile)

    def rows(work: Work, first: int, last: int) -> bool:
        wide = bound.wide(work, n_threads, compile)
        if wide is not None:
            if wide.rise(bound.log_z, down=wanted):
                return True
            if wanted:
                wide.sink(out_bases, marginals[0], cells[0])
            return False
        narrow: bool = propagate(
            plan.join, plan.reads, bound.rows, work, first, last, out_bases, bound.log_z, marginals, cells
        )
        return narrow

    if bound.run(rows, n_threads):
        return None
    return Answer(
        bound.log_z,
        bound.probabilities(marginals) if want_variables else None,
        None if cell_offsets is None else bound.with_outside(cells, cell_offsets),
        bound.semiring,
    )
