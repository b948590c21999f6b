"""Whether exact inference has any chance, decided before an elimination order is sought.

Searching for a good order of a large graph takes seconds, in vain if no order can serve. So a first greedy order of the
variables around the one with the most neighbours is tried before; if even that makes more table entries than could ever
be visited, exact inference is hopeless. The graph is the one an exact engine would work on: without the variables that
evidence leaves one state, the states that hard zeros rule out, and the barren factors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from besag.arrays import BoolArray, IntArray, freeze, offsets_of
from besag.graph.graph import Graph
from besag.infer.orders.search import find_neighbours_of, fits_within
from besag.infer.purpose import Purpose
from besag.infer.trees.engine import forest_of

if TYPE_CHECKING:
    from besag.infer.junction.run import JunctionRun

HOPELESS = 2.0**10  # times the table entries that time or memory allow
HOPELESS_REASON = "exact inference would be too large, judged by the densest part of the graph"
FEW_FACTORS = 400  # up to here the search for an order takes hardly any time
NEAR = 4096  # variables that are tried first
LINK_BYTES = 24.0  # per factor-variable link, of the lists of neighbours; a tree of cliques takes more


def is_easy(graph: Graph) -> bool:
    """Whether the check can be skipped: few factors, or a forest."""
    return graph.n_factors <= FEW_FACTORS or forest_of(graph) is not None


def is_hopeless(run: JunctionRun, setting: Purpose, entries: float) -> bool:
    """Whether a part of a large graph shows that exact inference needs more than so many table entries."""
    if is_easy(run.graph):
        return False
    if run.exceeds(LINK_BYTES * len(run.graph.scope_variables)):
        return True
    if not _exceeds(run, setting, entries):
        return False
    smaller = run.under_evidence(setting)
    return smaller is None or _exceeds(run, smaller, entries)


def _exceeds(run: JunctionRun, setting: Purpose, entries: float) -> bool:
    counts, first, others = link_variables(run, setting)
    closed = counts <= 1
    near = near_to(int(np.argmax(np.where(closed, 0, np.diff(first)))), first, others, NEAR, closed)
    return not fits_within(counts[near], *induce_graph(near, first, others), entries)


def link_variables(run: JunctionRun, setting: Purpose) -> tuple[IntArray, IntArray, IntArray]:
    """The number of states left to each variable (V,), and its neighbours by the factors in use."""
    graph = run.graph
    left = np.add.reduceat(setting.allowed, graph.state_offsets[:-1], dtype=np.int64)
    counts = np.where(setting.fixed, 1, left)
    if setting.used.all():
        scopes = (graph.n_variables, graph.scope_offsets, graph.scope_variables)
        return counts, *graph.plans.get("all neighbours", lambda: find_neighbours_of(*scopes))
    sizes = np.diff(graph.scope_offsets)
    inside = np.repeat(setting.used, sizes)
    offsets = freeze(offsets_of(np.where(setting.used, sizes, 0)))
    return counts, *find_neighbours_of(graph.n_variables, offsets, freeze(graph.scope_variables[inside]))


def near_to(start: int, first: IntArray, others: IntArray, size: int, closed: BoolArray) -> IntArray:
    """About `size` variables around one, by breadth-first search that does not pass through closed ones."""
    seen = np.array(closed)
    seen[start] = True
    front, found = np.array([start]), [np.array([start])]
    while len(front) and sum(map(len, found)) < size:
        front = np.unique(others[_places(front, first)])
        front = front[~seen[front]]
        seen[front] = True
        found.append(front)
    return np.sort(np.concatenate(found))


def induce_graph(kept: IntArray, first: IntArray, others: IntArray) -> tuple[IntArray, IntArray]:
    """The neighbours of some variables among themselves, numbered anew."""
    number = np.full(len(first) - 1, -1, np.int64)
    number[kept] = np.arange(len(kept))
    ends = number[others[_places(kept, first)]]
    owner = np.repeat(np.arange(len(kept)), first[kept + 1] - first[kept])
    counts = np.bincount(owner[ends >= 0], minlength=len(kept))
    return freeze(offsets_of(counts)), freeze(ends[ends >= 0])


def _places(some: IntArray, first: IntArray) -> IntArray:
    """Where the neighbours of some variables are."""
    counts = first[some + 1] - first[some]
    return np.asarray(np.repeat(first[some] - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum())))
