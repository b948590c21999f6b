"""Synchronous belief propagation where all factors are of one structured kind on variables of K states.

As `pairs`, with the rule of the kind in the place of tables. `starts` (G,) says where the levels of a factor begin. K
is a constant for Potts factors of few states, whose messages are a few vector operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from besag.arrays import AnyArray, IntArray
from besag.infer.bp.kernels.pairs import gather_range
from besag.kernels.compile import at, inlined
from besag.kernels.semiring import SUM
from besag.model.structured.kernels.rules import send_structured


@inlined
def settle(semiring: int, damped: int, n: int, new: AnyArray, damping: float, messages: AnyArray, place: int) -> float:
    """new (n,), scaled and damped, in the place of a message; the largest change, inf where it has lost its range."""
    high = new[0]
    for i in range(1, n):
        high = max(high, new[at(i)])
    if semiring == SUM and not high > 0.0:
        return math.inf
    worst = high - high  # zero, of the type of the messages
    for i in range(n):
        value = new[at(i)] / high if semiring == SUM else new[at(i)] - high
        old = messages[at(place + i)]
        if semiring == SUM or value != old:  # -inf that stays -inf has not changed
            worst = max(worst, abs(value - old))
            if damped:
                value = (1.0 - damping) * value + damping * old
        messages[at(place + i)] = value
    return worst  # type: ignore[no-any-return]


def make_gather(semiring: int) -> Callable[..., bool]:
    """Messages to factors along the links of variables [start, stop); False where one has lost its range."""

    def gather(
        base: AnyArray,
        first: IntArray,
        links: IntArray,
        messages: AnyArray,
        start: int,
        stop: int,
        gathered: AnyArray,
    ) -> bool:
        n = base.shape[1]
        room = np.empty((1, n), messages.dtype)
        return gather_range(semiring, n, base, first, links, messages, start, stop, gathered, room)

    return gather


def make_send(semiring: int, damped: int, only: int, n_states: int) -> Callable[..., float]:
    """Messages to variables from factors [start, stop); the largest change, inf where one has lost its range.

    only: the kind of all factors, and n_states: K, where they are constants, else -1 and 0.
    """

    def send(
        levels: AnyArray,
        starts: IntArray,
        kind_of_all: int,
        size: int,
        gathered: AnyArray,
        damping: float,
        start: int,
        stop: int,
        messages: AnyArray,
    ) -> float:
        kind, n = only if only >= 0 else kind_of_all, n_states if n_states > 0 else size
        new, worst = np.empty(n, messages.dtype), 0.0
        for g in range(start, stop):
            for side in range(2):
                send_structured(semiring, kind, side, n, levels, starts[g], gathered, (2 * g + 1 - side) * n, new, 0)
                worst = max(worst, settle(semiring, damped, n, new, damping, messages, (2 * g + side) * n))
        return worst

    return send
