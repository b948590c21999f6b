"""Semirings for kernels: arithmetic on an integer that a factory closes over, so that LLVM keeps one branch.

    SUM      a (+) b = a + b           a (x) b = a b     zero 0      one 1    weights, rescaled
    MAX      a (+) b = max(a, b)       a (x) b = a + b   zero -inf   one 0    log-potentials
    LOG_SUM  a (+) b = ln(e^a + e^b)   a (x) b = a + b   zero -inf   one 0    log-potentials

Vectors have a lane axis, the innermost: lane r is row r of a block of evidence rows, and all lanes go through the same
table together. A vector of n states is n rows of an array (., lanes).

Scale. A vector x stands for exp(scale) x (SUM), or scale + x (the others). `normalise` keeps the largest entry of x
within 1/2 of 0 in the log domains, and between 1/window and window in SUM, where a logarithm at every step would cost
more than the messages. It takes out whole numbers, whose sums are exact however many there are.

Range of SUM. Let n be the largest arity. With window = 10^(30/n) and delta = 10^(-270/(n+1)), a product of one table
entry and n vector entries which are each zero or at least delta of the largest stays above 1e-300. An exact zero then
comes from hard zeros only. `normalise` reports vectors that break the rule, and callers redo the work in LOG_SUM."""

from __future__ import annotations

import math

from besag.arrays import Array, Semiring
from besag.kernels.compile import at, inlined

SUM, MAX, LOG_SUM = int(Semiring.SUM), int(Semiring.MAX), int(Semiring.LOG_SUM)


def limits(max_arity: int) -> tuple[float, float]:
    """(delta, window) of the SUM domain for factors of at most this arity."""
    return float(10.0 ** (-270.0 / (max_arity + 1))), float(10.0 ** (30.0 / max_arity))


@inlined
def zero_of(semiring: int) -> float:
    """The zero, neutral for (+)."""
    return 0.0 if semiring == SUM else -math.inf


@inlined
def one_of(semiring: int) -> float:
    """The one, neutral for (x)."""
    return 1.0 if semiring == SUM else 0.0


@inlined
def times(semiring: int, a: float, b: float) -> float:
    """a (x) b."""
    return a * b if semiring == SUM else a + b


@inlined
def plus(semiring: int, a: float, b: float) -> float:
    """a (+) b."""
    if semiring == SUM:
        return a + b
    high, low = (a, b) if a > b else (b, a)
    if semiring == MAX or low == -math.inf:
        return high
    return high + math.log1p(math.exp(low - high))


@inlined
def fill(lanes: int, x: Array, start: int, n: int, value: float) -> None:
    """x = value."""
    for i in range(n):
        for r in range(lanes):
            x[at(start + i), r] = value


@inlined
def copy(lanes: int, x: Array, x_start: int, n: int, y: Array, y_start: int) -> None:
    """y = x."""
    for i in range(n):
        for r in range(lanes):
            y[at(y_start + i), r] = x[at(x_start + i), r]


@inlined
def multiply(semiring: int, lanes: int, x: Array, x_start: int, n: int, y: Array, y_start: int) -> None:
    """y (x)= x."""
    for i in range(n):
        for r in range(lanes):
            y[at(y_start + i), r] = times(semiring, y[at(y_start + i), r], x[at(x_start + i), r])


@inlined
def normalise(
    semiring: int,
    lanes: int,
    x: Array,
    start: int,
    n: int,
    scale: Array,
    where: int,
    high: Array,
    low: Array,
    delta: float,
    window: float,
) -> bool:
    """Bring x into range and add the scale taken out to scale[where]; True if SUM's rule is broken."""
    zero = zero_of(semiring)
    for r in range(lanes):
        high[r] = zero
        low[r] = math.inf
    for i in range(n):
        for r in range(lanes):
            value = x[at(start + i), r]
            high[r] = max(high[r], value)
            if semiring == SUM:
                low[r] = min(low[r], value if value > 0.0 else math.inf)
    broken, leave = False, semiring == SUM
    for r in range(lanes):
        if semiring == SUM:
            broken = broken or low[r] < delta * high[r]
            leave = leave and (high[r] == 0.0 or 1.0 <= high[r] * window <= window * window)
    if leave:
        return broken
    for r in range(lanes):
        if high[r] == zero:
            high[r] = one_of(semiring)
        else:
            taken = math.floor(0.5 + (math.log(high[r]) if semiring == SUM else high[r]))
            scale[where, r] += taken
            high[r] = math.exp(-taken) if semiring == SUM else -float(taken)
    for i in range(n):
        for r in range(lanes):
            x[at(start + i), r] = times(semiring, x[at(start + i), r], high[r])
    return broken


@inlined
def total(semiring: int, lanes: int, x: Array, start: int, n: int, out: Array, high: Array) -> None:
    """out = the (+) of all entries of x, lane by lane."""
    zero = zero_of(semiring)
    for r in range(lanes):
        out[r] = zero
    for i in range(n):
        for r in range(lanes):
            if semiring == SUM:
                out[r] += x[at(start + i), r]
            else:
                out[r] = max(out[r], x[at(start + i), r])
    if semiring == LOG_SUM:
        for r in range(lanes):
            high[r] = out[r]
            out[r] = 0.0
        for i in range(n):
            for r in range(lanes):
                if high[r] > -math.inf:
                    out[r] += math.exp(x[at(start + i), r] - high[r])
        for r in range(lanes):
            out[r] = high[r] + math.log(out[r]) if high[r] > -math.inf else -math.inf
