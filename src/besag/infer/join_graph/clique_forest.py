"""Forests of cliques, made from scopes by elimination orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from besag.arrays import BoolArray, IntArray, freeze, offsets_of
from besag.infer.join_graph.tables import Algebra, Scope
from besag.infer.orders.kernels.cliques import clique_entries, make_cliques
from besag.infer.orders.search import bound_order, find_neighbours_of, find_order
from besag.kernels.compile import kernel_of

ROUNDING = 1e-9  # tolerance for sums of log2 K


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


class ScopeGraph:
    """The variables of some scopes, neighbours if they share one, and their elimination orders.

    Variables outside `last` are eliminated first, unless their cliques would have more than 2^exact_bits entries.
    """

    def __init__(self, algebra: Algebra, scopes: Sequence[Scope], last: frozenset[int], exact_bits: float) -> None:
        self.compile, self.exact_bits = algebra.compile, exact_bits
        flat = np.array([v for scope in scopes for v in scope], np.int64)
        variables, places = np.unique(flat, return_inverse=True)
        self.names: list[int] = variables.tolist()
        self.cards = np.array([algebra.cardinalities[v] for v in self.names], np.int64)
        offsets = offsets_of(np.array([len(scope) for scope in scopes], np.int64))
        self.first, self.others = self._linked(len(self.names), offsets, places)
        late = np.array([v in last for v in self.names], np.bool_)
        self.late = late if late.any() and not late.all() else None

    def order_within(self, bits: float) -> IntArray | None:
        """An order whose cliques have at most 2^bits entries; None if a greedy run makes a larger one."""
        if self.late is None:
            order, whole = self._bounded(self.cards, self.first, self.others, bits)
            return order if whole else None
        early, _ = self._bounded(self.cards, self.first, self.others, self.exact_bits, self.late)
        rest, graph = self._rest(early)
        later, whole = self._bounded(*graph, bits)
        return np.concatenate([early, rest[later]]) if whole else None

    def best(self) -> IntArray:
        """The order of least cost from several runs."""
        if self.late is None:
            return self._best(self.cards, self.first, self.others)
        early = self._best(self.cards, self.first, self.others, self.late)
        offsets, members, _, _, clique_of = self._cliques(early)
        large = clique_entries(self.cards, offsets, members) > 2.0 ** (self.exact_bits + ROUNDING)
        stops = np.flatnonzero(large[clique_of[early]])
        rest, graph = self._rest(early[: stops[0]] if len(stops) else early)
        return np.concatenate([early[: len(self.cards) - len(rest)], rest[self._best(*graph)]])

    def forest_within(self, order: IntArray, bits: float) -> CliqueForest:
        """The forest of the best order, or of the given one if the best makes a clique of more than 2^bits entries."""
        best = self.best()
        largest = clique_entries(self.cards, *self._cliques(best)[:2]).max()
        return self.forest(best if largest <= 2.0 ** (bits + ROUNDING) else order)

    def forest(self, order: IntArray) -> CliqueForest:
        """The cliques of an order."""
        starts, members, n_separator, parents, clique_of = (part.tolist() for part in self._cliques(order))
        named = [self.names[v] for v in members]
        return CliqueForest(
            [tuple(sorted(named[a:b])) for a, b in pairwise(starts)],
            parents,
            [tuple(sorted(named[a : a + n])) for a, n in zip(starts, n_separator, strict=False)],
            {self.names[v]: i for i, v in enumerate(order.tolist())},
            dict(zip(self.names, clique_of, strict=True)),
        )

    def _rest(self, early: IntArray) -> tuple[IntArray, tuple[IntArray, IntArray, IntArray]]:
        """The variables left when some are eliminated, and their graph with the old and the new edges."""
        offsets, members, _, _, clique_of = self._cliques(early)
        rest = np.flatnonzero(clique_of < 0)
        number = np.full(len(self.cards), -1, np.int64)
        number[rest] = np.arange(len(rest))
        inside = number[members] >= 0
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(inside)])[offsets]
        owner = np.repeat(np.arange(len(self.cards)), np.diff(self.first))
        old = (number[owner] >= 0) & (number[self.others] >= 0) & (owner < self.others)
        pairs = np.stack([owner[old], self.others[old]], axis=1)
        ends = np.concatenate([ends, ends[-1] + 2 * np.arange(1, len(pairs) + 1)])
        flat = number[np.concatenate([members[inside], pairs.ravel()])]
        return rest, (self.cards[rest], *self._linked(len(rest), ends, flat))

    def _bounded(
        self, cards: IntArray, first: IntArray, others: IntArray, bits: float, keep: BoolArray | None = None
    ) -> tuple[IntArray, bool]:
        return bound_order(cards, first, others, bits, keep=keep, compile=self.compile)

    def _best(self, cards: IntArray, first: IntArray, others: IntArray, keep: BoolArray | None = None) -> IntArray:
        return find_order(cards, first, others, keep=keep, effort=0.0, compile=self.compile).variables

    def _linked(self, n: int, offsets: IntArray, flat: IntArray) -> tuple[IntArray, IntArray]:
        return find_neighbours_of(n, freeze(offsets), freeze(flat), compile=self.compile)

    def _cliques(self, order: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
        """See `besag.infer.orders.kernels.cliques`."""
        return kernel_of(make_cliques, compile=self.compile)(freeze(order), self.first, self.others)
