"""Messages of tree-reweighted sum-product: arrays in, arrays out. The mathematics is in `besag.infer.trw.engine`.

    q_{v->f} = total_v - m_{f->v},     total_v = base_v + sum_g rho_g m_{g->v}
    s_{f->v}(y_v) = log sum_{y_f \\ v} exp(lp_f(y_f) / rho_f + sum_{u != v} q_{u->f}(y_u))

Sums run in the linear domain: exp(lp / rho) is made once, each q is shifted so that its largest entry is 0, and each
message costs K exponentials and K logarithms besides its multiplications. Where a sum comes out below TINY, terms may
have been lost, and the factor is done again in the log domain. States that are ruled out have total = -inf, q = -inf
and message 0.

Loops over factors hand arrays to inlined functions and not the tuples that hold them: compiled, what is in a tuple is
counted as in use at each call, by atomic additions that take longer than all arithmetic.

Factors are at positions, in the order of sweeps. A sweep visits them one by one and each uses the newest messages.
Chunks of positions run side by side; a variable with factors in several chunks has a copy of its total in each.

Shapes: R rows, V variables, S states, S' states with copies, G factors, E entries of their scopes, M entries of all
messages, L entries of tables, W entries of exp(lp / rho).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from besag.arrays import AnyArray, Array, BoolArray, IntArray
from besag.kernels.compile import at, inlined
from besag.kernels.factors import TABLE
from besag.kernels.semiring import LOG_SUM, SUM, plus
from besag.model.structured.kernels.rules import level, send_structured

TINY = 1e-280


class SweepLinks(NamedTuple):
    """Structure, by position."""

    starts: IntArray  # (G + 1,) into the entries of scopes
    variables: IntArray  # (E,)
    sizes: IntArray  # (E,) states of the variable
    places: IntArray  # (E,) where its total begins on axis S'
    messages: IntArray  # (E,) where the message to it begins on axis M
    max_arity: int
    max_states: int  # of all variables of one factor


class SweepTables(NamedTuple):
    """Numbers, by position; equal tables with equal rho share their weights."""

    kinds: IntArray  # (G,)
    rho: Array  # (G,)
    logs: IntArray  # (G,) where the table begins in log_potentials
    weights: IntArray  # (G,) where exp(lp / rho - high) begins in linear, as in linear levels
    highs: Array  # (G,) the largest lp / rho
    log_potentials: Array  # (L,)
    linear: Array  # (W,)


@inlined
def receive(n: int, totals: Array, place: int, messages: AnyArray, message: int, q: Array, x: Array, to: int) -> float:
    """q = total - message, shifted so that its largest entry is 0, and x = exp(q); the shift, -inf where it is void."""
    high = -math.inf
    for k in range(n):
        total = totals[at(place + k)]
        value = total - messages[at(message + k)] if total > -math.inf else -math.inf
        q[at(to + k)] = value
        high = max(high, value)
    if high == -math.inf:
        return high
    for k in range(n):
        q[at(to + k)] -= high
        x[at(to + k)] = math.exp(q[at(to + k)]) if q[at(to + k)] < 0.0 else 1.0
    return high


@inlined
def send_pair(n: int, m: int, weights: Array, start: int, x: Array, s: Array) -> None:
    """Both messages of a table (n, m)."""
    for k in range(m):
        s[n + k] = 0.0
    for i in range(n):
        total, own = 0.0, x[i]
        for k in range(m):
            weight = weights[at(start + i * m + k)]
            total += weight * x[n + k]
            s[n + k] += weight * own
        s[i] = total


@inlined
def count_on(n_axes: int, sizes: IntArray, first: int, digits: IntArray) -> None:
    """The next setting of the first n_axes variables of a scope, in row-major order."""
    for a in range(n_axes - 1, -1, -1):
        digits[a] += 1
        if digits[a] < sizes[first + a]:
            return
        digits[a] = 0


@inlined
def send_table(
    n_axes: int, sizes: IntArray, first: int, weights: Array, start: int, x: Array, s: Array, before: Array,
    digits: IntArray,
) -> None:  # fmt: skip
    """All messages of a table of any arity, a row of its last axis at a time."""
    n_leading, n_rows, to_last = n_axes - 1, 1, 0
    for a in range(n_leading):
        digits[a] = 0
        n_rows *= sizes[first + a]
        to_last += sizes[first + a]
    n_last = sizes[first + n_leading]
    for i in range(to_last + n_last):
        s[i] = 0.0
    for row in range(n_rows):
        before[0] = 1.0
        to = 0
        for a in range(n_leading):
            before[a + 1] = before[a] * x[to + digits[a]]
            to += sizes[first + a]
        after = 0.0
        for k in range(n_last):
            weight = weights[at(start + row * n_last + k)]
            after += weight * x[at(to_last + k)]
            s[at(to_last + k)] += weight * before[n_leading]
        for a in range(n_leading - 1, -1, -1):
            to -= sizes[first + a]
            s[to + digits[a]] += before[a] * after
            after *= x[to + digits[a]]
        count_on(n_leading, sizes, first, digits)


@inlined
def entry(tables: SweepTables, g: int, index: int, digits: IntArray) -> float:
    """lp / rho - high of one entry of a table."""
    place = index if tables.kinds[g] == TABLE else level(tables.kinds[g], digits[0], digits[1])
    return tables.log_potentials[tables.logs[g] + place] / tables.rho[g] - tables.highs[g]  # type: ignore[no-any-return]


@inlined
def table_size(links: SweepLinks, g: int) -> int:
    """Entries of the table of a factor, structured ones as if they had one."""
    size = 1
    for e in range(links.starts[g], links.starts[g + 1]):
        size *= links.sizes[e]
    return size


@inlined
def shift_logs(n: int, q: Array, s: Array, to: int) -> float:
    """s - high for s in the log domain, high being the largest where q has a state; high."""
    high = -math.inf
    for k in range(n):
        if q[at(to + k)] > -math.inf:
            high = max(high, s[at(to + k)])
    for k in range(n):
        s[at(to + k)] -= high
    return high


@inlined
def send_wide(
    links: SweepLinks, tables: SweepTables, g: int, q: Array, s: Array, highs: Array, digits: IntArray
) -> None:
    """As `send`, in the log domain, and highs too."""
    first, n_axes = links.starts[g], links.starts[g + 1] - links.starts[g]
    to = 0
    for a in range(n_axes):
        digits[a] = 0
        for k in range(links.sizes[first + a]):
            s[to + k] = -math.inf
        to += links.sizes[first + a]
    for index in range(table_size(links, g)):
        value, to = entry(tables, g, index, digits), 0
        for a in range(n_axes):
            value += q[to + digits[a]]
            to += links.sizes[first + a]
        if value > -math.inf:
            to = 0
            for a in range(n_axes):
                s[to + digits[a]] = plus(LOG_SUM, s[to + digits[a]], value - q[to + digits[a]])
                to += links.sizes[first + a]
        count_on(n_axes, links.sizes, first, digits)
    to = 0
    for a in range(n_axes):
        highs[a] = shift_logs(links.sizes[first + a], q, s, to)
        to += links.sizes[first + a]


@inlined
def take_logs(n: int, q: Array, s: Array, to: int) -> float:
    """s = log(s / high) where q has a state; high, the largest s, or 0 where a sum is too small for a logarithm."""
    high, low = 0.0, math.inf
    for k in range(n):
        if q[at(to + k)] > -math.inf:
            high, low = max(high, s[at(to + k)]), min(low, s[at(to + k)])
    if not low >= TINY:
        return 0.0
    for k in range(n):
        if q[at(to + k)] > -math.inf:
            s[at(to + k)] = math.log(s[at(to + k)] / high) if s[at(to + k)] < high else 0.0
    return high


@inlined
def send(
    n_states: int, kind: int, n_axes: int, sizes: IntArray, first: int, weights: Array, start: int, x: Array,
    s: Array, before: Array, digits: IntArray,
) -> None:  # fmt: skip
    """s = exp of the messages of a factor to its variables one after the other, in the linear domain."""
    if kind != TABLE:
        k = n_states if n_states > 0 else sizes[first]
        send_structured(SUM, kind, 0, k, weights, start, x, k, s, 0)
        send_structured(SUM, kind, 1, k, weights, start, x, 0, s, k)
    elif n_states > 0:
        send_pair(n_states, n_states, weights, start, x, s)
    else:
        send_table(n_axes, sizes, first, weights, start, x, s, before, digits)


@inlined
def finish(n_states: int, n_axes: int, sizes: IntArray, first: int, q: Array, s: Array, highs: Array) -> bool:
    """s = logarithms, each message with its largest entry at 0, and highs (arity,) what was taken out of each.

    False where sums were too small for that.
    """
    to, done = 0, True
    for a in range(n_axes):
        size = n_states if n_states > 0 else sizes[first + a]
        highs[a] = take_logs(size, q, s, to)
        done = done and highs[a] > 0.0
        to += size
    return done


@inlined
def update(
    n: int, s: Array, q: Array, to: int, messages: AnyArray, message: int, totals: Array, place: int, rho: float,
    share: float,
) -> float:  # fmt: skip
    """message moves by a share of the way to s, and total follows; the length of the way, relative to s."""
    longest = 0.0
    for k in range(n):
        if q[at(to + k)] > -math.inf:
            old, new = messages[at(message + k)], s[at(to + k)]
            longest = max(longest, abs(new - old) / max(1.0, abs(new)))
            messages[at(message + k)] = old + share * (new - old)
            totals[at(place + k)] += rho * (messages[at(message + k)] - old)
    return longest


def make_sweep(n_states: int, only: int) -> Callable[..., None]:
    """Kernel: visits positions first to last, or back; messages of position g go shares[g] of their way.

    n_states: of every variable, where all factors are pairs, else 0. only: the kind of all factors, else -1.
    """

    def sweep(
        links: SweepLinks,
        tables: SweepTables,
        active: BoolArray,
        rows: tuple[int, int],
        positions: tuple[int, int],
        backwards: bool,
        shares: Array,
        totals: Array,
        messages: AnyArray,
        residuals: Array,
    ) -> None:
        starts, sizes, places, message_of = links.starts, links.sizes, links.places, links.messages
        kinds, rho, weights, linear = tables.kinds, tables.rho, tables.weights, tables.linear
        q, x, s = np.empty(links.max_states), np.empty(links.max_states), np.empty(links.max_states)
        highs, digits = np.empty(links.max_arity), np.empty(links.max_arity, np.int64)
        first, last = positions
        for r in range(rows[0], rows[1]):
            if not active[r]:
                continue
            of_row, sent, longest = totals[r], messages[r], 0.0
            for i in range(last - first):
                g = last - 1 - i if backwards else first + i
                begin, to, void = starts[g], 0, False
                n_axes = 2 if n_states > 0 else starts[g + 1] - begin
                for e in range(begin, begin + n_axes):
                    size = n_states if n_states > 0 else sizes[e]
                    void |= receive(size, of_row, places[e], sent, message_of[e], q, x, to) == -math.inf
                    to += size
                if void:
                    continue
                kind = only if only >= 0 else kinds[g]
                send(n_states, kind, n_axes, sizes, begin, linear, weights[g], x, s, highs, digits)
                if not finish(n_states, n_axes, sizes, begin, q, s, highs):
                    send_wide(links, tables, g, q, s, highs, digits)
                to = 0
                for e in range(begin, begin + n_axes):
                    size = n_states if n_states > 0 else sizes[e]
                    way = update(size, s, q, to, sent, message_of[e], of_row, places[e], rho[g], shares[g])
                    longest = max(longest, way)
                    to += size
            residuals[r] = longest

    return sweep


@inlined
def log_sum(n: int, q: Array, s: Array) -> float:
    """log sum_k exp(q_k + s_k)."""
    high, total = -math.inf, 0.0
    for k in range(n):
        if q[k] > -math.inf:
            high = max(high, q[k] + s[k])
    for k in range(n):
        if q[k] > -math.inf:
            total += math.exp(q[k] + s[k] - high)
    return high + math.log(total)


@inlined
def extent(n: int, s: Array, q: Array, to: int, messages: AnyArray, message: int) -> tuple[float, float]:
    """The largest and the least of s - message where q has a state."""
    high, low = -math.inf, math.inf
    for k in range(n):
        if q[at(to + k)] > -math.inf:
            ratio = s[at(to + k)] - messages[at(message + k)]
            high, low = max(high, ratio), min(low, ratio)
    return high, low


def make_evaluate(n_states: int, only: int) -> Callable[..., None]:
    """Kernel: what each factor adds to the bounds, (R, F), given log Z_v (R, V); constants as of `make_sweep`."""

    def evaluate(
        links: SweepLinks,
        tables: SweepTables,
        numbers: IntArray,
        rows: tuple[int, int],
        positions: tuple[int, int],
        log_z: Array,
        totals: Array,
        messages: AnyArray,
        upper: Array,
        lower: Array,
    ) -> None:
        starts, sizes, places, message_of = links.starts, links.sizes, links.places, links.messages
        kinds, weights, linear, variables = tables.kinds, tables.weights, tables.linear, links.variables
        q, x, s = np.empty(links.max_states), np.empty(links.max_states), np.empty(links.max_states)
        shifts, highs = np.empty(links.max_arity), np.empty(links.max_arity)
        digits = np.empty(links.max_arity, np.int64)
        for r in range(rows[0], rows[1]):
            of_row, sent, log_zs = totals[r], messages[r], log_z[r]
            for g in range(positions[0], positions[1]):
                begin, to, shift, log_product = starts[g], 0, tables.highs[g], 0.0
                n_axes = 2 if n_states > 0 else starts[g + 1] - begin
                for e in range(begin, begin + n_axes):
                    size = n_states if n_states > 0 else sizes[e]
                    shifts[e - begin] = receive(size, of_row, places[e], sent, message_of[e], q, x, to)
                    shift += shifts[e - begin]
                    log_product += log_zs[variables[e]]
                    to += size
                if shift == -math.inf:
                    continue
                kind = only if only >= 0 else kinds[g]
                send(n_states, kind, n_axes, sizes, begin, linear, weights[g], x, s, highs, digits)
                if finish(n_states, n_axes, sizes, begin, q, s, highs):
                    for a in range(n_axes):
                        highs[a] = math.log(highs[a])
                else:
                    send_wide(links, tables, g, q, s, highs, digits)
                log_zf = shift + highs[0] + log_sum(n_states if n_states > 0 else sizes[begin], q, s)
                highest, lowest, to = -math.inf, math.inf, 0
                for e in range(begin, begin + n_axes):
                    size = n_states if n_states > 0 else sizes[e]
                    high, low = extent(size, s, q, to, sent, message_of[e])
                    constant = highs[e - begin] + shift - shifts[e - begin] - log_zf + log_zs[variables[e]]
                    highest, lowest = max(highest, high + constant), min(lowest, low + constant)
                    to += size
                upper[r, numbers[g]] = tables.rho[g] * (log_zf - log_product + highest)
                lower[r, numbers[g]] = tables.rho[g] * (log_zf - log_product + lowest)

    return evaluate


def make_refresh() -> Callable[..., None]:
    """Kernel: total = base + sum_g rho_g m_g of some variables, in the order of their factors."""

    def refresh(
        variables: IntArray,
        state_offsets: IntArray,
        incident: IntArray,
        entries: IntArray,
        owners: IntArray,
        message_of: IntArray,
        rho: Array,
        base: Array,
        messages: AnyArray,
        totals: Array,
    ) -> None:
        for r in range(len(base)):
            of_row, sent = totals[r], messages[r]
            for v in variables:
                start, n = state_offsets[v], state_offsets[v + 1] - state_offsets[v]
                for k in range(n):
                    of_row[start + k] = base[r, start + k]
                for j in range(incident[v], incident[v + 1]):
                    e = entries[j]
                    weight, message = rho[owners[e]], message_of[e]
                    for k in range(n):
                        of_row[at(start + k)] += weight * sent[at(message + k)]

    return refresh
