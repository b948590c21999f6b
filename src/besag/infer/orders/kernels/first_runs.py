"""Kernels over `greedy_run`: the first greedy runs in one call, and each of its parts alone."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from besag.arrays import Array, BoolArray, IntArray
from besag.infer.orders.kernels.greedy_run import CUT_OFF, DONE, GIVEN_UP, Run, Stop, eliminate
from besag.infer.orders.kernels.starts import RunStart, find_neighbours, prepare_runs

WEIGHTED, FILL, WEIGHT = 0, 1, 2
N_GREEDY = 3
TIES = 2.0**-20  # noise that chooses among ties only
STEPS_OF_CALL = 2_000
BETTER = 1.0 - 1e-9  # smaller gains may be rounding, in which plain Python and compiled code may differ
NO_LIMIT = 1 << 62


def make_neighbours() -> Callable[..., tuple[IntArray, IntArray]]:
    """Kernel: find_neighbours."""

    def neighbours(n_variables: int, offsets: IntArray, scopes: IntArray) -> tuple[IntArray, IntArray]:
        return find_neighbours(n_variables, offsets, scopes)

    return neighbours


def make_first_runs() -> Callable[..., tuple[RunStart, Array, IntArray, int, Run, int, int, int]]:
    """Kernel: a run of each rule without noise, ties in the order of the variables; fewer if another cannot pay.

    -> what runs share; the factors of the keys; the best order, its rule and its run; how many runs were made, the
    steps that they took, and those of the last one. search_steps, most_steps: see `besag.infer.orders.search`.
    """

    def first_runs(
        cardinalities: IntArray,
        first: IntArray,
        others: IntArray,
        kept: BoolArray,
        search_steps: int,
        most_steps: int,
    ) -> tuple[RunStart, Array, IntArray, int, Run, int, int, int]:
        shared = prepare_runs(cardinalities, first, others)
        n, n_ordered = len(kept), 0
        factors = np.empty(n)
        for v in range(n):
            factors[v] = 1.0 + v * (TIES / n)
            n_ordered += 0 if kept[v] else 1
        order, best = np.empty(n_ordered, np.int64), np.empty(n_ordered, np.int64)
        best_rule, runs, spent, last = 0, 0, 0, 0
        run = Run(GIVEN_UP, math.inf, math.inf, NO_LIMIT, 0, -1, 0)
        for rule in range(N_GREEDY):
            if rule > 0 and (run.ended == CUT_OFF or run.n_simple == n_ordered or spent + last > search_steps):
                break
            row = FILL if rule == WEIGHT else rule
            limited = run.entries < math.inf
            most = run.entries * BETTER if limited else math.inf
            stop = Stop(most, 0 if limited else run.largest_log, most_steps - spent)
            tried = eliminate(shared, row, first, others, kept, rule == WEIGHT, factors, stop, order)
            last = tried.steps + STEPS_OF_CALL
            runs, spent = runs + 1, spent + last
            if rule == 0 or tried.ended == DONE:
                run, best_rule = tried, rule
                for i in range(n_ordered):
                    best[i] = order[i]
        return shared, factors, best, best_rule, run, runs, spent, last

    return first_runs


def make_prepared() -> Callable[..., RunStart]:
    """Kernel: prepare_runs."""

    def shared(cardinalities: IntArray, first: IntArray, others: IntArray) -> RunStart:
        return prepare_runs(cardinalities, first, others)

    return shared


def make_eliminate() -> Callable[..., Run]:
    """Kernel: eliminate."""

    def run(
        shared: RunStart,
        row: int,
        first: IntArray,
        others: IntArray,
        kept: BoolArray,
        by_size: bool,
        factors: Array,
        stop: Stop,
        order: IntArray,
    ) -> Run:
        return eliminate(shared, row, first, others, kept, by_size, factors, stop, order)

    return run
