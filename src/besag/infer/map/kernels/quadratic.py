"""A choice between two states of each variable as a quadratic energy of binary variables, which a cut can minimise.

y_v = zero[v] where x_v = 0, one[v] where x_v = 1; both the same where nothing is to be chosen. With n variables that
have a choice and r extra ones,

    H(y) = min over x_n .. x_{n+r-1} of  sum_v constants[v] + unary[v] x_v + sum_e cost of edge e between s and t
    cost of e = capacities[2e] where (x_s, x_t) is (0, 1), capacities[2e + 1] where it is (1, 0)      towards 1
              = capacities[2e] where (x_s, x_t) is (0, 0), capacities[2e + 1] where it is (1, 1)      where unlike[e]

with capacities from 0 to inf; constants are by variable, all else has a node for each variable with a choice, and for
each extra one. Of the factors only `some` are looked at. Where no edge is `unlike` the energy is submodular, and a cut
is a best labelling.

    two variables       exactly so, hard zeros as infinite capacities
    three, submodular   Kolmogorov and Zabih (PAMI 2004): one extra variable, and no edge is unlike
    any, on counts      a concave function of how many are 1: one extra variable for each kink, no edge is unlike
    any                 monomials of the table as a polynomial: -c x_1 .. x_d = min_a c a (d - 1 - x_1 - .. - x_d);
                        c x_1 .. x_d = c x_2 .. x_d - c (1 - x_1) x_2 .. x_d. Hard zeros weigh `penalty` there

    Choices     zero, one, nodes (V,): -1 where there is no choice
    Room        constants (V,), unary (n + r,), owners (r,) variables, capacities (2m,), unlike (m,), ends (2m,):
                edge e goes from ends[2e + 1] to ends[2e]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.infer.map.kernels.scores import Axes
from besag.kernels.compile import at, inlined
from besag.kernels.factors import TABLE, Factors
from besag.model.structured.kernels.rules import level

ROUNDING = 1e-15  # of the sizes of the numbers that a coefficient is made of, which is none


class Choices(NamedTuple):
    """Two states of each variable; see the module."""

    zero: IntArray
    one: IntArray
    nodes: IntArray


class Room(NamedTuple):
    """A quadratic energy; see the module."""

    constants: Array
    unary: Array
    owners: IntArray
    ends: AnyArray
    capacities: Array
    unlike: AnyArray


@inlined
def gather(factors: Factors, axes: Axes, choices: Choices, f: int, live: IntArray, table: Array) -> int:
    """How many variables of a factor have a choice; their nodes, and its energies, the first the lowest bit."""
    zero, one = choices.zero, choices.one
    start, k = factors.table_offsets[factors.table_of_factor[f]], 0
    low, high = factors.scope_offsets[f], factors.scope_offsets[f + 1]
    for e in range(low, high):
        v = factors.scope_variables[e]
        if choices.nodes[v] >= 0:
            live[k] = choices.nodes[v]
            k += 1
    for mask in range(1 << k):
        place, bit, first, last = start, 0, 0, 0
        for e in range(low, high):
            v = factors.scope_variables[e]
            state = zero[v]
            if choices.nodes[v] >= 0:
                state = one[v] if (mask >> bit) & 1 else state
                bit += 1
            place += axes.strides[e] * state
            first, last = (state, last) if e == low else (first, state)
        if factors.kinds[f] != TABLE:
            place = start + level(factors.kinds[f], first, last)
        table[mask] = -factors.log_potentials[place]
    return k


@inlined
def soften(table: Array, k: int, penalty: float) -> float:
    """Puts a penalty in the place of hard zeros; what is within rounding of a coefficient of these numbers."""
    total = 0.0
    for mask in range(1 << k):
        table[mask] = min(table[mask], penalty)
        total += abs(table[mask])
    return ROUNDING * total


@inlined
def add_edge(
    ends: AnyArray, capacities: Array, unlike: AnyArray, e: int, s: int, t: int, forth: float, back: float, kind: int
) -> int:
    """Writes an edge, of kind 1 where it is unlike, else 0; how many there are."""
    if forth == 0.0 and back == 0.0:
        return e
    ends[at(2 * e)], ends[at(2 * e + 1)] = t, s
    capacities[at(2 * e)], capacities[at(2 * e + 1)] = forth, back
    unlike[at(e)] = kind
    return e + 1


@inlined
def add_product(room: Room, e: int, s: int, t: int, c: float, home: int) -> int:
    """Adds c x_s x_t, which is c / 2 (x_s + x_t - [x_s != x_t]), constants at home; how many edges there are."""
    room.unary[s] += 0.5 * c
    room.unary[t] += 0.5 * c
    if c > 0.0:
        room.constants[home] -= 0.5 * c
    half, kind = 0.5 * abs(c), 1 if c > 0.0 else 0
    return add_edge(room.ends, room.capacities, room.unlike, e, s, t, half, half, kind)


@inlined
def add_pair(
    constants: Array,
    unary: Array,
    ends: AnyArray,
    capacities: Array,
    unlike: AnyArray,
    e: int,
    s: int,
    t: int,
    a: float,
    b: float,
    c: float,
    d: float,
    home: int,
) -> int:
    """Adds a factor on two variables, of energies (0, 0), (0, 1), (1, 0), (1, 1); how many edges there are."""
    inf = math.inf
    if a < inf and b < inf and c < inf and d < inf:
        w = 0.5 * (b + c - a - d)
        if abs(w) <= ROUNDING * (abs(a) + abs(b) + abs(c) + abs(d)):
            w = 0.0
        constants[home] += a + min(w, 0.0)
        unary[s] += 0.5 * (c + d - a - b)
        unary[t] += 0.5 * (b + d - a - c)
        return add_edge(ends, capacities, unlike, e, s, t, abs(w), abs(w), 1 if w < 0.0 else 0)
    if a == inf and d == inf:
        constants[home] += b
        unary[s] += c - b
        return add_edge(ends, capacities, unlike, e, s, t, inf, inf, 1)
    if a == inf:
        constants[home] += b + c - d
        unary[s] += d - b
        unary[t] += d - c
        return add_edge(ends, capacities, unlike, e, s, t, inf, 0.0, 1)
    constants[home] += a
    if d < inf:
        if b == inf and c == inf:
            unary[s] += d - a
        elif b == inf:
            unary[s] += c - a
            unary[t] += d - c
        else:
            unary[t] += b - a
            unary[s] += d - b
        return add_edge(ends, capacities, unlike, e, s, t, inf if b == inf else 0.0, inf if c == inf else 0.0, 0)
    unary[s] += c - a
    unary[t] += b - a
    return add_edge(ends, capacities, unlike, e, s, t, 0.0, inf if b < inf and c < inf else 0.0, 1)


@inlined
def add_counts(
    room: Room, e: int, r: int, live: IntArray, k: int, table: Array, slack: float, home: int
) -> tuple[int, int]:
    """Adds a factor that is a concave function of how many are 1; edges and extra variables, -1 where it is not.

    g(n) = g(0) + n (g(k) - g(k - 1)) + sum over kinks j of d_j min(n, j), d_j = 2 g(j) - g(j - 1) - g(j + 1) >= 0
    """
    for mask in range(1 << k):
        n, rest = 0, mask
        while rest:
            n += rest & 1
            rest >>= 1
        if abs(table[mask] - table[(1 << n) - 1]) > slack:
            return -1, r
    for j in range(1, k):
        if table[(1 << j) - 1] * 2.0 - table[(1 << (j - 1)) - 1] - table[(1 << (j + 1)) - 1] < -slack:
            return -1, r
    room.constants[home] += table[0]
    n_nodes = len(room.unary) - len(room.owners)
    for i in range(k):
        room.unary[live[i]] += table[(1 << k) - 1] - table[(1 << (k - 1)) - 1]
    for j in range(1, k):
        drop = table[(1 << j) - 1] * 2.0 - table[(1 << (j - 1)) - 1] - table[(1 << (j + 1)) - 1]
        if drop > slack:
            extra = n_nodes + r
            room.owners[r] = home
            r += 1
            room.unary[extra] += drop * j
            for i in range(k):
                room.unary[live[i]] += drop
                e = add_product(room, e, live[i], extra, -drop, home)
    return e, r


@inlined
def add_polynomial(
    room: Room, e: int, r: int, live: IntArray, k: int, table: Array, slack: float, home: int
) -> tuple[int, int]:
    """Adds a factor by its monomials; how many edges and extra variables there are."""
    n_nodes = len(room.unary) - len(room.owners)
    for bit in range(k):
        for mask in range(1 << k):
            if (mask >> bit) & 1:
                table[mask] -= table[mask ^ (1 << bit)]
    for mask in range((1 << k) - 1, -1, -1):
        c, d, lowest, rest = table[mask], 0, -1, mask
        for bit in range(k):
            if (rest >> bit) & 1:
                lowest = bit if lowest < 0 else lowest
                d += 1
        if d == 0:
            room.constants[home] += c
        elif d == 1:
            room.unary[live[lowest]] += c
        elif abs(c) > slack and d == 2:
            other = lowest + 1
            while not (mask >> other) & 1:
                other += 1
            e = add_product(room, e, live[lowest], live[other], c, home)
        elif abs(c) > slack:
            extra = n_nodes + r
            room.owners[r] = home
            r += 1
            if c < 0.0:
                room.unary[extra] -= c * (d - 1)
            elif d == 3:
                room.unary[extra] += c
            else:
                room.unary[extra] += c * (d - 2)
                table[mask ^ (1 << lowest)] += c
            for bit in range(k):
                if (mask >> bit) & 1:
                    away = c > 0.0 and d > 3 and bit == lowest
                    e = add_product(room, e, live[bit], extra, c if away else -abs(c), home)
                    if c > 0.0 and d == 3:
                        for second in range(bit + 1, k):
                            if (mask >> second) & 1:
                                table[(1 << bit) | (1 << second)] += c
    return e, r


def make_states_left() -> Callable[..., int]:
    """Kernel: fills zero and one (V,), the states left, 0 where none is; a variable of which more are left, or -1."""

    def states_left(state_offsets: IntArray, base: Array, zero: IntArray, one: IntArray) -> int:
        for v in range(len(zero)):
            n = 0
            zero[v] = one[v] = 0
            for place in range(state_offsets[v], state_offsets[v + 1]):
                if base[place] > -math.inf:
                    one[v] = place - state_offsets[v]
                    zero[v] = one[v] if n == 0 else zero[v]
                    n += 1
            if n > 2:
                return v
        return -1

    return states_left


def make_involved() -> Callable[..., int]:
    """Kernel: fills some with the factors of the variables that have a choice, chosen, each once; how many."""

    def involved(factors: Factors, axes: Axes, choices: Choices, chosen: IntArray, some: IntArray) -> int:
        n = 0
        for v in chosen:
            for j in range(axes.first[v], axes.first[v + 1]):
                f = axes.owners[axes.entries[j]]
                e = factors.scope_offsets[f]
                while choices.nodes[factors.scope_variables[e]] < 0:
                    e += 1
                if factors.scope_variables[e] == v:
                    some[n] = f
                    n += 1
        return n

    return involved


def make_count() -> Callable[..., tuple[int, int, int]]:
    """Kernel: the most edges and extra variables that there may be, and of variables with a choice in a factor."""

    def count(factors: Factors, choices: Choices, some: IntArray) -> tuple[int, int, int]:
        edges, extras, most = 0, 0, 0
        for f in some:
            k = 0
            for e in range(factors.scope_offsets[f], factors.scope_offsets[f + 1]):
                v = factors.scope_variables[e]
                k += choices.nodes[v] >= 0
            most = max(most, k)
            if k == 2:
                edges += 1
            elif 3 <= k < 31:
                pairs = k * (k - 1) // 2
                extras += (1 << k) - 1 - k - pairs
                edges += pairs + k * ((1 << (k - 1)) - k)
        return edges, extras, most

    return count


def make_quadratic() -> Callable[..., tuple[int, int, int]]:
    """Kernel: fills a Room, whose constants and unary are zeros; edges, extra variables, and edges that are unlike."""

    def quadratic(
        factors: Factors,
        axes: Axes,
        base: Array,
        choices: Choices,
        some: IntArray,
        penalty: float,
        most: int,
        room: Room,
    ) -> tuple[int, int, int]:
        state_offsets, scope_offsets, scope_variables, kinds, table_of_factor, table_offsets, log_potentials = factors
        (zero, one, nodes), strides = choices, axes.strides
        constants, unary, _, ends, capacities, unlike = room
        live, table = np.empty(most + 1, np.int64), np.empty(max(1 << most, 4))
        edges, extras = 0, 0
        for v in range(len(zero)):
            low = state_offsets[v]
            constants[v] -= base[low + zero[v]]
            if nodes[v] >= 0:
                unary[nodes[v]] += base[low + zero[v]] - base[low + one[v]]
        for f in some:
            low, high = scope_offsets[f], scope_offsets[f + 1]
            if high - low < 2:
                continue
            s, t = scope_variables[at(low)], scope_variables[at(high - 1)]
            if high - low == 2:
                start, kind = table_offsets[at(table_of_factor[f])], kinds[f]
                x_s, x_t = nodes[at(s)], nodes[at(t)]
                for i in range(4):
                    first, last = one[at(s)] if i & 2 else zero[at(s)], one[at(t)] if i & 1 else zero[at(t)]
                    place = strides[at(low)] * first + last if kind == TABLE else level(kind, first, last)
                    table[i] = -log_potentials[at(start + place)]
                a, b, c, d = table[0], table[1], table[2], table[3]
                if x_s >= 0 and x_t >= 0:
                    edges = add_pair(constants, unary, ends, capacities, unlike, edges, x_s, x_t, a, b, c, d, s)
                    continue
                constants[at(s)] += a
                if x_s >= 0:
                    unary[at(x_s)] += c - a
                elif x_t >= 0:
                    unary[at(x_t)] += b - a
                continue
            k = gather(factors, axes, choices, f, live, table)
            if k == 0:
                constants[s] += table[0]
            elif k == 1:
                constants[s] += table[0]
                unary[live[0]] += table[1] - table[0]
            elif k == 2:
                first, last = live[0], live[1]
                a, b, c, d = table[0], table[2], table[1], table[3]
                edges = add_pair(constants, unary, ends, capacities, unlike, edges, first, last, a, b, c, d, s)
            else:
                slack, before = soften(table, k, penalty), edges
                if k > 3:
                    edges, extras = add_counts(room, edges, extras, live, k, table, slack, s)
                if k == 3 or edges < 0:
                    edges, extras = add_polynomial(room, before, extras, live, k, table, slack, s)
        n_unlike = 0
        for e in range(edges):
            n_unlike += unlike[e]
        return edges, extras, n_unlike

    return quadratic


@inlined
def climb(roots: IntArray, parities: IntArray, v: int) -> tuple[int, int]:
    """The variable that represents the component of v, and whether just one of both is flipped."""
    parity = 0
    while roots[v] != v:
        above = roots[v]
        if roots[above] != above:
            parities[v] ^= parities[above]
            roots[v] = roots[above]
        parity ^= parities[v]
        v = roots[v]
    return v, parity


def make_flips() -> Callable[..., bool]:
    """Kernel: fills flips (V,), 1 where zero and one are to be exchanged; whether the energy is submodular then."""

    def find_flips(
        factors: Factors, axes: Axes, choices: Choices, penalty: float, most: int, roots: IntArray, flips: IntArray
    ) -> bool:
        live, table = np.empty(most + 1, np.int64), np.empty(1 << most)
        parities = np.zeros(len(roots), np.int64)  # whether a variable is flipped where its root is not
        for v in range(len(roots)):
            roots[v] = v
        for f in range(len(factors.kinds)):
            if factors.scope_offsets[f + 1] - factors.scope_offsets[f] < 2:
                continue
            k = gather(factors, axes, choices, f, live, table)
            slack = soften(table, k, penalty)
            for i in range(k):
                for j in range(i + 1, k):
                    low, high = 0.0, 0.0
                    for mask in range(1 << k):
                        if not (mask >> i) & 1 and not (mask >> j) & 1:
                            mixed = table[mask | (1 << i)] + table[mask | (1 << j)]
                            bend = mixed - table[mask] - table[mask | (1 << i) | (1 << j)]
                            low, high = min(low, bend), max(high, bend)
                    if low < -slack and high > slack:
                        return False
                    if low >= -slack and high <= slack:
                        continue
                    s, one_way = climb(roots, parities, live[i])
                    t, other_way = climb(roots, parities, live[j])
                    parity = one_way ^ other_way ^ (1 if low < -slack else 0)
                    if s != t:
                        roots[s], parities[s] = t, parity
                    elif parity:
                        return False
        for v in range(len(flips)):
            x = choices.nodes[v]
            flips[v] = climb(roots, parities, x)[1] if x >= 0 else 0
        return True

    return find_flips


def make_double() -> Callable[..., None]:
    """Kernel: the network of roof duality (Boros and Hammer 2002), on x and on 1 - x, twice the energy.

    n variables and m edges of a Room; excess (2n,), ends and residual (4m,)
    """

    def double(room: Room, n: int, m: int, excess: Array, ends: AnyArray, residual: Array) -> None:
        for v in range(n):
            excess[v], excess[n + v] = room.unary[v], -room.unary[v]
        for e in range(m):
            t, s = room.ends[2 * e], room.ends[2 * e + 1]
            forth, back = room.capacities[2 * e], room.capacities[2 * e + 1]
            if room.unlike[e]:
                ends[4 * e], ends[4 * e + 1], ends[4 * e + 2], ends[4 * e + 3] = t + n, s, s + n, t
                residual[4 * e], residual[4 * e + 1] = forth, back
                residual[4 * e + 2], residual[4 * e + 3] = forth, back
            else:
                ends[4 * e], ends[4 * e + 1], ends[4 * e + 2], ends[4 * e + 3] = t, s, t + n, s + n
                residual[4 * e], residual[4 * e + 1] = forth, back
                residual[4 * e + 2], residual[4 * e + 3] = back, forth

    return double
