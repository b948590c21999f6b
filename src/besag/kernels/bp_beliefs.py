"""What messages say: beliefs of variables and factors, and the Bethe approximation of log Z.

    b_v = base_v prod_f m_{f->v} / Z_v        b_f = T_f prod_v q_{v->f} / Z_f        Z_e = sum q_{v->f} m_{f->v}
    log Z  ~  sum_v log Z_v + sum_f log Z_f - sum over links of log Z_e

which does not depend on how messages are scaled, and is log Z itself on a forest once messages have converged.
Everything is in the domain of SUM or LOG_SUM.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from besag.arrays import Array, IntArray
from besag.kernels.bp_any import POTTS, Numbers
from besag.kernels.bp_links import Links
from besag.kernels.compile import inlined
from besag.kernels.semiring import SUM, plus, times, zero_of


@inlined
def log_of(semiring: int, x: float) -> float:
    """The logarithm of a number of the semiring; -inf of zero."""
    if semiring != SUM:
        return x
    return math.log(x) if x > 0.0 else -math.inf


def make_variables(semiring: int) -> Callable[..., None]:
    """Beliefs (S,) and log Z_v (V,) of variables [start, stop)."""

    def variables(
        links: Links, numbers: Numbers, messages: Array, start: int, stop: int, beliefs: Array, log_z: Array
    ) -> None:
        for v in range(start, stop):
            low, high = numbers.state_offsets[v], numbers.state_offsets[v + 1]
            log_z[v] = 0.0
            for i in range(low, high):
                beliefs[i] = numbers.base[i]
            for m in range(links.first[v], links.first[v + 1]):
                e = links.message_offsets[links.links_of_variable[m]]
                highest = zero_of(semiring)
                for i in range(low, high):
                    beliefs[i] = times(semiring, beliefs[i], messages[e + i - low])
                    highest = max(highest, beliefs[i])
                if highest > zero_of(semiring):
                    log_z[v] += log_of(semiring, highest)
                    for i in range(low, high):
                        beliefs[i] = beliefs[i] / highest if semiring == SUM else beliefs[i] - highest
            total = zero_of(semiring)
            for i in range(low, high):
                total = plus(semiring, total, beliefs[i])
            log_z[v] += log_of(semiring, total)
            for i in range(low, high):
                if total == zero_of(semiring):
                    beliefs[i] = 0.0
                else:
                    beliefs[i] = beliefs[i] / total if semiring == SUM else math.exp(beliefs[i] - total)

    return variables


@inlined
def joint_entry(
    semiring: int, links: Links, numbers: Numbers, gathered: Array, g: int, entry: int, digits: IntArray
) -> float:
    """T prod q at one entry of a factor's table, whose digits are given."""
    first = links.link_offsets[g]
    if numbers.kinds[g] == POTTS:
        c = numbers.tables[numbers.starts[g]]
        value = 0.0 if digits[0] == digits[1] else c
        if semiring == SUM:
            value = math.exp(value)
    else:
        value = numbers.tables[numbers.starts[g] + entry]
    for e in range(first, links.link_offsets[g + 1]):
        value = times(semiring, value, gathered[links.message_offsets[e] + digits[e - first]])
    return value


@inlined
def next_digits(links: Links, g: int, digits: IntArray) -> None:
    """The next entry of a table, row-major."""
    first = links.link_offsets[g]
    a = links.link_offsets[g + 1] - first - 1
    while a >= 0:
        digits[a] += 1
        if digits[a] < links.message_offsets[first + a + 1] - links.message_offsets[first + a]:
            return
        digits[a] = 0
        a -= 1


def make_factors(semiring: int, stored: int) -> Callable[..., None]:
    """log Z_f - sum of log Z_e, (G,), and, added to out at out_starts[g], `weights[g]` times the belief.

    Of a Potts factor the whole belief where it is stored, else the probability that its two states differ.
    """

    def factors(
        links: Links,
        numbers: Numbers,
        messages: Array,
        gathered: Array,
        out_starts: IntArray,
        weights: Array,
        log_z: Array,
        out: Array,
        digits: IntArray,
    ) -> None:
        for g in range(len(links.factors)):
            first, last = links.link_offsets[g], links.link_offsets[g + 1]
            size = 1
            for e in range(first, last):
                size *= links.message_offsets[e + 1] - links.message_offsets[e]
                digits[e - first] = 0
            total = zero_of(semiring)
            for entry in range(size):
                total = plus(semiring, total, joint_entry(semiring, links, numbers, gathered, g, entry, digits))
                next_digits(links, g, digits)
            log_z[g] = log_of(semiring, total)
            if len(out) > 0 and total > zero_of(semiring):
                for entry in range(size):
                    value = joint_entry(semiring, links, numbers, gathered, g, entry, digits)
                    p = value / total if semiring == SUM else math.exp(value - total)
                    if stored or numbers.kinds[g] != POTTS:
                        out[out_starts[g] + entry] += weights[g] * p
                    elif digits[0] != digits[1]:
                        out[out_starts[g]] += weights[g] * p
                    next_digits(links, g, digits)
            for e in range(first, last):
                along = zero_of(semiring)
                for i in range(links.message_offsets[e], links.message_offsets[e + 1]):
                    along = plus(semiring, along, times(semiring, gathered[i], messages[i]))
                if log_z[g] > -math.inf:
                    log_z[g] -= log_of(semiring, along)

    return factors
