"""Support propagation: the states that hard zeros leave, by generalised arc consistency.

A state k of v has support in a factor f on v if some entry of f's table is above -inf, has v = k, and has all other
variables at allowed states. A state without support in one of the factors on v is in no labelling of positive weight.
`propagate_support` removes such states until none is left: the result is the largest set of states that all have
support everywhere.

A revision of f reads its table at most once, and removes the states of its variables that lack support in f. Then the
other factors on a variable that has lost a state wait for revision. Tables without -inf support every state as long as
each variable has one: they are never revised, nor are factors that are not stored as tables. As soon as a variable has
no state left the propagation ends: there is no labelling.

    allowed, supported (S,)    flags of states on the flat axis of all variables
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from besag.arrays import BoolArray, IntArray, freeze
from besag.kernels.compile import inlined, kernel_of
from besag.kernels.factors import TABLE, Factors
from besag.kernels.incidence import make_incidence


def propagate_support(factors: Factors, allowed: BoolArray, *, compile: bool = True) -> BoolArray:
    """The allowed states that hard zeros leave, (S,) or (R, S); if a variable has none left, Z = 0."""
    factors = Factors.of(*factors)
    first, linked = kernel_of(make_incidence, compile=compile)(*factors[:3])
    left = np.array(allowed, np.bool_)
    propagate, first, linked = kernel_of(make_propagate, compile=compile), freeze(first), freeze(linked)
    for row in left.reshape(-1, left.shape[-1]):
        propagate(factors, first, linked, row)
    return left


@inlined
def find_hard(factors: Factors, hard: BoolArray) -> None:
    """hard (F,) = which factors are tables with a hard zero; a table shared by many is read once."""
    n_tables = len(factors.table_offsets) - 1
    hard_table = np.zeros(n_tables, np.bool_)
    for t in range(n_tables):
        for i in range(factors.table_offsets[t], factors.table_offsets[t + 1]):
            if factors.log_potentials[i] == -math.inf:
                hard_table[t] = True
                break
    for f in range(len(hard)):
        hard[f] = factors.kinds[f] == TABLE and hard_table[factors.table_of_factor[f]]


@inlined
def is_allowed(factors: Factors, scope: int, n_axes: int, digits: IntArray, allowed: BoolArray) -> bool:
    """Whether the first n_axes variables of a scope are at allowed states."""
    answer = True
    for a in range(n_axes):
        answer = answer and allowed[factors.state_offsets[factors.scope_variables[scope + a]] + digits[a]]
    return answer


@inlined
def mark(factors: Factors, scope: int, n_axes: int, digits: IntArray, supported: BoolArray) -> int:
    """Mark the states of the first n_axes variables of a scope as supported; returns how many were not before."""
    n_new = 0
    for a in range(n_axes):
        s = factors.state_offsets[factors.scope_variables[scope + a]] + digits[a]
        if not supported[s]:
            supported[s] = True
            n_new += 1
    return n_new


@inlined
def step(factors: Factors, scope: int, n_axes: int, digits: IntArray) -> None:
    """Go to the next setting of the first n_axes variables of a scope, in row-major order."""
    for a in range(n_axes - 1, -1, -1):
        v = factors.scope_variables[scope + a]
        digits[a] += 1
        if digits[a] < factors.state_offsets[v + 1] - factors.state_offsets[v]:
            return
        digits[a] = 0


@inlined
def start_revision(factors: Factors, f: int, allowed: BoolArray, digits: IntArray, supported: BoolArray) -> int:
    """Mark all states of f's variables as unsupported; returns how many are allowed."""
    n_allowed, scope = 0, factors.scope_offsets[f]
    for e in range(scope, factors.scope_offsets[f + 1]):
        digits[e - scope] = 0
        v = factors.scope_variables[e]
        for s in range(factors.state_offsets[v], factors.state_offsets[v + 1]):
            supported[s] = False
            n_allowed += allowed[s]
    return n_allowed


@inlined
def find_support(factors: Factors, f: int, allowed: BoolArray, digits: IntArray, supported: BoolArray) -> int:
    """Mark the allowed states of f's variables that have support in f; returns how many have none."""
    missing = start_revision(factors, f, allowed, digits, supported)
    scope, n_leading = factors.scope_offsets[f], factors.scope_offsets[f + 1] - factors.scope_offsets[f] - 1
    last = factors.scope_variables[scope + n_leading]
    first_state, n_states = factors.state_offsets[last], factors.state_offsets[last + 1] - factors.state_offsets[last]
    t = factors.table_of_factor[f]
    for row in range(factors.table_offsets[t], factors.table_offsets[t + 1], n_states):
        if missing == 0:
            return 0
        if is_allowed(factors, scope, n_leading, digits, allowed):
            found = False
            for k in range(n_states):
                if allowed[first_state + k] and factors.log_potentials[row + k] > -math.inf:
                    found = True
                    if not supported[first_state + k]:
                        supported[first_state + k] = True
                        missing -= 1
            if found:
                missing -= mark(factors, scope, n_leading, digits, supported)
        step(factors, scope, n_leading, digits)
    return missing


@inlined
def restrict(first_state: int, last_state: int, supported: BoolArray, allowed: BoolArray) -> tuple[int, int]:
    """Remove the states of a variable that lack support; returns how many were removed, and how many are left."""
    removed, left = 0, 0
    for s in range(first_state, last_state):
        if allowed[s] and supported[s]:
            left += 1
        elif allowed[s]:
            allowed[s] = False
            removed += 1
    return removed, left


def make_propagate() -> Callable[..., None]:
    """Kernel: revise, first come first served, until no factor is waiting or a variable has no state left."""

    def propagate(factors: Factors, first: IntArray, linked: IntArray, allowed: BoolArray) -> None:
        n_factors = len(factors.kinds)
        hard, waiting = np.empty(n_factors, np.bool_), np.zeros(n_factors, np.bool_)
        find_hard(factors, hard)
        supported, digits = np.empty(len(allowed), np.bool_), np.empty(len(factors.scope_variables), np.int64)
        queue = np.empty(n_factors, np.int64)  # a ring: no factor waits twice
        head, n_waiting = 0, 0
        for f in range(n_factors):
            if hard[f]:
                queue[n_waiting] = f
                waiting[f] = True
                n_waiting += 1
        while n_waiting > 0:
            f = queue[head]
            head = (head + 1) % n_factors
            n_waiting -= 1
            waiting[f] = False
            if find_support(factors, f, allowed, digits, supported) == 0:
                continue
            for e in range(factors.scope_offsets[f], factors.scope_offsets[f + 1]):
                v = factors.scope_variables[e]
                removed, left = restrict(factors.state_offsets[v], factors.state_offsets[v + 1], supported, allowed)
                if left == 0:
                    return
                if removed == 0:
                    continue
                # The states removed supported nothing in f: only other factors can have lost support.
                for j in range(first[v], first[v + 1]):
                    g = linked[j]
                    if g != f and hard[g] and not waiting[g]:
                        queue[(head + n_waiting) % n_factors] = g
                        waiting[g] = True
                        n_waiting += 1

    return propagate
