"""The labelling of least energy among the few states that bounds leave, on a junction tree.

If the tree of all states is known, the sizes of its cliques under the remaining states say whether it is now small. If
no order of the whole model can serve, and searching for one would take seconds, an order of what remains is sought.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import IntArray, Semiring
from besag.errors import TooLargeError
from besag.infer.bounds.narrowing import Fits, bound_bytes, narrow_states
from besag.infer.engine import Want
from besag.infer.junction import propagate
from besag.infer.junction.outlook import is_hopeless, link_variables
from besag.infer.orders.kernels.cliques import clique_entries
from besag.infer.orders.search import SEARCH_STEPS, fits_within
from besag.infer.purpose import Purpose
from besag.kernels.compile import worth_compiling

if TYPE_CHECKING:
    from besag.infer.junction.run import JunctionRun

MAP: frozenset[Want] = frozenset({"map"})
BOUND_ABOVE = 2e7  # table entries of a tree above which bounds are used to rule out states
HOPELESS_ENTRIES = 1e13  # above this no tree is sought before bounds have been tried
SHARE = 0.25  # of the time limit, for bounds, and as much again for orders of what they leave
TRIES, SECONDS_A_STEP = 6, 2e-8  # greedy orders of what bounds leave, and the time of one of their steps
SECONDS_A_LINK = 2e-7  # per factor-variable link, of the work before the first bound and before each order


def search_few_states(run: JunctionRun) -> dict[str, Any] | None:
    """The labelling of least energy if bounds make a large tree much smaller, else None."""
    if run.problem.evidence.n_rows > 1:
        return None
    if is_hopeless(run, run.find_purpose(MAP), HOPELESS_ENTRIES):
        return search_without_a_tree(run)
    try:
        if run.ready(MAP) is not None:
            return None
        setting, drawn = run.draw_up(MAP)
    except TooLargeError:
        return search_without_a_tree(run)
    if drawn.total < BOUND_ABOVE:
        return None

    def fits(counts: IntArray, most: float) -> bool:
        return bool(clique_entries(counts, drawn.member_offsets, drawn.members).sum() <= most)

    return _narrowed(run, setting, fits, drawn.total)


def search_without_a_tree(run: JunctionRun) -> dict[str, Any] | None:
    """The same without the tree of all states; None too if there is no time or memory to try."""
    seconds = math.inf if run.time_limit is None else SHARE * run.time_limit
    hasty = SECONDS_A_LINK * len(run.graph.scope_variables) > seconds
    if run.problem.evidence.n_rows > 1 or hasty or run.exceeds(bound_bytes(run.factors)):
        return None
    setting = run.find_purpose(MAP)
    setting = run.under_evidence(setting) or setting
    _, first, others = link_variables(run, setting)
    steps = int(min(SEARCH_STEPS, seconds / (TRIES * SECONDS_A_STEP)))

    def fits(counts: IntArray, most: float) -> bool:
        return fits_within(counts, first, others, most, most_steps=steps)

    return _narrowed(run, setting, fits, math.inf, seconds)


def _narrowed(
    run: JunctionRun, setting: Purpose, fits: Fits, total: float, seconds: float = math.inf
) -> dict[str, Any] | None:
    evidence, offsets = run.problem.evidence, run.graph.state_offsets

    def solve(smaller: Purpose) -> tuple[float, IntArray] | None:
        if not np.logical_or.reduceat(smaller.allowed, offsets[:-1]).all():
            return -np.inf, evidence.observed
        try:
            made = run.lay_out(smaller, run.sketch(smaller))
        except TooLargeError:
            return None
        numbers, given = run.numbers(made, Semiring.MAX), run.evidence_rows(0, 1)
        compile = worth_compiling(made.sketch.total)
        weight, codes = propagate.max_product(numbers, given, n_threads=run.n_threads, compile=compile)
        return float(weight.sum()), codes

    base = np.zeros(int(offsets[-1])) if evidence.log_weights is None else evidence.log_weights[0].copy()
    base[~run.seen_states(setting.allowed)] = -np.inf
    compile = worth_compiling(total)
    found = narrow_states(run.factors, setting, fits, total, base, solve, seconds=seconds, compile=compile)
    return None if found is None else run.label(found[1], np.zeros(run.graph.n_instances))
