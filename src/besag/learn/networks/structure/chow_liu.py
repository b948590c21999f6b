"""The best tree (Chow and Liu 1968), of all variables or given the class (Friedman, Geiger and Goldszmidt 1997).

    chow_liu    every variable has at most one parent: the tree with the highest sum of mutual informations
                I(x; y) = sum_xy n_xy log(n_xy N / (n_x n_y)), which is that of the highest likelihood
    tan         the class is a parent of all, and a tree joins the others: of informations given the class
    naive       the class is a parent of all

The edges of a tree have no direction of their own: they point away from its root, by default the first variable. Where
constraints leave an edge one direction or forbid it, the best branching is found instead (Edmonds), in which every
variable has the one parent that it may. A criterion is not asked, so that every pair is joined that can be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from besag.arrays import Array, BoolArray
from besag.errors import CapabilityError, ModelError
from besag.infer.iterate import Look, no_look
from besag.learn.networks.structure.counter import Counter
from besag.learn.networks.structure.criteria import LogLikelihood
from besag.learn.networks.structure.methods import METHODS
from besag.learn.networks.structure.scores import FamilyScores
from besag.learn.networks.structure.task import Outcome, Task


@dataclass(frozen=True)
class ChowLiu:
    """root: the name of the variable that edges point away from; the first in the task's order where it is None.

    pseudocount: added to every cell of the pair tables that informations are of.
    """

    root: str | None = None
    pseudocount: float = 0.0

    def __post_init__(self) -> None:
        METHODS.check_numbers(self, "pseudocount")

    def learn(self, task: Task) -> Outcome:
        """A tree over all variables."""
        members = list(range(task.n_variables))
        if self.pseudocount:
            informations = smoothed_informations(task.counter, self.pseudocount, task.clock.look)
        else:
            informations = pair_informations(task, members, ())
        return Outcome(tree(task, members, (), self.root, informations), "converged")


@dataclass(frozen=True)
class TAN:
    """The class above a tree of the others; root: as ChowLiu's."""

    root: str | None = None

    def learn(self, task: Task) -> Outcome:
        """Needs task.target."""
        target = need_target(task, "tan")
        others = [v for v in range(task.n_variables) if v != target]
        matrix = tree(task, others, (target,), self.root, pair_informations(task, others, (target,)))
        matrix[target, others] = True
        return Outcome(_checked(task, matrix, target), "converged")


@dataclass(frozen=True)
class NaiveStructure:
    """The class is the only parent of every other variable."""

    def learn(self, task: Task) -> Outcome:
        """Needs task.target."""
        matrix = np.zeros((task.n_variables, task.n_variables), np.bool_)
        target = need_target(task, "naive")
        matrix[target] = True
        matrix[target, target] = False
        return Outcome(_checked(task, matrix, target), "converged")


def need_target(task: Task, method: str) -> int:
    """The number of the class; CapabilityError where none was given."""
    if task.target is None:
        raise CapabilityError(f"{method} needs target=, the name of the class that it predicts")
    return task.target


def _checked(task: Task, matrix: BoolArray, target: int) -> BoolArray:
    others = np.arange(len(matrix)) != target
    if not task.constraints.allowed[target, others].all():
        name = task.names[int(np.flatnonzero(others & ~task.constraints.allowed[target])[0])]
        raise ModelError(f"{task.names[target]!r} is the class, and constraints forbid it to be a parent of {name!r}")
    return matrix


def tree(task: Task, members: list[int], above: tuple[int, ...], root: str | None, informations: Array) -> BoolArray:
    """The best tree over some variables, all of which have the parents `above` besides."""
    limits = task.constraints
    matrix = np.zeros((task.n_variables, task.n_variables), np.bool_)
    may = limits.allowed[np.ix_(members, members)].copy()
    for j, child in enumerate(members):
        may[:, j] &= limits.has_room(child, above)[members]
    must = limits.linked[np.ix_(members, members)]
    required = limits.required[np.ix_(members, members)].sum(axis=0)
    if (required > 1).any():
        crowded = task.names[members[int(required.argmax())]]
        raise ModelError(f"in a tree a variable has one parent, and {crowded!r} has several required ones")
    first = 0 if root is None else [task.names[v] for v in members].index(_known_root(task, members, root))
    off = ~np.eye(len(members), dtype=np.bool_)
    if (may | ~off).all() and not must.any():
        parents = spanning_tree(informations, first)
    else:
        parents = branching(np.where(may, informations, -np.inf), must)
        joined = {frozenset((v, p)) for v, p in enumerate(parents)}
        left_out = [(i, j) for i, j in np.argwhere(np.triu(must)).tolist() if {i, j} not in joined]
        if left_out:
            pair = " - ".join(task.names[members[v]] for v in left_out[0])
            raise ModelError(f"no tree within the constraints has all edges that must be there; drop {pair}")
    for child, parent in enumerate(parents):
        if parent >= 0:
            matrix[members[parent], members[child]] = True
            task.note(
                float(informations[parent, child]), f"{task.names[members[parent]]} -> {task.names[members[child]]}"
            )
    return matrix


