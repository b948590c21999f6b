"""Scores of families: a child and its parents, and every parent that could be added.

    ids (N,) uint32      the configuration of the parents in each row, numbered 0 .. J-1 in the order of first sight
    base (N,) uint32     ids * K + the child's code
    codes (V, N)         all columns, of an unsigned type
    table                counts of (configuration j, child's state c, added parent's state x), at (j K + c) K_x + x

Nothing is sorted: a configuration is found by direct address, since those before it are numbered without holes, and a
table has room for observed configurations only. With n_jxc the counts and n_jx their sums over c, a family has

    log-likelihood       sum_jxc n_jxc log n_jxc - sum_jx n_jx log n_jx
    marginal likelihood  sum_jx [log G(K a) - log G(K a + n_jx) + sum_c (log G(a + n_jxc) - log G(a))]

with G the gamma function and a the pseudocount of an entry of the CPT. Configurations that no row has add nothing to
either. Rows go into two tables by turns, so that an increment does not wait for the one before it in the same cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.kernels.compile import at, inlined


def make_join() -> Callable[..., int]:
    """Kernel: number the joint configurations of ids and one more column of k states; returns how many there are.

    places (J k,) int32 is -1 everywhere before.
    """

    def join(ids: AnyArray, column: AnyArray, k: int, places: AnyArray, joined: AnyArray) -> int:
        n = 0
        for i in range(len(ids)):
            cell = int(ids[i]) * k + int(column[i])
            if places[cell] < 0:
                places[cell] = n
                n += 1
            joined[i] = places[cell]
        return n

    return join


@inlined
def tally(base: AnyArray, column: AnyArray, k: int, weights: Array, size: int, table: AnyArray) -> None:
    """Count rows in cells base * k + column, by turns in the first and the second half of 2 * size cells."""
    table[: 2 * size] = 0
    n = len(base)
    if len(weights) > 0:
        for i in range(n):
            table[at(int(base[i]) * k + int(column[i]))] += weights[i]
        return
    for i in range(0, n - 1, 2):
        table[at(int(base[i]) * k + int(column[i]))] += 1
        table[at(int(base[i + 1]) * k + int(column[i + 1]) + size)] += 1
    if n % 2:
        table[at(int(base[n - 1]) * k + int(column[n - 1]))] += 1
    for i in range(size):
        table[i] += table[i + size]


@inlined
def log_likelihood(table: AnyArray, n_ids: int, k: int, kx: int, logs: Array) -> float:
    """See the module; logs: n log n for n = 0 .. N, or () for counts that are no whole numbers."""
    total = 0.0
    for j in range(n_ids):
        for x in range(kx):
            row = table[0] * 0
            for c in range(k):
                count = table[(j * k + c) * kx + x]
                if count > 0:
                    row += count
                    total += logs[int(count)] if len(logs) > 0 else count * math.log(count)
            if row > 0:
                total -= logs[int(row)] if len(logs) > 0 else row * math.log(row)
    return total


@inlined
def marginal_likelihood(table: AnyArray, n_ids: int, k: int, kx: int, pseudocount: float) -> float:
    """See the module."""
    total, cell, row_start = 0.0, math.lgamma(pseudocount), math.lgamma(k * pseudocount)
    for j in range(n_ids):
        for x in range(kx):
            row = 0.0
            for c in range(k):
                count = table[(j * k + c) * kx + x]
                if count > 0:
                    row += count
                    total += math.lgamma(pseudocount + count) - cell
            if row > 0:
                total += row_start - math.lgamma(k * pseudocount + row)
    return total


def make_additions() -> Callable[..., None]:
    """Kernel: values (n,) of the family with each of n candidates added to its parents; -1 adds nothing.

    pseudocounts (n,): of the marginal likelihood, or () for the log-likelihood.
    """

    def additions(
        base: AnyArray,
        n_ids: int,
        k: int,
        codes: AnyArray,
        candidates: IntArray,
        cardinalities: IntArray,
        weights: Array,
        logs: Array,
        pseudocounts: Array,
        table: AnyArray,
        values: Array,
    ) -> None:
        nothing = np.zeros(len(base), codes.dtype)
        for i in range(len(candidates)):
            x = candidates[i]
            kx = cardinalities[x] if x >= 0 else 1
            tally(base, codes[x] if x >= 0 else nothing, kx, weights, n_ids * k * kx, table)
            if len(pseudocounts) > 0:
                values[i] = marginal_likelihood(table, n_ids, k, kx, pseudocounts[i])
            else:
                values[i] = log_likelihood(table, n_ids, k, kx, logs)

    return additions
