"""What the factors on a variable say of its states, the rest of a labelling given.

    score(k) = base_v(k) + sum over factors f on v of log-potential_f(y with y_v = k)        -H, up to a constant
    zeros(k) = how many of the factors, or the base, have a hard zero there: these are counted and not added

A labelling that meets fewer hard zeros is better whatever else it has, so that a search may begin where H is infinite.

    Axes      first (V + 1,), entries (M,): the scope entries of each variable, in factors of two or more variables
                owners (E,): the factor of each entry; strides (E,): how far apart its states lie in the factor's table
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from besag.arrays import Array, IntArray
from besag.kernels.compile import inlined
from besag.kernels.factors import TABLE, Factors
from besag.model.structured.kernels.noisy import is_noisy, score_noisy, weigh_noisy
from besag.model.structured.kernels.rules import add_given, level

ROUNDING = 1e-14  # of two scores, which makes no difference between them


class Axes(NamedTuple):
    """Where each variable is in the tables; see the module."""

    first: IntArray
    entries: IntArray
    owners: IntArray
    strides: IntArray


def make_axes() -> Callable[..., None]:
    """Kernel: fills first (V + 1,), which is zeros, entries, owners and strides."""

    def axes(factors: Factors, first: IntArray, entries: IntArray, owners: IntArray, strides: IntArray) -> None:
        state_offsets, scope_offsets = factors.state_offsets, factors.scope_offsets
        scope_variables = factors.scope_variables
        n_variables, n_factors = len(state_offsets) - 1, len(scope_offsets) - 1
        for f in range(n_factors):
            stride = 1
            for e in range(scope_offsets[f + 1] - 1, scope_offsets[f] - 1, -1):
                v = scope_variables[e]
                owners[e] = f
                strides[e] = stride
                stride *= state_offsets[v + 1] - state_offsets[v]
                if scope_offsets[f + 1] - scope_offsets[f] >= 2:
                    first[v + 1] += 1
        for v in range(n_variables):
            first[v + 1] += first[v]
        for e in range(len(scope_variables) - 1, -1, -1):
            f = owners[e]
            if scope_offsets[f + 1] - scope_offsets[f] >= 2:
                v = scope_variables[e]
                entries[first[v + 1] - 1] = e
                first[v + 1] -= 1
        for v in range(n_variables):  # what has become the beginning of v is the end of the one before
            first[v] = first[v + 1]
        first[n_variables] = len(entries)

    return axes


@inlined
def score_states(
    factors: Factors, axes: Axes, v: int, base: Array, codes: IntArray, score: Array, zeros: IntArray
) -> int:
    """score and zeros of each state of v; how many states there are."""
    state_offsets, values = factors.state_offsets, factors.log_potentials
    low = state_offsets[v]
    n = int(state_offsets[v + 1] - low)
    for k in range(n):
        value = base[low + k]
        hard = value == -math.inf
        zeros[k] = 1 if hard else 0
        score[k] = 0.0 if hard else value
    for j in range(axes.first[v], axes.first[v + 1]):
        own = axes.entries[j]
        f = axes.owners[own]
        start = factors.table_offsets[factors.table_of_factor[f]]
        if is_noisy(factors.kinds[f]):
            score_noisy(factors, f, own, codes, score, zeros)
            continue
        if factors.kinds[f] != TABLE:
            e = factors.scope_offsets[f]
            other = factors.scope_variables[e + 1 if e == own else e]
            add_given(factors.kinds[f], own - e, n, values, start, codes[other], score)
            continue
        for e in range(factors.scope_offsets[f], factors.scope_offsets[f + 1]):
            if e != own:
                start += axes.strides[e] * codes[factors.scope_variables[e]]
        stride = axes.strides[own]
        for k in range(n):
            value = values[start + stride * k]
            if value == -math.inf:
                zeros[k] += 1
            else:
                score[k] += value
    return n


@inlined
def best_other(n: int, now: int, score: Array, zeros: IntArray) -> tuple[int, int, float]:
    """The best of the other states, ties to the lowest, how many hard zeros it is rid of, and what the score gains.

    -1 where there is no other state. What is within rounding is no gain.
    """
    chosen = -1
    for k in range(n):
        if k != now and (
            chosen < 0 or zeros[k] < zeros[chosen] or (zeros[k] == zeros[chosen] and score[k] > score[chosen])
        ):
            chosen = k
    if chosen < 0:
        return -1, 0, -math.inf
    gain = score[chosen] - score[now]
    if abs(gain) <= ROUNDING * (abs(score[chosen]) + abs(score[now])):
        gain = 0.0
    return chosen, zeros[now] - zeros[chosen], gain


def make_weigh() -> Callable[..., float]:
    """Kernel: what all factors, and the base, say of a labelling together: -H; they have no hard zeros."""

    def weigh(factors: Factors, axes: Axes, base: Array, codes: IntArray) -> float:
        total = 0.0
        for v in range(len(codes)):
            total += base[factors.state_offsets[v] + codes[v]]
        for f in range(len(factors.kinds)):
            low, high = factors.scope_offsets[f], factors.scope_offsets[f + 1]
            at = factors.table_offsets[factors.table_of_factor[f]]
            if high - low >= 2 and factors.kinds[f] == TABLE:
                for e in range(low, high):
                    at += axes.strides[e] * codes[factors.scope_variables[e]]
                total += factors.log_potentials[at]
            elif high - low >= 2 and is_noisy(factors.kinds[f]):
                total += weigh_noisy(factors, f, codes[factors.scope_variables[low:high]])
            elif high - low >= 2:
                one, other = codes[factors.scope_variables[low]], codes[factors.scope_variables[high - 1]]
                total += factors.log_potentials[at + level(factors.kinds[f], one, other)]
        return total

    return weigh


def make_differences() -> Callable[..., None]:
    """Kernel: how much -H changes where one variable takes another state, for all states (S,); no hard zeros."""

    def differences(factors: Factors, axes: Axes, base: Array, codes: IntArray, out: Array) -> None:
        most = 1
        for v in range(len(codes)):
            most = max(most, factors.state_offsets[v + 1] - factors.state_offsets[v])
        score, zeros = np.empty(most), np.empty(most, np.int64)
        for v in range(len(codes)):
            n = score_states(factors, axes, v, base, codes, score, zeros)
            for k in range(n):
                out[factors.state_offsets[v] + k] = score[k] - score[codes[v]]

    return differences
