"""An elimination order that sweeps over a graph from one end to the other, and its cost.

Greedy orders begin everywhere at once and meet in tables that are too large: on a grid of 20 x 20 their width is 25 or
more. A sweep keeps one front, the neighbours of the variables eliminated so far. Those are connected, so the clique of
the next variable is itself, the rest of the front and its own neighbours that are not in the front yet: the cost
follows without the edges that elimination adds, in O(A + V w) steps for fronts of w variables.

The two ends of a component are found by breadth-first search from any variable to the farthest ones, from the one of
these with the fewest neighbours to be swept again, and so on, ROUNDS times in all. The sweep begins at the last one
found. Next is always the variable of the front for which the front grows least,

    growth(v)  sum of log K over the neighbours of v that are not in the front yet, less log K_v

of several the one farthest from the other end, then the one that came first. On a grid of n x m that goes diagonally if
there are four neighbours, and along the shorter side if there are eight: widths min(n, m) and min(n, m) + 1. Following
the levels of the breadth-first search, as Cuthill and McKee do, would be as good with four neighbours, but twice as
wide with eight.

Variables that are eliminated without joining any neighbours (`simple`) go before the sweep. Kept variables are not
swept, nor is the sweep continued through them; in the front they stay to the end of the component.

Shapes: V variables; neighbours (first (V + 1,), others (A,)) as in `besag.infer.orders.kernels.greedy_run`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from besag.arrays import Array, BoolArray, IntArray
from besag.infer.orders.kernels.greedy_run import DONE, GIVEN_UP, Run, Stop
from besag.kernels.compile import inlined

ROUNDS = 3
UNSEEN, OUTSIDE = -1, -2  # levels of variables that no search has reached, and of those that none may reach


@inlined
def spread_levels(source: int, first: IntArray, others: IntArray, level: IntArray, queue: IntArray) -> int:
    """Set the levels of the component of `source`, breadth first; returns its size, with its variables in queue."""
    level[source] = 0
    queue[0] = source
    n_queue = 1
    i = 0
    while i < n_queue:
        v = queue[i]
        i += 1
        for e in range(first[v], first[v + 1]):
            u = others[e]
            if level[u] == UNSEEN:
                level[u] = level[v] + 1
                queue[n_queue] = u
                n_queue += 1
    return n_queue


@inlined
def farthest(n_queue: int, queue: IntArray, degree: IntArray, level: IntArray) -> int:
    """Of the variables in the last level, the first of those with the fewest neighbours."""
    best = queue[n_queue - 1]
    i = n_queue - 2
    while i >= 0 and level[queue[i]] == level[best]:
        v = queue[i]
        if degree[v] <= degree[best]:
            best = v
        i -= 1
    return int(best)


@inlined
def take_next(n_front: int, front: IntArray, growth: IntArray, level: IntArray) -> int:
    """Take the next variable out of the front; the others stay in the order in which they came."""
    place, v = 0, front[0]
    for i in range(1, n_front):
        u = front[i]
        if growth[u] < growth[v] or (growth[u] == growth[v] and level[u] > level[v]):
            place, v = i, u
    for i in range(place + 1, n_front):
        front[i - 1] = front[i]
    return int(v)


def make_sweep() -> Callable[..., Run]:
    """Kernel: the sweep over all variables that are not kept; as `make_eliminate`, and given up after `most_steps`."""

    def sweep(
        cardinalities: Array,  # (V,)
        logs: IntArray,  # (V,) of the cardinalities, in small units
        kept: BoolArray,  # (V,) never eliminated
        first: IntArray,
        others: IntArray,
        simple: IntArray,  # those to go first, in order, none of which joins its neighbours
        stop: Stop,
        order: IntArray,  # output, one for each that is not kept
    ) -> Run:
        n, n_simple = len(cardinalities), len(simple)
        level, reached_from = np.full(n, UNSEEN, np.int64), np.full(n, -1, np.int64)
        gone, growth, degree = np.zeros(n, np.bool_), np.zeros(n, np.int64), np.zeros(n, np.int64)
        queue, front = np.empty(n, np.int64), np.empty(n, np.int64)
        total, largest = 0.0, 0.0
        largest_log, width, n_ordered = 0, 0, 0
        steps = (ROUNDS + 3) * (n + len(others))
        for i in range(n_simple):
            v = simple[i]
            entries, log_entries, d = float(cardinalities[v]), logs[v], 0
            for e in range(first[v], first[v + 1]):
                u = others[e]
                if not gone[u]:
                    entries, log_entries, d = entries * float(cardinalities[u]), log_entries + logs[u], d + 1
            total, largest = total + entries, max(largest, entries)
            largest_log, width = max(largest_log, log_entries), max(width, d)
            gone[v] = True
            order[n_ordered] = v
            n_ordered += 1
        for v in range(n):
            if kept[v] or gone[v]:
                level[v] = OUTSIDE
                continue
            growth[v] -= logs[v]
            for e in range(first[v], first[v + 1]):
                growth[others[e]] += logs[v]
                degree[others[e]] += 1
        for root in range(n):
            if level[root] != UNSEEN:
                continue
            end = root
            n_queue = spread_levels(end, first, others, level, queue)
            for _ in range(ROUNDS - 1):
                end = farthest(n_queue, queue, degree, level)
                for i in range(n_queue):
                    level[queue[i]] = UNSEEN
                n_queue = spread_levels(end, first, others, level, queue)
            front[0] = farthest(n_queue, queue, degree, level)
            reached_from[front[0]] = root
            for e in range(first[front[0]], first[front[0] + 1]):
                growth[others[e]] -= logs[front[0]]
            n_front, n_kept = 1, 0
            kept_entries, kept_log = 1.0, 0
            while n_front > 0:
                v = take_next(n_front, front, growth, level)
                n_front -= 1
                for e in range(first[v], first[v + 1]):
                    u = others[e]
                    if gone[u] or reached_from[u] == root:
                        continue
                    reached_from[u] = root
                    if kept[u]:
                        kept_entries, kept_log, n_kept = kept_entries * cardinalities[u], kept_log + logs[u], n_kept + 1
                        continue
                    front[n_front] = u
                    n_front += 1
                    for i in range(first[u], first[u + 1]):
                        growth[others[i]] -= logs[u]
                entries, log_entries = kept_entries * float(cardinalities[v]), kept_log + logs[v]
                for i in range(n_front):
                    entries *= float(cardinalities[front[i]])
                    log_entries += logs[front[i]]
                total, largest = total + entries, max(largest, entries)
                largest_log, width = max(largest_log, log_entries), max(width, n_front + n_kept)
                steps += 2 * n_front
                if (total >= stop.entries and largest_log >= stop.log) or steps > stop.steps:
                    return Run(GIVEN_UP, total, largest, largest_log, width, n_simple, steps)
                order[n_ordered] = v
                n_ordered += 1
        return Run(DONE, total, largest, largest_log, width, n_simple, steps)

    return sweep
