"""Search over orders of the variables: each in turn goes to the best place (BOSS, Andrews et al. 2023).

In an order a variable may have those before it as parents, and gets them by growing, the best one first as long as the
score rises, and shrinking, in the same way. So an order has a score, and a variable that goes from its place to another
changes those of the variables between. A pass moves every variable once; where one changes nothing, `starts` more
orders are tried, random moves from the best, and the best DAG of all is climbed from.

Growing is the walk down a tree that is kept: a node is a set of parents, its branches are the candidates that raise the
score, best first, and a walk takes the first of them that stands before the variable. So every set is scored once,
whatever the order it is met in. Where a walk ends depends on the variables in these branches alone, and is kept by
which of them stand before the variable.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from besag.arrays import BoolArray
from besag.graph.directed.orientation import order_of
from besag.learn.networks.structure.climb import climb
from besag.learn.networks.structure.methods import METHODS
from besag.learn.networks.structure.moves import Walk
from besag.learn.networks.structure.task import ROUNDING, Outcome, Task, matrix_of

Parents = tuple[tuple[int, ...], float]  # and their score

BYTES_A_BRANCH = 120  # in Python's own objects


@dataclass(frozen=True)
class OrderSearch:
    """starts: how many orders after the first."""

    starts: int = 2

    def __post_init__(self) -> None:
        METHODS.check_counts(self, "starts", least=0)

    def learn(self, task: Task) -> Outcome:
        """The DAG of the best order, climbed from."""
        search = Orders(task)
        for left in range(self.starts, -1, -1):
            search.descend()
            if left:
                search.stir()
        climb(task, Walk(task, task.best))
        return Outcome(task.best, "converged")


def move_some(task: Task, share: float) -> None:
    """Each of a share of the variables, at random, goes to its best place in an order of the best DAG."""
    search = Orders(task)
    n_moved = math.ceil(share * task.n_variables)
    search.move_each(task.rng.permutation(task.n_variables)[:n_moved].tolist())


@dataclass(slots=True)
class Growth:
    """A node: the parents so far, in the order in which they came, their score, and branches, best first."""

    parents: tuple[int, ...]
    score: float
    branches: list[tuple[int, Growth | None]] | None = None
    shrunk: Parents | None = None


@dataclass(eq=False)
class Orders:
    """The search; sets of variables are the bits of an int."""

    task: Task
    order: list[int] = field(init=False)
    best: list[int] = field(init=False)
    roots: dict[tuple[int, tuple[int, ...]], Growth] = field(default_factory=dict)
    n_branches: int = 0
    known: list[dict[int, Parents]] = field(init=False)
    of_interest: list[int] = field(init=False)

    def __post_init__(self) -> None:
        limits = self.task.constraints
        self.one_way = limits.linked & ~limits.allowed.T
        self.linked = [_bits(np.flatnonzero(row)) for row in limits.linked]
        self.allowed = [_bits(np.flatnonzero(column)) for column in limits.allowed.T]
        self._forget()
        self.best = self.order = order_of(self.task.best) or []
        self.score = self.score_of(self.order)

    def descend(self) -> None:
        """Passes until one changes nothing."""
        before = -np.inf
        while self.score > before + self.task.slack:
            before = self.score
            self.move_each(self.task.rng.permutation(len(self.order)).tolist())

    def move_each(self, variables: list[int]) -> None:
        """A pass: each goes in turn to its best place."""
        try:
            for v in variables:
                self._move(v)
                self.task.clock.look()
            self.task.note(self.score, f"{len(variables)} variables moved")
        finally:
            if self.score > self.task.best_score + self.task.slack:
                self.best = self.order
                self.task.keep(self.matrix(), self.score)

    def matrix(self) -> BoolArray:
        """The DAG of the order."""
        return matrix_of([list(self._shrunk(v, before)[0]) for v, before in sorted(self.prefixes(self.order))])

    def prefixes(self, order: list[int]) -> list[tuple[int, int]]:
        """Each variable with those before it."""
        before, out = 0, []
        for v in order:
            out.append((v, before))
            before |= 1 << v
        return out

    def score_of(self, order: list[int]) -> float:
        """Of the DAG that an order gives."""
        return sum(self._shrunk(v, before)[1] for v, before in self.prefixes(order))

    def _move(self, v: int) -> None:
        """Put a variable where the score is highest."""
        if BYTES_A_BRANCH * self.n_branches > self.task.counter.kept_bytes:
            self._forget()
        others = [u for u in self.order if u != v]
        before, with_v, without, own = 0, [], [], []
        for u in others:
            own.append(self._shrunk(v, before)[1])
            without.append(self._shrunk(u, before)[1])
            with_v.append(self._shrunk(u, before | 1 << v)[1])
            before |= 1 << u
        own.append(self._shrunk(v, before)[1])
        head = np.concatenate([[0.0], np.cumsum(without)])
        tail = np.concatenate([np.cumsum(with_v[::-1])[::-1], [0.0]])
        scores = np.where(self._places(v, others), np.array(own) + head + tail, -np.inf)
        place = int(np.argmax(scores >= scores.max() - self.task.slack))
        if scores[place] > self.score + self.task.slack:
            self.order, self.score = [*others[:place], v, *others[place:]], float(scores[place])

    def _places(self, v: int, others: list[int]) -> BoolArray:
        """Where edges of one direction let a variable stand: (V,), place i is before others[i]."""
        after = max((i + 1 for i, u in enumerate(others) if self.one_way[u, v]), default=0)
        until = min((i for i, u in enumerate(others) if self.one_way[v, u]), default=len(others))
        places = np.arange(len(others) + 1)
        return (places >= after) & (places <= until)

    def stir(self) -> None:
        """Random moves of variables in the best order, about one for every second variable."""
        self.order = list(self.best)
        for v in self.task.rng.permutation(len(self.order))[: len(self.order) // 2].tolist():
            others = [u for u in self.order if u != v]
            place = int(self.task.rng.choice(np.flatnonzero(self._places(v, others))))
            self.order = [*others[:place], v, *others[place:]]
        self.score = self.score_of(self.order)

    def _forget(self) -> None:
        self.roots.clear()
        self.n_branches, n = 0, len(self.linked)
        self.known, self.of_interest = [{} for _ in range(n)], list(self.linked)

    def _shrunk(self, v: int, before: int) -> Parents:
        """Parents from those before a variable, and the score: -inf where those it must have are too many."""
        found = self.known[v].get(before & self.of_interest[v])
        if found is None:
            found = self._walked(v, before)
            self.known[v][before & self.of_interest[v]] = found
        return found

    def _walked(self, v: int, before: int) -> Parents:
        must = self.linked[v] & before
        start = tuple(u for u in range(len(self.linked)) if must >> u & 1) if must else ()
        node = self.roots.get((v, start))
        if node is None:
            within = self.task.constraints.is_within(v, start)
            node = Growth(start, self.task.scores.of(v, start) if within else -np.inf, None if within else [])
            self.roots[v, start] = node
        able = before & self.allowed[v]
        below: Growth | None = node
        while below is not None:
            node, below = below, None
            branches = self._branches(v, node) if node.branches is None else node.branches
            for i, (u, known) in enumerate(branches):
                if able >> u & 1:
                    below = known or self._grown(v, node, i)
                    break
        if node.shrunk is None:
            node.shrunk = self._shrink(v, node, set(start))
        return node.shrunk

    def _grown(self, v: int, node: Growth, i: int) -> Growth:
        branches = node.branches or []
        u = branches[i][0]
        parents = (*node.parents, u)
        below = Growth(parents, self.task.scores.of(v, parents))
        branches[i] = (u, below)
        return below

    def _branches(self, v: int, node: Growth) -> list[tuple[int, Growth | None]]:
        limits = self.task.constraints
        may = limits.allowed[:, v] & limits.has_room(v, node.parents)
        may[list(node.parents)] = False
        candidates = np.flatnonzero(may)
        candidates = candidates[self.task.scores.ceilings(v, node.parents, candidates) > node.score]
        node.branches = []
        if len(candidates):
            scores = self.task.scores.additions(v, node.parents, candidates)
            rising = np.flatnonzero(scores > node.score + _slack(node))
            ranked = candidates[rising[np.argsort(-scores[rising], kind="stable")]]
            node.branches = [(u, None) for u in ranked.tolist()]
            self.n_branches += len(node.branches)
            self.of_interest[v] |= _bits(u for u, _ in node.branches)
        return node.branches

    def _shrink(self, v: int, node: Growth, kept: set[int]) -> Parents:
        parents, score = node.parents, node.score
        while True:
            fewer = [tuple(p for p in parents if p != u) for u in parents if u not in kept]
            scores = [self.task.scores.of(v, rest) for rest in fewer]
            if not scores or max(scores) <= score + _slack(node):
                return parents, score
            best = scores.index(max(scores))
            parents, score = fewer[best], scores[best]


def _bits(members: Iterable[Any]) -> int:
    return sum(1 << int(v) for v in members)


def _slack(node: Growth) -> float:
    """How much a score must rise by."""
    return ROUNDING * abs(node.score) + 1e-12
