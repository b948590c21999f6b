"""The k heaviest labellings on a tree of cliques, from messages that went up once.

In the semiring MAX the row T_c(s, .) of a clique holds, for each entry of its residual, the best that the clique and
all below it can do when the separator is s. So a labelling is decoded from the roots down, and taking another entry r
than the chosen one at clique p costs

    gain(p) = max over other r of T_p(s, r)  -  T_p(s, chosen)   <= 0

with everything after p decoded anew. A labelling that came from another one by a change at p splits the labellings not
yet found into disjoint sets, one for each place q >= p: equal to this one before q, another entry at q; at q = p the
entries that were taken there before stay excluded (Lawler 1972, Nilsson 1998). The next labelling is the best of all
sets of all labellings so far. A labelling remembers which one it came from and at which place; the excluded entries are
found by going back as long as the place is the same, and are never stored.

Groups (instances of a union) have k labellings each. Ties are broken by the order of labellings, places and entries.

Shapes: R rows, G groups, V variables, C cliques, P places: the cliques of one group, parents before children.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from besag.arrays import Array, IntArray
from besag.infer.junction.kernels.rows import CliqueWalk, RowNumbers, RowWork, best_of, fill_row, rise, set_residual
from besag.infer.junction.kernels.tiles import Join
from besag.kernels.compile import gathering
from besag.kernels.semiring import MAX


class Search(NamedTuple):
    """Work space of the search in one group; arrays are indexed by the number of a labelling."""

    gains: Array  # (k, P) of the remaining sets, -inf where a set is empty or taken
    bounds: Array  # (k,) the value of the best of these sets
    places: IntArray  # (k,) where it is, or -1
    origin: IntArray  # (k,) the labelling that it came from
    start: IntArray  # (k,) the place of the change, -1 for the first
    row: Array  # the longest residual


def make_k_best() -> Callable[..., None]:
    """Kernel for rows first..last: cliques (C,) by group, parents first, offsets (G + 1,); values (R, G, k), digits."""

    def search_rows(
        join: Join,
        walk: CliqueWalk,
        rows: RowNumbers,
        work: RowWork,
        first: int,
        last: int,
        cliques: IntArray,
        offsets: IntArray,
        search: Search,
        log_weight: Array,
        values: Array,
        digits: IntArray,
    ) -> None:
        for b in range(first, last):
            rise(MAX, join, rows, b, work, log_weight)
            for g in range(len(offsets) - 1):
                values[b, g, 0] = log_weight[b, g]
                if log_weight[b, g] == -math.inf:
                    continue
                low, high = offsets[g], offsets[g + 1]
                search.start[0], search.origin[0] = -1, -1
                decode(join, walk, work, cliques, low, high, 0, 0, search, digits[b])
                look_up(search, high - low, 0, values[b, g, 0])
                for n in range(1, values.shape[2]):
                    m = best_of(n, search.bounds)
                    if search.bounds[m] == -math.inf:
                        break
                    p = search.places[m]
                    values[b, g, n] = search.bounds[m]
                    search.gains[m, p] = -math.inf
                    look_up(search, high - low, m, values[b, g, m])
                    search.origin[n], search.start[n] = m, p
                    decode(join, walk, work, cliques, low, high, n, p, search, digits[b])
                    look_up(search, high - low, n, values[b, g, n])

    return search_rows


@gathering
def look_up(search: Search, n_places: int, n: int, value: float) -> None:
    """Find the best remaining set of labelling n."""
    best, place = -math.inf, -1
    for p in range(n_places):
        if search.gains[n, p] > best:
            best, place = search.gains[n, p], p
    search.places[n] = place
    search.bounds[n] = value + best


@gathering
def decode(
    join: Join,
    walk: CliqueWalk,
    work: RowWork,
    cliques: IntArray,
    low: int,
    high: int,
    n: int,
    start: int,
    search: Search,
    digits: IntArray,
) -> None:
    """Labelling n: as its origin before place `start`, the best entry not excluded there, the best after it."""
    for p in range(high - low):
        c = cliques[low + p]
        search.gains[n, p] = -math.inf
        if p < start:
            copy_residual(walk, c, digits, search.origin[n], n)
            continue
        if join.shape[c, 1] * join.shape[c, 2] == 1:
            continue
        size = fill_row(MAX, join, walk, c, digits[n], work, search.row)
        m = n
        while search.start[m] == p:
            m = search.origin[m]
            search.row[residual_entry(walk, c, digits[m])] = -math.inf
        chosen = best_of(size, search.row)
        taken = search.row[chosen]
        set_residual(walk, c, chosen, digits[n])
        search.row[chosen] = -math.inf
        search.gains[n, p] = search.row[best_of(size, search.row)] - taken


@gathering
def copy_residual(walk: CliqueWalk, c: int, digits: IntArray, m: int, n: int) -> None:
    """Copy the digits of the residual of clique c from labelling m to labelling n."""
    first = walk.axis_offsets[c]
    for a in range(first + walk.splits[c, 0], first + walk.splits[c, 2]):
        digits[n, walk.axes[a]] = digits[m, walk.axes[a]]


@gathering
def residual_entry(walk: CliqueWalk, c: int, digits: IntArray) -> int:
    """The entry of the residual at these digits: the inverse of `set_residual`."""
    first, r = walk.axis_offsets[c], 0
    for a in range(first + walk.splits[c, 0], first + walk.splits[c, 2]):
        r = r * walk.counts[walk.axes[a]] + digits[walk.axes[a]]
    return r