def _known_root(task: Task, members: list[int], root: str) -> str:
    if root not in [task.names[v] for v in members]:
        raise ModelError(f"root {root!r} is not among the variables of the tree")
    return root


def pair_informations(task: Task, members: list[int], above: tuple[int, ...]) -> Array:
    """N I(x; y | above) of all pairs, (n, n)."""
    scores = FamilyScores(task.counter, LogLikelihood())
    given = tuple(sorted(above))
    out = np.zeros((len(members), len(members)))
    order = np.array(members, np.int64)
    for j, child in enumerate(members[1:], start=1):
        task.clock.look()
        out[:j, j] = scores.additions(child, given, order[:j]) - scores.of(child, given)
    return np.maximum(out + out.T, 0.0)


def smoothed_informations(counter: Counter, pseudocount: float, look: Look = no_look) -> Array:
    """I(x; y) of all pairs (V, V) from tables with a pseudocount in each cell, joint (S, S) of the states of all."""
    sizes, everybody = counter.cardinalities, np.arange(counter.n_variables)
    starts, rows = np.cumsum(sizes) - sizes, list[Array]()
    for v in range(counter.n_variables):
        look()
        rows.append(counter.pairs(v, everybody) + pseudocount)
    joint = np.concatenate(rows)
    margins = np.add.reduceat(joint, starts, axis=1)  # (S, V): of the states of one, beside each other one
    totals = np.add.reduceat(margins, starts, axis=0)
    within = np.add.reduceat(np.add.reduceat(_xlogx(joint), starts, axis=0), starts, axis=1)
    alone = np.add.reduceat(_xlogx(margins), starts, axis=0)
    found = (within - alone - alone.T + _xlogx(totals)) / totals
    np.fill_diagonal(found, 0.0)
    return np.asarray(found)


def _xlogx(values: Array) -> Array:
    return values * np.log(np.where(values > 0, values, 1.0))


def spanning_tree(weights: Array, root: int) -> list[int]:
    """The parent of each vertex in the maximum spanning tree (Prim), -1 for the root; of equals the first is taken."""
    n = len(weights)
    parents, best = np.full(n, root), weights[root].copy()
    left = np.ones(n, np.bool_)
    parents[root], left[root] = -1, False
    for _ in range(n - 1):
        v = int(np.argmax(np.where(left, best, -np.inf)))
        left[v] = False
        closer = left & (weights[v] > best)
        best[closer], parents[closer] = weights[v][closer], v
    return [int(p) for p in parents]


def branching(weights: Array, must: BoolArray) -> list[int]:
    """The parent of each vertex in the best forest of arrows, -1 for a root; weights -inf are no arrows.

    must (n, n), symmetric: pairs that are to be joined, in a direction that has a weight; of these as many as can be,
    then of all others. Cycles of best arrows are shrunk to one vertex until there is none (Edmonds 1967).
    """
    weights = weights.copy()
    np.fill_diagonal(weights, -np.inf)
    finite = weights[np.isfinite(weights)]
    bonus = 1.0 + (finite.max() - finite.min()) * len(weights) if len(finite) else 1.0
    base = finite.min() if len(finite) else 0.0
    worth = weights - base + bonus * (1.0 + must * 2.0 * len(weights))
    return _edmonds(worth)


def _edmonds(worth: Array) -> list[int]:
    n = len(worth)
    best = worth.argmax(axis=0)
    parents = np.where(worth[best, np.arange(n)] > 0.0, best, -1)
    cycle = _cycle_of(parents.tolist())
    if not cycle:
        return [int(p) for p in parents]
    inner = np.array(cycle)
    outer = np.setdiff1d(np.arange(n), inner)
    kept = worth[parents[inner], inner]
    into = worth[np.ix_(outer, inner)] - kept[None, :]  # what entering the cycle changes
    small = np.full((len(outer) + 1, len(outer) + 1), -np.inf)
    small[:-1, :-1] = worth[np.ix_(outer, outer)]
    small[:-1, -1] = into.max(axis=1, initial=-np.inf) + kept.min()
    small[-1, :-1] = worth[np.ix_(inner, outer)].max(axis=0)
    above = _edmonds(small)
    for i, p in enumerate(above[:-1]):
        v = int(outer[i])
        if p == len(outer):
            parents[v] = cycle[int(worth[cycle, v].argmax())]
        else:
            parents[v] = -1 if p < 0 else int(outer[p])
    if above[-1] >= 0:
        entry = int(into[above[-1]].argmax())
        parents[cycle[entry]] = int(outer[above[-1]])
    else:
        parents[cycle[int(kept.argmin())]] = -1
    return [int(p) for p in parents]


def _cycle_of(parents: list[int]) -> list[int]:
    """The vertices of one cycle, [] where there is none."""
    done = set[int]()
    for v in range(len(parents)):
        path = list[int]()
        while v >= 0 and v not in done:
            done.add(v)
            path.append(v)
            v = parents[v]
        if v in path:
            return path[path.index(v) :]
    return []
