"""What a structure must and must not have.

    allowed (V, V)     whether i may be a parent of j: not forbidden, not of a later tier
    required (V, V)    i must be a parent of j
    linked (V, V)      i and j must be joined, in whichever direction: symmetric, with the required edges in it
    max_parents        of one child
    max_entries        of the CPT of a variable that has parents

An expert's partial graph is a PDAG: its directed edges are required, its undirected ones linked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from besag.arrays import BoolArray, IntArray
from besag.errors import ModelError
from besag.graph.directed.pdag import PDAG, find_cycle, number_of
from besag.registry import is_number, is_whole

Edges = Iterable[Any]  # (parent, child), by name or by number


@dataclass(frozen=True, slots=True, eq=False)
class Constraints:
    """See the module."""

    allowed: BoolArray
    required: BoolArray
    linked: BoolArray
    cardinalities: IntArray
    max_parents: int
    max_entries: float

    def ordered(self, order: IntArray) -> Constraints:
        """The same for variables in another order."""
        square = np.ix_(order, order)
        matrices = (self.allowed[square], self.required[square], self.linked[square])
        return Constraints(*matrices, self.cardinalities[order], self.max_parents, self.max_entries)

    def has_room(self, child: int, parents: Sequence[int]) -> BoolArray:
        """Which variables (V,) the limits let join these parents."""
        if len(parents) >= self.max_parents:
            return np.zeros(len(self.allowed), np.bool_)
        if self.max_entries == math.inf:
            return np.ones(len(self.allowed), np.bool_)
        entries = float(self.cardinalities[child]) * math.prod(float(self.cardinalities[p]) for p in parents)
        return np.asarray(entries * self.cardinalities <= self.max_entries)

    def is_within(self, child: int, parents: Sequence[int]) -> bool:
        """Whether the limits let a child have these parents."""
        entries = float(self.cardinalities[child]) * math.prod(float(self.cardinalities[p]) for p in parents)
        return len(parents) == 0 or (len(parents) <= self.max_parents and entries <= self.max_entries)

    def extend(self, names: Sequence[str]) -> list[list[int]]:
        """Parents of a graph with what is required and linked, and nothing else; ModelError if there is none.

        The last variable of an order is one that may have all it is linked to as parents, and so on upwards. Whichever
        is taken, the others have parents enough: so there is a graph where one is found at every step.
        """
        found: list[list[int]] = [[] for _ in names]
        left = list(range(len(names)))
        while left:
            last = next((v for v in reversed(left) if self._may_be_last(v, left)), None)
            if last is None:
                raise ModelError(self._why_none(names, left))
            left.remove(last)
            found[last] = [p for p in left if self.linked[p, last]]
        return found

    def _may_be_last(self, v: int, left: Sequence[int]) -> bool:
        parents = [p for p in left if self.linked[p, v]]
        return self._may_all_point(v, parents) and self.is_within(v, parents)

    def _may_all_point(self, v: int, parents: Sequence[int]) -> bool:
        return bool(self.allowed[parents, v].all())

    def _why_none(self, names: Sequence[str], left: Sequence[int]) -> str:
        cycle = find_cycle(self.linked & ~self.allowed.T)
        if cycle:
            path = " -> ".join(names[v] for v in [*cycle, cycle[0]])
            return f"edges that constraints leave one direction have a cycle: {path}"
        ends = [v for v in left if self._may_all_point(v, [p for p in left if self.linked[p, v]])]
        return f"{names[ends[0]]!r} cannot have all required parents within max_parents and max_entries; relax one"


def read_constraints(
    names: Sequence[str],
    cardinalities: IntArray,
    required: Edges = (),
    forbidden: Edges = (),
    tiers: Iterable[Iterable[Any]] = (),
    partial: Any = None,
    max_parents: int | None = None,
    max_entries: float | None = None,
) -> Constraints:
    """Constraints as users write them; ModelError where they name nothing, or contradict each other."""
    n = len(names)
    allowed = ~np.eye(n, dtype=np.bool_)
    for i, j in _pairs(names, forbidden, "forbidden"):
        allowed[i, j] = False
    _forbid_tiers(names, tiers, allowed)
    must = np.zeros((n, n), np.bool_)
    for i, j in _pairs(names, required, "required"):
        must[i, j] = True
    linked = must | must.T
    if partial is not None:
        drawn = PDAG.read(partial).over(names)
        must |= drawn.matrix & ~drawn.matrix.T
        linked |= drawn.matrix | drawn.matrix.T
    _refuse_contradictions(names, allowed, must, linked)
    least = int(must.sum(axis=0).max(initial=0))
    if max_parents is not None and not (is_whole(max_parents) and max_parents >= least):
        raise ModelError(f"max_parents must be a whole number of at least {least}, got {max_parents!r}")
    if max_entries is not None and not (is_number(max_entries) and max_entries >= 1):
        raise ModelError(f"max_entries must be a number of at least 1, got {max_entries!r}")
    most = n if max_parents is None else int(max_parents)
    allowed = allowed & ~must.T
    limit = math.inf if max_entries is None else float(max_entries)
    return Constraints(allowed, must, linked, cardinalities, most, limit)


def _pairs(names: Sequence[str], edges: Edges, what: str) -> Iterable[tuple[int, int]]:
    for edge in edges:
        if isinstance(edge, str) or not hasattr(edge, "__len__") or len(edge) != 2:
            raise ModelError(f"{what} edges are pairs (parent, child), got {edge!r}")
        i, j = (number_of(names, end, f"{what} edge {edge!r}") for end in edge)
        if i == j:
            raise ModelError(f"{what} edge {edge!r}: a variable cannot be its own parent")
        yield i, j


def _forbid_tiers(names: Sequence[str], tiers: Iterable[Iterable[Any]], allowed: BoolArray) -> None:
    """No edge from a later tier to an earlier one; a variable of no tier may stand anywhere."""
    tier_of = np.full(len(names), -1)
    for rank, tier in enumerate(tiers):
        if isinstance(tier, str):
            raise ModelError(f"tiers are lists of names, earliest first, got the text {tier!r}")
        for name in tier:
            v = number_of(names, name, f"tier {rank}")
            if tier_of[v] >= 0:
                raise ModelError(f"{names[v]!r} is in tiers {tier_of[v]} and {rank}; it can be in one")
            tier_of[v] = rank
    allowed &= ~((tier_of[:, None] > tier_of[None, :]) & (tier_of[None, :] >= 0))


def _refuse_contradictions(names: Sequence[str], allowed: BoolArray, must: BoolArray, linked: BoolArray) -> None:
    both = np.argwhere(must & ~allowed)
    if len(both):
        i, j = both[0].tolist()
        raise ModelError(f"the edge {names[i]} -> {names[j]} is required, and forbidden or against the tiers; drop one")
    cycle = find_cycle(must)
    if cycle:
        raise ModelError(f"the required edges have a cycle: {' -> '.join(names[v] for v in [*cycle, cycle[0]])}")
    apart = np.argwhere(linked & ~allowed & ~allowed.T)
    if len(apart):
        i, j = apart[0].tolist()
        raise ModelError(f"{names[i]} and {names[j]} must be joined, and both directions are forbidden; allow one")
