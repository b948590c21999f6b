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

from typing import NamedTuple

import numpy as np

from besag.arrays import Array, BoolArray, IntArray
from besag.infer.orders.kernels.starts import RunStart
from besag.kernels.compile import inlined

GIVEN_UP, CUT_OFF, DONE = 0, 1, 2  # how a run can end
HEAP_STEPS = 8  # an update of the heap takes as long as this many steps through a list of neighbours
GONE, FREE = -1, -2  # places outside of the heap: FREE - i is place i of the list of those with score 0


class Run(NamedTuple):
    """How a run ended, and what its order costs."""

    ended: int  # GIVEN_UP, CUT_OFF or DONE
    entries: float  # of all tables
    largest: float  # of them
    largest_log: int  # the log of the largest, in LOG_UNITs
    width: int  # most neighbours of a variable when it is eliminated
    n_simple: int  # that go before any neighbours are joined
    steps: int  # the time it took


class Stop(NamedTuple):
    """When a run ends early.

    It is given up when its entries reach `entries` and, since they can be infinite, the log of its largest table `log`.
    It is cut off after so many `steps`.
    """

    entries: float
    log: int
    steps: int


class Measures(NamedTuple):
    """Scores as they follow the graph, each (V,)."""

    weights: Array
    score: Array
    beside: Array  # W, the sum of the weights of neighbours
    size: IntArray


class Lists(NamedTuple):
    """The neighbours of each variable, in a pool that grows: pool[start[v]:start[v] + length[v]], some of them gone."""

    start: IntArray  # (V,)
    length: IntArray  # (V,)
    room: IntArray  # (V,) places that v has in the pool
    degree: IntArray  # (V,) neighbours that are not gone
    alive: BoolArray  # (V,)
    mark: IntArray  # (V,) who was looked at last in the lists of whom


class Queue(NamedTuple):
    """Who comes next: a heap by key, a list of those of score 0, and those whose score has changed."""

    heap: IntArray  # (V,)
    keys: Array  # (V,)
    place: IntArray  # (V,) in the heap; FREE - i in the list `free`; GONE
    free: IntArray  # (V,)
    waiting: IntArray  # (V,)
    waits: BoolArray  # (V,)


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
def enlist(v: int, n_waiting: int, queue: Queue) -> int:
    """Note that the score of v has changed; the number of those noted."""
    if not queue.waits[v]:
        queue.waits[v] = True
        queue.waiting[n_waiting] = v
        n_waiting += 1
    return n_waiting


@inlined
def refresh(
    n_waiting: int, n_heap: int, n_free: int, queue: Queue, measures: Measures, by_size: bool, factors: Array
) -> tuple[int, int]:
    """Tell the heap of changed scores, and move those of score 0 to the free; the new lengths of both."""
    heap, keys, place = queue.heap, queue.keys, queue.place
    for i in range(n_waiting):
        a = queue.waiting[i]
        queue.waits[a] = False
        j = place[a]
        if j < 0:
            continue
        u, key = a, (float(measures.size[a]) if by_size else measures.score[a]) * factors[a]
        if measures.score[a] == 0.0:
            queue.free[n_free] = a
            place[a] = FREE - n_free
            n_free += 1
            n_heap -= 1
            u, key = heap[n_heap], keys[n_heap]
        if j < n_heap:
            sink(rise(j, u, key, heap, keys, place), n_heap, heap, keys, place)
    return n_heap, n_free


@inlined
def fill_lists(first: IntArray, others: IntArray, lists: Lists) -> tuple[IntArray, int]:
    """The pool with the neighbours of all variables, and how much of it is taken."""
    n, top = len(first) - 1, 0
    pool = np.empty(3 * len(others) + 8 * n, np.int64)
    for v in range(n):
        lists.start[v] = top
        for i in range(lists.degree[v]):
            pool[top + i] = others[first[v] + i]
        top += lists.room[v]
    return pool, top


