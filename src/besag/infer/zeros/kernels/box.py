"""A box in which everything is allowed: sets of states, one for each variable, whose every combination has weight > 0.

A product distribution has a finite bound on log Z only on such a box. The search starts from sets that are consistent
(`support`) and decides variables one after the other: it keeps one state, the best by

    score_v(k) = base_v(k) + bonus_v(k) + sum over factors f on v of ln (sum of f's weights with v = k that are left),

and removes states that lost their support. If a set becomes empty, the last decision is undone, and the state decided
on is removed instead. A variable stays undecided if no factor on it can meet a hard zero within the remaining sets:
later decisions cannot change that. Components that hard zeros connect are searched one by one, each up to FAILURES
empty sets; one whose search does not finish keeps the sets it started with.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, freeze
from besag.infer.zeros.kernels.decisions import count_left, keep_only, revise_around, take_back
from besag.kernels.compile import inlined, kernel_of
from besag.kernels.factors import TABLE, Factors
from besag.kernels.incidence import make_incidence
from besag.kernels.semiring import LOG_SUM, plus
from besag.kernels.support import find_hard, is_allowed, step

FAILURES = 2000  # empty sets in one component, after which its search is given up


def find_box(factors: Factors, base: Array, bonus: Array, allowed: BoolArray, *, compile: bool = True) -> BoolArray:
    """(S,): the box found within the allowed states (S,); the allowed states themselves where none was found."""
    factors = Factors.of(*factors)
    incidence = tuple(freeze(array) for array in kernel_of(make_incidence, compile=compile)(*factors[:3]))
    tight, part = np.zeros(len(factors.kinds), np.bool_), np.arange(len(factors.state_offsets) - 1)
    kernel_of(make_tight, compile=compile)(factors, freeze(allowed), tight, part)
    box = np.array(allowed, np.bool_)
    if tight.any():
        order = np.argsort(part, kind="stable")
        parts = np.append(np.flatnonzero(np.diff(part[order], prepend=-1)), len(part))
        kernel_of(make_search, compile=compile)(
            factors, *incidence, freeze(tight), freeze(order), freeze(parts), freeze(base), freeze(bonus), box
        )
    return box


def is_box(factors: Factors, allowed: BoolArray, *, compile: bool = True) -> bool:
    """Whether no combination of allowed states (S,) meets a hard zero."""
    factors = Factors.of(*factors)
    tight, part = np.zeros(len(factors.kinds), np.bool_), np.arange(len(factors.state_offsets) - 1)
    kernel_of(make_tight, compile=compile)(factors, freeze(allowed), tight, part)
    return not tight.any()


@inlined
def meets_zero(factors: Factors, f: int, allowed: BoolArray, digits: IntArray) -> bool:
    """Whether some combination of allowed states is a hard zero of f."""
    scope, n_leading = factors.scope_offsets[f], factors.scope_offsets[f + 1] - factors.scope_offsets[f] - 1
    last = factors.scope_variables[scope + n_leading]
    first_state, n_states = factors.state_offsets[last], factors.state_offsets[last + 1] - factors.state_offsets[last]
    for a in range(n_leading):
        digits[a] = 0
    t = factors.table_of_factor[f]
    for row in range(factors.table_offsets[t], factors.table_offsets[t + 1], n_states):
        if is_allowed(factors, scope, n_leading, digits, allowed):
            for k in range(n_states):
                if allowed[first_state + k] and factors.log_potentials[row + k] == -math.inf:
                    return True
        step(factors, scope, n_leading, digits)
    return False


def make_tight() -> Callable[..., None]:
    """Kernel: which factors meet a hard zero, and the lowest variable that such factors connect each one to."""

    def tight(factors: Factors, allowed: BoolArray, found: BoolArray, part: IntArray) -> None:
        n_variables = len(factors.state_offsets) - 1
        hard = np.empty(len(factors.kinds), np.bool_)
        find_hard(factors, hard)
        digits = np.zeros(len(factors.scope_variables) + 1, np.int64)
        for f in range(len(factors.kinds)):
            linked = factors.scope_offsets[f + 1] - factors.scope_offsets[f] >= 2
            if linked and hard[f]:
                found[f] = meets_zero(factors, f, allowed, digits)
                if found[f]:
                    low = factors.scope_variables[factors.scope_offsets[f]]
                    while part[low] != low:
                        low = part[low]
                    for e in range(factors.scope_offsets[f], factors.scope_offsets[f + 1]):
                        v = factors.scope_variables[e]
                        while part[v] != v:
                            part[v] = part[part[v]]
                            v = part[v]
                        part[max(low, v)] = min(low, v)
                        low = min(low, v)
        for v in range(n_variables):
            part[v] = part[part[v]]  # lower ones are done

    return tight


@inlined
def add_scores(
    factors: Factors, f: int, v: int, allowed: BoolArray, digits: IntArray, own: Array, score: Array
) -> None:
    """score(k) += ln of the sum of f's weights with v = k, over allowed states of the others."""
    scope, n_leading = factors.scope_offsets[f], factors.scope_offsets[f + 1] - factors.scope_offsets[f] - 1
    last, n = factors.scope_variables[scope + n_leading], factors.state_offsets[v + 1] - factors.state_offsets[v]
    first_state, n_states = factors.state_offsets[last], factors.state_offsets[last + 1] - factors.state_offsets[last]
    for k in range(n):
        own[k] = -math.inf
    axis = 0
    for a in range(n_leading + 1):
        digits[a] = 0
        if factors.scope_variables[scope + a] == v:
            axis = a
    t = factors.table_of_factor[f]
    for row in range(factors.table_offsets[t], factors.table_offsets[t + 1], n_states):
        if is_allowed(factors, scope, n_leading, digits, allowed):
            for k in range(n_states):
                if allowed[first_state + k]:
                    mine = k if axis == n_leading else digits[axis]
                    own[mine] = plus(LOG_SUM, own[mine], factors.log_potentials[row + k])
        step(factors, scope, n_leading, digits)
    for k in range(n):
        score[k] += own[k]


