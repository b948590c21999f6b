"""Decisions that can be undone: what the searches `feasible` and `box` share.

    allowed (S,)   flags of states         trail: removed states, in order; states are restored from its end

Propagation is that of `besag.kernels.support`, around one variable and with a trail.
"""

from __future__ import annotations

from besag.arrays import BoolArray, IntArray
from besag.kernels.compile import inlined
from besag.kernels.factors import Factors
from besag.kernels.support import find_support


@inlined
def count_left(factors: Factors, v: int, allowed: BoolArray) -> int:
    """How many states of a variable are allowed."""
    n = 0
    for s in range(factors.state_offsets[v], factors.state_offsets[v + 1]):
        n += allowed[s]
    return n


@inlined
def keep_only(factors: Factors, v: int, state: int, allowed: BoolArray, trail: IntArray, n_trail: int) -> int:
    """Remove all states of v but one; returns the new end of the trail."""
    for s in range(factors.state_offsets[v], factors.state_offsets[v + 1]):
        if allowed[s] and s != state:
            allowed[s] = False
            trail[n_trail] = s
            n_trail += 1
    return n_trail


@inlined
def take_back(trail: IntArray, n_trail: int, down_to: int, allowed: BoolArray) -> int:
    """Restore the states removed after a point of the trail; returns the new end of the trail."""
    for i in range(down_to, n_trail):
        allowed[trail[i]] = True
    return down_to


@inlined
def revise_around(
    variable: int,
    factors: Factors,
    first: IntArray,
    linked: IntArray,
    hard: BoolArray,
    allowed: BoolArray,
    supported: BoolArray,
    digits: IntArray,
    queue: IntArray,
    waiting: BoolArray,
    trail: IntArray,
    n_trail: int,
) -> tuple[bool, int]:
    """Remove states without support after a variable changed; whether all have states left, and the trail's new end.

    hard (F,): the factors that can rule anything out. waiting (F,): all False before and after.
    """
    head, n_waiting, n_factors, alive = 0, 0, len(hard), True
    for j in range(first[variable], first[variable + 1]):
        if hard[linked[j]]:
            queue[n_waiting] = linked[j]
            waiting[linked[j]] = True
            n_waiting += 1
    while n_waiting > 0:
        f = queue[head]
        head = (head + 1) % n_factors
        n_waiting -= 1
        waiting[f] = False
        if not alive or find_support(factors, f, allowed, digits, supported) == 0:
            continue  # after a dead end the queue is only emptied
        for e in range(factors.scope_offsets[f], factors.scope_offsets[f + 1]):
            v = factors.scope_variables[e]
            left, before = 0, n_trail
            for s in range(factors.state_offsets[v], factors.state_offsets[v + 1]):
                if allowed[s] and supported[s]:
                    left += 1
                elif allowed[s]:
                    allowed[s] = False
                    trail[n_trail] = s
                    n_trail += 1
            alive = alive and left > 0
            if alive and n_trail > before:
                for j in range(first[v], first[v + 1]):
                    g = linked[j]
                    if g != f and hard[g] and not waiting[g]:
                        queue[(head + n_waiting) % n_factors] = g
                        waiting[g] = True
                        n_waiting += 1
    return alive, n_trail
