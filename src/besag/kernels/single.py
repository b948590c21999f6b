"""Probabilities and draws in single precision, so that loops over many units are vectorised eight at a time.

    p = 1 / (1 + exp(-x)), the exponential by a polynomial and seven squarings: relative error 3e-5, and p is never
    below 1e-26; random numbers are 24 bits of a 32-bit hash of a counter, under a key of 64 bits.

Literals are float32 on purpose: one float64 among them would make all arithmetic double.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from besag.arrays import AnyArray
from besag.kernels.compile import inlined

Single: TypeAlias = Any  # a float32

BITS_32 = 2**32 - 1
GOLDEN, FIRST, SECOND, THIRD = 0x9E3779B9, 0x7FEB352D, 0x846CA68B, 0x2C1B3C6D
UNIT = np.float32(2.0**-24)
LOWEST, SHARE = np.float32(-60.0), np.float32(1.0 / 128.0)
ZERO, ONE = np.float32(0.0), np.float32(1.0)
C2, C3, C4, C5, C6, C7 = (np.float32(1.0 / c) for c in (2, 6, 24, 120, 720, 5040))


@inlined
def exp_single(x: Single) -> Single:
    """exp(x) for x <= 0, float32, and exp(-60) below that."""
    t = max(x, LOWEST) * SHARE
    e = ONE + t * (ONE + t * (C2 + t * (C3 + t * (C4 + t * (C5 + t * (C6 + t * C7))))))
    for _ in range(7):
        e = e * e
    return e


@inlined
def chance(x: Single) -> Single:
    """1 / (1 + exp(-x)), float32."""
    e = exp_single(-abs(x))
    q = ONE / (ONE + e)
    return q if x >= ZERO else e * q


@inlined
def uniform_single(low: int, high: int, i: int) -> Single:
    """Number i of the stream (low, high), float32 on [0, 1)."""
    word = (low + GOLDEN * (i + 1)) & BITS_32
    word = ((word ^ (word >> 16)) * FIRST) & BITS_32
    word = ((word ^ (word >> 15)) * SECOND + high) & BITS_32
    word = ((word ^ (word >> 16)) * THIRD) & BITS_32
    return np.float32(np.int32((word ^ (word >> 15)) >> 8)) * UNIT


@inlined
def raise_chances(n: int, shares: AnyArray, scale: Single, x: AnyArray) -> None:
    """x = chance(scale x + shares), n of them."""
    for i in range(n):
        x[i] = chance(scale * x[i] + shares[i])


@inlined
def draw_units(n: int, word: int, x: AnyArray) -> None:
    """x, n probabilities, becomes 1 with them and else 0; word: the seed of the stream."""
    low, high = word & BITS_32, (word >> 32) & BITS_32
    for i in range(n):
        x[i] = ONE if uniform_single(low, high, i) < x[i] else ZERO


@inlined
def draw_states(offsets: AnyArray, word: int, x: AnyArray) -> None:
    """One unit of each group, by the softmax of its log-odds x: x becomes 1 there and 0 elsewhere."""
    low, high = word & BITS_32, (word >> 32) & BITS_32
    for v in range(len(offsets) - 1):
        start, stop = offsets[v], offsets[v + 1]
        top = x[start]
        for s in range(start + 1, stop):
            top = max(top, x[s])
        total = ZERO
        for s in range(start, stop):
            x[s] = exp_single(x[s] - top)
            total += x[s]
        target, chosen = uniform_single(low, high, v) * total, start
        for s in range(start, stop):
            if x[s] > ZERO:
                chosen = s
                target -= x[s]
                if target < ZERO:
                    break
        for s in range(start, stop):
            x[s] = ONE if s == chosen else ZERO
