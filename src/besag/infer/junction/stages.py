"""How a tree of cliques is cut for several threads.

Cuts depend on the work of the parts (table entries), never on the number of threads, so neither do the answers:

    subtrees    maximal subtrees of at most 1 / SHARES of the work, packed into at most SHARES tasks
    top         the cliques above them, one after the other; a large one is cut into pieces, ranges of its tiles
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from besag.arrays import Array, IntArray, freeze

WIDE = 2**21  # table entries from which on cutting pays
SHARES = 16
LARGE = 2**18  # entries of a clique that is cut


@dataclass(frozen=True, slots=True, eq=False)
class Stages:
    """The tree, cut: cliques of each subtree task, children first; the top, children first; which of it is large."""

    subtrees: tuple[IntArray, ...]
    top: tuple[int, ...]
    large: frozenset[int]


def cut_tree(parents: IntArray, sizes: Array) -> Stages | None:
    """The stages of a tree of cliques with these parents (C,) and table entries (C,); None if cutting does not pay."""
    if sizes.sum() < WIDE:
        return None
    parent, entries = parents.tolist(), sizes.tolist()
    limit = sum(entries) / SHARES
    below = list(entries)
    for c, p in enumerate(parent):
        if p >= 0:
            below[p] += below[c]
    task = [-1] * len(parent)
    roots: list[int] = []
    for c in range(len(parent) - 1, -1, -1):
        p = parent[c]
        if p >= 0 and task[p] >= 0:
            task[c] = task[p]
        elif below[c] <= limit:
            task[c] = len(roots)
            roots.append(c)
    bins, load = [-1] * len(roots), [0.0] * SHARES
    for number in sorted(range(len(roots)), key=lambda i: (-below[roots[i]], i)):
        bins[number] = load.index(min(load))
        load[bins[number]] += below[roots[number]]
    tasks: list[list[int]] = [[] for _ in range(SHARES)]
    for c, number in enumerate(task):
        if number >= 0:
            tasks[bins[number]].append(c)
    top = tuple(c for c, number in enumerate(task) if number < 0)
    return Stages(
        tuple(freeze(np.array(members, np.int64)) for members in tasks if members),
        top,
        frozenset(c for c in top if entries[c] > LARGE),
    )
