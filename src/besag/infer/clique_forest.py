"""Forests of cliques, made from scopes by triangulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from besag.arrays import BoolArray, IntArray, frozen, offsets_of
from besag.infer.clique_tables import Algebra, Scope
from besag.kernels.cliques import clique_entries, make_cliques
from besag.kernels.compile import kernel_of
from besag.kernels.order import best_order, neighbours

ROUNDING = 1e-9  # of sums of log2 K


@dataclass(frozen=True, slots=True, eq=False)
class CliqueForest:
    """Cliques, children before parents."""

    scopes: list[Scope]
    parents: list[int]  # -1 at roots
    separators: list[Scope]  # towards the parent
    places: dict[int, int]  # of each variable: how early it is eliminated
    homes: dict[int, int]  # of each variable: the clique that eliminates it

    def home(self, scope: Scope) -> int:
        """The clique that contains a scope which was triangulated."""
        return self.homes[min(scope, key=self.places.__getitem__)]


class _Graph:
    """The variables of some scopes, renumbered, and who shares a scope with whom."""

    def __init__(self, algebra: Algebra, scopes: Sequence[Scope]) -> None:
        self.compile = algebra.compile
        flat = np.array([v for scope in scopes for v in scope], np.int64)
        variables, places = np.unique(flat, return_inverse=True)
        self.names: list[int] = variables.tolist()
        self.cards = np.array([algebra.cardinalities[v] for v in self.names], np.int64)
        offsets = offsets_of(np.array([len(scope) for scope in scopes], np.int64))
        self.first, self.others = self._linked(len(self.names), offsets, places)

    def order(self) -> IntArray:
        """An order of all variables."""
        return best_order(self.cards, self.first, self.others, effort=0.0, compile=self.compile).variables

    def order_with_last(self, last: BoolArray, most_bits: float) -> IntArray:
        """An order in which the others go first, as long as their cliques have at most 2^most_bits entries."""
        early = best_order(self.cards, self.first, self.others, keep=last, effort=0.0, compile=self.compile).variables
        offsets, members, _, _, clique_of = self.cliques(early)
        large = clique_entries(self.cards, offsets, members) > 2.0 ** (most_bits + ROUNDING)
        stops = np.flatnonzero(large[clique_of[early]])
        if len(stops):
            early = early[: stops[0]]
            offsets, members, _, _, clique_of = self.cliques(early)
        rest = np.flatnonzero(clique_of < 0)
        return np.concatenate([early, rest[self._order_of_rest(rest, offsets, members)]])

    def _order_of_rest(self, rest: IntArray, offsets: IntArray, members: IntArray) -> IntArray:
        """An order of the rest in the graph that eliminating the others leaves: edges from before, and new ones."""
        number = np.full(len(self.cards), -1, np.int64)
        number[rest] = np.arange(len(rest))
        inside = number[members] >= 0
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(inside)])[offsets]
        owner = np.repeat(np.arange(len(self.cards)), np.diff(self.first))
        old = (number[owner] >= 0) & (number[self.others] >= 0) & (owner < self.others)
        pairs = np.stack([owner[old], self.others[old]], axis=1)
        ends = np.concatenate([ends, ends[-1] + 2 * np.arange(1, len(pairs) + 1)])
        flat = number[np.concatenate([members[inside], pairs.ravel()])]
        first, others = self._linked(len(rest), ends, flat)
        return best_order(self.cards[rest], first, others, effort=0.0, compile=self.compile).variables

    def _linked(self, n: int, offsets: IntArray, flat: IntArray) -> tuple[IntArray, IntArray]:
        return neighbours(n, frozen(offsets), frozen(flat), compile=self.compile)

    def cliques(self, order: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
        """See `besag.kernels.cliques`."""
        return kernel_of(make_cliques, compile=self.compile)(frozen(order), self.first, self.others)


def triangulated(
    algebra: Algebra, scopes: Sequence[Scope], most_bits: float, last: frozenset[int], exact_bits: float
) -> CliqueForest | None:
    """Cliques that contain these scopes; None where one has more than 2^most_bits entries.

    Variables in `last` are eliminated after the others, save those whose cliques would have more than 2^exact_bits.
    """
    graph = _Graph(algebra, scopes)
    late = np.array([v in last for v in graph.names], np.bool_)
    order = graph.order_with_last(late, exact_bits) if late.any() and not late.all() else graph.order()
    found = graph.cliques(order)
    if clique_entries(graph.cards, found[0], found[1]).max() > 2.0 ** (most_bits + ROUNDING):
        return None
    starts, members, n_separator, parents, clique_of = (part.tolist() for part in found)
    named = [graph.names[v] for v in members]
    return CliqueForest(
        [tuple(sorted(named[a:b])) for a, b in pairwise(starts)],
        parents,
        [tuple(sorted(named[a : a + n])) for a, n in zip(starts, n_separator, strict=False)],
        {graph.names[v]: i for i, v in enumerate(order.tolist())},
        dict(zip(graph.names, clique_of, strict=True)),
    )
