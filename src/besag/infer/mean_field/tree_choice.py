"""Which spanning tree mean field takes: the edges of strongest coupling, or those that the user names.

The strength of a pair u, v is its mutual information under each factor by itself, summed over the factors on both,

    pi_f(y_Sf) propto exp(log-potential_f(y_Sf) + sum over v in f of base_v(y_v)),        I(u; v) under pi_f

so that evidence and strong fields weaken a coupling. The tree is a maximum spanning tree of these strengths
(Kruskal's algorithm; of equal ones, the first). A random tree has -ln of exponential numbers added to their logarithms.

Edges that the user names are the tree; where factors connect its parts, more edges join them, over which q stays
independent: they only say in which order the parts are visited.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from besag.arrays import Array, IntArray
from besag.errors import CapabilityError
from besag.infer.prepared import Prepared

SLAB_ENTRIES = 2**18  # of the tables that are looked at side by side
LEAST = 1e-300  # of a strength, so that it has a logarithm
LINE, NEXT = "--", ";"  # as in "a -- b; b -- c"


class TreeEdges(tuple[tuple[str, str], ...]):
    """Pairs of names; as text "a -- b; b -- c"."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{NEXT} ".join(f"{a} {LINE} {b}" for a, b in self)


def read_edges(given: object) -> TreeEdges:
    """The pairs of names that a user wrote, as text or as a list of pairs."""
    parts: Any = given
    if isinstance(given, str):
        parts = [part.split(LINE) for part in given.split(NEXT) if part.strip()]
    try:
        pairs = [tuple(str(name).strip() for name in pair) for pair in parts if not isinstance(pair, str)]
        fine = len(pairs) == len(parts) and all(len(pair) == 2 for pair in pairs)
    except TypeError:
        fine = False
    if not fine:
        raise CapabilityError(
            f'tree_edges must be pairs of names, [("a", "b"), ("b", "c")] or "a -- b; b -- c", got {given!r}'
        )
    return TreeEdges((a, b) for a, b in pairs)


class Strengths:
    """Pairs of variables (n, 2) that share a factor, and their strengths (n,) in one row of base (S,)."""

    def __init__(self, setting: Prepared, base: Array) -> None:
        n = setting.graph.n_variables
        found = list(_found(setting, base))
        codes = np.concatenate([np.zeros(0, np.int64), *(code for code, _ in found)])
        values = np.concatenate([np.zeros(0), *(value for _, value in found)])
        unique, number = np.unique(codes, return_inverse=True)
        self.pairs: IntArray = np.stack(np.divmod(unique, max(n, 1)), axis=1)
        self.values: Array = np.bincount(number, values, len(unique)).astype(np.float64)

    def order_edges(self, rng: np.random.Generator | None = None) -> list[tuple[int, int]]:
        """The pairs, strongest first; with a generator, at random, strong ones rather than weak ones."""
        keys = self.values
        if rng is not None:
            keys = np.log(np.maximum(keys, LEAST)) - np.log(np.maximum(rng.standard_exponential(len(keys)), LEAST))
        return [(int(u), int(v)) for u, v in self.pairs[np.argsort(-keys, kind="stable")]]


def _found(setting: Prepared, base: Array) -> Iterator[tuple[IntArray, Array]]:
    """Codes u V + v, u < v, and strengths of the pairs of a few factors at a time."""
    graph, problem = setting.graph, setting.problem
    for number, block in enumerate(graph.blocks):
        shape, n_axes = block.template.shape, len(block.template.shape)
        if n_axes < 2 or block.start == block.stop:
            continue
        tables, readers = problem.block_tables(number)
        step = max(1, SLAB_ENTRIES // math.prod(shape))
        for first in range(0, len(readers), step):
            scopes = block.scopes[first : first + step]
            logs = np.array(tables[readers[first : first + step]])
            for axis, k in enumerate(shape):
                own = base[graph.state_offsets[scopes[:, axis]][:, None] + np.arange(k)]
                logs += own.reshape(-1, *(k if a == axis else 1 for a in range(n_axes)))
            p = _normalised(logs)
            for i in range(n_axes):
                for j in range(i + 1, n_axes):
                    pair = p.sum(axis=tuple(a + 1 for a in range(n_axes) if a not in (i, j)))
                    low, high = np.sort(scopes[:, [i, j]], axis=1).T
                    yield low * graph.n_variables + high, _information(pair)


def _normalised(logs: Array) -> Array:
    """(F, ...) weights as distributions; zeros where there is no weight."""
    axes = tuple(range(1, logs.ndim))
    high = logs.max(axis=axes, keepdims=True)
    p = np.exp(logs - np.where(high > -np.inf, high, 0.0))
    total = p.sum(axis=axes, keepdims=True)
    return np.asarray(p / np.where(total > 0, total, 1.0))


def _information(pair: Array) -> Array:
    """(F, K, K') -> (F,): mutual information, at least 0."""
    product = pair.sum(axis=2)[:, :, None] * pair.sum(axis=1)[:, None, :]
    ratio = np.divide(pair, product, out=np.ones(pair.shape), where=(pair > 0) & (product > 0))
    return np.asarray(np.maximum((pair * np.log(ratio)).sum(axis=(1, 2)), 0.0))


def grow_tree(
    n_variables: int, wanted: Sequence[tuple[int, int]], more: Sequence[tuple[int, int]] = ()
) -> tuple[list[tuple[int, int]], int]:
    """The edges of a spanning forest, Kruskal's: those wanted before more; and how many of the former there are."""
    top = list(range(n_variables))

    def find(v: int) -> int:
        while top[v] != v:
            top[v] = top[top[v]]
            v = top[v]
        return v

    edges: list[tuple[int, int]] = []
    n_wanted = 0
    for number, (u, v) in enumerate((*wanted, *more)):
        one, other = find(u), find(v)
        if one != other:
            top[one] = other
            edges.append((u, v))
            n_wanted += number < len(wanted)
    return edges, n_wanted


def named_edges(setting: Prepared, edges: TreeEdges) -> list[tuple[int, int]]:
    """The user's edges by number; CapabilityError where they close a cycle."""
    variables = setting.graph.variables
    found: list[tuple[int, int]] = []
    for a, b in edges:
        found.append((variables.index(a), variables.index(b)))
        if grow_tree(setting.graph.n_variables, found)[1] < len(found):
            raise CapabilityError(f"tree_edges must form a tree or a forest; ({a!r}, {b!r}) closes a cycle")
    return found
