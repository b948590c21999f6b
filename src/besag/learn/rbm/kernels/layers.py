"""Draws of a whole layer from its log-odds, and the updates of a fit: all sums over units are matrix products.

An update from m rows of data and C chains stacks both, X (m + C, S), so that one product gives the hidden log-odds of
all, and another one the gradient, X^T P with P (m + C, H) the hidden probabilities times 1/m for data, -1/C for chains.
Stacks are float32.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from besag.arrays import AnyArray, IntArray
from besag.kernels.compile import inlined
from besag.kernels.random import stream
from besag.kernels.single import ONE, ZERO, Single, draw_states, draw_units, raise_chances


@inlined
def draw_layer(is_binary: bool, shares: AnyArray, offsets: IntArray, key: int, count: int, x: AnyArray) -> None:
    """x (C, S): log-odds without the share of the biases become states."""
    for i in range(len(x)):
        own, word = x[i], stream(key, i, count)
        if is_binary:
            raise_chances(len(own), shares, ONE, own)
            draw_units(len(own), word, own)
        else:
            for s in range(len(own)):
                own[s] += shares[s]
            draw_states(offsets, word, own)


def make_draw_visible() -> Callable[..., None]:
    """Kernel: see `draw_layer`."""

    def draw_visible(shares: AnyArray, offsets: IntArray, is_binary: bool, key: int, count: int, x: AnyArray) -> None:
        draw_layer(is_binary, shares, offsets, key, count, x)

    return draw_visible


def make_draw_hidden() -> Callable[..., None]:
    """Kernel: the same for units of two states."""

    def draw_hidden(shares: AnyArray, key: int, count: int, x: AnyArray) -> None:
        for i in range(len(x)):
            own = x[i]
            raise_chances(len(own), shares, ONE, own)
            draw_units(len(own), stream(key, i, count), own)

    return draw_hidden


@inlined
def move(rate: Single, momentum: Single, gradient: AnyArray, velocity: AnyArray, x: AnyArray) -> None:
    """x += velocity := momentum velocity + rate gradient."""
    for i in range(len(x)):
        velocity[i] = momentum * velocity[i] + rate * gradient[i]
        x[i] += velocity[i]


@inlined
def move_weights(
    rate: Single, momentum: Single, decay: Single, gradient: AnyArray, velocity: AnyArray, x: AnyArray
) -> None:
    """The same for a row of weights, which decay; without momentum there is no velocity."""
    if momentum == ZERO:
        for i in range(len(x)):
            x[i] += rate * (gradient[i] - decay * x[i])
    else:
        for i in range(len(x)):
            velocity[i] = momentum * velocity[i] + rate * (gradient[i] - decay * x[i])
            x[i] += velocity[i]


@inlined
def sum_rows_scaled(x: AnyArray, n_data: int, of_data: Single, of_chains: Single, out: AnyArray) -> None:
    """out = the sum of rows of data times of_data, and of chains times of_chains."""
    for s in range(len(out)):
        out[s] = ZERO
    for i in range(len(x)):
        row, share = x[i], of_data if i < n_data else of_chains
        for s in range(len(out)):
            out[s] += share * row[s]


def make_updates() -> Callable[..., None]:
    """Kernel: one update after the other, from batches [first, last) of an epoch.

    rates (batches,). shares: momentum and decay. chains (C, H): hidden units, which go on where `persistent`, else they
    begin at the data of a batch, C = its rows. k: sweeps. counts (1,): of updates, the number of their random draws.
    """

    def updates(
        data: AnyArray,
        order: IntArray,
        first: int,
        last: int,
        size: int,
        offsets: IntArray,
        is_binary: bool,
        rates: AnyArray,
        shares: AnyArray,
        k: int,
        persistent: bool,
        key: int,
        counts: IntArray,
        chains: AnyArray,
        stack: AnyArray,
        means: AnyArray,
        weights: AnyArray,
        visible: AnyArray,
        hidden: AnyArray,
        gradients: tuple[AnyArray, AnyArray, AnyArray],
        velocities: tuple[AnyArray, AnyArray, AnyArray],
    ) -> None:
        for t in range(first, last):
            rows = order[t * size : min((t + 1) * size, len(order))]
            m, count = len(rows), counts[0] * 2 * (k + 1)
            n = m + (len(chains) if persistent else m)
            x, p, free = stack[:n], means[:n], chains[: n - m]
            for i in range(m):
                x[i] = data[rows[i]]
            if not persistent:
                np.dot(x[:m], weights, free)
                for i in range(m):
                    raise_chances(len(hidden), hidden, ONE, free[i])
                    draw_units(len(hidden), stream(key, i, count), free[i])
            for sweep in range(k):
                np.dot(free, weights.T, x[m:])
                draw_layer(is_binary, visible, offsets, key, count + 2 * sweep + 1, x[m:])
                if sweep < k - 1:
                    np.dot(x[m:], weights, free)
                    for i in range(n - m):
                        raise_chances(len(hidden), hidden, ONE, free[i])
                        draw_units(len(hidden), stream(key, i, count + 2 * sweep + 2), free[i])
            np.dot(x, weights, p)
            of_data, of_chains = ONE / np.float32(m), -ONE / np.float32(n - m)
            for i in range(n):
                raise_chances(len(hidden), hidden, ONE, p[i])
                if i >= m and persistent:
                    for j in range(len(hidden)):
                        free[i - m, j] = p[i, j]
                    draw_units(len(hidden), stream(key, i - m, count + 2 * k), free[i - m])
                share = of_data if i < m else of_chains
                for j in range(len(hidden)):
                    p[i, j] *= share
            np.dot(x.T, p, gradients[0])
            sum_rows_scaled(x, m, of_data, of_chains, gradients[1])
            sum_rows_scaled(p, m, ONE, ONE, gradients[2])
            rate, momentum, decay = rates[t], shares[0], shares[1]
            for s in range(len(visible)):
                move_weights(rate, momentum, decay, gradients[0][s], velocities[0][s], weights[s])
            move(rate, momentum, gradients[1], velocities[1], visible)
            move(rate, momentum, gradients[2], velocities[2], hidden)
            counts[0] += 1

    return updates
