"""A model whose variables are groups of another model's, 001: an equivalent chain or tree of larger variables.

    Y~ = (Y_i, Y_j, Y_m),     its states are Y_i x Y_j x Y_m, the last variable fastest

A node is a group, or a variable that is in none. Each factor becomes one on nodes that have its variables, on one node
where a node has them all; factors on the same nodes, if these are several, are multiplied, because two of them would be
a cycle. A variable in several groups has a copy in each, and factors of
hard zeros make the copies agree; they lie along a spanning tree of the groups with as many shared variables as
possible, which for the cliques of a junction tree is a tree that serves every variable (running intersection). Where
such a tree leaves the copies of a variable apart, further factors join them. So p and log Z are those of the model.

A variable outside all groups to which hard zeros leave one state takes it, in a factor of its own, and is read off in
all others: it ties no nodes together, as it does in no junction tree.

    N nodes, F factors
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import Array, IntArray
from besag.errors import ModelError
from besag.infer.memory import default_memory_limit, refuse
from besag.infer.prepared import KINDS, Prepared
from besag.model.factors import markov_network
from besag.model.variable import NameList, Variables
from besag.query.run import check_options

if TYPE_CHECKING:
    from besag.graph.problem import Problem
    from besag.model.model import Model

OF_STATE, OF_ENTRY = 200, 24  # bytes of the name of a joint state, and of an entry of a table while it is made

Factor = tuple[list[int], Array]  # the nodes of its axes, and log-potentials


def merge(model: Model, groups: Sequence[Sequence[str]], memory_limit: int | None) -> Model:
    """The model on nodes; TooLargeError where its tables do not fit."""
    check_options({"memory_limit": memory_limit})
    limit = default_memory_limit() if memory_limit is None else int(memory_limit)
    members = _members(model.variables, groups)
    known = _known(model.problem, set().union(*members), limit)
    merge = Merge(model.problem, tuple(_ordered(members, len(model.variables))), known)
    merge.refuse((), limit)  # before edges are looked for
    edges = agreements(merge.nodes)
    merge.refuse(edges, limit)
    names = [",".join(model.variables.names_at(node)) for node in merge.nodes]
    spaces = [tuple(map(",".join, product(*map(model.variables.states, node)))) for node in merge.nodes]
    factors: dict[str, tuple[list[str], Array]] = {}
    for name, (nodes, table) in _multiplied(chain(merge.factors(), merge.agreeing(edges))):
        factors[_unused(name, factors)] = ([names[node] for node in nodes], table)
    return markov_network(Variables.from_spaces(NameList(names), spaces), factors)


def _members(variables: Variables, groups: Any) -> list[tuple[int, ...]]:
    """The variables of each group."""
    expected = 'groups are lists of names of variables, as in [["i", "j", "m"], ["k", "l"]]'
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        raise ModelError(f"{expected}; got {groups!r}")
    found: list[tuple[int, ...]] = []
    for number, group in enumerate(groups):
        if isinstance(group, str) or not isinstance(group, Iterable) or not (names := list(group)):
            raise ModelError(f"{expected}; group {number} is {group!r}")
        indices = tuple(variables.index(name) for name in names)
        if len(set(indices)) != len(indices):
            raise ModelError(f"group {number} names a variable twice: {names}")
        if set(indices) in map(set, found):
            raise ModelError(f"group {number} has the same variables as one before it: {names}")
        found.append(indices)
    return found


def _ordered(members: list[tuple[int, ...]], n_variables: int) -> Iterator[tuple[int, ...]]:
    """All nodes, each at the place of the first of its variables in the model."""
    inside = set().union(*members)
    starting: dict[int, list[tuple[int, ...]]] = {}
    for group in members:
        starting.setdefault(min(group), []).append(group)
    for v in range(n_variables):
        yield from starting.get(v, [])
        if v not in inside:
            yield (v,)


def _known(problem: Problem, inside: set[int], limit: int) -> dict[int, int]:
    """The one state of each variable outside all groups to which hard zeros leave one; none where no labelling is."""
    prepared = Prepared(problem, KINDS, limit)
    if not prepared.possible.all():
        return {}
    offsets, allowed = problem.graph.state_offsets, prepared.base[0] > -np.inf
    left = np.add.reduceat(allowed, offsets[:-1])
    alone = [v for v in np.flatnonzero(left == 1).tolist() if v not in inside]
    return {v: int(allowed[offsets[v] : offsets[v + 1]].argmax()) for v in alone}


def _unused(name: str, names: Iterable[str]) -> str:
    """The name, with a number where it is there already."""
    taken, number = set(names), 2
    while (tried := name if number == 2 else f"{name} {number - 1}") in taken:
        number += 1
    return tried


def _multiplied(factors: Iterable[tuple[str, Factor]]) -> Iterator[tuple[str, Factor]]:
    """Factors on one node as they are, and one factor for each set of several, named "f * g"."""
    found: dict[frozenset[int], tuple[str, Factor]] = {}
    for name, (nodes, table) in factors:
        key = frozenset(nodes)
        if len(nodes) == 1:
            yield name, (nodes, table)
        elif key not in found:
            found[key] = name, (nodes, table)
        else:
            before, (order, product_so_far) = found[key]
            moved = table.transpose([nodes.index(node) for node in order])
            found[key] = f"{before} * {name}", (order, product_so_far + moved)
    yield from found.values()


def holders_of(nodes: Sequence[tuple[int, ...]]) -> dict[int, list[int]]:
    """The nodes of each variable."""
    holders: dict[int, list[int]] = {}
    for number, node in enumerate(nodes):
        for v in node:
            holders.setdefault(v, []).append(number)
    return holders


def agreements(nodes: Sequence[tuple[int, ...]]) -> dict[tuple[int, int], list[int]]:
    """Pairs of nodes, and the variables in which they have to agree, so that all copies of a variable do."""
    holders = holders_of(nodes)
    shared: dict[tuple[int, int], list[int]] = {}
    for v in sorted(holders):
        for pair in combinations(holders[v], 2):
            shared.setdefault(pair, []).append(v)
    pairs = sorted(shared, key=lambda pair: (-len(shared[pair]), pair))
    found = {pair: list(shared[pair]) for pair in _spanning(pairs, [])}
    joining: dict[int, list[tuple[int, int]]] = {}
    for pair in pairs:
        for v in shared[pair]:
            joining.setdefault(v, []).append(pair)
    for v, own in joining.items():
        there = [pair for pair in own if v in found.get(pair, ())]
        for pair in _spanning(own, there):
            found.setdefault(pair, []).append(v)
    return found


def _spanning(pairs: Iterable[tuple[int, int]], there: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The first pairs that make, with those that are there, a forest which joins whatever all of them join."""
    root: dict[int, int] = {}

    def find(node: int) -> int:
        while (above := root.get(node, node)) != node:
            node = above
        return node

    added = []
    for kept, pair in [*((False, pair) for pair in there), *((True, pair) for pair in pairs)]:
        one, other = map(find, pair)
        if one != other:
            root[one] = other
            if kept:
                added.append(pair)
    return added


