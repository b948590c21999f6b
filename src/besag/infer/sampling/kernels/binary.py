"""Gibbs sampling of binary variables with pairwise factors, all log-potentials finite: several chains side by side.

With y in {0, 1} the log-odds of a variable are linear in the states of its neighbours,

    f_v = field_v + sum over neighbours u of coupling_uv y_u        p(y_v = 1 | rest) = 1 / (1 + exp(-f_v))
    coupling = t(1, 1) - t(1, 0) - t(0, 1) + t(0, 0),    field = base(1) - base(0) + sum of t(1, 0) - t(0, 0)

Variables of one colour are done in blocks of some hundred: gathering log-odds, making random numbers and computing
probabilities are loops of their own, which the compiler vectorises. The states of LANES chains of a row are stored side
by side, so that what is read for one of them is read for all. Variables are numbered in the order of their visits, so
that their data is read sequentially.

    U units = R rows x C / L groups of chains; states (U, V L) int8, sums (U, V L), field (R, V)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.kernels.compile import at, inlined
from besag.kernels.exponential import exp_below
from besag.kernels.random import BITS_53, GAMMA, UNIT, mix, stream

BLOCK = 512  # numbers at a time: three buffers of them stay in the L1 cache
BITS_32 = 2**32 - 1
HALF_UNIT = 2.0**-32
MIDDLE = 2.0**-33


class Neighbours(NamedTuple):
    """The neighbours of each variable, as 32-bit integers."""

    first: IntArray  # (V + 1,)
    other: IntArray  # (I,)


@inlined
def gather(
    lanes: int,
    start: int,
    n: int,
    order: IntArray,
    first: IntArray,
    other: IntArray,
    coupling: Array,
    field: Array,
    states: AnyArray,
    odds: Array,
    room: Array,
) -> None:
    """The log-odds of n variables; room (L,) is work space."""
    for i in range(n):
        v = order[at(start + i)]
        if lanes == 1:
            odds[i] = field[at(v)] + influence(first[at(v)], first[at(v + 1)], other, coupling, states)
            continue
        for lane in range(lanes):
            room[lane] = field[at(v)]
        for j in range(first[at(v)], first[at(v + 1)]):
            u, c = other[at(j)] * lanes, coupling[at(j)]
            for lane in range(lanes):
                room[lane] += c * states[at(u + lane)]
        for lane in range(lanes):
            odds[at(i * lanes + lane)] = room[lane]


@inlined
def influence(low: int, high: int, other: IntArray, coupling: Array, states: AnyArray) -> float:
    """What neighbours [low, high) add to log-odds: four at a time, since few have more, and a loop costs its set-up."""
    total, j = 0.0, low
    while j + 4 <= high:
        total += (
            coupling[at(j)] * states[at(other[at(j)])]
            + coupling[at(j + 1)] * states[at(other[at(j + 1)])]
            + coupling[at(j + 2)] * states[at(other[at(j + 2)])]
            + coupling[at(j + 3)] * states[at(other[at(j + 3)])]
        )
        j += 4
    while j < high:
        total += coupling[at(j)] * states[at(other[at(j)])]
        j += 1
    return total


@inlined
def uniforms(lanes: int, n: int, seed: int, start: int, u: Array) -> None:
    """n random numbers in (0, 1), two from each word where there are two lanes or more."""
    if lanes == 1:
        for i in range(n):
            u[i] = ((mix(seed + GAMMA * (start + i + 1)) >> 11) & BITS_53) * UNIT
        return
    half = n // 2
    for i in range(half):
        word = mix(seed + GAMMA * (start + i + 1))
        u[i] = (word & BITS_32) * HALF_UNIT + MIDDLE
        u[at(half + i)] = ((word >> 32) & BITS_32) * HALF_UNIT + MIDDLE


@inlined
def chances(n: int, odds: Array, p: Array) -> None:
    """p = 1 / (1 + exp(-odds))."""
    for i in range(n):
        f = odds[i]
        q = 1.0 / (1.0 + exp_below(-abs(f)))
        p[i] = q if f >= 0.0 else 1.0 - q


@inlined
def write(
    lanes: int, start: int, n: int, order: IntArray, u: Array, p: Array, odds: Array, states: AnyArray, score: Array
) -> None:
    """The states drawn, and the scores of the lanes."""
    for i in range(n):
        v = order[at(start + i)] * lanes
        for lane in range(lanes):
            one = u[at(i * lanes + lane)] < p[at(i * lanes + lane)]
            states[at(v + lane)] = one
            score[lane] += odds[at(i * lanes + lane)] * one


@inlined
def add(lanes: int, start: int, n: int, order: IntArray, p: Array, sums: Array) -> None:
    """Add the conditionals to the sums."""
    for i in range(n):
        v = order[at(start + i)] * lanes
        for lane in range(lanes):
            sums[at(v + lane)] += p[at(i * lanes + lane)]


def make_binary_sweep(lanes: int) -> Callable[..., None]:
    """Kernel: the variables order[start:stop], `block` at a time, in units [first_unit, last_unit).

    block is 1 if a variable may be a neighbour of the next one. Unit u reads row u // n_groups of field (R, V).
    """

    def sweep(
        neighbours: Neighbours,
        coupling: Array,
        field: Array,
        n_groups: int,
        order: IntArray,
        start: int,
        stop: int,
        block: int,
        first_unit: int,
        last_unit: int,
        key: int,
        states: AnyArray,
        keep: bool,
        sums: Array,
        scores: Array,
        part: int,
    ) -> None:
        odds, u, p = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
        score, room = np.empty(lanes), np.empty(lanes)
        first, other = neighbours
        for unit in range(first_unit, last_unit):
            seed, mine, fields, totals = stream(key, unit, 0), states[unit], field[unit // n_groups], sums[unit]
            for lane in range(lanes):
                score[lane] = 0.0
            for i in range(start, stop, block):
                n = min(block, stop - i)
                gather(lanes, i, n, order, first, other, coupling, fields, mine, odds, room)
                uniforms(lanes, n * lanes, seed, i * lanes, u)
                chances(n * lanes, odds, p)
                write(lanes, i, n, order, u, p, odds, mine, score)
                if keep:
                    add(lanes, i, n, order, p, totals)
            for lane in range(lanes):
                scores[unit, part, lane] = score[lane]

    return sweep
