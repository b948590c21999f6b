"""A labelling that no hard zero rules out, by search: decide one variable, propagate, go back if nothing is left.

Every decision is followed by support propagation (`besag.kernels.support`) from the variable decided, which removes all
states that have lost their support. If a variable has none left, the last decision is undone and refuted: its state is
removed, and that is propagated in turn. Refuting the very first decision proves its state impossible; a search that
runs out of decisions to refute has proven that there is no labelling.

Variables are decided in random order, and states drawn by their weights, so that searches with different keys end in
different labellings. A search gives up after `budget` dead ends; another key may be luckier.

    allowed (S,)   flags of states, propagated already; after a search that succeeds each variable that stands in a
                   factor with hard zeros has one state left
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from besag.arrays import Array, BoolArray, IntArray
from besag.infer.zeros.kernels.decisions import count_left, keep_only, revise_around, take_back
from besag.kernels.compile import inlined
from besag.kernels.factors import Factors
from besag.kernels.random import pick, stream, uniform
from besag.kernels.support import find_hard

FOUND, GAVE_UP, NONE = 1, 0, -1


@inlined
def draw_state(first_state: int, last_state: int, base: Array, allowed: BoolArray, weights: Array, u: float) -> int:
    """One of the allowed states of a variable, by exp(base)."""
    top, total = -math.inf, 0.0
    for s in range(first_state, last_state):
        if allowed[s]:
            top = max(top, base[s])
    for s in range(first_state, last_state):
        # A state of small weight may be the only feasible one, so every state keeps a chance.
        weights[s - first_state] = math.exp(max(base[s] - top, -30.0)) if allowed[s] else 0.0
        total += weights[s - first_state]
    return pick(weights, last_state - first_state, u * total)


@inlined
def shuffle(order: IntArray, seed: int) -> None:
    """A random order."""
    for i in range(len(order) - 1, 0, -1):
        j = int(uniform(seed, i) * (i + 1))
        kept = order[i]
        order[i] = order[j]
        order[j] = kept


def make_search() -> Callable[..., int]:
    """Kernel: FOUND, GAVE_UP after `budget` dead ends, or NONE if there is provably no labelling."""

    def search(
        factors: Factors,
        first: IntArray,
        linked: IntArray,
        base: Array,
        key: int,
        budget: int,
        allowed: BoolArray,
    ) -> int:
        n_factors, n_variables, n_states = len(factors.kinds), len(factors.state_offsets) - 1, len(allowed)
        hard = np.empty(n_factors, np.bool_)
        find_hard(factors, hard)
        in_question = np.zeros(n_variables, np.bool_)
        for f in range(n_factors):
            if hard[f]:
                for e in range(factors.scope_offsets[f], factors.scope_offsets[f + 1]):
                    in_question[factors.scope_variables[e]] = True
        order = np.flatnonzero(in_question)
        shuffle(order, stream(key, 0, 0))
        seed = stream(key, 0, 1)
        supported, digits = np.empty(n_states, np.bool_), np.empty(len(factors.scope_variables) + 1, np.int64)
        queue, waiting = np.empty(n_factors + 1, np.int64), np.zeros(n_factors, np.bool_)
        trail, n_trail, weights = np.empty(n_states, np.int64), 0, np.empty(n_states)
        decided = np.empty((3, len(order) + 1), np.int64)  # the place in order, the state, the length of the trail
        place, level, n_dead, n_drawn = 0, 0, 0, 0
        while True:
            while place < len(order):
                v = order[place]
                if count_left(factors, v, allowed) > 1:
                    break
                place += 1
            if place == len(order):
                return FOUND
            v = order[place]
            low, high = factors.state_offsets[v], factors.state_offsets[v + 1]
            chosen = low + draw_state(low, high, base, allowed, weights, uniform(seed, n_drawn))
            n_drawn += 1
            decided[0, level], decided[1, level], decided[2, level] = place, chosen, n_trail
            level += 1
            n_trail = keep_only(factors, v, chosen, allowed, trail, n_trail)
            alive, n_trail = revise_around(
                v, factors, first, linked, hard, allowed, supported, digits, queue, waiting, trail, n_trail
            )
            while not alive:
                n_dead += 1
                if n_dead > budget:
                    return GAVE_UP
                level -= 1
                if level < 0:
                    return NONE
                place, chosen = decided[0, level], decided[1, level]
                n_trail = take_back(trail, n_trail, decided[2, level], allowed)
                v = order[place]
                allowed[chosen] = False
                trail[n_trail] = chosen
                n_trail += 1
                if count_left(factors, v, allowed) > 0:
                    alive, n_trail = revise_around(
                        v, factors, first, linked, hard, allowed, supported, digits, queue, waiting, trail, n_trail
                    )

    return search
