"""Iterated conditional modes, 002 (39): flips of one variable at a time that lower the energy, until none does.

    greedy        the flip that lowers H the most, ties to the lowest variable, then state. Variables with a flip that
                  lowers H wait in a heap, ordered by that: a flip costs its neighbourhood only
    sequential    each variable in turn takes its best state

What a flip gains is a pair, compared in this order: reliefs, the hard zeros that it is rid of, and gains, the drop of
the rest of H (`scores`).

    targets, reliefs, gains (V,)    the best flip of each variable; target -1 where it has no other state
    heap (V,), places_in (V,)       those who wait, the best first, and where each stands; -1 where it does not wait
    size (1,)                       how many wait
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from besag.arrays import Array, IntArray
from besag.infer.map.kernels.scores import Axes, best_other, score_states
from besag.kernels.compile import inlined
from besag.kernels.factors import Factors


class Flips(NamedTuple):
    """The best flip of each variable, and who waits; see the module."""

    targets: IntArray
    reliefs: IntArray
    gains: Array
    heap: IntArray
    places_in: IntArray
    size: IntArray


@inlined
def most_states(factors: Factors) -> int:
    """Of a variable."""
    most = 1
    for v in range(len(factors.state_offsets) - 1):
        most = max(most, factors.state_offsets[v + 1] - factors.state_offsets[v])
    return most


@inlined
def improves(relief: int, gain: float) -> bool:
    """Whether a flip lowers the energy."""
    return relief > 0 or (relief == 0 and gain > 0.0)


@inlined
def comes_first(flips: Flips, one: int, other: int) -> bool:
    """Whether the flip of one variable is better than that of another, or as good and of a lower variable."""
    if flips.reliefs[one] != flips.reliefs[other]:
        return bool(flips.reliefs[one] > flips.reliefs[other])
    if flips.gains[one] != flips.gains[other]:
        return bool(flips.gains[one] > flips.gains[other])
    return one < other


@inlined
def settle(flips: Flips, place: int, v: int) -> None:
    """Puts v into the heap, from a place that is free up or down to where it belongs."""
    heap, places_in, size = flips.heap, flips.places_in, flips.size[0]
    while place > 0 and comes_first(flips, v, heap[(place - 1) // 2]):
        heap[place] = heap[(place - 1) // 2]
        places_in[heap[place]] = place
        place = (place - 1) // 2
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and comes_first(flips, heap[child + 1], heap[child]):
            child += 1
        if not comes_first(flips, heap[child], v):
            break
        heap[place] = heap[child]
        places_in[heap[place]] = place
        place = child
    heap[place] = v
    places_in[v] = place


@inlined
def wait(flips: Flips, v: int, waits: bool) -> None:
    """Puts v, whose flip has changed, where it belongs: into the heap if it waits, else out of it."""
    place = flips.places_in[v]
    if waits:
        if place < 0:
            place = flips.size[0]
            flips.size[0] += 1
        settle(flips, place, v)
    elif place >= 0:
        flips.places_in[v] = -1
        flips.size[0] -= 1
        if place < flips.size[0]:
            settle(flips, place, flips.heap[flips.size[0]])


def make_gains() -> Callable[..., None]:
    """Kernel: the best flip of every variable, and the heap, which is empty before."""

    def gains(factors: Factors, axes: Axes, base: Array, codes: IntArray, flips: Flips) -> None:
        most = most_states(factors)
        score, zeros = np.empty(most), np.empty(most, np.int64)
        for v in range(len(codes)):
            n = score_states(factors, axes, v, base, codes, score, zeros)
            flips.targets[v], flips.reliefs[v], flips.gains[v] = best_other(n, codes[v], score, zeros)
            wait(flips, v, improves(flips.reliefs[v], flips.gains[v]))

    return gains


def make_greedy() -> Callable[..., tuple[int, bool]]:
    """Kernel: at most so many greedy flips; how many were made, and whether a flip is left that lowers the energy."""

    def greedy(factors: Factors, axes: Axes, base: Array, most: int, codes: IntArray, flips: Flips) -> tuple[int, bool]:
        n = most_states(factors)
        score, zeros = np.empty(n), np.empty(n, np.int64)
        seen = np.full(len(codes), -1, np.int64)
        for made in range(most):
            if flips.size[0] == 0:
                return made, False
            v = flips.heap[0]
            codes[v] = flips.targets[v]
            for j in range(axes.first[v], axes.first[v + 1] + 1):
                f = axes.owners[axes.entries[j]] if j < axes.first[v + 1] else -1
                start = factors.scope_offsets[f] if f >= 0 else 0
                stop = factors.scope_offsets[f + 1] if f >= 0 else 1
                for e in range(start, stop):
                    u = factors.scope_variables[e] if f >= 0 else v
                    if seen[u] != made:
                        seen[u] = made
                        n = score_states(factors, axes, u, base, codes, score, zeros)
                        flips.targets[u], flips.reliefs[u], flips.gains[u] = best_other(n, codes[u], score, zeros)
                        wait(flips, u, improves(flips.reliefs[u], flips.gains[u]))
        return most, flips.size[0] > 0

    return greedy


def make_sweep() -> Callable[..., int]:
    """Kernel: each variable in turn takes its best state; how many changed."""

    def sweep(factors: Factors, axes: Axes, base: Array, codes: IntArray) -> int:
        most, changed = most_states(factors), 0
        score, zeros = np.empty(most), np.empty(most, np.int64)
        for v in range(len(codes)):
            n = score_states(factors, axes, v, base, codes, score, zeros)
            target, relief, gain = best_other(n, codes[v], score, zeros)
            if target >= 0 and improves(relief, gain):
                codes[v] = target
                changed += 1
        return changed

    return sweep
