"""The best labelling of a set of variables given the rest, by eliminating them one after the other (max-product).

With the set in the order v_1, .., v_m, the bucket of v_i holds the factors, and the messages of buckets before, of
which v_i is the first variable of the set still there. Its scope are their other variables of the set; its message is

    M_i(y_scope) = max over candidates k of v_i of base(k) + sum of what is in the bucket at (k, y_scope)

and goes to the bucket of the first variable of its scope. Backwards each v_i takes its best candidate given those
after it; of equal ones the state that it has. Factors are read with all other variables at their present states.

    order (m,)                    the set; variables of it are in no larger tables than `regions` allows
    starts (V + 1,), states       the candidates of each variable, which include its present state
    scopes (m, width)             the scope of each bucket; lengths (m,)
    offsets (m + 1,)              where the message of each bucket lies among all
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from besag.arrays import Array, IntArray
from besag.infer.map.kernels.scores import Axes
from besag.kernels.compile import inlined
from besag.kernels.factors import TABLE, Factors
from besag.model.structured.kernels.noisy import is_noisy, weigh_noisy
from besag.model.structured.kernels.rules import level


class Candidates(NamedTuple):
    """The states that each variable may take; see the module."""

    starts: IntArray
    states: IntArray


class BucketPlan(NamedTuple):
    """The plan of an elimination; see the module."""

    order: IntArray
    ranks: IntArray  # (V,): the place of each variable in the order, -1 outside of the set
    scopes: IntArray
    lengths: IntArray
    offsets: IntArray
    heads: IntArray  # (m,): the first message that comes to each bucket, -1 where none does
    nexts: IntArray  # (m,): the next message that comes to the same bucket as this one


@inlined
def is_own(factors: Factors, ranks: IntArray, f: int, rank: int) -> bool:
    """Whether the variable of this rank is the first of a factor that is in the set."""
    own = True
    for e in range(factors.scope_offsets[f], factors.scope_offsets[f + 1]):
        other = ranks[factors.scope_variables[e]]
        own = own and (other < 0 or other >= rank)
    return own


@inlined
def add_to_scope(scopes: IntArray, lengths: IntArray, i: int, v: int) -> None:
    """Adds a variable to the scope of a bucket, once."""
    for a in range(lengths[i]):
        if scopes[i, a] == v:
            return
    scopes[i, lengths[i]] = v
    lengths[i] += 1


def make_plan() -> Callable[..., int]:
    """Kernel: fills a plan whose order and ranks are given; how many entries the largest bucket has."""

    def plan(factors: Factors, axes: Axes, candidates: Candidates, buckets: BucketPlan) -> int:
        order, ranks, scopes, lengths, offsets, heads, nexts = buckets
        largest = 1
        for i in range(len(order)):
            heads[i] = -1
            lengths[i] = 0
        offsets[0] = 0
        for i in range(len(order)):
            v = order[i]
            for j in range(axes.first[v], axes.first[v + 1]):
                f = axes.owners[axes.entries[j]]
                if is_own(factors, ranks, f, i):
                    for e in range(factors.scope_offsets[f], factors.scope_offsets[f + 1]):
                        if ranks[factors.scope_variables[e]] > i:
                            add_to_scope(scopes, lengths, i, factors.scope_variables[e])
            sender = heads[i]
            while sender >= 0:
                for a in range(lengths[sender]):
                    if scopes[sender, a] != v:
                        add_to_scope(scopes, lengths, i, scopes[sender, a])
                sender = nexts[sender]
            size, after = 1, len(order)
            for a in range(lengths[i]):
                u = scopes[i, a]
                size *= candidates.starts[u + 1] - candidates.starts[u]
                after = min(after, ranks[u])
            offsets[i + 1] = offsets[i] + size
            largest = max(largest, size * (candidates.starts[v + 1] - candidates.starts[v]))
            if after < len(order):
                nexts[i] = heads[after]
                heads[after] = i
        return largest

    return plan


@inlined
def count_of(candidates: Candidates, v: int) -> int:
    """How many candidates a variable has."""
    return int(candidates.starts[v + 1] - candidates.starts[v])


@inlined
def lay_out_factor(
    factors: Factors,
    axes: Axes,
    candidates: Candidates,
    buckets: BucketPlan,
    i: int,
    f: int,
    codes: IntArray,
    steps: IntArray,
    digits: IntArray,
    part: Array,
    start: int,
) -> int:
    """The entries of a factor at the candidates of its variables in the set, at `start` of part; where they end.

    The variable of the bucket is innermost; steps (1 + length of the scope,): how far apart the candidates of it,
    and of each variable of the scope, lie, 0 where that is not in the factor.
    """
    low, high, v = factors.scope_offsets[f], factors.scope_offsets[f + 1], buckets.order[i]
    size = candidates.starts[v + 1] - candidates.starts[v]
    steps[0] = 1
    for a in range(buckets.lengths[i]):
        steps[1 + a] = 0
        u = buckets.scopes[i, a]
        for e in range(low, high):
            if factors.scope_variables[e] == u:
                steps[1 + a] = size
                size *= candidates.starts[u + 1] - candidates.starts[u]
                digits[a] = 0
    table = factors.table_offsets[factors.table_of_factor[f]]
    structured, noisy = factors.kinds[f] != TABLE, is_noisy(factors.kinds[f])
    own = np.empty(high - low if noisy else 0, np.int64)
    for row in range(size):
        entry, one, other = table, 0, 0
        for e in range(low, high):
            u = factors.scope_variables[e]
            code = codes[u]
            if u == v:
                code = candidates.states[candidates.starts[v] + row % count_of(candidates, v)]
            elif buckets.ranks[u] > i:
                for a in range(buckets.lengths[i]):
                    if buckets.scopes[i, a] == u:
                        place = row // steps[1 + a] % count_of(candidates, u)
                        code = candidates.states[candidates.starts[u] + place]
            entry += axes.strides[e] * code
            one, other = other, code
            if noisy:
                own[e - low] = code
        if noisy:
            part[start + row] = weigh_noisy(factors, f, own)
        elif structured:
            part[start + row] = factors.log_potentials[table + level(factors.kinds[f], one, other)]
        else:
            part[start + row] = factors.log_potentials[entry]
    return int(start + size)


@inlined
def gather(
    factors: Factors,
    axes: Axes,
    candidates: Candidates,
    buckets: BucketPlan,
    i: int,
    codes: IntArray,
    steps: IntArray,
    digits: IntArray,
    part: Array,
    begins: IntArray,
) -> tuple[int, int]:
    """What is in a bucket: factors, laid out in part, and after them messages, which stay where they are.

    begins: where each begins; steps (., 1 + length). How many factors, and how many of both.
    """
    v, n_factors, end = buckets.order[i], 0, 0
    for j in range(axes.first[v], axes.first[v + 1]):
        f = axes.owners[axes.entries[j]]
        if is_own(factors, buckets.ranks, f, i):
            begins[n_factors] = end
            end = lay_out_factor(factors, axes, candidates, buckets, i, f, codes, steps[n_factors], digits, part, end)
            n_factors += 1
    n_parts, sender = n_factors, buckets.heads[i]
    while sender >= 0:
        begins[n_parts] = buckets.offsets[sender]
        for a in range(1 + buckets.lengths[i]):
            steps[n_parts, a] = 0
        size = 1
        for b in range(buckets.lengths[sender]):
            u = buckets.scopes[sender, b]
            if u == v:
                steps[n_parts, 0] = size
            for a in range(buckets.lengths[i]):
                if buckets.scopes[i, a] == u:
                    steps[n_parts, 1 + a] = size
            size *= count_of(candidates, u)
        n_parts += 1
        sender = buckets.nexts[sender]
    return n_factors, n_parts


@inlined
def room_of_parts(axes: Axes, buckets: BucketPlan) -> int:
    """Parts of a bucket, at the most."""
    most = 0
    for i in range(len(buckets.order)):
        v, n = buckets.order[i], 0
        n += axes.first[v + 1] - axes.first[v]
        sender = buckets.heads[i]
        while sender >= 0:
            n += 1
            sender = buckets.nexts[sender]
        most = max(most, n)
    return most


def make_solve() -> Callable[..., float]:
    """Kernel: codes (V,) become the best labelling of the set; what its terms add up to."""

    def solve(
        factors: Factors,
        axes: Axes,
        candidates: Candidates,
        buckets: BucketPlan,
        largest: int,
        base: Array,
        codes: IntArray,
    ) -> float:
        order, scopes, lengths, offsets = buckets.order, buckets.scopes, buckets.lengths, buckets.offsets
        m, n_parts = len(order), room_of_parts(axes, buckets)
        messages, part = np.empty(offsets[m]), np.empty(max(largest, 1) * (n_parts + 1))
        width = scopes.shape[1] + 1
        steps, digits = np.empty((n_parts + 1, width), np.int64), np.empty(width, np.int64)
        begins, at = np.empty(n_parts + 1, np.int64), np.empty(n_parts + 1, np.int64)
        constant = 0.0
        for i in range(m):
            v = order[i]
            n_factors, n_parts = gather(factors, axes, candidates, buckets, i, codes, steps, digits, part, begins)
            low, n, length = candidates.starts[v], count_of(candidates, v), lengths[i]
            own = factors.state_offsets[v]
            for p in range(n_parts):
                at[p] = begins[p]
            for a in range(length):
                digits[a] = 0
            for row in range(offsets[i + 1] - offsets[i]):
                best = -math.inf
                for k in range(n):
                    value = base[own + candidates.states[low + k]]
                    for p in range(n_factors):
                        value += part[at[p] + steps[p, 0] * k]
                    for p in range(n_factors, n_parts):
                        value += messages[at[p] + steps[p, 0] * k]
                    best = max(best, value)
                messages[offsets[i] + row] = best
                for a in range(length):
                    digits[a] += 1
                    if digits[a] < count_of(candidates, scopes[i, a]):
                        for p in range(n_parts):
                            at[p] += steps[p, 1 + a]
                        break
                    digits[a] = 0
                    for p in range(n_parts):
                        at[p] -= steps[p, 1 + a] * (count_of(candidates, scopes[i, a]) - 1)
            if length == 0:
                constant += messages[offsets[i]]
        for i in range(m - 1, -1, -1):
            v = order[i]
            n_factors, n_parts = gather(factors, axes, candidates, buckets, i, codes, steps, digits, part, begins)
            low, n, length = candidates.starts[v], count_of(candidates, v), lengths[i]
            own, now, best, chosen = factors.state_offsets[v], 0, -math.inf, -1
            for k in range(n):
                if candidates.states[low + k] == codes[v]:
                    now = k
            for p in range(n_parts):
                at[p] = begins[p]
                for a in range(length):
                    u = scopes[i, a]
                    for k in range(count_of(candidates, u)):
                        if candidates.states[candidates.starts[u] + k] == codes[u]:
                            at[p] += steps[p, 1 + a] * k
            for turn in range(n):
                k = (now + turn) % n
                value = base[own + candidates.states[low + k]]
                for p in range(n_factors):
                    value += part[at[p] + steps[p, 0] * k]
                for p in range(n_factors, n_parts):
                    value += messages[at[p] + steps[p, 0] * k]
                if value > best:
                    best, chosen = value, k
            if chosen >= 0:
                codes[v] = candidates.states[low + chosen]
        return constant

    return solve
