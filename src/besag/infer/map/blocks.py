"""Block moves: the best labelling of a whole set of variables given the rest, so that no move makes it worse.

    forest     a random set without cycles, two thirds of a grid
    strips     a random set that tables of 2^bits entries suffice for: with enough bits, the whole graph
    fuse       of two labellings the best one that takes each variable from either, as far as those tables suffice

Sets are chosen by `kernels/regions`, and solved by `kernels/blocks`. Hard zeros weigh `penalty` instead, large and
finite, so that a labelling that meets them can be left step by step.
"""

from __future__ import annotations

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, freeze, offsets_of
from besag.infer.map.kernels.blocks import BucketPlan, Candidates, make_plan, make_solve
from besag.infer.map.kernels.regions import make_forest, make_strips
from besag.infer.map.landscape import Landscape
from besag.infer.orders.search import find_neighbours_of
from besag.kernels.compile import kernel_of

LEAST_BITS = 6.0  # of the tables of the least strips
MOST_BITS = 22.0  # of a table
ENTRIES = 1 << 26  # of all messages of a move


class Blocks:
    """The moves on one problem; allowed (R, S): the states that variables may take, those with a base above -inf."""

    def __init__(self, landscape: Landscape) -> None:
        self.landscape, self.graph = landscape, landscape.graph
        self.factors = landscape.soft_factors
        scopes = (self.graph.n_variables, self.graph.scope_offsets, self.graph.scope_variables)
        self.first, self.others = self.graph.plans.get("all neighbours", lambda: find_neighbours_of(*scopes))
        self.allowed = landscape.setting.base > -np.inf
        counts = np.maximum(np.add.reduceat(self.allowed[0], self.graph.state_offsets[:-1], dtype=np.int64), 1)
        free = np.log2(counts[counts > 1])
        self.mean_bits = float(free.mean()) if len(free) else 1.0
        self.least_bits = max(LEAST_BITS, 2.0 * self.mean_bits)

    def forest(self, row: int, codes: IntArray, key: int) -> IntArray:
        """(V,): after a move of a random forest."""
        return self._move(row, codes, self.allowed[row], key, None)[0]

    def strips(
        self, row: int, codes: IntArray, key: int, bits: float, period: int = 0, base: Array | None = None
    ) -> tuple[IntArray, bool]:
        """The same of strips, and whether they are the whole graph, and the answer a best one.

        period: that of walls at equal distances from a random variable, 0 for none. base (S,): in place of the row's.
        """
        return self._move(row, codes, self.allowed[row], key, bits, period, base)

    def solve(self, row: int, codes: IntArray, key: int, bits: float) -> IntArray | None:
        """(V,): the best labelling of all; None where tables of 2^bits entries do not suffice for the whole graph."""
        after, whole = self._move(row, codes, self.allowed[row], key, bits, only_whole=True)
        return after if whole else None

    def fuse(self, row: int, codes: IntArray, other: IntArray, key: int, bits: float) -> tuple[IntArray, bool]:
        """(V,): the best of what two labellings say, as far as it is found, and whether that is all of it."""
        allowed = np.zeros_like(self.allowed[row])
        offsets = self.graph.state_offsets[:-1]
        allowed[offsets + codes] = allowed[offsets + other] = True
        return self._move(row, codes, allowed, key, bits)

    def best_by(self, values: Array) -> IntArray:
        """(V,): the state of each variable whose number (S,) is the largest."""
        offsets = self.graph.state_offsets
        highest = np.repeat(np.maximum.reduceat(values, offsets[:-1]), np.diff(offsets))
        states = np.where(values == highest, np.arange(len(values)), len(values))
        return np.asarray(np.minimum.reduceat(states, offsets[:-1]) - offsets[:-1])

    def _move(
        self,
        row: int,
        codes: IntArray,
        allowed: BoolArray,
        key: int,
        bits: float | None,
        period: int = 0,
        base: Array | None = None,
        only_whole: bool = False,
    ) -> tuple[IntArray, bool]:
        offsets, compile = self.graph.state_offsets, self.landscape.setting.goes_on()
        allowed = allowed.copy()
        allowed[offsets[:-1] + codes] = True
        counts = np.add.reduceat(allowed, offsets[:-1], dtype=np.int64)
        states = np.flatnonzero(allowed) - np.repeat(offsets[:-1], counts)
        candidates, logs = Candidates(freeze(offsets_of(counts)), freeze(states)), freeze(np.log2(counts))
        order = np.empty(len(codes), np.int64)
        if bits is None:
            size = kernel_of(make_forest, compile=compile)(self.first, self.others, logs, key, order)
        else:
            limits = (min(bits, MOST_BITS), period, key)
            size = kernel_of(make_strips, compile=compile)(self.first, self.others, logs, *limits, order)
        after, whole = np.array(codes), size == int((counts > 1).sum())
        if size and (whole or not only_whole):
            base = self.landscape.soft_base(row) if base is None else base
            width = 2 if bits is None else int(min(bits, MOST_BITS)) + 2
            self._solve(base, after, candidates, order[:size], width, compile)
        return after, whole

    def _solve(
        self, base: Array, codes: IntArray, candidates: Candidates, order: IntArray, width: int, compile: bool
    ) -> None:
        m, ranks = len(order), np.full(len(codes), -1, np.int64)
        ranks[order] = np.arange(m)
        room = [np.empty(m, np.int64) for _ in range(3)]
        lengths, heads, nexts = room
        scopes, offsets = np.empty((m, width), np.int64), np.empty(m + 1, np.int64)
        buckets = BucketPlan(order, ranks, scopes, lengths, offsets, heads, nexts)
        given = (self.factors, self.landscape.axes, candidates)
        largest = kernel_of(make_plan, compile=compile)(*given, buckets)
        if offsets[m] > ENTRIES:
            return
        buckets = BucketPlan(*map(freeze, buckets))
        kernel_of(make_solve, compile=compile)(*given, buckets, largest, base, codes)