@inlined
def pop(n_heap: int, queue: Queue) -> int:
    """The variable of the least key, taken out of a heap of n_heap."""
    v = queue.heap[0]
    if n_heap > 1:
        queue.heap[0], queue.keys[0] = queue.heap[n_heap - 1], queue.keys[n_heap - 1]
        sink(0, n_heap - 1, queue.heap, queue.keys, queue.place)
    return int(v)


@inlined
def connect(
    a: int, b: int, logs: IntArray, measures: Measures, lists: Lists, pool: IntArray, top: int
) -> tuple[IntArray, int]:
    """Make b a neighbour of a: its part of the sums, and of the pool."""
    measures.beside[a] += measures.weights[b]
    measures.size[a] += logs[b]
    lists.degree[a] += 1
    if lists.length[a] == lists.room[a]:
        lists.room[a] = 2 * lists.degree[a] + 4
        pool = with_room(pool, top, lists.room[a])
        lists.length[a] = tidy(lists.start[a], lists.length[a], top, pool, lists.alive)
        lists.start[a] = top
        top += lists.room[a]
    pool[lists.start[a] + lists.length[a]] = b
    lists.length[a] += 1
    return pool, top


@inlined
def join_with(
    a: int,
    rest: IntArray,
    stamp: int,
    logs: IntArray,
    measures: Measures,
    lists: Lists,
    pool: IntArray,
    top: int,
) -> tuple[IntArray, int, int, int]:
    """Join a to those of the rest that are no neighbours of it; the pool, how many were, and the steps taken."""
    weights, start, length = measures.weights, lists.start, lists.length
    n_joined, steps = 0, length[a]
    length[a] = tidy(start[a], length[a], start[a], pool, lists.alive)
    for k in range(start[a], start[a] + length[a]):
        lists.mark[pool[k]] = stamp
    for j in range(len(rest)):
        b = rest[j]
        if lists.mark[b] == stamp:
            continue
        n_joined += 1
        steps += length[b]
        gain = weights[a] * weights[b]
        common = meet(gain, stamp, start[b], length[b], pool, lists.mark, weights, measures.score)
        measures.score[a] += weights[b] * (measures.beside[a] - common)
        measures.score[b] += weights[a] * (measures.beside[b] - common)
        pool, top = connect(a, b, logs, measures, lists, pool, top)
        pool, top = connect(b, a, logs, measures, lists, pool, top)
        lists.mark[b] = stamp
    return pool, top, n_joined, steps


@inlined
def take_out(v: int, clique: IntArray, weight: float, logs: IntArray, measures: Measures, lists: Lists) -> None:
    """Take v out, whose neighbours are a clique of this weight."""
    weights, beside = measures.weights, measures.beside
    lists.alive[v] = False
    for i in range(len(clique)):
        a = clique[i]
        measures.score[a] -= weights[v] * (beside[a] - weights[v] - (weight - weights[a]))
        beside[a] -= weights[v]
        measures.size[a] -= logs[v]
        lists.degree[a] -= 1


@inlined
def finish(run: Run, n_left: int, shared: RunStart, kept: BoolArray, place: IntArray, order: IntArray) -> Run:
    """A run that was cut off: the n_left variables that remain count as one clique, with all that are kept."""
    entries, log_entries, d, total = 1.0, 0, -1, run.entries
    n_ordered = len(order) - n_left
    for v in range(len(kept)):
        if kept[v]:
            entries, log_entries, d = entries * float(shared.cardinalities[v]), log_entries + shared.logs[v], d + 1
    for v in range(len(kept)):
        if place[v] != GONE:
            entries, log_entries, d = entries * float(shared.cardinalities[v]), log_entries + shared.logs[v], d + 1
            total += entries
            n_left -= 1
            order[n_ordered + n_left] = v
    largest, largest_log = max(run.largest, entries), max(run.largest_log, log_entries)
    return Run(CUT_OFF, total, largest, largest_log, max(run.width, d), run.n_simple, run.steps)


