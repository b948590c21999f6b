"""Gibbs sampling if all factors of several variables are pairs of variables with the same number of states, K.

As `besag.infer.sampling.kernels.single_site`, specialised to K. Each table is stored twice, as it is and transposed, so
that whichever of its variables is drawn, it reads the row of its neighbour's state:

    logits = base[v] + sum over neighbours u of rows[table of the pair, y_u]

A Potts factor adds to one logit. It does not go by its rules here: the sign of `table` says what a pair is, so that
nothing else is read, and no other kind is taken. K is a compile-time constant and exp is written out, so that all loops
over states are vectorised.

    U units = R rows x C chains; I = (variable, neighbour) pairs; states (U, V), sums (U, V K), base (R, V K)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from besag.arrays import Array, IntArray
from besag.kernels.compile import at, inlined
from besag.kernels.exponential import exp_below
from besag.kernels.random import pick, stream, uniform


class PairTables(NamedTuple):
    """The neighbours of each variable, and the table that joins them."""

    first: IntArray  # (V + 1,)
    other: IntArray  # (I,)
    table: IntArray  # (I,) where the table begins in rows; -1 minus the place of its second level if it is Potts


@inlined
def add_row(n_states: int, start: int, rows: Array, logits: Array) -> None:
    """Add a row of a table."""
    for k in range(n_states):
        logits[k] += rows[at(start + k)]


@inlined
def weigh_states(n_states: int, logits: Array, weights: Array) -> float:
    """Turn logits into weights of which the largest is 1; returns their sum, 0 if all logits are -inf."""
    top = logits[0]
    for k in range(1, n_states):
        top = max(top, logits[k])
    total = 0.0
    if top == -np.inf:
        return total
    for k in range(n_states):
        weights[k] = exp_below(logits[k] - top)
    for k in range(n_states):
        total += weights[k]
    return total


@inlined
def add_shares(n_states: int, start: int, share: float, weights: Array, sums: Array) -> None:
    """Add a conditional to the sums."""
    for k in range(n_states):
        sums[at(start + k)] += weights[k] * share


def make_pairs_sweep(n_states: int) -> Callable[..., None]:
    """Kernel: a sweep, as `besag.infer.sampling.kernels.single_site.make_sweep`."""

    def sweep(
        pairs: PairTables,
        rows: Array,
        base: Array,
        n_chains: int,
        order: IntArray,
        start: int,
        stop: int,
        first_unit: int,
        last_unit: int,
        key: int,
        states: IntArray,
        keep: bool,
        sums: Array,
        scores: Array,
        part: int,
    ) -> None:
        first, other, table = pairs.first, pairs.other, pairs.table
        logits, weights = np.empty(n_states), np.empty(n_states)
        for u in range(first_unit, last_unit):
            seed, mine, own, totals, score = stream(key, u, 0), states[u], base[u // n_chains], sums[u], 0.0
            for i in range(start, stop):
                v = order[i]
                for k in range(n_states):
                    logits[k] = own[at(v * n_states + k)]
                for j in range(first[v], first[v + 1]):
                    t, y = table[j], mine[other[j]]
                    if t < 0:  # c [i != j] is the constant c, minus c where they agree
                        logits[y] -= rows[-1 - t]
                    else:
                        add_row(n_states, t + y * n_states, rows, logits)
                total = weigh_states(n_states, logits, weights)
                if total == 0.0:  # a row without a labelling
                    continue
                chosen = pick(weights, n_states, uniform(seed, v) * total)
                mine[v] = chosen
                score += logits[chosen]
                if keep:
                    add_shares(n_states, v * n_states, 1.0 / total, weights, totals)
            scores[u, part] = score

    return sweep