@inlined
def best_state(
    factors: Factors,
    first: IntArray,
    linked: IntArray,
    v: int,
    base: Array,
    bonus: Array,
    allowed: BoolArray,
    digits: IntArray,
    own: Array,
    score: Array,
) -> int:
    """The allowed state of v with the best score."""
    low, high = factors.state_offsets[v], factors.state_offsets[v + 1]
    for s in range(low, high):
        score[s - low] = base[s] + bonus[s]
    for j in range(first[v], first[v + 1]):
        if factors.kinds[linked[j]] == TABLE:
            add_scores(factors, linked[j], v, allowed, digits, own, score)
    best = -1
    for s in range(low, high):
        if allowed[s] and (best < 0 or score[s - low] > score[best - low]):
            best = s
    return best


@inlined
def is_undecided(
    factors: Factors, first: IntArray, linked: IntArray, tight: BoolArray, v: int, allowed: BoolArray, digits: IntArray
) -> bool:
    """Whether a variable has several states, and a factor on it that can meet a hard zero."""
    if count_left(factors, v, allowed) >= 2:
        for j in range(first[v], first[v + 1]):
            if tight[linked[j]] and meets_zero(factors, linked[j], allowed, digits):
                return True
    return False


def make_search() -> Callable[..., None]:
    """Kernel: the search, part by part: allowed becomes the box; parts that fail stay as they were."""

    def search(
        factors: Factors,
        first: IntArray,
        linked: IntArray,
        tight: BoolArray,
        order: IntArray,
        parts: IntArray,
        base: Array,
        bonus: Array,
        allowed: BoolArray,
    ) -> None:
        n_variables, n_factors = len(factors.state_offsets) - 1, len(tight)
        supported, trail = np.empty(len(allowed), np.bool_), np.empty(len(allowed), np.int64)
        digits, waiting = np.zeros(len(factors.scope_variables) + 1, np.int64), np.zeros(n_factors, np.bool_)
        queue = np.empty(n_factors, np.int64)
        decided, kept = np.empty(n_variables, np.int64), np.empty(n_variables, np.int64)  # position and state
        marks = np.empty(n_variables, np.int64)  # the end of the trail when it was decided
        score, own = np.empty(len(allowed)), np.empty(len(allowed))
        for c in range(len(parts) - 1):
            n_trail, n_decided, failures, fine, i = 0, 0, 0, True, parts[c]
            while i < parts[c + 1] and failures < FAILURES:
                if fine and not is_undecided(factors, first, linked, tight, order[i], allowed, digits):
                    i += 1
                    continue
                if fine:
                    state = best_state(factors, first, linked, order[i], base, bonus, allowed, digits, own, score)
                    decided[n_decided] = i
                    kept[n_decided] = state
                    marks[n_decided] = n_trail
                    n_decided += 1
                    n_trail = keep_only(factors, order[i], state, allowed, trail, n_trail)
                elif n_decided == 0:
                    break  # no decision to undo: there is no box
                else:
                    failures += 1
                    n_decided -= 1
                    i = decided[n_decided]
                    n_trail = take_back(trail, n_trail, marks[n_decided], allowed)
                    allowed[kept[n_decided]] = False
                    trail[n_trail] = kept[n_decided]
                    n_trail += 1
                fine, n_trail = revise_around(
                    order[i], factors, first, linked, tight, allowed, supported, digits, queue, waiting, trail, n_trail
                )
            if i < parts[c + 1]:
                take_back(trail, n_trail, 0, allowed)

    return search
