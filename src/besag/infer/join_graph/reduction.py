"""Smaller cliques: a calibrated forest brought below a bound, at little loss.

A forest p = Z prod_C b_C / prod_S b_S is approximated by another one whose cliques are parts of its own and have the
same marginals. Without loss

    forget    a variable that is no longer needed leaves the only clique that has it
    absorb    a clique contained in a neighbour goes, and its other neighbours are linked to that one

and with loss, where a clique C is above the bound,

    peel      v leaves C and stays with a part R of it, in a clique {v} + R of its own beside C. Neighbours of C that
              have v must find what they share with C in {v} + R, and move there. Then p is replaced by the nearest
              distribution in which v is independent of the rest of C given R, and the loss is

                  KL(p | p') = I(v; C - R | R) = H(v, R) + H(C - v) - H(R) - H(C)

              R is what neighbours demand, and of the others those that have the most mutual information with v
    cut       if neighbours demand too much for every v: v leaves C and all behind it, seen from one neighbour D that
              has v too. Clique by clique, from the far end, this peels v with R = what is shared towards D

Losses add up. Of the variables of C those that look cheapest by mutual information of pairs are tried, and the one
that loses least for each bit by which C shrinks is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from besag.infer.join_graph.clique_forest import ROUNDING, CliqueForest
from besag.infer.join_graph.tables import Algebra, CliqueScopes, CliqueTable, CliqueTables, Scope

CANDIDATES = 3

NOTHING: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    """Small cliques, parents before children; `sources`: the cliques of the large forest that contain them."""

    scopes: CliqueScopes
    separators: CliqueScopes  # towards the parent, () at a root
    sources: list[int]
    lost: float  # KL(p | p') in nats
    exact: bool  # whether nothing was peeled or cut

    def marginals(self, algebra: Algebra, beliefs: CliqueTables) -> CliqueTables:
        """Marginals of the small cliques, from those of the large forest."""
        return algebra.marginals(beliefs, self.sources, self.scopes)


@dataclass(slots=True, eq=False)
class _Clique:
    table: CliqueTable  # on the scope, or on a larger one if variables have been forgotten since
    scope: frozenset[int]
    source: int
    near: dict[int, frozenset[int]] = field(default_factory=dict)  # neighbours, with the variables shared
    entropy: float | None = None


def reduce_cliques(
    algebra: Algebra,
    forest: CliqueForest,
    beliefs: CliqueTables,
    needed: frozenset[int],
    bits: float,
    check: Callable[[], None] = lambda: None,
) -> tuple[Reduced, CliqueTables]:
    """A forest on at least the variables that are needed, with cliques of at most 2^bits entries; their marginals.

    `check` is called now and then, and may raise.
    """
    work = _Reduction(algebra, forest, beliefs, needed)
    work.shrink(bits, check)
    return work.result()


def tear_apart(
    algebra: Algebra, forest: CliqueForest, beliefs: CliqueTables, needed: frozenset[int]
) -> tuple[Reduced, CliqueTables]:
    """Every needed variable in a clique of its own, which takes hardly any time; the loss counts all variables."""
    alone = algebra.marginals(beliefs, list(forest.homes.values()), algebra.scopes([(v,) for v in forest.homes]))
    shared = algebra.marginals(beliefs, range(len(beliefs)), algebra.scopes(forest.separators))
    lost = sum(map(algebra.entropy, [*alone, *shared])) - sum(map(algebra.entropy, beliefs))
    kept = algebra.tables([table for table in alone if table.scope[0] in needed])
    sources = [forest.homes[v] for (v,) in kept.scopes.each]
    return Reduced(kept.scopes, algebra.scopes([()] * len(kept)), sources, max(lost, 0.0), False), kept


class _Reduction:
    def __init__(self, algebra: Algebra, forest: CliqueForest, beliefs: CliqueTables, needed: frozenset[int]) -> None:
        self.algebra, self.needed = algebra, needed
        self.cliques = {c: _Clique(b, frozenset(b.scope), c) for c, b in enumerate(beliefs)}
        self.count: dict[int, int] = {}  # of each variable: the cliques that have it
        for c, (parent, separator) in enumerate(zip(forest.parents, forest.separators, strict=True)):
            if parent >= 0:
                self._link(c, parent, frozenset(separator))
        for clique in self.cliques.values():
            self._count(clique.scope, 1)
        self.next = len(beliefs)
        self.information: dict[tuple[int, int], float] = {}
        self.lost, self.exact = 0.0, True
        self._tidy(list(self.cliques))

    def _link(self, a: int, b: int, shared: frozenset[int]) -> None:
        if shared:
            self.cliques[a].near[b] = self.cliques[b].near[a] = shared
        else:
            self.cliques[a].near.pop(b, None)
            self.cliques[b].near.pop(a, None)

    def _count(self, variables: Iterable[int], by: int) -> None:
        for v in variables:
            self.count[v] = self.count.get(v, 0) + by

    def _tidy(self, waiting: list[int]) -> None:
        """Forget and absorb."""
        while waiting:
            c = waiting.pop()
            clique = self.cliques.get(c)
            if clique is None:
                continue
            gone = [v for v in clique.scope if self.count[v] == 1 and v not in self.needed]
            if gone:
                clique.scope, clique.entropy = clique.scope.difference(gone), None
                self._count(gone, -1)
            into = next((n for n, shared in clique.near.items() if len(shared) == len(clique.scope)), None)
            if into is not None or not clique.scope:
                self._absorb(c, into)
                if into is not None:
                    waiting.append(into)

    def _absorb(self, c: int, into: int | None) -> None:
        clique = self.cliques[c]
        self._count(clique.scope, -1)
        for n, shared in list(clique.near.items()):
            self._link(c, n, NOTHING)
            if into is not None and n != into:
                self._link(n, into, shared)
        del self.cliques[c]

    def shrink(self, bits: float, check: Callable[[], None]) -> None:
        """Reduce until no clique of two variables or more has more than 2^bits entries."""
        self._inform([self._table(c) for c in self.cliques if self._is_large(c, bits)])
        for c in list(self.cliques):
            while c in self.cliques and self._is_large(c, bits):
                check()
                self._inform([self._table(c)])
                if not self._peel_one(c, bits):
                    self._cut_one(c)

    def _is_large(self, c: int, bits: float) -> bool:
        scope = self.cliques[c].scope
        return len(scope) > 1 and self.algebra.bits(scope) > bits + ROUNDING

    def _table(self, c: int) -> CliqueTable:
        clique = self.cliques[c]
        if len(clique.scope) != len(clique.table.scope):
            clique.table = self.algebra.marginal(clique.table, tuple(sorted(clique.scope)))
        return clique.table

    def _peel_one(self, c: int, bits: float) -> bool:
        """Peel the variable that loses least; False where none can be."""
        scope, logs = self.cliques[c].scope, self.algebra.logs
        options = []
        for v in scope:
            beside = self._beside(c, v, bits)
            if beside is not None:
                options.append((self._dependence(v, scope - beside) / logs[v], v, beside))
        if not options:
            return False
        tried = sorted(options, key=lambda option: option[:2])[:CANDIDATES]
        losses = self._losses(c, [(v, beside) for _, v, beside in tried])
        best = min(range(len(tried)), key=lambda i: losses[i][0] / logs[tried[i][1]])
        loss, left = losses[best]
        self.lost, self.exact = self.lost + loss, False
        self._peel(c, *tried[best][1:], left)
        return True

    def _beside(self, c: int, v: int, bits: float) -> frozenset[int] | None:
        """R of v; None if it would be all of the clique, or too much for two neighbours or more."""
        clique, logs = self.cliques[c], self.algebra.logs
        demands = [shared for shared in clique.near.values() if v in shared]
        beside = NOTHING.union(*demands) - {v}
        if len(beside) + 1 == len(clique.scope):
            return None
        room = bits - self.algebra.bits(beside) - logs[v] + ROUNDING
        if room < 0:
            return beside if len(demands) == 1 else None
        chosen = set(beside)
        for u in sorted(clique.scope - beside - {v}, key=lambda u: (-self._mutual(u, v), u)):
            if logs[u] <= room and len(chosen) + 2 < len(clique.scope):
                chosen.add(u)
                room -= logs[u]
        return frozenset(chosen)

    def _losses(self, c: int, tried: list[tuple[int, frozenset[int]]]) -> list[tuple[float, float]]:
        """For each v and R: I(v; rest of the clique | R), and the entropy of the clique without v."""
        table, clique = self._table(c), self.cliques[c]
        if clique.entropy is None:
            clique.entropy = self.algebra.entropy(table)
        found = self.algebra.loss_entropies(table, tried).tolist()
        return [(max(own + rest - beside - clique.entropy, 0.0), rest) for own, rest, beside in found]

    def _peel(self, c: int, v: int, beside: frozenset[int], entropy: float) -> None:
        clique, new = self.cliques[c], self.next
        self.next += 1
        table = self.algebra.marginal(self._table(c), tuple(sorted(beside | {v})))
        self.cliques[new] = _Clique(table, beside | {v}, clique.source)
        for n, shared in list(clique.near.items()):
            if v in shared:
                self._link(c, n, NOTHING)
                self._link(new, n, shared)
        clique.scope, clique.entropy = clique.scope - {v}, entropy
        self._count(beside, 1)
        self._link(c, new, beside)
        self._tidy([c, new])

    def _cut_one(self, c: int) -> None:
        """Cut the variable that loses least."""
        clique, logs = self.cliques[c], self.algebra.logs
        options = [
            (self._dependence(v, clique.scope - shared) / logs[v], v, n)
            for n, shared in clique.near.items()
            for v in shared
            if len(shared) < len(clique.scope)
        ]
        tried = sorted(options)[:CANDIDATES]
        losses = [sum(self._losses(d, [(v, shared)])[0][0] for d, shared in self._behind(c, n, v)) for _, v, n in tried]
        best = min(range(len(tried)), key=lambda i: losses[i] / logs[tried[i][1]])
        self.lost, self.exact = self.lost + losses[best], False
        _, v, towards = tried[best]
        cut = [d for d, _ in self._behind(c, towards, v)]
        for d in cut:
            for n, shared in list(self.cliques[d].near.items()):
                self._link(d, n, shared - {v})
        for d in cut:
            self.cliques[d].scope, self.cliques[d].entropy = self.cliques[d].scope - {v}, None
        self.count[v] -= len(cut)
        self._tidy([*cut, towards])

    def _behind(self, c: int, towards: int, v: int) -> list[tuple[int, frozenset[int]]]:
        """c and the cliques with v behind it, each with what it shares, v excepted, in the direction of `towards`."""
        found, stack = [], [(c, towards)]
        while stack:
            d, came_from = stack.pop()
            near = self.cliques[d].near
            found.append((d, near[came_from] - {v}))
            stack.extend((n, d) for n, shared in near.items() if n != came_from and v in shared)
        return found

    def _dependence(self, v: int, others: frozenset[int]) -> float:
        return sum(self._mutual(u, v) for u in others if u != v)

    def _mutual(self, a: int, b: int) -> float:
        return self.information[(a, b) if a < b else (b, a)]

    def _inform(self, tables: list[CliqueTable]) -> None:
        """Find the mutual information of all pairs in each clique; reductions do not change it."""
        new = [table for table in tables if not self._knows(table.scope)]
        for table, found in zip(new, self.algebra.information(new), strict=True):
            for i, j in zip(*np.triu_indices(len(table.scope), 1), strict=True):
                self.information.setdefault((table.scope[i], table.scope[j]), float(found[i, j]))

    def _knows(self, scope: Scope) -> bool:
        return all((a, b) in self.information for i, a in enumerate(scope) for b in scope[i + 1 :])

    def result(self) -> tuple[Reduced, CliqueTables]:
        """The reduced forest, parents before children."""
        separators, sources, tables = list[Scope](), list[int](), list[CliqueTable]()
        seen: set[int] = set()
        for root in self.cliques:
            stack = [] if root in seen else [(root, NOTHING)]
            while stack:
                c, separator = stack.pop()
                seen.add(c)
                clique = self.cliques[c]
                separators.append(tuple(sorted(separator)))
                sources.append(clique.source)
                tables.append(self._table(c))
                stack.extend((n, shared) for n, shared in clique.near.items() if n not in seen)
        joined = self.algebra.tables(tables)
        return Reduced(joined.scopes, self.algebra.scopes(separators), sources, self.lost, self.exact), joined
