"""Scores of families: a child and its parents, and every parent that could be added.

    ids (N,) uint32      the configuration of the parents in each row, numbered 0 .. J-1 in the order of first sight
    own (N,)             the child's codes, base = ids * K + own
    codes (V, N)         all columns, of an unsigned type
    table                counts of (configuration j, child's state c, added parent's state x), at (j K + c) K_x + x

Nothing is sorted: a configuration is found by direct address, since those before it are numbered without holes, and a
table has room for observed configurations only. With n_jxc the counts and n_jx their sums over c, a family has

    log-likelihood       sum_jxc n_jxc log n_jxc - sum_jx n_jx log n_jx
    marginal likelihood  sum_jx [log G(K a) - log G(K a + n_jx) + sum_c (log G(a + n_jxc) - log G(a))]

with G the gamma function and a the pseudocount of an entry of the CPT. Configurations that no row has add nothing to
either. A table is filled in one of two ways:

    by rows     each adds 1 to its cell, in two tables by turns, so that no increment waits for the one before it
    by words    64 rows at a time: the rows of a configuration and those of a state are bits, and the count is that of
                the bits in both. Faster where cells are few

    marks (S, W) uint64    the rows of each state of each column, row n in bit n mod 64 of word n div 64
    first (V,)             where the states of a column begin in marks; -1 for one that is counted by rows
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.kernels.compile import at, inlined

FEWEST = 4  # candidates for which it pays to set bits


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
def joined_with(ids: AnyArray, k: int, own: AnyArray) -> AnyArray:
    """base (N,) uint32."""
    base = np.empty(len(ids), np.uint32)
    for i in range(len(ids)):
        base[i] = ids[i] * np.uint32(k) + np.uint32(own[i])
    return base


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
def set_bits(base: AnyArray, bits: AnyArray, totals: IntArray) -> None:
    """bits (J K, W) of the rows in each configuration, and how many these are."""
    one, low = np.uint64(1), np.uint64(63)
    bits[:], totals[:] = np.uint64(0), 0
    for i in range(len(base)):
        j = int(base[i])
        bits[j, i >> 6] |= one << (np.uint64(i) & low)
        totals[j] += 1


@inlined
def common_bits(a: AnyArray, b: AnyArray) -> int:
    """How many bits are in both: LLVM makes one instruction of the sums in each word."""
    pairs, fours, eights = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
    bytes_, one, two, four, top = np.uint64(0x0101010101010101), np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)
    total = np.uint64(0)
    for w in range(len(a)):
        x = a[w] & b[w]
        x = x - ((x >> one) & pairs)
        x = (x & fours) + ((x >> two) & fours)
        total += (((x + (x >> four)) & eights) * bytes_) >> top
    return int(total)


@inlined
def tally_words(bits: AnyArray, totals: IntArray, marks: AnyArray, first: int, k: int, table: AnyArray) -> None:
    """The counts of `tally` from bits; those of the last state are what the others leave."""
    for j in range(len(totals)):
        left = totals[j]
        for x in range(k - 1):
            count = common_bits(bits[j], marks[first + x]) if left > 0 else 0
            table[j * k + x] = count
            left -= count
        table[j * k + k - 1] = left


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

    pseudocounts (n,): of the marginal likelihood, or () for the log-likelihood. most_cells: that are counted by words.
    """

    def additions(
        ids: AnyArray,
        own: AnyArray,
        n_ids: int,
        k: int,
        codes: AnyArray,
        candidates: IntArray,
        cardinalities: IntArray,
        weights: Array,
        marks: AnyArray,
        first: IntArray,
        most_cells: int,
        logs: Array,
        pseudocounts: Array,
        table: AnyArray,
        values: Array,
    ) -> None:
        base = joined_with(ids, k, own)
        nothing = np.zeros(len(base), codes.dtype)
        few = len(candidates) >= FEWEST and n_ids * k <= most_cells
        bits = np.empty((n_ids * k if few else 0, marks.shape[1]), np.uint64)
        totals = np.empty(len(bits), np.int64)
        if few:
            set_bits(base, bits, totals)
        for i in range(len(candidates)):
            x = candidates[i]
            kx = cardinalities[x] if x >= 0 else 1
            if few and x >= 0 and first[x] >= 0 and n_ids * k * (kx - 1) <= most_cells:
                tally_words(bits, totals, marks, first[x], kx, table)
            else:
                tally(base, codes[x] if x >= 0 else nothing, kx, weights, n_ids * k * kx, table)
            if len(pseudocounts) > 0:
                values[i] = marginal_likelihood(table, n_ids, k, kx, pseudocounts[i])
            else:
                values[i] = log_likelihood(table, n_ids, k, kx, logs)

    return additions


def make_pairs() -> Callable[..., None]:
    """Kernel: counts (k, S) of the states of a column beside those of n others, S the sum of their cardinalities."""

    def pairs(
        ids: AnyArray,
        own: AnyArray,
        k: int,
        codes: AnyArray,
        others: IntArray,
        cardinalities: IntArray,
        weights: Array,
        marks: AnyArray,
        first: IntArray,
        table: AnyArray,
        counts: Array,
    ) -> None:
        base, few = joined_with(ids, k, own), len(marks) > 0
        bits = np.empty((k if few else 0, marks.shape[1]), np.uint64)
        totals = np.empty(len(bits), np.int64)
        if few:
            set_bits(base, bits, totals)
        start = 0
        for x in others:
            kx = cardinalities[x]
            if few and first[x] >= 0:
                tally_words(bits, totals, marks, first[x], kx, table)
            else:
                tally(base, codes[x], kx, weights, k * kx, table)
            for c in range(k):
                for i in range(kx):
                    counts[c, start + i] = table[c * kx + i]
            start += kx

    return pairs
