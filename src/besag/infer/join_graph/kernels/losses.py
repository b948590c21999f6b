"""Entropies of tables and of their sums, which choose how cliques are reduced; tables are laid out as in `tables`.

H(v, R), H(C - v), H(R), H(C)           of a table on C: the loss of peeling v with R, see `besag.infer.join_graph`
I(u; v) = H(u) + H(v) - H(u, v)         of all pairs in a table; it is summed onto pairs of blocks of variables first
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from besag.arrays import Array, IntArray
from besag.infer.join_graph.kernels.tables import Scratch, scratch_of, sum_out, walk_of
from besag.kernels.compile import at, inlined

BLOCK_ENTRIES = 32  # of a block of variables: a pair of blocks fits into the L1 cache


@inlined
def entropy_of(log: int, values: Array) -> float:
    """- sum p ln p, in nats; zeros count nothing."""
    total = 0.0
    for i in range(len(values)):
        x = values[at(i)]
        if log:
            if x > -math.inf:
                total -= math.exp(x) * x
        elif x > 0.0:
            total -= x * math.log(x)
    return total


@inlined
def sum_over(log: int, cards: IntArray, variables: IntArray, values: Array, scope: IntArray, scratch: Scratch) -> Array:
    """The sums of a table over what is not in a scope."""
    size = 1
    for i in range(len(scope)):
        size *= cards[scope[i]]
    answer = np.empty(size, np.float64)
    walk = walk_of(cards, variables, 0, len(variables), scope, 0, len(scope), scratch)
    sum_out(log, walk, scratch, values, 0, size, answer, 0)
    return answer


def make_entropy(log: int) -> Callable[..., float]:
    """Kernel: the entropy of a table."""

    def entropy(values: Array) -> float:
        return entropy_of(log, values)

    return entropy


@inlined
def without(variables: IntArray, v: int) -> IntArray:
    """The variables without v."""
    rest, n = np.empty(len(variables) - 1, np.int64), 0
    for i in range(len(variables)):
        if variables[i] != v:
            rest[n] = variables[i]
            n += 1
    return rest


@inlined
def together(variables: IntArray, v: int) -> IntArray:
    """The variables, in ascending order, with v put in its place."""
    both, n = np.empty(len(variables) + 1, np.int64), 0
    while n < len(variables) and variables[n] < v:
        both[n] = variables[n]
        n += 1
    both[n] = v
    for i in range(n, len(variables)):
        both[i + 1] = variables[i]
    return both


def make_losses(log: int) -> Callable[..., None]:
    """Kernel: H(v, R), H(C - v), H(R) of a table on C, (n, 3), for v and R [start, stop) of n.

    leaving (n,) are the v; R i is beside[first[i]:first[i + 1]], in order.
    """

    def losses(
        cards: IntArray,
        variables: IntArray,
        values: Array,
        leaving: IntArray,
        first: IntArray,
        beside: IntArray,
        start: int,
        stop: int,
        out: Array,
    ) -> None:
        scratch = scratch_of()
        for i in range(start, stop):
            shared = beside[first[i] : first[i + 1]]
            own, rest = together(shared, leaving[i]), without(variables, leaving[i])
            both = sum_over(log, cards, variables, values, own, scratch)
            out[i, 0] = entropy_of(log, both)
            out[i, 1] = entropy_of(log, sum_over(log, cards, variables, values, rest, scratch))
            out[i, 2] = entropy_of(log, sum_over(log, cards, own, both, shared, scratch))

    return losses


@inlined
def block_ends(cards: IntArray, variables: IntArray) -> IntArray:
    """Where blocks of at most BLOCK_ENTRIES entries, or of one variable, end."""
    ends, n, size = np.zeros(len(variables) + 1, np.int64), 0, 1
    for i in range(len(variables)):
        k = cards[variables[i]]
        if i > 0 and size * k > BLOCK_ENTRIES:
            n += 1
            size = 1
        size *= k
        ends[n] = i + 1
    return ends[: n + 1]


@inlined
def union_of(variables: IntArray, start: int, stop: int, other_start: int, other_stop: int) -> IntArray:
    """The variables of two ranges, which may be the same one."""
    n = stop - start
    both = np.empty(n + (other_stop - other_start if other_start != start else 0), np.int64)
    for i in range(n):
        both[i] = variables[start + i]
    for i in range(n, len(both)):
        both[i] = variables[other_start + i - n]
    return both


@inlined
def information_of(pair: Array, n_rows: int, n_columns: int) -> float:
    """I(u; v) from p(u, v), in linear numbers."""
    total = 0.0
    columns = np.zeros(n_columns, np.float64)
    for i in range(n_rows):
        for j in range(n_columns):
            columns[j] += pair[i * n_columns + j]
    for i in range(n_rows):
        row = 0.0
        for j in range(n_columns):
            row += pair[i * n_columns + j]
        for j in range(n_columns):
            x = pair[i * n_columns + j]
            if x > 0.0 and row * columns[j] > 0.0:
                total += x * math.log(x / (row * columns[j]))
    return max(total, 0.0)


def make_information(log: int) -> Callable[..., None]:
    """Kernel: I(u; v) of all pairs u < v of a table's variables, into out (n, n) by place, filled with -1 before."""

    def information(cards: IntArray, variables: IntArray, values: Array, out: Array) -> None:
        scratch, ends, two = scratch_of(), block_ends(cards, variables), np.empty(2, np.int64)
        for a in range(len(ends)):
            start = 0 if a == 0 else ends[a - 1]
            for b in range(a if len(ends) == 1 else a + 1, len(ends)):
                other = 0 if b == 0 else ends[b - 1]
                both = union_of(variables, start, ends[a], other, ends[b])
                sums = sum_over(log, cards, variables, values, both, scratch)
                if log:
                    for i in range(len(sums)):
                        sums[i] = math.exp(sums[i])
                for i in range(len(both)):
                    for j in range(i + 1, len(both)):
                        u = start + i if i < ends[a] - start else other + i - (ends[a] - start)
                        v = start + j if j < ends[a] - start else other + j - (ends[a] - start)
                        if out[u, v] < 0.0:
                            two[0], two[1] = both[i], both[j]
                            pair = sum_over(0, cards, both, sums, two, scratch)
                            out[u, v] = information_of(pair, cards[two[0]], cards[two[1]])

    return information
