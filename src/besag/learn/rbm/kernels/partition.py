"""log Z of two layers: one of them enumerated, or annealed.

Enumeration: states of the summed layer come in blocks whose first bits are the same. The log-odds of a unit of the
other layer are those of the block plus those of the low bits, which are tabulated, and

    sum over units of log(1 + exp(a)) = sum of max(a, 0) + log of the product of (1 + exp(-|a|))

takes one logarithm for PRODUCT units.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.kernels.compile import inlined
from besag.kernels.exponential import exp_below
from besag.kernels.random import stream
from besag.kernels.single import ONE, draw_units, raise_chances
from besag.learn.rbm.kernels.layers import draw_layer

PRODUCT = 512  # factors of at most 2 whose product is finite


@inlined
def add_pairs(n: int, shift: float, odds: Array, total: Array, product: Array) -> None:
    """total + log(product) += log(1 + exp(shift + odds)), n of them."""
    for i in range(n):
        a = shift + odds[i]
        total[i] += max(a, 0.0)
        product[i] *= 1.0 + exp_below(-abs(a))


@inlined
def add_states(
    n: int, start: int, stop: int, shifts: Array, odds: Array, top: Array, room: Array, total: Array
) -> None:
    """total += log of the sum over the units [start, stop) of exp(shift + odds), n of them; top and room (n,)."""
    for i in range(n):
        top[i] = shifts[start] + odds[start, i]
        room[i] = 0.0
    for s in range(start + 1, stop):
        for i in range(n):
            top[i] = max(top[i], shifts[s] + odds[s, i])
    for s in range(start, stop):
        for i in range(n):
            room[i] += exp_below(shifts[s] + odds[s, i] - top[i])
    for i in range(n):
        total[i] += top[i] + math.log(room[i])


@inlined
def flush(n: int, product: Array, total: Array) -> None:
    """total += log(product), which begins anew."""
    for i in range(n):
        total[i] += math.log(product[i])
        product[i] = 1.0


def make_enumerate() -> Callable[..., None]:
    """Kernel: out[block] = log of the sum over the low bits, blocks [first, last).

    weights (H, S) and scores (H,): of the summed layer; the low bits are its first ones, low (S, L) and low_scores (L,)
    their tables, L = 2 to the number of them; shares (S,): the biases of the other layer, in groups of one unit, or
    softmax groups.
    """

    def enumerate_blocks(
        weights: Array,
        scores: Array,
        low: Array,
        low_scores: Array,
        shares: Array,
        offsets: IntArray,
        is_binary: bool,
        n_low: int,
        first: int,
        last: int,
        out: Array,
    ) -> None:
        n = len(low_scores)
        shifts, total, product = np.empty(len(shares)), np.empty(n), np.ones(n)
        top, room = np.empty(n), np.empty(n)
        for block in range(first, last):
            base = 0.0
            for s in range(len(shares)):
                shifts[s] = shares[s]
            for j in range(n_low, len(scores)):
                if (block >> (j - n_low)) & 1:
                    base += scores[j]
                    for s in range(len(shares)):
                        shifts[s] += weights[j, s]
            for i in range(n):
                total[i] = base + low_scores[i]
            if is_binary:
                for s in range(len(shares)):
                    add_pairs(n, shifts[s], low[s], total, product)
                    if (s + 1) % PRODUCT == 0:
                        flush(n, product, total)
                flush(n, product, total)
            else:
                for v in range(len(offsets) - 1):
                    add_states(n, offsets[v], offsets[v + 1], shifts, low, top, room, total)
            highest = total.max()
            z = 0.0
            for i in range(n):
                z += math.exp(total[i] - highest)
            out[block] = highest + math.log(z)

    return enumerate_blocks


@inlined
def soft_sum(beta: float, odds: AnyArray) -> float:
    """sum over j of log(1 + exp(beta odds_j))."""
    total, product = 0.0, 1.0
    for start in range(0, len(odds), PRODUCT):
        product = 1.0
        for j in range(start, min(start + PRODUCT, len(odds))):
            a = beta * odds[j]
            total += max(a, 0.0)
            product *= 1.0 + exp_below(-abs(a))
        total += math.log(product)
    return total


def make_anneal() -> Callable[..., None]:
    """Kernel: temperatures [first, last), a weight and a sweep each.

    At b the visible biases are (1 - b) base + b visible, and log p(v) = <biases, v> + sum_j log(1 + exp(b odds_j)).
    logs (C,): log-weights; chains (C, S) visible units, odds (C, H) room.
    """

    def anneal(
        weights: AnyArray,
        visible: AnyArray,
        hidden: AnyArray,
        base: AnyArray,
        offsets: IntArray,
        is_binary: bool,
        betas: Array,
        first: int,
        last: int,
        key: int,
        chains: AnyArray,
        odds: AnyArray,
        logs: Array,
    ) -> None:
        shares = np.empty_like(visible)
        for t in range(first, last):
            before, beta = betas[t], betas[t + 1]
            single, step = np.float32(beta), beta - before
            np.dot(chains, weights, odds)
            for i in range(len(chains)):
                linear = 0.0
                for s in range(len(visible)):
                    linear += float(visible[s] - base[s]) * chains[i, s]
                for j in range(len(hidden)):
                    odds[i, j] += hidden[j]
                logs[i] += step * linear + soft_sum(beta, odds[i]) - soft_sum(before, odds[i])
            if t + 2 == len(betas):
                break
            for i in range(len(chains)):
                for j in range(len(hidden)):
                    odds[i, j] *= single
                raise_chances(len(hidden), np.zeros_like(hidden), ONE, odds[i])
                draw_units(len(hidden), stream(key, i, 2 * t), odds[i])
            np.dot(odds, weights.T, chains)
            for s in range(len(visible)):
                shares[s] = (ONE - single) * base[s] + single * visible[s]
            for i in range(len(chains)):
                for s in range(len(visible)):
                    chains[i, s] *= single
            draw_layer(is_binary, shares, offsets, key, 2 * t + 1, chains)

    return anneal
