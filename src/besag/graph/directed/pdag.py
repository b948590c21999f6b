"""PDAG: a graph whose edges are directed or not.

    matrix (V, V)    [i, j] and not [j, i]: i -> j; both: i - j

A DAG is one without undirected edges, a CPDAG stands for all DAGs of one equivalence class: see `orientation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import BoolArray
from besag.errors import ModelError, require
from besag.graph.directed.orientation import along_order, cpdag_of, extend, order_of
from besag.model.dag import are_separated
from besag.registry import is_whole
from besag.text import did_you_mean

if TYPE_CHECKING:
    import networkx as nx

Edge = tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class PDAG:
    """Names of V variables, and the matrix (V, V) of their edges.

    >>> graph = PDAG.from_edges([("A", "B"), ("B", "C")])
    >>> graph.cpdag()
    PDAG(A - B, B - C)
    >>> graph.d_separated("A", "C", given=["B"])
    True
    """

    names: tuple[str, ...]
    matrix: BoolArray

    def __post_init__(self) -> None:
        self.matrix.setflags(write=False)

    @classmethod
    def from_edges(
        cls, directed: Iterable[Any], undirected: Iterable[Any] = (), names: Iterable[str] | None = None
    ) -> PDAG:
        """From pairs of names; `names` gives the order of the variables, and those without an edge."""
        arrows, lines = [tuple(map(str, e)) for e in directed], [tuple(map(str, e)) for e in undirected]
        found = dict.fromkeys(name for edge in [*arrows, *lines] for name in edge)
        known = tuple(found) if names is None else tuple(map(str, names))
        matrix = np.zeros((len(known), len(known)), np.bool_)
        for a, b in [*arrows, *lines, *((b, a) for a, b in lines)]:
            i, j = number_of(known, a, "an edge"), number_of(known, b, "an edge")
            if i == j:
                raise ModelError(f"an edge joins two variables, got {a!r} twice")
            matrix[i, j] = True
        return cls(known, matrix)

    @classmethod
    def read(cls, given: Any) -> PDAG:
        """A PDAG as it is, a networkx graph, or pairs (parent, child)."""
        if isinstance(given, PDAG):
            return given
        pairs = isinstance(given, list | tuple | set | frozenset)
        if pairs and all(isinstance(edge, list | tuple) and len(edge) == 2 for edge in given):
            return cls.from_edges(given)
        return cls.from_networkx(given)

    @classmethod
    def from_networkx(cls, graph: Any) -> PDAG:
        """A DiGraph, where edges in both directions are one undirected edge, or a Graph, all of it undirected."""
        if not hasattr(graph, "edges") or not hasattr(graph, "is_directed"):
            raise ModelError(f"expected a PDAG, a networkx graph or pairs, got {type(graph).__name__}")
        edges = [(str(a), str(b)) for a, b in graph.edges()]
        both = [] if graph.is_directed() else [(b, a) for a, b in edges]
        return cls.from_edges([*edges, *both], names=map(str, graph.nodes))

    def to_networkx(self) -> nx.DiGraph[str]:
        """A DiGraph, with edges in both directions for an undirected one."""
        require("networkx", "graph", "PDAG.to_networkx")
        import networkx as nx

        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from(self.names)
        graph.add_edges_from((self.names[i], self.names[j]) for i, j in np.argwhere(self.matrix).tolist())
        return graph

    @property
    def edges(self) -> list[Edge]:
        """The directed ones, (parent, child)."""
        return self._named(self.matrix & ~self.matrix.T)

    @property
    def undirected(self) -> list[Edge]:
        """Each undirected edge once."""
        return self._named(np.triu(self.matrix & self.matrix.T))

    def _named(self, matrix: BoolArray) -> list[Edge]:
        return [(self.names[i], self.names[j]) for i, j in np.argwhere(matrix).tolist()]

    @property
    def is_dag(self) -> bool:
        """Whether every edge is directed, and none of them lies on a cycle."""
        return not (self.matrix & self.matrix.T).any() and order_of(self.matrix) is not None

    @property
    def parents(self) -> list[list[int]]:
        """The numbers of the parents of each variable, by directed edges, in ascending order."""
        arrows = self.matrix & ~self.matrix.T
        return [np.flatnonzero(column).tolist() for column in arrows.T]

    def cpdag(self) -> PDAG:
        """What stands for all DAGs with the same independences."""
        return PDAG(self.names, cpdag_of(self.extension().matrix))

    def extension(self, *, strict: bool = True) -> PDAG:
        """A DAG of the class: the same edges and colliders; ModelError where there is none.

        strict: False allows other colliders, where it is only cycles that must not be.
        """
        if self.is_dag:
            return self
        found = extend(self.matrix)
        if found is None and not strict:
            found = along_order(self.matrix)
        if found is None:
            cycle = find_cycle(self.matrix & ~self.matrix.T)
            path = " -> ".join(self.names[v] for v in [*cycle, *cycle[:1]])
            why = f"the edges have a cycle: {path}" if cycle else "every DAG with these edges has further colliders"
            raise ModelError(f"the graph has no extension to a DAG: {why}")
        return PDAG(self.names, found)

    def d_separated(self, a: str | Iterable[str], b: str | Iterable[str], given: str | Iterable[str] = ()) -> bool:
        """Whether every trail between a and b is blocked by `given`; of a CPDAG, in all of its DAGs."""
        ends = [[number_of(self.names, name, "d_separated") for name in _listed(part)] for part in (a, b, given)]
        return are_separated(self.extension().parents, *ends)

    def over(self, names: Sequence[str]) -> PDAG:
        """The same edges between variables in another order, which may be more; ModelError where a name is missing."""
        at = [number_of(names, name, "the graph") for name in self.names]
        matrix = np.zeros((len(names), len(names)), np.bool_)
        matrix[np.ix_(at, at)] = self.matrix
        return PDAG(tuple(names), matrix)

    def __repr__(self) -> str:
        shown = [f"{a} -> {b}" for a, b in self.edges] + [f"{a} - {b}" for a, b in self.undirected]
        more = f", ... {len(shown)} edges" if len(shown) > 12 else ""
        return f"PDAG({', '.join(shown[:12])}{more})" if shown else f"PDAG({len(self.names)} variables, no edges)"


def _listed(given: str | Iterable[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def number_of(names: Sequence[str], given: Any, where: str) -> int:
    """The number of a variable from its name or its number; ModelError where there is none."""
    if is_whole(given) and given not in names:
        if 0 <= given < len(names):
            return int(given)
        raise ModelError(f"{where}: no variable has number {given}; there are {len(names)}")
    if str(given) in names:
        return list(names).index(str(given))
    hint = did_you_mean(str(given), names)
    raise ModelError("; ".join(filter(None, (f"{where}: no variable is named {str(given)!r}", hint))))


def find_cycle(arrows: BoolArray) -> list[int]:
    """The variables of a directed cycle, each a parent of the next; [] where there is none."""
    left = np.ones(len(arrows), np.bool_)
    while True:
        inner = left & arrows[left].any(axis=0) & arrows[:, left].any(axis=1)
        if (inner == left).all():
            break
        left = inner
    if not left.any():
        return []
    path = [int(np.flatnonzero(left)[0])]
    while True:
        v = int(np.flatnonzero(arrows[path[-1]] & left)[0])
        if v in path:
            return path[path.index(v) :]
        path.append(v)
