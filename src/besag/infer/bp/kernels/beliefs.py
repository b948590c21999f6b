"""What messages say: beliefs of variables and factors, and the Bethe approximation of log Z.

    b_v = base_v prod_f m_{f->v} / Z_v        b_f = T_f prod_v q_{v->f} / Z_f        Z_e = sum q_{v->f} m_{f->v}
    log Z  ~  sum_v log Z_v + sum_f log Z_f - sum over links of log Z_e

which does not depend on how messages are scaled, and is log Z itself on a forest once messages have converged.
Everything is in the domain of SUM or LOG_SUM; sums are kept as in `besag.kernels.sums`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from besag.arrays import Array, IntArray
from besag.infer.bp.kernels.general import MessageNumbers
from besag.infer.bp.kernels.links import MessageLinks
from besag.infer.bp.kernels.ratios import entry_of_pair
from besag.kernels.compile import at, inlined
from besag.kernels.factors import TABLE
from besag.kernels.semiring import SUM, one_of, times, zero_of
from besag.kernels.sums import add_term, log_of, share_of
from besag.model.structured.kernels.rules import add_shares, level, weigh_structured

SMALL = 1e-50  # a product of messages below this is scaled up: one more message takes it to 1e-267 at worst


def make_variables(semiring: int, ratios: int) -> Callable[..., None]:
    """Beliefs (S,) and log Z_v (V,) of variables [start, stop). ratios: messages (E,) are those of `ratios`."""

    def variables(
        links: MessageLinks,
        numbers: MessageNumbers,
        messages: Array,
        start: int,
        stop: int,
        beliefs: Array,
        log_z: Array,
    ) -> None:
        base, state_offsets = numbers.base, numbers.state_offsets
        first, of_variable, offsets = links.first, links.links_of_variable, links.message_offsets
        for v in range(start, stop):
            low, high = state_offsets[v], state_offsets[v + 1]
            log_z[v] = 0.0
            for i in range(low, high):
                beliefs[at(i)] = base[at(i)]
            for m in range(first[v], first[v + 1]):
                e = of_variable[m] if ratios == 1 else offsets[of_variable[m]] - low
                highest = zero_of(semiring)
                for i in range(low, high):
                    message = entry_of_pair(semiring, messages[at(e)], i - low) if ratios == 1 else messages[at(e + i)]
                    beliefs[at(i)] = times(semiring, beliefs[at(i)], message)
                    highest = max(highest, beliefs[at(i)])
                if semiring == SUM and 0.0 < highest < SMALL:
                    log_z[v] += math.log(highest)
                    for i in range(low, high):
                        beliefs[at(i)] /= highest
            highest, total = zero_of(semiring), 0.0
            for i in range(low, high):
                highest, total = add_term(semiring, highest, total, beliefs[at(i)])
            log_z[v] += log_of(semiring, highest, total)
            for i in range(low, high):
                beliefs[at(i)] = share_of(semiring, beliefs[at(i)], highest, total)

    return variables


def make_least(ratios: int) -> Callable[..., float]:
    """The least that a message of SUM leaves to the state of largest belief of its variable, one of [start, stop).

    0 where messages leave nothing to any state of one. ratios: as above. room (K,).
    """

    def least(
        links: MessageLinks, numbers: MessageNumbers, messages: Array, start: int, stop: int, room: Array
    ) -> float:
        base, state_offsets, found = numbers.base, numbers.state_offsets, 1.0
        first, of_variable, offsets = links.first, links.links_of_variable, links.message_offsets
        for v in range(start, stop):
            low, n, best = state_offsets[v], state_offsets[v + 1] - state_offsets[v], 0
            for i in range(n):
                room[i] = base[at(low + i)]
            for m in range(first[v], first[v + 1]):
                e = of_variable[m] if ratios == 1 else offsets[of_variable[m]]
                highest = 0.0
                for i in range(n):
                    room[i] *= entry_of_pair(SUM, messages[at(e)], i) if ratios == 1 else messages[at(e + i)]
                    highest = max(highest, room[i])
                if 0.0 < highest < SMALL:
                    for i in range(n):
                        room[i] /= highest
            for i in range(1, n):
                best = i if room[i] > room[best] else best
            if not room[best] > 0.0:
                return 0.0
            for m in range(first[v], first[v + 1]):
                e = of_variable[m] if ratios == 1 else offsets[of_variable[m]]
                left = entry_of_pair(SUM, messages[at(e)], best) if ratios == 1 else messages[at(e + best)]
                found = min(found, left)
        return found

    return least


@inlined
def entry_of(numbers: MessageNumbers, g: int, entry: int, i: int, j: int) -> float:
    """An entry of a factor's table; of a structured factor the one at the states i and j."""
    at = entry if numbers.kinds[g] == TABLE else numbers.starts[g] + level(numbers.kinds[g], i, j)
    return numbers.tables[at]  # type: ignore[no-any-return]


