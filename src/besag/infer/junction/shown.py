"""A junction tree for people to look at: its cliques, which factors each holds, and the messages between them.

    m_{C->D}(y_S) = sum over y_{C minus S} of psi_C(y_C) prod_{B != D} m_{B->C}(y_{B and C})
    psi_C prod_B m_{B->C}  =  Z p(y_C)

S is what C and D share. psi_C is the product of the clique's factors: each factor, and the evidence on each variable,
belongs to the first clique that has all its free variables. Variables that evidence or hard zeros leave one state are
in no clique; factors are read at that state, and those of nothing else belong to the last clique.

Messages go from the leaves to the root and back, in the log domain and in the scale of the formulas; in the other
semiring sums are minima and products are sums of energies. The kernels do the same work on tiles that are never stored;
this is the form used in lectures, for trees whose cliques fit in memory one by one.

    V variables, C cliques
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from besag.arrays import Array, IntArray, Semiring
from besag.graph.problem import Problem
from besag.infer.engine import Want
from besag.infer.junction.run import JunctionRun
from besag.infer.memory import default_memory_limit, refuse
from besag.infer.orders.triangulation import triangulate
from besag.infer.trees.messages import Message, MessageLog
from besag.infer.unary import evidence_at

if TYPE_CHECKING:
    import pandas as pd

    from besag.infer.junction.engine import JunctionTree

ALL: frozenset[Want] = frozenset({"log_partition", "variables"})
OF_VALUE = 400  # bytes of a row of a DataFrame of messages


class ShownClique(NamedTuple):
    """Its variables in the model's order, its factors, and its parent, -1 for a root."""

    variables: tuple[int, ...]
    factors: tuple[int, ...]
    parent: int


@dataclass(frozen=True, slots=True, eq=False)
class DrawnTree:
    """Cliques, children before parents; fill_in (M, 2); the order of elimination; known (V,): the one state, or -1."""

    cliques: tuple[ShownClique, ...]
    fill_in: IntArray
    order: IntArray
    known: IntArray

    def separator(self, a: int, b: int) -> tuple[int, ...]:
        """The variables that two neighbours share."""
        return tuple(v for v in self.cliques[a].variables if v in self.cliques[b].variables)


def draw_tree(engine: JunctionTree, problem: Problem) -> DrawnTree:
    """The tree of cliques that inference takes, without the nodes of it that hold products only."""
    graph = problem.graph
    _, drawn = JunctionRun(engine, problem, dense=False).draw_up(ALL)
    found = triangulate(graph, drawn.order.variables, drawn.counts > 1)
    offsets, members = found.member_offsets.tolist(), found.members.tolist()
    variables = [tuple(sorted(members[a:b])) for a, b in pairwise(offsets)]
    first_left = drawn.codes[np.minimum(drawn.digit_offsets[:-1], max(len(drawn.codes) - 1, 0))]
    observed = problem.evidence.observed[0]
    known = np.where(drawn.counts > 1, -1, np.where(observed >= 0, observed, first_left))
    factors = _factors_of(problem, variables, known)
    cliques = zip(variables, factors, found.parent.tolist(), strict=True)
    return DrawnTree(tuple(ShownClique(*clique) for clique in cliques), found.fill_in, drawn.order.variables, known)


def _factors_of(problem: Problem, cliques: list[tuple[int, ...]], known: IntArray) -> list[tuple[int, ...]]:
    """The factors of each clique, in the model's order."""
    sets, holders = [set(clique) for clique in cliques], dict[int, list[int]]()
    for c, clique in enumerate(cliques):
        for v in clique:
            holders.setdefault(v, []).append(c)
    found: list[list[int]] = [[] for _ in cliques]
    for f in problem.graph.factor_order.tolist():
        free = [v for v in problem.graph.scope(f).tolist() if known[v] < 0]
        if free:
            c = next(c for c in holders[free[0]] if sets[c].issuperset(free))
            found[c].append(f)
    return [tuple(own) for own in found]


