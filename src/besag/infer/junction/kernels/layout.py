"""The order in which the table of a clique is traversed: it is never stored, but made tile by tile.

The axes of a clique are put in the order

    outer separator | outer residual | inner residual | inner separator

A tile is the last two, R x J entries that fit into the L1 cache; tiles are numbered by the first two. A
message to the parent has the axes outer separator | inner separator, so that the sum over the residual adds rows of J
contiguous entries. The separator of a clique has the order of its parent's axes.

Shapes: V variables, C cliques, A axes of all cliques.
"""

from __future__ import annotations

import numpy as np

from besag.arrays import IntArray
from besag.kernels.compile import inlined

TILE = 2048  # entries: a tile and its index maps stay in the L1 cache
LANE = 16  # entries of the inner separator that are worth having before residual axes are added
LEAST = 128  # a tile below this takes one more axis, however long


@inlined
def walk(
    counts: IntArray, member_offsets: IntArray, members: IntArray, n_separator: IntArray, parent: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """The axes of all cliques in walking order: axes (A,), splits (C, 3), shape (C, 4).

    splits: how many axes come before outer residual, inner residual and inner separator. shape: entries of each of the
    four parts.
    """
    n_cliques = len(parent)
    axes, lane = np.empty(len(members), np.int64), np.empty(len(members), np.int64)
    splits, shape = np.zeros((n_cliques, 3), np.int64), np.ones((n_cliques, 4), np.int64)
    wanted = np.full(len(counts), -1, np.int64)
    for c in range(n_cliques - 1, -1, -1):
        first, n_sep, p = member_offsets[c], n_separator[c], parent[c]
        n_axes = member_offsets[c + 1] - first
        for a in range(n_sep):
            axes[first + a] = members[first + a]
            wanted[members[first + a]] = c
        if p >= 0:
            found = 0
            for j in range(member_offsets[p], member_offsets[p + 1]):
                if wanted[axes[j]] == c:
                    axes[first + found] = axes[j]
                    found += 1
        tile, low, inside = 1, n_sep, n_axes
        while low > 0 and tile < LANE and (tile * counts[axes[first + low - 1]] <= TILE or tile < LEAST):
            low -= 1
            tile *= counts[axes[first + low]]
        while inside > n_sep and (tile * counts[members[first + inside - 1]] <= TILE or tile < LEAST):
            inside -= 1
            tile *= counts[members[first + inside]]
        while inside == n_sep and low > 0 and (tile * counts[axes[first + low - 1]] <= TILE or tile < LEAST):
            low -= 1
            tile *= counts[axes[first + low]]
        n_lane = n_sep - low
        for a in range(n_lane):
            lane[a] = axes[first + low + a]
        for a in range(n_sep, n_axes):
            axes[first + low + a - n_sep] = members[first + a]
        for a in range(n_lane):
            axes[first + n_axes - n_lane + a] = lane[a]
        splits[c, 0], splits[c, 1], splits[c, 2] = low, low + inside - n_sep, n_axes - n_lane
        for a in range(n_axes):
            part = 0
            for k in range(3):
                if a >= splits[c, k]:
                    part = k + 1
            shape[c, part] *= counts[axes[first + a]]
    return axes, splits, shape
