"""Maximum flow by two search trees that are kept (Boykov and Kolmogorov, PAMI 2004), for real numbers.

A tree of nodes that the source reaches grows, and so does one of nodes that reach the sink. Where they meet, flow goes
along the path; nodes that are cut off by it look for another parent, or leave. A path takes all that its narrowest arc
has, which is exactly 0 then: no residual is ever negative. Arcs with at most `least` left count as full, a 2^-62 of all
that there is to send: less than rounding, but every path sends more, so that the search ends whatever the numbers are.
Capacities may be inf where not all arcs on a path are.

    n nodes, m edges, each of which is two arcs

    excess (n,)          what the source has left for a node, or, below zero, the node for the sink
    first (n + 1,)       where the arcs that leave each node begin
    heads, twins (2m,)   where an arc goes, and which arc is its reverse
    residual (2m,)       what it has left
    sides (n,)           1 in the tree of the source, -1 in that of the sink, 0 in none
    parents (n,)         the arc to the parent, or ROOT, ORPHAN, NONE
    depths, stamps (n,)  how far the root is, or was at the time of the stamp
    after (n,)           the next one of a queue of nodes to be scanned; n at its end, -1 outside
    orphans (2n,)        room for nodes without a parent
    counts (4,)          FRONT and REAR of that queue, -1 where it is empty, NOW, and the node that is scanned, CURRENT
    least (1,)           see above
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.kernels.compile import at, inlined

ROOT, ORPHAN, NONE = -1, -2, -3  # in place of the arc to a parent
FRONT, REAR, NOW, CURRENT = range(4)
FAR = 1 << 30  # the depth of what has no root, and the last time before stamps begin anew
TINY = 2.0**-62


class Flow(NamedTuple):
    """A network and a flow in it; see the module."""

    excess: Array
    first: AnyArray
    heads: AnyArray
    twins: AnyArray
    residual: Array
    sides: AnyArray
    parents: AnyArray
    depths: AnyArray
    stamps: AnyArray
    after: AnyArray
    orphans: AnyArray
    counts: IntArray
    least: Array


def make_arcs() -> Callable[..., None]:
    """Kernel: the arcs of a flow, whose first is zeros, by node: edge e goes from ends[2e + 1] to ends[2e]."""

    def list_arcs(ends: AnyArray, capacities: Array, flow: Flow) -> None:
        first = flow.first
        for a in range(len(ends)):
            first[ends[a]] += 1
        total = 0
        for v in range(len(first)):
            total += first[v]
            first[v] = total
        for a in range(len(ends) - 2, -1, -2):
            s, t = ends[a + 1], ends[a]
            first[s] -= 1
            first[t] -= 1
            forth, back = first[s], first[t]
            flow.heads[forth], flow.heads[back] = t, s
            flow.twins[forth], flow.twins[back] = back, forth
            flow.residual[forth], flow.residual[back] = capacities[a], capacities[a + 1]

    return list_arcs


@inlined
def activate(after: AnyArray, counts: IntArray, v: int) -> None:
    """Puts a node into the queue, unless it is there."""
    if after[at(v)] < 0:
        if counts[FRONT] < 0:
            counts[FRONT] = v
        else:
            after[at(counts[REAR])] = v
        counts[REAR] = v
        after[at(v)] = len(after)


def make_plant() -> Callable[..., None]:
    """Kernel: what can be sent along single arcs, and the roots of the trees."""

    def plant(flow: Flow) -> None:
        excess, first, heads, twins, residual, sides, parents, depths, stamps, after, _, counts, least = flow
        n = len(excess)
        for v in range(n):
            for a in range(first[v], first[v + 1]):
                w = heads[at(a)]
                if excess[v] > 0.0 > excess[at(w)]:
                    amount = min(excess[v], residual[at(a)], -excess[at(w)])
                    excess[v] -= amount
                    excess[at(w)] += amount
                    residual[at(a)] -= amount
                    residual[at(twins[at(a)])] += amount
        total = 0.0
        for v in range(n):
            total += abs(excess[v]) if abs(excess[v]) < np.inf else 0.0
        least[0] = TINY * total
        counts[FRONT] = counts[REAR] = counts[CURRENT] = -1
        counts[NOW] = 1
        for v in range(n):
            sides[v], parents[v], after[v], stamps[v], depths[v] = 0, NONE, -1, 0, 1
            if abs(excess[v]) > least[0]:
                sides[v], parents[v] = 1 if excess[v] > 0.0 else -1, ROOT
                activate(after, counts, v)

    return plant


@inlined
def narrowest(
    excess: Array, heads: AnyArray, twins: AnyArray, residual: Array, parents: AnyArray, v: int, side: int
) -> float:
    """What is left on the way from the root of a node in the tree of the source, or to that in the tree of the sink."""
    found = np.inf
    while parents[at(v)] >= 0:
        a = parents[at(v)]
        found = min(found, residual[at(twins[at(a)] if side > 0 else a)])
        v = heads[at(a)]
    return min(found, abs(excess[at(v)]))  # type: ignore[no-any-return]


@inlined
def push(
    excess: Array,
    heads: AnyArray,
    twins: AnyArray,
    residual: Array,
    parents: AnyArray,
    orphans: AnyArray,
    v: int,
    side: int,
    amount: float,
    least: float,
    place: int,
) -> int:
    """Sends an amount that way; the place of the last node that is cut off, below which are those nearer to it."""
    while parents[at(v)] >= 0:
        a = parents[at(v)]
        b = twins[at(a)]
        used, other = (b, a) if side > 0 else (a, b)
        residual[at(other)] += amount
        residual[at(used)] -= amount
        if residual[at(used)] <= least:
            parents[at(v)] = ORPHAN
            place -= 1
            orphans[at(place)] = v
        v = heads[at(a)]
    excess[at(v)] -= amount * side
    if abs(excess[at(v)]) <= least:
        parents[at(v)] = ORPHAN
        place -= 1
        orphans[at(place)] = v
    return place


@inlined
def depth_of(heads: AnyArray, parents: AnyArray, depths: AnyArray, stamps: AnyArray, v: int, now: int) -> int:
    """How far a node is from its root, which is stamped on the way there; FAR where the way ends at an orphan."""
    depth, w = 0, v
    while stamps[at(w)] != now:
        a = parents[at(w)]
        if a == ORPHAN:
            return FAR
        if a == ROOT:
            stamps[at(w)], depths[at(w)] = now, 1
            break
        depth += 1
        w = heads[at(a)]
    depth += depths[at(w)]
    below = depth
    while stamps[at(v)] != now:
        stamps[at(v)], depths[at(v)] = now, below
        below -= 1
        v = heads[at(parents[at(v)])]
    return int(depth)


@inlined
def adopt(
    first: AnyArray,
    heads: AnyArray,
    twins: AnyArray,
    residual: Array,
    sides: AnyArray,
    parents: AnyArray,
    depths: AnyArray,
    stamps: AnyArray,
    after: AnyArray,
    orphans: AnyArray,
    counts: IntArray,
    least: float,
    start: int,
    stop: int,
) -> None:
    """Finds parents for the orphans at these places; those who find none leave, and their children become orphans."""
    now = counts[NOW]
    while start < stop:
        v = orphans[at(start)]
        start += 1
        side, best, parent = sides[at(v)], FAR, NONE
        for a in range(first[at(v)], first[at(v + 1)]):
            w = heads[at(a)]
            if sides[at(w)] == side and residual[at(twins[at(a)] if side > 0 else a)] > least:
                depth = depth_of(heads, parents, depths, stamps, w, now)
                if depth < best:
                    best, parent = depth, a
        parents[at(v)] = parent
        if parent != NONE:
            stamps[at(v)], depths[at(v)] = now, best + 1
            continue
        sides[at(v)] = 0
        for a in range(first[at(v)], first[at(v + 1)]):
            w = heads[at(a)]
            if sides[at(w)] == side:
                b = twins[at(a)]
                if residual[at(b if side > 0 else a)] > least:
                    activate(after, counts, w)
                if parents[at(w)] == b:
                    parents[at(w)] = ORPHAN
                    orphans[at(stop)] = w
                    stop += 1


@inlined
def scan(
    first: AnyArray,
    heads: AnyArray,
    twins: AnyArray,
    residual: Array,
    sides: AnyArray,
    parents: AnyArray,
    depths: AnyArray,
    stamps: AnyArray,
    after: AnyArray,
    counts: IntArray,
    least: float,
    v: int,
) -> int:
    """Attaches what a node reaches to its tree; where it meets the other one, the arc to that of the sink, else -1."""
    side = sides[at(v)]
    for a in range(first[at(v)], first[at(v + 1)]):
        way = a if side > 0 else twins[at(a)]
        if residual[at(way)] > least:
            w = heads[at(a)]
            if sides[at(w)] == -side:
                return int(way)
            shorter = stamps[at(w)] <= stamps[at(v)] and depths[at(w)] > depths[at(v)]
            if sides[at(w)] == 0:
                sides[at(w)] = side
                activate(after, counts, w)
                shorter = True
            if shorter:
                parents[at(w)] = twins[at(a)]
                stamps[at(w)], depths[at(w)] = stamps[at(v)], depths[at(v)] + 1
    return -1


def make_grow() -> Callable[..., bool]:
    """Kernel: scans nodes, and sends flow where trees meet, as often as `work`; whether the flow is a maximum."""

    def grow(flow: Flow, work: int) -> bool:
        excess, first, heads, twins, residual, sides, parents, depths, stamps, after, orphans, counts, of_all = flow
        least, n = of_all[0], len(parents)
        while work > 0:
            v = counts[CURRENT]
            if v < 0:
                v = counts[FRONT]
                if v < 0:
                    return True
                counts[FRONT] = after[at(v)] if after[at(v)] < n else -1
                after[at(v)] = -1
            counts[CURRENT] = -1
            if sides[at(v)] == 0:
                continue
            work -= 1
            a = scan(first, heads, twins, residual, sides, parents, depths, stamps, after, counts, least, v)
            if a < 0:
                continue
            counts[CURRENT] = v
            counts[NOW] += 1
            if counts[NOW] == FAR:
                stamps[:] = 0
                counts[NOW] = 1
            b = twins[at(a)]
            amount = min(
                residual[at(a)],
                narrowest(excess, heads, twins, residual, parents, heads[at(b)], 1),
                narrowest(excess, heads, twins, residual, parents, heads[at(a)], -1),
            )
            residual[at(a)] -= amount
            residual[at(b)] += amount
            place = push(excess, heads, twins, residual, parents, orphans, heads[at(b)], 1, amount, least, n)
            place = push(excess, heads, twins, residual, parents, orphans, heads[at(a)], -1, amount, least, place)
            adopt(
                first, heads, twins, residual, sides, parents, depths, stamps, after, orphans, counts, least, place, n
            )
        return False

    return grow


def new_flow(excess: Array, n_arcs: int) -> Flow:
    """A flow of nothing, with room for its arcs and for the search."""
    n = len(excess)
    first, sides = np.zeros(n + 1, np.int32), np.empty(n, np.int8)
    sizes = (n_arcs, n_arcs, n, n, n, n, 2 * n)
    heads, twins, parents, depths, stamps, after, orphans = (np.empty(size, np.int32) for size in sizes)
    of_search = (sides, parents, depths, stamps, after, orphans, np.zeros(4, np.int64), np.zeros(1))
    return Flow(excess, first, heads, twins, np.empty(n_arcs), *of_search)