@dataclass(frozen=True, eq=False)
class CliqueMessages:
    """The messages of one row of evidence, which are sent when somebody looks at them."""

    engine: JunctionTree
    problem: Problem
    semiring: Semiring

    def to_frame(self) -> pd.DataFrame:
        """Columns step, source, target, state, value; states of a separator are joined by commas."""
        return self.send_all().to_frame()

    def send_all(self) -> MessageLog:
        """All of them in the order of sending; TooLargeError where the largest clique and the messages do not fit."""
        tree = draw_tree(self.engine, self.problem)
        edges = [(c, clique.parent) for c, clique in enumerate(tree.cliques) if clique.parent >= 0]
        self._refuse(tree, edges)
        post = _CliquePost(self.problem, tree, self.semiring)
        for child, parent in edges:
            post.send(child, parent)
        for child, parent in reversed(edges):
            post.send(parent, child)
        return MessageLog(tuple(post.sent), self.semiring)

    def _refuse(self, tree: DrawnTree, edges: list[tuple[int, int]]) -> None:
        sizes = self.problem.graph.variables.cardinalities.astype(np.float64)
        largest = max((float(sizes[list(clique.variables)].prod()) for clique in tree.cliques), default=0.0)
        values = sum(2 * float(sizes[list(tree.separator(*edge))].prod()) for edge in edges)
        limit = default_memory_limit() if self.engine.memory_limit is None else self.engine.memory_limit
        needed = 3 * 8 * largest + OF_VALUE * values
        advice = "model.junction_tree() shows the cliques alone"
        refuse("the messages of the junction tree, to look at,", needed, limit, advice, least=needed)


class _CliquePost:
    """What every clique has received so far."""

    def __init__(self, problem: Problem, tree: DrawnTree, semiring: Semiring) -> None:
        self.problem, self.tree, self.semiring = problem, tree, semiring
        self.sent: list[Message] = []
        self.received: list[dict[int, Array]] = [{} for _ in tree.cliques]
        self.first = {v: c for c, clique in reversed(list(enumerate(tree.cliques))) for v in clique.variables}

    def send(self, source: int, target: int) -> None:
        """The clique's factors times what all others sent, summed over all variables but the separator's."""
        scope, separator = self.tree.cliques[source].variables, self.tree.separator(source, target)
        values = self.table(source)
        for other, message in self.received[source].items():
            if other != target:
                values = values + spread(message, self.tree.separator(source, other), scope)
        rows = np.moveaxis(values, [scope.index(v) for v in separator], range(len(separator)))
        rows = rows.reshape(*rows.shape[: len(separator)], -1)
        add = np.maximum if self.semiring == Semiring.MAX else np.logaddexp
        self.received[target][source] = add.reduce(rows, axis=-1)
        self._record(source, target, separator, self.received[target][source])

    def _record(self, source: int, target: int, separator: tuple[int, ...], message: Array) -> None:
        variables = self.problem.graph.variables
        states = tuple(map(",".join, product(*(variables.states(v) for v in separator))))
        self.sent.append(Message(self._name(source), self._name(target), states, message.reshape(-1)))

    def _name(self, c: int) -> str:
        return ",".join(self.problem.graph.variables.names_at(self.tree.cliques[c].variables))

    def table(self, c: int) -> Array:
        """psi_C as log-weights: the factors of a clique and the evidence on variables that no clique before it has."""
        clique, variables = self.tree.cliques[c], self.problem.graph.variables
        values = np.zeros(variables.cardinalities[list(clique.variables)])
        for f in clique.factors:
            values = values + spread(*self._free_part(f), clique.variables)
        for v in clique.variables:
            if self.first[v] == c:
                values = values + spread(evidence_at(self.problem, v), (v,), clique.variables)
        return values + self._constant if c == len(self.tree.cliques) - 1 else values

    def _free_part(self, f: int) -> tuple[Array, tuple[int, ...]]:
        """A factor at the states of its known variables, and its free ones."""
        scope, known = self.problem.graph.scope(f).tolist(), self.tree.known
        table = self.problem.table(f)[tuple(slice(None) if known[v] < 0 else int(known[v]) for v in scope)]
        return np.asarray(table), tuple(v for v in scope if known[v] < 0)

    @cached_property
    def _constant(self) -> float:
        """What has known variables only: their factors and the evidence on them."""
        known, graph = self.tree.known, self.problem.graph
        whole = [f for f in range(graph.n_factors) if (known[graph.scope(f)] >= 0).all()]
        seen = (evidence_at(self.problem, v)[known[v]] for v in np.flatnonzero(known >= 0).tolist())
        return float(sum(self._free_part(f)[0] for f in whole) + sum(seen))


def spread(values: Array, scope: tuple[int, ...], over: tuple[int, ...]) -> Array:
    """A table on some variables with an axis for each variable of a larger scope, of length 1 for the others."""
    order = sorted(range(len(scope)), key=lambda axis: over.index(scope[axis]))
    sizes = dict(zip(scope, values.shape, strict=True))
    return values.transpose(order).reshape([sizes.get(v, 1) for v in over])