@inlined
def eliminate(
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
    """One greedy order of the variables that are not kept, by the weights of a row, or by size.

    factors (V,): of the keys. order: output, one for each variable that is not kept. What is left where a run is cut
    off follows in no special order, and counts as one clique with all that are kept, which is an upper bound.
    """
    cardinalities, logs, n = shared.cardinalities, shared.logs, len(shared.logs)
    measures = Measures(shared.weights[row], shared.scores[row].copy(), shared.sums[row].copy(), shared.sizes.copy())
    degree = first[1:] - first[:-1]
    lists = Lists(np.empty(n, np.int64), degree.copy(), degree + 2, degree, np.ones(n, np.bool_), np.zeros(n, np.int64))
    queue = Queue(
        np.empty(n, np.int64),
        np.full(n, np.inf),
        np.full(n, GONE, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.zeros(n, np.bool_),
    )
    score, place, clique = measures.score, queue.place, np.empty(n, np.int64)
    pool, top = fill_lists(first, others, lists)
    n_heap, n_ordered, n_free, n_waiting, stamp = 0, 0, 0, 0, 0
    for v in range(n):
        if not kept[v]:
            queue.heap[n_heap] = v
            place[v] = n_heap
            n_heap += 1
            n_waiting = enlist(v, n_waiting, queue)
    total, largest = 0.0, 0.0
    largest_log, width, n_joined, n_simple, steps = 0, 0, 0, 0, 0
    while True:
        if n_free == 0:
            steps += HEAP_STEPS * n_waiting
            n_heap, n_free = refresh(n_waiting, n_heap, n_free, queue, measures, by_size, factors)
            n_waiting = 0
        if steps > stop.steps or n_free + n_heap == 0:
            break
        if n_free > 0:
            n_free -= 1
            v = queue.free[n_free]
        else:
            v = pop(n_heap, queue)
            n_heap -= 1
        d = 0
        entries, log_entries, weight = float(cardinalities[v]), logs[v], 0.0
        for i in range(lists.start[v], lists.start[v] + lists.length[v]):
            a = pool[i]
            if lists.alive[a]:
                clique[d] = a
                entries *= float(cardinalities[a])
                log_entries += logs[a]
                weight += measures.weights[a]
                d += 1
        steps += lists.length[v]
        total += entries
        largest = max(largest, entries)
        largest_log = max(largest_log, log_entries)
        width = max(width, d)
        if total >= stop.entries and largest_log >= stop.log:
            return Run(GIVEN_UP, total, largest, largest_log, width, n_simple, steps)
        if score[v] == 0.0:
            twin = largest_twin(v, d, clique, lists.degree, place, cardinalities)
            if twin >= 0:
                a = clique[twin]
                queue.free[FREE - place[a]] = v
                place[v] = place[a]
                clique[twin] = v
                weight += measures.weights[v] - measures.weights[a]
                v = a
        else:
            move_hub_last(d, clique, lists.degree)
        order[n_ordered] = v
        n_ordered += 1
        if n_joined == 0 and score[v] == 0.0:
            n_simple = n_ordered
        place[v] = GONE
        i = 0
        while score[v] > 0.0:
            a = clique[i]
            i += 1
            stamp += 1
            pool, top, n_more, taken = join_with(a, clique[i:d], stamp, logs, measures, lists, pool, top)
            n_joined, steps = n_joined + n_more, steps + taken
            if n_more > 0:  # whose score has changed was a neighbour of a before; new ones stand behind these
                for k in range(lists.start[a], lists.start[a] + lists.length[a] - n_more):
                    n_waiting = enlist(pool[k], n_waiting, queue)
        take_out(v, clique[:d], weight, logs, measures, lists)
        for i in range(d):
            n_waiting = enlist(clique[i], n_waiting, queue)
    run = Run(DONE, total, largest, largest_log, width, n_simple, steps)
    n_left = n_free + n_heap
    return run if n_left == 0 else finish(run, n_left, shared, kept, place, order)
