"""Synchronous belief propagation where all factors are tables on two variables of K states: the fast way.

Kernels are specialised to the semiring, SUM or MAX, and to K. One iteration is two passes over memory,

    gather   q_{v->f} = base_v (x) prod of m_{f'->v} over f' != f      by products from both ends: no division
    send     m_{f->v}(y_v) = (+) over y_u of T_f(y_u, y_v) (x) q_{u->f}(y_u)      for both variables of the factor

    base (V, K)    messages, gathered (E, K)    tables (T, K, K)

Links 2 g and 2 g + 1 are those of factor g to its first and to its second variable. Messages are scaled so that the
largest entry is one. Since every state has support (`besag.infer.prepared`), a vector of zeros in SUM has lost its
range: it is reported, and the caller goes to LOG_SUM.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from besag.arrays import AnyArray, IntArray
from besag.kernels.compile import at, inlined
from besag.kernels.semiring import MAX, SUM, one_of, times

SMALL = 1e-12  # below this a product is scaled up: a float32 goes down to 1e-38
FEW = 8  # messages, of which a product needs no scaling on the way


@inlined
def gather_range(
    semiring: int,
    n_states: int,
    base: AnyArray,
    first: IntArray,
    links: IntArray,
    messages: AnyArray,
    start: int,
    stop: int,
    gathered: AnyArray,
    room: AnyArray,
) -> bool:
    """Messages to factors along the links of variables [start, stop); False where one has lost its range."""
    fine = True
    for v in range(start, stop):
        low, high = first[v], first[v + 1]
        for i in range(n_states):
            room[0, i] = base[at(v), i]
        for m in range(low, high):
            e = at(links[at(m)])
            for i in range(n_states):
                gathered[e, i] = room[0, i]
                room[0, i] = times(semiring, room[0, i], messages[e, i])
            if semiring == SUM and high - low > FEW:
                largest = room[0, 0]
                for i in range(1, n_states):
                    largest = max(largest, room[0, i])
                for i in range(n_states):
                    room[0, i] = room[0, i] / largest if largest > 0.0 else room[0, i]
        for i in range(n_states):
            room[0, i] = one_of(semiring)
        for m in range(low + 1, high + 1):
            e = at(links[at(low + high - m)])
            for i in range(n_states):
                gathered[e, i] = times(semiring, gathered[e, i], room[0, i])
                room[0, i] = times(semiring, room[0, i], messages[e, i])
            if semiring == SUM:
                largest = gathered[e, 0]
                for i in range(1, n_states):
                    largest = max(largest, gathered[e, i])
                fine = fine and largest > 0.0
                if SMALL > largest > 0.0:
                    for i in range(n_states):
                        gathered[e, i] /= largest
            if semiring == SUM and high - low > FEW:
                largest = room[0, 0]
                for i in range(1, n_states):
                    largest = max(largest, room[0, i])
                for i in range(n_states):
                    room[0, i] = room[0, i] / largest if largest > 0.0 else room[0, i]
    return fine


@inlined
def send_range(
    semiring: int,
    n_states: int,
    damped: int,
    tables: AnyArray,
    table_of_factor: IntArray,
    gathered: AnyArray,
    damping: float,
    start: int,
    stop: int,
    messages: AnyArray,
    room: AnyArray,
) -> float:
    """Messages to variables from factors [start, stop); the largest change, inf where one has lost its range."""
    worst = room[0, 0] - room[0, 0]  # zero, of the type of the messages
    for g in range(start, stop):
        t, e = at(table_of_factor[at(g)]), at(2 * g)
        for i in range(n_states):
            total = times(semiring, tables[t, i, 0], gathered[e + 1, 0])
            for j in range(1, n_states):
                term = times(semiring, tables[t, i, j], gathered[e + 1, j])
                total = max(total, term) if semiring == MAX else total + term
            room[0, i] = total
        for j in range(n_states):
            room[1, j] = times(semiring, tables[t, 0, j], gathered[e, 0])
        for i in range(1, n_states):
            for j in range(n_states):
                term = times(semiring, tables[t, i, j], gathered[e, i])
                room[1, j] = max(room[1, j], term) if semiring == MAX else room[1, j] + term
        for side in range(2):
            high = room[side, 0]
            for i in range(1, n_states):
                high = max(high, room[side, i])
            if semiring == SUM and not high > 0.0:
                return math.inf
            for i in range(n_states):
                new = room[side, i] / high if semiring == SUM else room[side, i] - high
                old = messages[e + side, i]
                if semiring == SUM or new != old:  # -inf that stays -inf has not changed
                    worst = max(worst, abs(new - old))
                    if damped:
                        new = (1.0 - damping) * new + damping * old
                messages[e + side, i] = new
    return float(worst)


def make_gather(semiring: int, n_states: int) -> Callable[..., bool]:
    """`gather_range` for one K."""

    def gather(
        base: AnyArray,
        first: IntArray,
        links: IntArray,
        messages: AnyArray,
        start: int,
        stop: int,
        gathered: AnyArray,
    ) -> bool:
        room = np.empty((1, n_states), messages.dtype)
        return gather_range(semiring, n_states, base, first, links, messages, start, stop, gathered, room)

    return gather


def make_send(semiring: int, n_states: int, damped: int) -> Callable[..., float]:
    """`send_range` for one K."""

    def send(
        tables: AnyArray,
        table_of_factor: IntArray,
        gathered: AnyArray,
        damping: float,
        start: int,
        stop: int,
        messages: AnyArray,
    ) -> float:
        room = np.zeros((2, n_states), messages.dtype)
        return send_range(
            semiring,
            n_states,
            damped,
            tables,
            table_of_factor,
            gathered,
            damping,
            start,
            stop,
            messages,
            room,
        )

    return send
