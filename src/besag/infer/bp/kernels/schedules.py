"""Schedules in which a message is used as soon as it is sent.

sequential   variables take turns: each gathers what it has received, and sends it on through its factors. A sweep over
             all variables is one iteration.
residual     the message that would change most goes first (Elidan, McGraw and Koller, 2006): `waiting` (M,) holds what
             each message would be now, `changes` (E,) by how much it differs, in a heap. As many messages as there are
             links are one iteration.

The heap is an array of links in which the parent of place i is at (i - 1) // 2, and `place` (E,) says where a link is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from besag.arrays import AnyArray, Array, IntArray
from besag.infer.bp.kernels.general import MessageNumbers, change_of, damp, gather_variable, lift, send_factor
from besag.infer.bp.kernels.links import MessageLinks
from besag.kernels.compile import inlined
from besag.kernels.semiring import SUM


class Heap(NamedTuple):
    """Links by how much their messages would change, the most on top."""

    links: IntArray  # (E,)
    place: IntArray  # (E,)
    changes: Array  # (E,)


class SendRoom(NamedTuple):
    """Work memory."""

    product: AnyArray  # (K,)
    new: AnyArray  # (M,)
    digits: IntArray  # (arity,)


def make_sweep(semiring: int) -> Callable[..., float]:
    """Variables in turn, in the order given; the largest change, inf where a message has lost its range."""

    def sweep(
        links: MessageLinks,
        numbers: MessageNumbers,
        order: IntArray,
        damping: float,
        messages: AnyArray,
        gathered: AnyArray,
        room: SendRoom,
    ) -> float:
        worst = 0.0
        first, of_variable, offsets = links.first, links.links_of_variable, links.message_offsets
        link_offsets, factor_of_link = links.link_offsets, links.factor_of_link
        base, states, tables, starts, kinds = numbers
        product, new, digits = room
        for v in order:
            fine = gather_variable(
                semiring, first, of_variable, offsets, base, states[v], messages, v, gathered, product
            )
            for m in range(first[v], first[v + 1]):
                own = of_variable[m]
                g = factor_of_link[own]
                low, high = link_offsets[g], link_offsets[g + 1] - 1
                sent = send_factor(semiring, offsets, low, high, kinds[g], tables, starts[g], gathered, new, digits)
                fine = fine and sent
                for e in range(low, high + 1):
                    if e != own:
                        worst = max(worst, change_of(new, messages, offsets[e], offsets[e + 1]))
                        damp(new, offsets[e], offsets[e + 1], damping, messages)
            if semiring == SUM and not fine:
                return math.inf
        return worst

    return sweep


@inlined
def move_in_heap(queue: IntArray, place: IntArray, changes: Array, e: int) -> None:
    """Bring a link to its place in the heap after its change has changed."""
    i = place[e]
    while i > 0 and changes[queue[(i - 1) // 2]] < changes[e]:
        parent = queue[(i - 1) // 2]
        queue[i], place[parent] = parent, i
        i = (i - 1) // 2
    while 2 * i + 1 < len(queue):
        child = 2 * i + 1
        if child + 1 < len(queue) and changes[queue[child + 1]] > changes[queue[child]]:
            child += 1
        lower = queue[child]
        if changes[lower] <= changes[e]:
            break
        queue[i], place[lower] = lower, i
        i = child
    queue[i], place[e] = e, i


def make_await_all(semiring: int) -> Callable[..., bool]:
    """What factors would send now, from start to stop."""

    def await_all(
        links: MessageLinks,
        numbers: MessageNumbers,
        start: int,
        stop: int,
        gathered: AnyArray,
        messages: AnyArray,
        waiting: AnyArray,
        heap: Heap,
        room: SendRoom,
    ) -> bool:
        fine = True
        link_offsets, offsets = links.link_offsets, links.message_offsets
        _, _, tables, starts, kinds = numbers
        _, _, digits = room
        queue, place, changes = heap
        for g in range(start, stop):
            low, high = link_offsets[g], link_offsets[g + 1] - 1
            sent = send_factor(semiring, offsets, low, high, kinds[g], tables, starts[g], gathered, waiting, digits)
            fine = fine and sent
            for e in range(low, high + 1):
                changes[e] = change_of(waiting, messages, offsets[e], offsets[e + 1])
                move_in_heap(queue, place, changes, e)
        return fine or semiring != SUM

    return await_all


def make_send_largest(semiring: int) -> Callable[..., int]:
    """The message of the largest change, up to n times, while that is above the tolerance.

    Returns how many were sent; minus that, less one, where a message has lost its range.
    """

    def send_largest(
        links: MessageLinks,
        numbers: MessageNumbers,
        n: int,
        tolerance: float,
        damping: float,
        messages: AnyArray,
        gathered: AnyArray,
        waiting: AnyArray,
        heap: Heap,
        room: SendRoom,
    ) -> int:
        first, of_variable, offsets = links.first, links.links_of_variable, links.message_offsets
        link_offsets, factor_of_link, variables = links.link_offsets, links.factor_of_link, links.variables
        base, states, tables, starts, kinds = numbers
        product, new, digits = room
        queue, place, changes = heap
        for sent in range(n):
            top = queue[0]
            if changes[top] <= tolerance:
                return sent
            damp(waiting, offsets[top], offsets[top + 1], damping, messages)
            lift(semiring, messages, offsets[top], offsets[top + 1] - offsets[top])
            changes[top] = change_of(waiting, messages, offsets[top], offsets[top + 1])
            move_in_heap(queue, place, changes, top)
            v = variables[top]
            fine = gather_variable(
                semiring, first, of_variable, offsets, base, states[v], messages, v, gathered, product
            )
            for m in range(first[v], first[v + 1]):
                own = of_variable[m]
                if own == top:
                    continue
                g = factor_of_link[own]
                low, high = link_offsets[g], link_offsets[g + 1] - 1
                done = send_factor(semiring, offsets, low, high, kinds[g], tables, starts[g], gathered, new, digits)
                fine = fine and done
                for e in range(low, high + 1):
                    if e != own:
                        for i in range(offsets[e], offsets[e + 1]):
                            waiting[i] = new[i]
                        changes[e] = change_of(waiting, messages, offsets[e], offsets[e + 1])
                        move_in_heap(queue, place, changes, e)
            if semiring == SUM and not fine:
                return -1 - sent
        return n

    return send_largest
