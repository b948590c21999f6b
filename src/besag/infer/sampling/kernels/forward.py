"""Forward sampling of a Bayesian network: each variable given its parents, a block of rows after the other.

    u uniform, row = configuration of the parents:   y = #{k < K - 1 : u >= p(0 | row) + .. + p(k | row)}

The codes of a block stay in the cache while all variables are drawn. Number `variable` of the stream of a row decides
it, so that the draws do not depend on blocks or threads.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.kernels.compile import at, inlined
from besag.kernels.random import stream, uniform

BLOCK = 1024
BITS_63 = 2**63 - 1
HALF = 2**62


def make_forward() -> Callable[..., None]:
    """forward(codes (V, N), first, last, key, order, parent_offsets, parents, strides, starts, n_states, sums)."""

    def forward(
        codes: AnyArray,
        first: int,
        last: int,
        key: int,
        order: IntArray,
        parent_offsets: IntArray,
        parents: IntArray,
        strides: IntArray,
        starts: IntArray,
        n_states: IntArray,
        sums: Array,
    ) -> None:
        seeds, uniforms = np.empty(BLOCK, np.int64), np.empty(BLOCK)
        rows, drawn = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
        for start in range(first, last, BLOCK):
            n = min(BLOCK, last - start)
            for i in range(n):
                seeds[i] = signed(stream(key, 0, start + i))
            for v in order:
                draw_uniforms(seeds, v, n, uniforms)
                for i in range(n):
                    rows[i] = starts[v]
                    drawn[i] = 0
                for e in range(parent_offsets[v], parent_offsets[v + 1]):
                    add_parent(codes[parents[e]], start, strides[e], n, rows)
                for k in range(n_states[v] - 1):
                    pass_sum(sums, k, rows, uniforms, n, drawn)
                child = codes[v]
                for i in range(n):
                    child[at(start + i)] = drawn[i]

    return forward


@inlined
def signed(word: int) -> int:
    """The low 64 bits of a word as an int64, which plain Python's whole numbers are not."""
    sign = (word >> 63) & 1
    return (word & BITS_63) - sign * HALF - sign * HALF


@inlined
def draw_uniforms(seeds: IntArray, variable: int, n: int, uniforms: Array) -> None:
    """Number `variable` of each stream."""
    for i in range(n):
        uniforms[i] = uniform(int(seeds[i]), variable)


@inlined
def add_parent(parent: AnyArray, start: int, stride: int, n: int, rows: IntArray) -> None:
    """What a parent's states add to the place of a row's table."""
    for i in range(n):
        rows[i] += np.int64(parent[at(start + i)]) * stride


@inlined
def pass_sum(sums: Array, k: int, rows: IntArray, uniforms: Array, n: int, drawn: IntArray) -> None:
    """One state further where u is not below the sum of p up to state k."""
    for i in range(n):
        drawn[i] += uniforms[i] >= sums[at(rows[i] + k)]
