"""The rules of noisy-MAX for moves of a labelling: log p(child | parents) at each state of one variable, in O(n K).

Its levels are log p and log q of the effects by rank (`besag.model.structured.noisy`), (2, R, K), the leak's row last;
the extent is 1 where ranks go down with the states of the child. -inf may be a large negative number: the sums are
logarithms, so that such penalties add up.

    found[m], at_most[m]    log p that the strongest effect so far has rank m, and rank m at the most
"""

from __future__ import annotations

import math

import numpy as np

from besag.arrays import EXTENTS, AnyArray, Array, IntArray, Kind
from besag.kernels.compile import inlined
from besag.kernels.factors import Factors

NOISY = int(Kind.NOISY)
NEGLIGIBLE = 40.0  # between two logarithms: the lesser is nothing beside the other


@inlined
def is_noisy(kind: int) -> bool:
    """Whether it is a noisy-MAX."""
    return kind % EXTENTS == NOISY


@inlined
def rank_of(kind: int, n: int, code: int) -> int:
    """The rank of a state of the child."""
    return n - 1 - code if kind >= EXTENTS else code


@inlined
def log_add(a: float, b: float) -> float:
    """log(exp a + exp b)."""
    high, low = max(a, b), min(a, b)
    if low == -math.inf or high - low > NEGLIGIBLE:
        return high
    return high + math.log1p(math.exp(low - high))


@inlined
def begin(levels: AnyArray, start: int, n_rows: int, n: int, found: Array, at_most: Array) -> None:
    """The leak alone."""
    row = start + (n_rows - 1) * n
    for m in range(n):
        found[m] = levels[row + m]
        at_most[m] = levels[row + n_rows * n + m]


@inlined
def found_with(
    levels: AnyArray, start: int, n_rows: int, n: int, row: int, m: int, found: Array, at_most: Array
) -> float:
    """found[m] with the effect of one more row."""
    p = start + row * n + m
    value = found[m] + levels[p + n_rows * n]
    return log_add(value, at_most[m - 1] + levels[p]) if m > 0 else value


@inlined
def add_effect(levels: AnyArray, start: int, n_rows: int, n: int, row: int, found: Array, at_most: Array) -> None:
    """With the effect of one more row."""
    for m in range(n):
        found[m] = found_with(levels, start, n_rows, n, row, m, found, at_most)
    for m in range(n):
        at_most[m] += levels[start + (n_rows + row) * n + m]


@inlined
def score_noisy(factors: Factors, f: int, own: int, codes: IntArray, score: Array, zeros: IntArray) -> None:
    """score += log p at each state of the variable at entry own, the others at their codes; hard zeros are counted."""
    low, last, t = factors.scope_offsets[f], factors.scope_offsets[f + 1] - 1, factors.table_of_factor[f]
    child, start, kind = factors.scope_variables[last], factors.table_offsets[t], factors.kinds[f]
    n = int(factors.state_offsets[child + 1] - factors.state_offsets[child])
    n_rows = int((factors.table_offsets[t + 1] - start) // (2 * n))
    found, at_most = np.empty(n), np.empty(n)
    begin(factors.log_potentials, start, n_rows, n, found, at_most)
    row, own_row = 0, 0
    for e in range(low, last):
        u = factors.scope_variables[e]
        if e == own:
            own_row = row
        else:
            add_effect(factors.log_potentials, start, n_rows, n, row + codes[u], found, at_most)
        row += factors.state_offsets[u + 1] - factors.state_offsets[u]
    v, m = factors.scope_variables[own], rank_of(kind, n, codes[child])
    for k in range(factors.state_offsets[v + 1] - factors.state_offsets[v]):
        if own == last:
            value = found[rank_of(kind, n, k)]
        else:
            value = found_with(factors.log_potentials, start, n_rows, n, own_row + k, m, found, at_most)
        if value == -math.inf:
            zeros[k] += 1
        else:
            score[k] += value


@inlined
def add_given_noisy(factors: Factors, f: int, own: int, codes: IntArray, logits: Array, zeros: IntArray) -> None:
    """The same with -inf for hard zeros."""
    v = factors.scope_variables[own]
    n = factors.state_offsets[v + 1] - factors.state_offsets[v]
    for k in range(n):
        zeros[k] = 0
    score_noisy(factors, f, own, codes, logits, zeros)
    for k in range(n):
        if zeros[k] > 0:
            logits[k] = -math.inf


@inlined
def weigh_noisy(factors: Factors, f: int, codes: IntArray) -> float:
    """log p at codes (n + 1,) of the scope."""
    low, last, t = factors.scope_offsets[f], factors.scope_offsets[f + 1] - 1, factors.table_of_factor[f]
    child, start = factors.scope_variables[last], factors.table_offsets[t]
    n = int(factors.state_offsets[child + 1] - factors.state_offsets[child])
    n_rows = int((factors.table_offsets[t + 1] - start) // (2 * n))
    found, at_most = np.empty(n), np.empty(n)
    begin(factors.log_potentials, start, n_rows, n, found, at_most)
    row = 0
    for e in range(low, last):
        u = factors.scope_variables[e]
        add_effect(factors.log_potentials, start, n_rows, n, row + codes[e - low], found, at_most)
        row += factors.state_offsets[u + 1] - factors.state_offsets[u]
    return float(found[rank_of(factors.kinds[f], n, codes[last - low])])