@dataclass(frozen=True, slots=True, eq=False)
class Merge:
    """A problem, the variables of each node, and the states of known variables."""

    problem: Problem
    nodes: tuple[tuple[int, ...], ...]
    known: Mapping[int, int]

    def size(self, node: int) -> int:
        """How many joint states a node has."""
        return math.prod(self.problem.graph.variables.cardinalities[list(self.nodes[node])].tolist())

    def refuse(self, edges: Iterable[tuple[int, int]], limit: int) -> None:
        """TooLargeError where the states of nodes, their factors, or those between them do not fit."""
        entries = sum(self.size(a) * self.size(b) for a, b in edges)
        holders = holders_of(self.nodes)
        for f in range(self.problem.graph.n_factors):
            entries += math.prod(map(self.size, self._cover(self._free(f), holders)))
        needed = OF_ENTRY * entries + OF_STATE * sum(map(self.size, range(len(self.nodes))))
        needed = min(needed, 10**30)
        refuse("the merged model", needed, limit, "merge fewer variables at a time", least=needed)

    def _free(self, f: int) -> list[int]:
        """The variables of a factor that are not known; the first one where all are."""
        scope = self.problem.graph.scope(f).tolist()
        return [v for v in scope if v not in self.known] or scope[:1]

    def _cover(self, scope: list[int], holders: Mapping[int, list[int]]) -> list[int]:
        """Nodes that have all variables of a scope, in its order: those that have most, and small ones, come first."""
        left, chosen = set(scope), list[int]()
        while left:
            able = {node for v in left for node in holders[v]}
            best = min((-len(left.intersection(self.nodes[node])), self.size(node), node) for node in able)[-1]
            chosen.append(best)
            left -= set(self.nodes[best])
        return sorted(chosen, key=lambda node: min(scope.index(v) for v in self.nodes[node] if v in scope))

    def _codes(self, node: int) -> IntArray:
        """(n, K): the state of each of its variables at its own states."""
        shape = self.problem.graph.variables.cardinalities[list(self.nodes[node])].tolist()
        return np.array(np.unravel_index(np.arange(math.prod(shape)), shape))

    def factors(self) -> Iterator[tuple[str, Factor]]:
        """All factors of the model, by name, and those that give known variables their state."""
        graph, holders = self.problem.graph, holders_of(self.nodes)
        for f in graph.factor_order.tolist():
            free = self._free(f)
            at = tuple(slice(None) if v in free else self.known[v] for v in graph.scope(f).tolist())
            nodes = self._cover(free, holders)
            yield graph.factor_name(f), (nodes, self._spread(self.problem.table(f)[at], free, nodes))
        for v, state in self.known.items():
            states = graph.variables.states(v)
            if len(states) > 1:
                table = np.where(np.arange(len(states)) == state, 0.0, -np.inf)
                yield f"{graph.variables.names[v]}={states[state]}", (holders[v], table)

    def _spread(self, table: Array, scope: list[int], nodes: list[int]) -> Array:
        """A table on variables as one on nodes."""
        index: dict[int, Any] = {}
        for axis, node in enumerate(nodes):
            shape = [-1 if other == axis else 1 for other in range(len(nodes))]
            for v, codes in zip(self.nodes[node], self._codes(node), strict=True):
                index.setdefault(v, codes.reshape(shape))
        return np.asarray(table[tuple(index[v] for v in scope)])

    def agreeing(self, edges: dict[tuple[int, int], list[int]]) -> Iterator[tuple[str, Factor]]:
        """A factor of hard zeros between the nodes of each pair, by name."""
        variables = self.problem.graph.variables
        for pair, agreed in edges.items():
            one, other = (self._codes(node)[[self.nodes[node].index(v) for v in agreed]] for node in pair)
            same = (one[:, :, None] == other[:, None]).all(axis=0)
            yield f"same({','.join(variables.names_at(agreed))})", (list(pair), np.where(same, 0.0, -np.inf))
