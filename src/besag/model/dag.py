"""Queries on a directed graph: order, blankets, separation. Parents are lists of indices, one for each variable."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from besag.errors import ModelError
from besag.model.variable import Variables

if TYPE_CHECKING:
    from besag.model.model import Model


SHOWN = 20  # most variables of a cycle that a message names


class CycleError(ModelError):
    """The edges have a cycle; `cycle`: the variables on it, each a parent of the next, the last one of the first."""

    def __init__(self, variables: Variables, cycle: list[int]) -> None:
        names = variables.names_at([*cycle, cycle[0]] if len(cycle) < SHOWN else cycle[:SHOWN])
        rest = "" if len(cycle) < SHOWN else f" -> ... ({len(cycle)} variables in all)"
        super().__init__(f"the edges have a cycle: {' -> '.join(names)}{rest}")
        self.cycle = cycle


def topological(variables: Variables, parents: list[list[int]]) -> list[int]:
    """The variables in an order with parents first; CycleError if there is none."""
    children: list[list[int]] = [[] for _ in parents]
    for child, above in enumerate(parents):
        for parent in above:
            children[parent].append(child)
    waiting = [len(above) for above in parents]
    order = [v for v, n in enumerate(waiting) if n == 0]
    for v in order:
        for child in children[v]:
            waiting[child] -= 1
            if waiting[child] == 0:
                order.append(child)
    if len(order) < len(parents):
        raise CycleError(variables, _cycle(parents, waiting))
    return order


def _cycle(parents: list[list[int]], waiting: list[int]) -> list[int]:
    """The variables of one cycle among those that still wait for a parent."""
    v = next(i for i, n in enumerate(waiting) if n > 0)
    path: dict[int, None] = {}  # in order
    while v not in path:
        path[v] = None
        v = next(p for p in parents[v] if waiting[p] > 0)
    below = list(path)
    return [v, *reversed(below[below.index(v) + 1 :])]


def parents_of(model: Model) -> list[list[int]]:
    """The parents of every variable, in the order of its table's axes; ModelError unless there are CPTs."""
    if not model.is_bayesian_network:
        raise ModelError("this needs a Bayesian network, every factor a CPT; build one with besag.bayesian_network")
    parents: list[list[int]] = [[] for _ in model.variables]
    for group in model.groups:
        for scope in group.scopes.tolist():
            parents[scope[-1]] = scope[:-1]
    return parents


def topological_order(model: Model) -> list[int]:
    """The variables in an order with parents before children."""
    return topological(model.variables, parents_of(model))


def children_of(model: Model, v: int) -> list[int]:
    """The children of a variable, in order."""
    return [child for child, above in enumerate(parents_of(model)) if v in above]


def markov_blanket(model: Model, name: str) -> list[str]:
    """The variables that share a factor with `name`: in a Bayesian network parents, children, and co-parents."""
    v = model.variables.index(name)
    near: set[int] = set()
    for group in model.groups:
        near.update(group.scopes[(group.scopes == v).any(axis=1)].reshape(-1).tolist())
    return model.variables.names_at(sorted(near - {v}))


def d_separated(model: Model, a: Iterable[int], b: Iterable[int], given: Iterable[int]) -> bool:
    """Whether no trail between a and b is active given `given`."""
    return are_separated(parents_of(model), a, b, given)


def are_separated(parents: list[list[int]], a: Iterable[int], b: Iterable[int], given: Iterable[int]) -> bool:
    """The same from the parents of each variable (Koller and Friedman, algorithm 3.1)."""
    children: list[list[int]] = [[] for _ in parents]
    for child, above in enumerate(parents):
        for parent in above:
            children[parent].append(child)
    observed, targets = set(given), set(b)
    ancestors = find_ancestors(parents, observed)
    frontier = [(v, "up") for v in a]
    seen: set[tuple[int, str]] = set()
    while frontier:
        v, direction = frontier.pop()
        if (v, direction) in seen:
            continue
        seen.add((v, direction))
        if v in targets and v not in observed:
            return False
        if direction == "up" and v not in observed:
            frontier += [(p, "up") for p in parents[v]] + [(c, "down") for c in children[v]]
        elif direction == "down":
            if v not in observed:
                frontier += [(c, "down") for c in children[v]]
            if v in ancestors:
                frontier += [(p, "up") for p in parents[v]]
    return True


def find_ancestors(parents: list[list[int]], of: Iterable[int]) -> set[int]:
    """Some variables and all above them, from the parents of each."""
    found: set[int] = set()
    frontier = list(of)
    while frontier:
        v = frontier.pop()
        if v not in found:
            found.add(v)
            frontier += parents[v]
    return found
