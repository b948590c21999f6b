"""Greedy elimination orders: one run over a graph of variables, and the scores that it starts from.

Eliminating v joins its neighbours C to each other and removes v; the table of v and C has K_v prod_C K_a entries. A
greedy order takes at each step the variable with the least key. With weights w,

    score(v)  sum of w_a w_b over the pairs a, b of neighbours of v that are not joined yet
    size(v)   sum of log K over v and its neighbours
    key(v)    score(v), or size(v), times a factor of v that breaks ties or adds noise

but a variable with score 0 goes before all others, since its table has to be paid for at any time. Of those with the
same clique, the one with the most states goes first: the tables of the rest are smaller without it.

Scores and sizes are updated incrementally. With W_v the sum of w over the neighbours of v, and M the common neighbours
of a and b, joining a and b does

    score(m) -= w_a w_b for m in M,   score(a) += w_b (W_a - sum_M w),   score(b) += w_a (W_b - sum_M w)

and removing v, when C is joined, does score(a) -= w_v (W_a - w_v - sum_C w + w_a) for a in C. So a step that joins
nothing costs O(|C|), and each new edge O(degree). Scores and sizes are integers below 2^53 (callers ensure it), hence
exact in any order of summation, and keys are single products: plain Python and compiled code choose the same order.

Shapes: V variables; `first` (V + 1,) and `others` (A,): the neighbours of v are others[first[v]:first[v + 1]]. During a
run they are in a pool, a stretch for each variable with room to grow. A removed variable stays in the lists of others
until they are next traversed: searching for it would take O(V^2) steps around a hub. For the same reason the heap of
keys is updated with new scores only when no variable with score 0 is left.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from besag.arrays import Array, BoolArray, IntArray
from besag.kernels.compile import inlined

GIVEN_UP, CUT_OFF, DONE = 0, 1, 2  # how a run can end
HEAP_STEPS = 8  # an update of the heap takes as long as this many steps through a list of neighbours
LOG_UNIT = 2.0**-20  # logs are whole multiples of it, hence sums of them exact
MOST_WEIGHT = 2.0**26  # of all variables together: scores, at most its square, are then exact
GONE, FREE = -1, -2  # places outside the heap: FREE - i is place i of the list of variables with score 0

Run: TypeAlias = tuple[int, float, float, int, int, int, int]


@inlined
def find_neighbours(n_variables: int, offsets: IntArray, scopes: IntArray) -> tuple[IntArray, IntArray]:
    """The neighbours of each variable, (first, others), from the scopes of the factors."""
    begin = np.zeros(n_variables + 1, np.int64)  # factors on each variable
    n_pairs = 0
    for f in range(len(offsets) - 1):
        arity = offsets[f + 1] - offsets[f]
        n_pairs += arity * (arity - 1)
        for e in range(offsets[f], offsets[f + 1]):
            begin[scopes[e] + 1] += 1
    for v in range(n_variables):
        begin[v + 1] += begin[v]
    beside = np.empty(len(scopes), np.int64)
    free = begin[:-1].copy()
    for f in range(len(offsets) - 1):
        for e in range(offsets[f], offsets[f + 1]):
            beside[free[scopes[e]]] = f
            free[scopes[e]] += 1
    first = np.zeros(n_variables + 1, np.int64)
    others = np.empty(n_pairs, np.int64)
    seen = np.full(n_variables, -1, np.int64)
    top = 0
    for v in range(n_variables):
        seen[v] = v
        for i in range(begin[v], begin[v + 1]):
            f = beside[i]
            for e in range(offsets[f], offsets[f + 1]):
                u = scopes[e]
                if seen[u] != v:
                    seen[u] = v
                    others[top] = u
                    top += 1
        first[v + 1] = top
    return first, others[:top].copy()


@inlined
def start_scores(
    first: IntArray, others: IntArray, logs: IntArray, weights: Array, sums: Array, scores: Array, sizes: IntArray
) -> None:
    """W, scores and sizes of all variables for R rows of weights (R, V); finds each triangle once."""
    n_variables, n_rows = len(logs), len(weights)
    # Each edge is kept at the end with fewer neighbours, so that the time is O(A^1.5) however large a hub is.
    start = np.zeros(n_variables + 1, np.int64)
    ahead = np.empty(len(others), np.int64)
    top = 0
    for v in range(n_variables):
        sizes[v] = logs[v]
        for i in range(first[v], first[v + 1]):
            u = others[i]
            sizes[v] += logs[u]
            above = first[u + 1] - first[u] - (first[v + 1] - first[v])
            if above > 0 or (above == 0 and u > v):
                ahead[top] = u
                top += 1
        start[v + 1] = top
        for r in range(n_rows):
            total, squares = 0.0, 0.0
            for i in range(first[v], first[v + 1]):
                total += weights[r, others[i]]
                squares += weights[r, others[i]] * weights[r, others[i]]
            sums[r, v] = total
            scores[r, v] = (total * total - squares) * 0.5
    seen = np.full(n_variables, -1, np.int64)
    for v in range(n_variables):
        for i in range(start[v], start[v + 1]):
            seen[ahead[i]] = v
        for i in range(start[v], start[v + 1]):
            a = ahead[i]
            for j in range(start[a], start[a + 1]):
                b = ahead[j]
                if seen[b] == v:
                    for r in range(n_rows):
                        scores[r, v] -= weights[r, a] * weights[r, b]
                        scores[r, a] -= weights[r, v] * weights[r, b]
                        scores[r, b] -= weights[r, v] * weights[r, a]


@inlined
def prepare_runs(
    cardinalities: IntArray, first: IntArray, others: IntArray
) -> tuple[Array, IntArray, Array, Array, Array, IntArray]:
    """The arrays that all runs share.

    -> cardinalities as numbers and their logs (V,); weights, W and scores (2, V) by weighted fill and by fill; sizes
    (V,).
    """
    n = len(cardinalities)
    counts, logs, weights = cardinalities.astype(np.float64), np.empty(n, np.int64), np.ones((2, n))
    share = min(1.0, MOST_WEIGHT / max(counts.sum(), 1.0))
    for v in range(n):
        logs[v] = math.floor(math.log(counts[v]) / math.log(2.0) / LOG_UNIT + 0.5)
        weights[0, v] = math.ceil(counts[v] * share)
    sums, scores, sizes = np.empty((2, n)), np.empty((2, n)), np.empty(n, np.int64)
    start_scores(first, others, logs, weights, sums, scores, sizes)
    return counts, logs, weights, sums, scores, sizes


@inlined
def rise(i: int, v: int, key: float, heap: IntArray, keys: Array, place: IntArray) -> int:
    """Put v with its key at place i of the heap, or above where it belongs; returns its place."""
    while i > 0 and key < keys[(i - 1) >> 1]:
        above = (i - 1) >> 1
        heap[i], keys[i] = heap[above], keys[above]
        place[heap[i]] = i
        i = above
    heap[i], keys[i] = v, key
    place[v] = i
    return i


@inlined
def sink(i: int, n: int, heap: IntArray, keys: Array, place: IntArray) -> None:
    """Move what is at i of a heap of n down to where it belongs."""
    v, key = heap[i], keys[i]
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and keys[child + 1] < keys[child]:
            child += 1
        if key <= keys[child]:
            break
        heap[i], keys[i] = heap[child], keys[child]
        place[heap[i]] = i
        i = child
    heap[i], keys[i] = v, key
    place[v] = i


@inlined
def tidy(start: int, length: int, to: int, pool: IntArray, alive: BoolArray) -> int:
    """Move those of a list that are not gone to another place in the pool, or to its start; returns their number."""
    n = 0
    for i in range(start, start + length):
        if alive[pool[i]]:
            pool[to + n] = pool[i]
            n += 1
    return n


@inlined
def largest_twin(v: int, d: int, clique: IntArray, degree: IntArray, place: IntArray, cardinalities: Array) -> int:
    """The place in the clique of v (score 0) of the variable with the same clique and the most states; -1: v itself."""
    twin, most = -1, cardinalities[v]
    for i in range(d):
        a = clique[i]
        if degree[a] == d and place[a] <= FREE and cardinalities[a] > most:
            twin, most = i, cardinalities[a]
    return twin


@inlined
def move_hub_last(d: int, clique: IntArray, degree: IntArray) -> None:
    """Put the one with the most neighbours at the end: the lists of all others are traversed first."""
    hub = 0
    for i in range(1, d):
        if degree[clique[i]] > degree[clique[hub]]:
            hub = i
    clique[hub], clique[d - 1] = clique[d - 1], clique[hub]


@inlined
def meet(
    gain: float, stamp: int, start: int, length: int, pool: IntArray, mark: IntArray, weights: Array, score: Array
) -> float:
    """Lower the scores of those in a list that bear the stamp; returns their total weight."""
    common = 0.0
    for i in range(start, start + length):
        m = pool[i]
        if mark[m] == stamp:
            common += weights[m]
            score[m] -= gain
    return common


@inlined
def with_room(pool: IntArray, top: int, room: int) -> IntArray:
    """The pool, or a longer copy of its first `top` places if it is too short for `room` more."""
    if top + room <= len(pool):
        return pool
    longer = np.empty(2 * len(pool) + room, np.int64)
    for i in range(top):  # compiled in a tenth of the time that slices take
        longer[i] = pool[i]
    return longer


@inlined
def enlist(v: int, n_waiting: int, waiting: IntArray, waits: BoolArray) -> int:
    """Note that the score of v has changed; returns how many are noted."""
    if not waits[v]:
        waits[v] = True
        waiting[n_waiting] = v
        n_waiting += 1
    return n_waiting


@inlined
def refresh(
    n_waiting: int,
    n_heap: int,
    n_free: int,
    waiting: IntArray,
    waits: BoolArray,
    score: Array,
    size: IntArray,
    by_size: bool,
    factors: Array,
    heap: IntArray,
    keys: Array,
    place: IntArray,
    free: IntArray,
) -> tuple[int, int]:
    """Update the heap with changed scores, and move those with score 0 to the free; returns the new lengths of both."""
    for i in range(n_waiting):
        a = waiting[i]
        waits[a] = False
        j = place[a]
        if j < 0:
            continue
        u, key = a, (float(size[a]) if by_size else score[a]) * factors[a]
        if score[a] == 0.0:
            free[n_free] = a
            place[a] = FREE - n_free
            n_free += 1
            n_heap -= 1
            u, key = heap[n_heap], keys[n_heap]
        if j < n_heap:
            sink(rise(j, u, key, heap, keys, place), n_heap, heap, keys, place)
    return n_heap, n_free


@inlined
def eliminate(
    cardinalities: Array,  # (V,)
    logs: IntArray,  # (V,) of the cardinalities, in small units
    weights: Array,  # (V,)
    kept: BoolArray,  # (V,) never eliminated
    first: IntArray,
    others: IntArray,
    sums: Array,  # (V,) of weights of neighbours
    scores: Array,  # (V,)
    sizes: IntArray,  # (V,)
    by_size: bool,
    factors: Array,  # (V,) of the keys
    give_up: float,
    give_up_log: int,
    most_steps: int,
    order: IntArray,  # output, one for each that is not kept
) -> Run:
    """One greedy order of the variables that are not kept.

    Returns how it ended; the entries of all tables and of the largest; the log of the largest in the units of `logs`;
    the width; how many go before any neighbours are joined; the steps taken. A run is given up when its entries reach
    `give_up` (and, since entries can be infinite, the log of its largest table reaches `give_up_log`). It is cut off
    after `most_steps`: the remaining variables then follow in no special order, and count as one clique with all kept
    ones, which is an upper bound.
    """
    n = len(cardinalities)
    score, beside, size = scores.copy(), sums.copy(), sizes.copy()
    degree = first[1:] - first[:-1]
    start, length, room = np.empty(n, np.int64), degree.copy(), degree + 2
    pool, keys = np.empty(3 * len(others) + 8 * n, np.int64), np.full(n, np.inf)
    heap, place = np.empty(n, np.int64), np.full(n, GONE, np.int64)
    free, waiting = np.empty(n, np.int64), np.empty(n, np.int64)
    alive, waits = np.ones(n, np.bool_), np.zeros(n, np.bool_)
    top, n_heap, n_ordered, n_free, n_waiting = 0, 0, 0, 0, 0
    for v in range(n):
        start[v] = top
        for i in range(degree[v]):
            pool[top + i] = others[first[v] + i]
        top += room[v]
        if not kept[v]:
            heap[n_heap] = v
            place[v] = n_heap
            n_heap += 1
            n_waiting = enlist(v, n_waiting, waiting, waits)
    clique, mark = np.empty(n, np.int64), np.zeros(n, np.int64)
    stamp = 0
    total, largest = 0.0, 0.0
    largest_log, width, n_joined, n_simple, steps = 0, 0, 0, 0, 0
    while True:
        if n_free == 0:
            steps += HEAP_STEPS * n_waiting
            n_heap, n_free = refresh(
                n_waiting, n_heap, n_free, waiting, waits, score, size, by_size, factors, heap, keys, place, free
            )
            n_waiting = 0
        if steps > most_steps:
            break
        if n_free > 0:
            n_free -= 1
            v = free[n_free]
        elif n_heap > 0:
            v = heap[0]
            n_heap -= 1
            if n_heap > 0:
                heap[0], keys[0] = heap[n_heap], keys[n_heap]
                sink(0, n_heap, heap, keys, place)
        else:
            break
        d = 0
        entries, log_entries, weight = float(cardinalities[v]), logs[v], 0.0
        for i in range(start[v], start[v] + length[v]):
            a = pool[i]
            if alive[a]:
                clique[d] = a
                entries *= float(cardinalities[a])
                log_entries += logs[a]
                weight += weights[a]
                d += 1
        steps += length[v]
        total += entries
        largest = max(largest, entries)
        largest_log = max(largest_log, log_entries)
        width = max(width, d)
        if total >= give_up and largest_log >= give_up_log:
            return GIVEN_UP, total, largest, largest_log, width, n_simple, steps
        if score[v] == 0.0:
            twin = largest_twin(v, d, clique, degree, place, cardinalities)
            if twin >= 0:
                a = clique[twin]
                free[FREE - place[a]] = v
                place[v] = place[a]
                clique[twin] = v
                weight += weights[v] - weights[a]
                v = a
        else:
            move_hub_last(d, clique, degree)
        order[n_ordered] = v
        n_ordered += 1
        if n_joined == 0 and score[v] == 0.0:
            n_simple = n_ordered
        place[v] = GONE
        i = 0
        while score[v] > 0.0:
            a = clique[i]
            i += 1
            steps += length[a]
            length[a] = tidy(start[a], length[a], start[a], pool, alive)
            stamp += 1
            for k in range(start[a], start[a] + length[a]):
                mark[pool[k]] = stamp
            n_before, joined_before = length[a], n_joined
            for j in range(i, d):
                b = clique[j]
                if mark[b] == stamp:
                    continue
                n_joined += 1
                steps += length[b]
                common = meet(weights[a] * weights[b], stamp, start[b], length[b], pool, mark, weights, score)
                score[a] += weights[b] * (beside[a] - common)
                score[b] += weights[a] * (beside[b] - common)
                for side in range(2):
                    x = a if side == 0 else b
                    y = b if side == 0 else a
                    beside[x] += weights[y]
                    size[x] += logs[y]
                    degree[x] += 1
                    if length[x] == room[x]:
                        room[x] = 2 * degree[x] + 4
                        pool = with_room(pool, top, room[x])
                        length[x] = tidy(start[x], length[x], top, pool, alive)
                        start[x] = top
                        top += room[x]
                    pool[start[x] + length[x]] = y
                    length[x] += 1
                mark[b] = stamp
            if n_joined > joined_before:
                # Only neighbours of a can have a changed score.
                for k in range(start[a], start[a] + n_before):
                    n_waiting = enlist(pool[k], n_waiting, waiting, waits)
        alive[v] = False
        for i in range(d):
            a = clique[i]
            score[a] -= weights[v] * (beside[a] - weights[v] - (weight - weights[a]))
            beside[a] -= weights[v]
            size[a] -= logs[v]
            degree[a] -= 1
            n_waiting = enlist(a, n_waiting, waiting, waits)
    n_left = n_free + n_heap
    if n_left == 0:
        return DONE, total, largest, largest_log, width, n_simple, steps
    entries, log_entries, d = 1.0, 0, -1
    for v in range(n):
        if kept[v]:
            entries, log_entries, d = entries * float(cardinalities[v]), log_entries + logs[v], d + 1
    for v in range(n):
        if place[v] != GONE:
            entries, log_entries, d = entries * float(cardinalities[v]), log_entries + logs[v], d + 1
            total += entries
            n_left -= 1
            order[n_ordered + n_left] = v
    return CUT_OFF, total, max(largest, entries), max(largest_log, log_entries), max(width, d), n_simple, steps
