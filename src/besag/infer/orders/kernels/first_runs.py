"""Kernels over `greedy_run`: the first greedy runs in one call, and each of its parts alone."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from besag.arrays import Array, BoolArray, IntArray
from besag.infer.orders.kernels.greedy_run import CUT_OFF, DONE, Run, eliminate, find_neighbours, prepare_runs

WEIGHTED, FILL, WEIGHT = 0, 1, 2
N_GREEDY = 3
TIES = 2.0**-20  # noise that chooses among ties only
STEPS_OF_CALL = 2_000
BETTER = 1.0 - 1e-9  # smaller gains may be rounding, in which plain Python and compiled code may differ
NO_LIMIT = 1 << 62

RunStart = tuple[Array, IntArray, Array, Array, Array, IntArray]


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
        counts, logs, weights, sums, scores, sizes = shared
        n, n_ordered = len(counts), 0
        factors = np.empty(n)
        for v in range(n):
            factors[v] = 1.0 + v * (TIES / n)
            n_ordered += 0 if kept[v] else 1
        order, best = np.empty(n_ordered, np.int64), np.empty(n_ordered, np.int64)
        best_rule, runs, spent, last = 0, 0, 0, 0
        run = (0, math.inf, math.inf, NO_LIMIT, 0, -1, 0)
        for rule in range(N_GREEDY):
            if rule > 0 and (run[0] == CUT_OFF or run[5] == n_ordered or spent + last > search_steps):
                break
            row = FILL if rule == WEIGHT else rule
            limited = run[1] < math.inf
            tried = eliminate(
                counts,
                logs,
                weights[row],
                kept,
                first,
                others,
                sums[row],
                scores[row],
                sizes,
                rule == WEIGHT,
                factors,
                run[1] * BETTER if limited else math.inf,
                0 if limited else run[3],
                most_steps - spent,
                order,
            )
            last = tried[6] + STEPS_OF_CALL
            runs, spent = runs + 1, spent + last
            if rule == 0 or tried[0] == DONE:
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
        cardinalities: Array,
        logs: IntArray,
        weights: Array,
        kept: BoolArray,
        first: IntArray,
        others: IntArray,
        sums: Array,
        scores: Array,
        sizes: IntArray,
        by_size: bool,
        factors: Array,
        give_up: float,
        give_up_log: int,
        most_steps: int,
        order: IntArray,
    ) -> Run:
        return eliminate(
            cardinalities,
            logs,
            weights,
            kept,
            first,
            others,
            sums,
            scores,
            sizes,
            by_size,
            factors,
            give_up,
            give_up_log,
            most_steps,
            order,
        )

    return run