@inlined
def next_row(links: MessageLinks, g: int, digits: IntArray) -> None:
    """The next state of all variables of a factor but its last, row-major."""
    first = links.link_offsets[g]
    a = links.link_offsets[g + 1] - first - 2
    while a >= 0:
        digits[a] += 1
        if digits[a] < links.message_offsets[first + a + 1] - links.message_offsets[first + a]:
            return
        digits[a] = 0
        a -= 1


@inlined
def outer_of(semiring: int, links: MessageLinks, gathered: Array, g: int, digits: IntArray) -> float:
    """The product of what all variables of a factor but its last send, at their states."""
    first = links.link_offsets[g]
    outer = times(semiring, one_of(semiring), gathered[links.message_offsets[first] + digits[0]])
    for e in range(first + 1, links.link_offsets[g + 1] - 1):
        outer = times(semiring, outer, gathered[links.message_offsets[e] + digits[e - first]])
    return outer


@inlined
def weight_of(
    semiring: int,
    links: MessageLinks,
    numbers: MessageNumbers,
    gathered: Array,
    g: int,
    n_rows: int,
    digits: IntArray,
    room: Array,
) -> tuple[float, float]:
    """Z_f, as a sum: see `add_term`."""
    last = links.link_offsets[g + 1] - 1
    inner, n = links.message_offsets[last], links.message_offsets[last + 1] - links.message_offsets[last]
    if numbers.kinds[g] != TABLE:
        first = links.message_offsets[last - 1]
        kind, tables = numbers.kinds[g], numbers.tables
        return weigh_structured(semiring, kind, n, tables, numbers.starts[g], gathered, first, inner, room)
    highest, total, entry = zero_of(semiring), 0.0, numbers.starts[g]
    for _ in range(n_rows):
        outer = outer_of(semiring, links, gathered, g, digits)
        for j in range(n):
            value = entry_of(numbers, g, entry + j, digits[0], j)
            value = times(semiring, times(semiring, value, outer), gathered[inner + j])
            highest, total = add_term(semiring, highest, total, value)
        entry += n
        next_row(links, g, digits)
    return highest, total


@inlined
def along_links(semiring: int, links: MessageLinks, messages: Array, gathered: Array, g: int) -> float:
    """The sum of log Z_e over the links of a factor."""
    one, logs = one_of(semiring), 0.0
    for e in range(links.link_offsets[g], links.link_offsets[g + 1]):
        highest, total = zero_of(semiring), 0.0
        for i in range(links.message_offsets[e], links.message_offsets[e + 1]):
            sent = times(semiring, one, gathered[i])  # in double precision, as the sum
            highest, total = add_term(semiring, highest, total, times(semiring, sent, messages[i]))
        logs += log_of(semiring, highest, total)
    return logs


def make_factors(semiring: int, stored: int) -> Callable[..., None]:
    """log Z_f - sum of log Z_e, (G,), and, added to out at out_starts[g], `weights[g]` times the belief.

    Of a structured factor the whole belief where it is stored, else those of its levels. room (K,).
    """

    def factors(
        links: MessageLinks,
        numbers: MessageNumbers,
        messages: Array,
        gathered: Array,
        out_starts: IntArray,
        weights: Array,
        log_z: Array,
        out: Array,
        digits: IntArray,
        room: Array,
    ) -> None:
        for g in range(len(links.factors)):
            last, n_rows = links.link_offsets[g + 1] - 1, 1
            for e in range(links.link_offsets[g], last):
                n_rows *= links.message_offsets[e + 1] - links.message_offsets[e]
                digits[e - links.link_offsets[g]] = 0
            highest, total = weight_of(semiring, links, numbers, gathered, g, n_rows, digits, room)
            log_z[g] = log_of(semiring, highest, total)
            if not total > 0.0:
                continue
            log_z[g] -= along_links(semiring, links, messages, gathered, g)
            if len(out) == 0:
                continue
            inner, n = links.message_offsets[last], links.message_offsets[last + 1] - links.message_offsets[last]
            if not stored and numbers.kinds[g] != TABLE:
                first, kind = links.message_offsets[last - 1], numbers.kinds[g]
                add_shares(
                    semiring, kind, n, numbers.tables, numbers.starts[g], gathered, first, inner, highest, total,
                    weights[g], out, out_starts[g],
                )  # fmt: skip
                continue
            entry = 0
            for _ in range(n_rows):
                outer = outer_of(semiring, links, gathered, g, digits)
                for j in range(n):
                    value = entry_of(numbers, g, numbers.starts[g] + entry + j, digits[0], j)
                    value = times(semiring, times(semiring, value, outer), gathered[inner + j])
                    p = weights[g] * share_of(semiring, value, highest, total)
                    out[out_starts[g] + entry + j] += p
                entry += n
                next_row(links, g, digits)

    return factors
