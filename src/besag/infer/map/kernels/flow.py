"""Maximum flow by incremental breadth-first search (Goldberg, Hed, Kaplan, Tarjan, Werneck, ESA 2011), for floats.

A tree of nodes that the source reaches grows level by level, and so does one of nodes that reach the sink. Where they
meet, flow goes along a shortest path; nodes cut off by it look for a parent at a higher level, or leave. Paths never
become shorter, so that there are at most n^2 m steps whatever the numbers are. A path takes all that its narrowest arc
has, which is exactly 0 then: no residual is ever negative. Capacities may be inf where the terminals' are not.

    n nodes, m edges; edge e is arc 2e from tails[e] to ends[2e], and arc 2e + 1 back: the reverse of arc a is a ^ 1

    residual (2m,)       what an arc has left
    excess (n,)          what the source has left for a node, or, below zero, the node for the sink
    ends (2m,)           where an arc goes
    first (n + 1,), arcs (2m,)      the arcs that leave each node
    levels (n,)          1, 2, .. in the tree of the source, -1, -2, .. in that of the sink, 0 in none
    parents (n,)         the arc to the parent, or ROOT, ORPHAN, NONE
    queues (2, 2, n)     by tree: nodes of the last level, to be scanned, and of the next one
    listed (2, n)        whether a node is in a queue of a tree
    orphans (2, n + 2)   by level the first orphan, and by node the one after it
    counts (2, 2)        by tree: the last level, and how many nodes are to be scanned
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.kernels.compile import at, inlined

ROOT, ORPHAN, NONE = -1, -2, -3  # in place of the arc to a parent
SOURCE, SINK = 0, 1


class Flow(NamedTuple):
    """A network and a flow in it; see the module."""

    residual: Array
    excess: Array
    ends: AnyArray
    first: AnyArray
    arcs: AnyArray
    levels: AnyArray
    parents: AnyArray
    queues: AnyArray
    listed: AnyArray
    orphans: AnyArray
    counts: IntArray


def make_arcs() -> Callable[..., None]:
    """Kernel: fills first (n + 1,), which is zeros, and arcs (2m,) from ends (2m,)."""

    def list_arcs(ends: AnyArray, first: AnyArray, arcs: AnyArray) -> None:
        for a in range(len(ends)):
            first[ends[a]] += 1
        total = 0
        for v in range(len(first)):
            total += first[v]
            first[v] = total
        for a in range(len(ends) - 1, -1, -1):
            v = ends[a]
            first[v] -= 1
            arcs[first[v]] = a ^ 1

    return list_arcs


def make_plant() -> Callable[..., None]:
    """Kernel: the trees of a flow that is zero: their roots, as arcs to and from the terminals say."""

    def plant(flow: Flow) -> None:
        excess, levels, parents = flow.excess, flow.levels, flow.parents
        n = len(excess)
        for a in range(len(flow.ends)):
            v, w = flow.ends[a ^ 1], flow.ends[a]
            if excess[at(v)] > 0.0 > excess[at(w)]:
                amount = min(excess[at(v)], flow.residual[a], -excess[at(w)])
                excess[at(v)] -= amount
                excess[at(w)] += amount
                flow.residual[a] -= amount
                flow.residual[a ^ 1] += amount
        for v in range(n):
            levels[v] = 0
            parents[v] = NONE
            for side in range(2):
                flow.listed[side, v] = 0
            if excess[v] != 0.0:
                side = SOURCE if excess[v] > 0.0 else SINK
                levels[v] = 1 - 2 * side
                parents[v] = ROOT
                flow.listed[side, v] = 1
                flow.queues[side, 0, flow.counts[side, 1]] = v
                flow.counts[side, 1] += 1
        for level in range(n + 2):
            flow.orphans[0, level] = -1
        flow.counts[0, 0] = flow.counts[1, 0] = 1

    return plant


@inlined
def orphan(flow: Flow, v: int, level: int) -> None:
    """Cuts a node of this level, without its sign, off from its parent."""
    flow.parents[at(v)] = ORPHAN
    flow.orphans[1, at(v)] = flow.orphans[0, at(level)]
    flow.orphans[0, at(level)] = v


@inlined
def narrowest(flow: Flow, v: int, back: int, least: float) -> float:
    """The least of a number and what the arcs from a node to its root have left; back: 1 towards the node, else 0."""
    while flow.parents[at(v)] >= 0:
        a = flow.parents[at(v)]
        least = min(least, flow.residual[at(a ^ back)])
        v = flow.ends[at(a)]
    return float(min(least, abs(flow.excess[at(v)])))


@inlined
def push(flow: Flow, v: int, back: int, amount: float) -> int:
    """Sends an amount along the arcs between a node and its root; the lowest level where that makes an orphan."""
    lowest = len(flow.levels)
    while flow.parents[at(v)] >= 0:
        a = flow.parents[at(v)]
        flow.residual[at(a ^ back)] -= amount
        flow.residual[at(a ^ back ^ 1)] += amount
        if flow.residual[at(a ^ back)] <= 0.0:
            lowest = abs(flow.levels[at(v)])
            orphan(flow, v, lowest)
        v = flow.ends[at(a)]
    flow.excess[at(v)] -= amount if back == 1 else -amount
    if flow.excess[at(v)] == 0.0:
        lowest = 1
        orphan(flow, v, 1)
    return lowest


@inlined
def relabel(flow: Flow, v: int, side: int, level: int) -> None:
    """Gives an orphan, whose children become orphans too, another level, or 0 where it leaves the tree."""
    levels = flow.levels
    below = abs(levels[at(v)]) + 1
    levels[at(v)] = level if side == SOURCE else -level
    for j in range(flow.first[at(v)], flow.first[at(v + 1)]):
        a = flow.arcs[at(j)]
        if flow.parents[at(flow.ends[at(a)])] == a ^ 1:
            orphan(flow, flow.ends[at(a)], below)


@inlined
def adopt(flow: Flow, side: int, lowest: int, deepest: int, n_next: int) -> int:
    """Finds parents for all orphans of a tree, which may reach down to a level; how many wait in the next queue."""
    levels, parents, last = flow.levels, flow.parents, flow.counts[side, 0]
    sign, back = 1 - 2 * side, 1 - side
    for level in range(lowest, deepest + 1):
        v = flow.orphans[0, at(level)]
        while v >= 0:
            flow.orphans[0, at(level)] = flow.orphans[1, at(v)]
            best, parent = deepest, NONE
            for j in range(flow.first[at(v)], flow.first[at(v + 1)]):
                a = flow.arcs[at(j)]
                if flow.residual[at(a ^ back)] > 0.0:
                    above = sign * levels[at(flow.ends[at(a)])]
                    if 0 < above < best:
                        best, parent = above, a
                        if above == level - 1:
                            break
            if parent == NONE:
                relabel(flow, v, side, 0)
                parents[at(v)] = NONE
            elif best == level - 1:
                parents[at(v)] = parent
            else:
                relabel(flow, v, side, best + 1)
                orphan(flow, v, best + 1)
                if best + 1 >= last and flow.listed[side, at(v)] == 0:
                    flow.listed[side, at(v)] = 1
                    if best + 1 == last:
                        flow.queues[side, 0, flow.counts[side, 1]] = v
                        flow.counts[side, 1] += 1
                    else:
                        flow.queues[side, 1, n_next] = v
                        n_next += 1
            v = flow.orphans[0, at(level)]
    return n_next


@inlined
def augment(flow: Flow, a: int, side: int, n_next: int) -> int:
    """Sends flow along an arc from the tree of the source to that of the sink, while the tree of a side is growing."""
    above, below = flow.ends[at(a ^ 1)], flow.ends[at(a)]
    amount = narrowest(flow, above, 1, flow.residual[at(a)])
    amount = narrowest(flow, below, 0, amount)
    flow.residual[at(a)] -= amount
    flow.residual[at(a ^ 1)] += amount
    for tree in range(2):
        lowest = push(flow, above if tree == SOURCE else below, 1 - tree, amount)
        deepest = flow.counts[tree, 0] + (1 if tree == side else 0)
        added = adopt(flow, tree, lowest, deepest, n_next if tree == side else 0)
        n_next = added if tree == side else n_next
    return n_next


def make_grow() -> Callable[..., bool]:
    """Kernel: grows the trees level by level until about so many nodes are scanned; whether the flow is a maximum."""

    def grow(flow: Flow, work: int) -> bool:
        levels, parents, counts = flow.levels, flow.parents, flow.counts
        done = 0
        while counts[SOURCE, 1] > 0 and counts[SINK, 1] > 0:
            if done >= work:
                return False
            side = SOURCE if counts[SOURCE, 0] <= counts[SINK, 0] else SINK
            sign, level = 1 - 2 * side, counts[side, 0]
            n_next, i = 0, 0
            while i < counts[side, 1]:
                v = flow.queues[side, 0, i]
                i += 1
                flow.listed[side, at(v)] = 0
                if sign * levels[at(v)] == level + 1:
                    flow.listed[side, at(v)] = 1
                    flow.queues[side, 1, n_next] = v
                    n_next += 1
                j = flow.first[at(v)]
                while j < flow.first[at(v + 1)] and sign * levels[at(v)] == level:
                    a = flow.arcs[at(j)]
                    if flow.residual[at(a ^ side)] <= 0.0:
                        j += 1
                        continue
                    w = flow.ends[at(a)]
                    where = sign * levels[at(w)]
                    if where < 0:
                        n_next = augment(flow, a ^ side, side, n_next)
                        continue
                    if where == 0:
                        levels[at(w)] = sign * (level + 1)
                        parents[at(w)] = a ^ 1
                        if flow.listed[side, at(w)] == 0:
                            flow.listed[side, at(w)] = 1
                            flow.queues[side, 1, n_next] = w
                            n_next += 1
                    j += 1
            done += counts[side, 1]
            for k in range(n_next):
                flow.queues[side, 0, k] = flow.queues[side, 1, k]
            counts[side, 0], counts[side, 1] = level + 1, n_next
        return True

    return grow


def new_flow(residual: Array, excess: Array, ends: AnyArray, first: AnyArray, arcs: AnyArray) -> Flow:
    """A flow of nothing, with room for the search."""
    n = len(excess)
    levels, parents, queues, orphans = (np.empty(shape, np.int32) for shape in (n, n, (2, 2, n), (2, n + 2)))
    listed, counts = np.empty((2, n), np.int8), np.zeros((2, 2), np.int64)
    return Flow(residual, excess, ends, first, arcs, levels, parents, queues, listed, orphans, counts)
