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
from besag.kernels.bp_any import Numbers, change_of, gather_variable, lifted, mixed, send_factor
from besag.kernels.bp_links import Links
from besag.kernels.compile import inlined
from besag.kernels.semiring import SUM


class Heap(NamedTuple):
    """Links by how much their messages would change, the most on top."""

    links: IntArray  # (E,)
    place: IntArray  # (E,)
    changes: Array  # (E,)


class Room(NamedTuple):
    """Work memory."""

    product: AnyArray  # (K,)
    new: AnyArray  # (M,)
    digits: IntArray  # (arity,)


def make_sweep(semiring: int) -> Callable[..., float]:
    """Variables in turn, in the order given; the largest change, inf where a message has lost its range."""

    def sweep(
        links: Links,
        numbers: Numbers,
        order: IntArray,
        damping: float,
        messages: AnyArray,
        gathered: AnyArray,
        room: Room,
    ) -> float:
        worst = 0.0
        for v in order:
            fine = gather_variable(semiring, links, numbers, messages, v, gathered, room.product)
            for m in range(links.first[v], links.first[v + 1]):
                own = links.links_of_variable[m]
                g = links.factor_of_link[own]
                fine = send_factor(semiring, links, numbers, gathered, g, room.new, room.digits) and fine
                for e in range(links.link_offsets[g], links.link_offsets[g + 1]):
                    if e != own:
                        low, high = links.message_offsets[e], links.message_offsets[e + 1]
                        worst = max(worst, change_of(semiring, room.new, messages, low, high))
                        mixed(semiring, room.new, low, high, damping, messages)
            if semiring == SUM and not fine:
                return math.inf
        return worst

    return sweep


@inlined
def swap(heap: Heap, i: int, j: int) -> None:
    """Exchange two places."""
    a, b = heap.links[i], heap.links[j]
    heap.links[i], heap.links[j] = b, a
    heap.place[a], heap.place[b] = j, i


@inlined
def moved(heap: Heap, e: int) -> None:
    """Bring a link to its place after its change has changed."""
    i = heap.place[e]
    while i > 0 and heap.changes[heap.links[(i - 1) // 2]] < heap.changes[e]:
        swap(heap, i, (i - 1) // 2)
        i = (i - 1) // 2
    while 2 * i + 1 < len(heap.links):
        child = 2 * i + 1
        if child + 1 < len(heap.links) and heap.changes[heap.links[child + 1]] > heap.changes[heap.links[child]]:
            child += 1
        if heap.changes[heap.links[child]] <= heap.changes[e]:
            return
        swap(heap, i, child)
        i = child


@inlined
def await_factor(
    semiring: int,
    links: Links,
    numbers: Numbers,
    gathered: AnyArray,
    g: int,
    but: int,
    messages: AnyArray,
    waiting: AnyArray,
    heap: Heap,
    room: Room,
) -> bool:
    """What a factor would send now along all its links but one; False where a message has lost its range."""
    fine = send_factor(semiring, links, numbers, gathered, g, room.new, room.digits)
    for e in range(links.link_offsets[g], links.link_offsets[g + 1]):
        if e != but:
            low, high = links.message_offsets[e], links.message_offsets[e + 1]
            for i in range(low, high):
                waiting[i] = room.new[i]
            heap.changes[e] = change_of(semiring, waiting, messages, low, high)
            moved(heap, e)
    return fine


def make_await_all(semiring: int) -> Callable[..., bool]:
    """What every factor would send now."""

    def await_all(
        links: Links,
        numbers: Numbers,
        gathered: AnyArray,
        messages: AnyArray,
        waiting: AnyArray,
        heap: Heap,
        room: Room,
    ) -> bool:
        fine = True
        for g in range(len(links.factors)):
            fine = await_factor(semiring, links, numbers, gathered, g, -1, messages, waiting, heap, room) and fine
        return fine or semiring != SUM

    return await_all


def make_send_largest(semiring: int) -> Callable[..., int]:
    """The message of the largest change, up to n times, while that is above the tolerance.

    Returns how many were sent; minus that, less one, where a message has lost its range.
    """

    def send_largest(
        links: Links,
        numbers: Numbers,
        n: int,
        tolerance: float,
        damping: float,
        messages: AnyArray,
        gathered: AnyArray,
        waiting: AnyArray,
        heap: Heap,
        room: Room,
    ) -> int:
        for sent in range(n):
            e = heap.links[0]
            if heap.changes[e] <= tolerance:
                return sent
            low, high = links.message_offsets[e], links.message_offsets[e + 1]
            mixed(semiring, waiting, low, high, damping, messages)
            lifted(semiring, messages, low, high - low)
            heap.changes[e] = change_of(semiring, waiting, messages, low, high)
            moved(heap, e)
            v = links.variables[e]
            fine = gather_variable(semiring, links, numbers, messages, v, gathered, room.product)
            for m in range(links.first[v], links.first[v + 1]):
                own = links.links_of_variable[m]
                if own != e:
                    g = links.factor_of_link[own]
                    fine = (
                        await_factor(semiring, links, numbers, gathered, g, own, messages, waiting, heap, room) and fine
                    )
            if semiring == SUM and not fine:
                return -1 - sent
        return n

    return send_largest
