"""The best of several elimination orders, for an effort proportional to the work that a better one can save.

Eliminating a variable makes a table over its clique, the variable and its neighbours at that time, of prod K entries.
An order's cost is the sum of these entries over its variables. No greedy rule wins everywhere, so each is tried,

    weighted fill   least sum of K_a K_b over the pairs of neighbours to be joined
    fill            least number of pairs of neighbours to be joined
    weight          least table

first without noise, ties in the order of the variables, which suits chains and grids that are numbered row by row; and
then at random until the effort is spent. If the first order joins nothing the graph is chordal, the largest tables are
those of its own cliques, which no order avoids, and the search ends. If the best makes SWEEP_ENTRIES or more, a sweep
(`besag.infer.orders.kernels.sweep`) comes last, which is narrower on grids and takes a small part of the time. Random
runs are alternately

    fresh    the next rule, each key times 1 + noise u, u uniform on [0, 1); noise 1 for one run of each rule, then next
             to none (another choice among ties only) for one run of each
    varied   the rule and the u of the best greedy run so far, but for a share of 0.3 of the variables, drawn anew,
             noise 1/2

Measured on nine networks from andes to munin with ten seeds: the geometric mean of the entries over the least ever seen
(standard error 0.01 after 18 runs, 0.007 or less after 60 and 200), 1.39 after the first three runs, and then

    runs                            18     60    200
    as above                      1.19   1.11   1.08
    without ties only             1.19   1.11   1.07   level, but 4 percent more on diabetes, where noise harms
    fresh runs only, noise 1      1.22   1.15   1.11
    fresh runs only, noise 1/2    1.24   1.17   1.12
    fresh runs only, ties only    1.33   1.29   1.26

An entry of a sweep counts as SWEEP_TIMES entries. Its cliques are all of one size, and so are the messages between
them, which have to be written and read, while a greedy order makes a few large tables with small messages. A sweep
takes as long with a quarter of the entries, and as much memory with a twelfth; measured with two states, greedy order
over sweep:

    grid                      entries   log Z   marginals   bytes
    16 x 16                       2.1     0.6         0.6     0.3
    20 x 20                       2.8     0.6         1.2     0.2
    16 x 60                       4.0     1.0         1.5     0.3
    17 x 100                      4.7     1.0         1.6     0.3
    12 x 60, with diagonals      14.4     2.1         3.5     1.2

The effort is counted in steps of the kernel, never by a clock, so that the answer is always the same. A step takes 4 to
6 ns on these networks (10 to 50 where there are 100,000 variables, out of the cache), an entry of a table in exact
inference about 5 ns, and a call of the kernel 10 us, as long as 2,000 steps. After the first three greedy runs, more
are made while the steps taken, with those of one more run, are below effort x entries. There are limits for graphs on
which nothing helps: no other greedy run starts beyond SEARCH_STEPS (0.4 s), and a run that takes MOST_STEPS (3 s) is
cut off and marked so; a grid of 300 x 300 takes 3.0e8 steps and 1.3 s.

A variable with one state (an observed one) has no part in any table: it is eliminated without joining its neighbours,
and its clique is itself alone. Entries can be infinite; such orders are compared by their largest table, in logs.

Shapes: V variables; neighbours (first (V + 1,), others (A,)), others[first[v]:first[v + 1]] being those of v.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, freeze, offsets_of, seal
from besag.infer.orders.kernels.first_runs import (
    BETTER,
    FILL,
    N_GREEDY,
    NO_LIMIT,
    STEPS_OF_CALL,
    TIES,
    WEIGHT,
    WEIGHTED,
    make_eliminate,
    make_first_runs,
    make_neighbours,
    make_prepared,
)
from besag.infer.orders.kernels.greedy_run import CUT_OFF, DONE, Run, Stop
from besag.infer.orders.kernels.starts import LOG_UNIT, RunStart
from besag.infer.orders.kernels.sweep import make_sweep
from besag.kernels.compile import kernel_of

SWEEP = N_GREEDY
RULES = ("weighted fill", "fill", "weight", "sweep")

FRESH_NOISE, VARIED_NOISE, VARIED_SHARE = 1.0, 0.5, 0.3
SWEEP_ENTRIES = 1 << 14  # on these inference spends 80 us, and on a small graph the sweep a tenth of that
SWEEP_TIMES = 8.0  # between the factor at which time is equal and that at which memory is
STEPS_PER_ENTRY = 1.0  # the time of an entry in exact inference over the time of a step
SEARCH_STEPS = 1 << 26
MOST_STEPS = 1 << 29
MOST_RUNS = 200
ROUNDED = 100  # units by which the logs of a table's variables may add up to more than the log of its entries


_Given = tuple[IntArray, IntArray, IntArray, BoolArray]


@dataclass(frozen=True, slots=True, eq=False)
class EliminationOrder:
    """An elimination order and what it costs."""

    variables: IntArray  # all that are not kept, the first to be eliminated first
    entries: float  # of the tables of all cliques, one for each variable
    largest: float  # entries of the largest of these tables
    width: int  # variables of the largest clique, minus one
    rule: str
    runs: int  # that were made to find it
    complete: bool  # False: cut off, and entries, largest and width are upper bounds


class _Neighbourhoods(NamedTuple):
    """What all runs share, and the graph."""

    shared: RunStart
    first: IntArray
    others: IntArray
    kept: BoolArray


class _Found(NamedTuple):
    """A run, and what is needed to vary it."""

    rule: int
    factors: Array
    variables: IntArray
    run: Run


def find_neighbours_of(
    n_variables: int, scope_offsets: IntArray, scope_variables: IntArray, *, compile: bool = True
) -> tuple[IntArray, IntArray]:
    """The variables that share a factor with each one, (first (V + 1,), others (A,)), each neighbour once."""
    kernel = kernel_of(make_neighbours, compile=compile)
    return seal(kernel(n_variables, freeze(scope_offsets), freeze(scope_variables)))


def find_order(
    cardinalities: IntArray,
    first: IntArray,
    others: IntArray,
    *,
    keep: BoolArray | None = None,
    effort: float = 0.1,
    compile: bool = True,
) -> EliminationOrder:
    """The order of least cost found; variables in `keep` are not eliminated, and stay neighbours of the others.

    `effort` is the share of the time of exact inference that may be spent on the search; 0 tries each rule once.
    """
    given = _given(cardinalities, first, others, keep)
    shared, factors, variables, number, run, runs, spent, last = kernel_of(make_first_runs, compile=compile)(
        *given, SEARCH_STEPS, MOST_STEPS
    )
    best, graph = _Found(number, factors, variables, run), _graph(given, shared)
    eliminate, rng = kernel_of(make_eliminate, compile=compile), None
    while _goes_on(best, runs, spent, last, effort):
        rng = np.random.default_rng(0) if rng is None else rng
        rule, factors = _random_try(runs - N_GREEDY, best, rng)
        found, last = _tried(eliminate, graph, rule, factors, _limits(best.run, 1.0), MOST_STEPS - spent)
        runs, spent = runs + 1, spent + last
        if found.run.ended == DONE:
            best = found
    if best.run.ended == DONE and not _is_chordal(best) and best.run.entries >= SWEEP_ENTRIES:
        found = _swept(graph, best, compile)
        runs += 1
        if found.run.ended == DONE:
            best = found
    return EliminationOrder(
        variables=freeze(best.variables),
        entries=float(best.run.entries),
        largest=float(best.run.largest),
        width=int(best.run.width),
        rule=RULES[best.rule],
        runs=runs,
        complete=best.run.ended != CUT_OFF,
    )


def fits_within(
    cardinalities: IntArray,
    first: IntArray,
    others: IntArray,
    entries: float,
    *,
    most_steps: int | None = None,
    compile: bool = True,
) -> bool:
    """Whether the first greedy order makes tables of at most so many entries; a run that makes more ends early."""
    graph = _prepared(cardinalities, first, others, None, compile)
    limits = (entries * BETTER, 0)
    eliminate = kernel_of(make_eliminate, compile=compile)
    order = _in_order(len(cardinalities))
    found, _ = _tried(eliminate, graph, FILL, order, limits, most_steps or MOST_STEPS)
    return bool(found.run.ended == DONE)


def bound_order(
    cardinalities: IntArray,
    first: IntArray,
    others: IntArray,
    bits: float,
    *,
    keep: BoolArray | None = None,
    compile: bool = True,
) -> tuple[IntArray, bool]:
    """The first greedy order, up to where a table would have more than 2^bits entries, and whether it is complete.

    The bound is met within 1e-4 bits, since logs of cardinalities are rounded.
    """
    graph = _prepared(cardinalities, first, others, keep, compile)
    limits = (0.0, math.floor(min(bits / LOG_UNIT, NO_LIMIT / 2)) + ROUNDED)
    eliminate = kernel_of(make_eliminate, compile=compile)
    found, _ = _tried(eliminate, graph, WEIGHTED, _in_order(len(cardinalities)), limits, MOST_STEPS)
    if found.run.ended == DONE:
        return found.variables, True
    return found.variables[: int(np.argmax(found.variables < 0))], False


def _given(cardinalities: IntArray, first: IntArray, others: IntArray, keep: BoolArray | None) -> _Given:
    """The arguments of the kernels, in which variables with one state have no neighbours."""
    single = cardinalities == 1
    if np.diff(first)[single].any():
        first, others = _without(single, first, others)
    kept = np.zeros(len(cardinalities), np.bool_) if keep is None else keep
    return freeze(cardinalities), freeze(first), freeze(others), freeze(kept)


def _prepared(
    cardinalities: IntArray, first: IntArray, others: IntArray, keep: BoolArray | None, compile: bool
) -> _Neighbourhoods:
    given = _given(cardinalities, first, others, keep)
    return _graph(given, kernel_of(make_prepared, compile=compile)(*given[:3]))


def _graph(given: _Given, shared: RunStart) -> _Neighbourhoods:
    _, first, others, kept = given
    return _Neighbourhoods(seal(shared), first, others, kept)


def _without(gone: BoolArray, first: IntArray, others: IntArray) -> tuple[IntArray, IntArray]:
    """The lists of neighbours with some variables isolated."""
    owner = np.repeat(np.arange(len(gone)), np.diff(first))
    stays = ~(gone[owner] | gone[others])
    return offsets_of(np.bincount(owner[stays], minlength=len(gone))), others[stays]


def _tried(
    eliminate: Callable[..., Run],
    graph: _Neighbourhoods,
    rule: int,
    factors: Array,
    limits: tuple[float, int],
    most_steps: int,
) -> tuple[_Found, int]:
    """Make a run, which is given up at these limits, with -1 for variables it has not reached; and the steps taken."""
    row = FILL if rule == WEIGHT else rule
    variables = np.full(len(factors) - int(np.count_nonzero(graph.kept)), -1, np.int64)
    structure = (graph.shared, row, graph.first, graph.others, graph.kept)
    run = eliminate(*structure, rule == WEIGHT, freeze(factors), Stop(*limits, most_steps), variables)
    return _Found(rule, factors, variables, run), int(run.steps) + STEPS_OF_CALL


def _swept(graph: _Neighbourhoods, best: _Found, compile: bool) -> _Found:
    """The sweep, which is given up when it is not much better than the best greedy run."""
    simple = freeze(best.variables[: best.run.n_simple])
    variables = np.empty(len(best.variables), np.int64)
    structure = (graph.shared.cardinalities, graph.shared.logs, graph.kept, graph.first, graph.others)
    stop = Stop(*_limits(best.run, SWEEP_TIMES), SEARCH_STEPS)
    run = kernel_of(make_sweep, compile=compile)(*structure, simple, stop, variables)
    return _Found(SWEEP, best.factors, variables, run)


def _limits(best: Run, times: float) -> tuple[float, int]:
    """The entries, and the log of the largest table, from which on a run is not better than the best so many times."""
    if best.entries < math.inf:
        return best.entries / times * BETTER, 0
    return math.inf, best.largest_log - round(math.log2(times) / LOG_UNIT)


def _is_chordal(found: _Found) -> bool:
    """Whether no neighbours had to be joined."""
    return found.run.n_simple == len(found.variables)


def _goes_on(best: _Found, runs: int, spent: int, last: int, effort: float) -> bool:
    """Whether another greedy run pays, when `runs` have been made."""
    if best.run.ended == CUT_OFF or _is_chordal(best) or runs >= MOST_RUNS or spent + last > SEARCH_STEPS:
        return False
    return spent + last <= effort * STEPS_PER_ENTRY * best.run.entries


def _random_try(runs: int, best: _Found, rng: np.random.Generator) -> tuple[int, Array]:
    """The rule and the factors of the next random run, when `runs` have been made."""
    n, turn = len(best.factors), runs // 2
    if runs % 2:
        anew = rng.random(n) < VARIED_SHARE
        return best.rule, np.where(anew, 1.0 + VARIED_NOISE * rng.random(n), best.factors)
    noise = TIES if turn // N_GREEDY % 2 else FRESH_NOISE
    return turn % N_GREEDY, 1.0 + noise * rng.random(n)


def _in_order(n: int) -> Array:
    """Factors that let variables of equal keys go in the order of their numbers."""
    return 1.0 + np.arange(n, dtype=np.float64) * (TIES / max(n, 1))
