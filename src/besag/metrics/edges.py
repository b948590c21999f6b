"""How near a learned graph is to the true one: edges found, missed, and turned round.

A graph is a PDAG, a Bayesian network, a networkx graph, or edges (parent, child). Data do not tell DAGs of one
equivalence class apart, so by default both sides are turned into CPDAGs first; a PDAG with undirected edges stays as
it is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from besag.arrays import BoolArray
from besag.errors import ModelError
from besag.graph.directed.pdag import PDAG
from besag.model.dag import parents_of
from besag.model.model import Model


class EdgeScores(NamedTuple):
    """precision: of the edges found, how many are true. recall: of the true ones, how many were found."""

    precision: float
    recall: float
    f1: float


def structural_hamming_distance(truth: Any, learned: Any, *, compare: str = "cpdag") -> int:
    """How many pairs of variables are joined differently: not in one graph, or in another direction.

    compare: "cpdag", or "graph" for the edges as they stand (Tsamardinos, Brown and Aliferis 2006).

    >>> structural_hamming_distance([("A", "B"), ("B", "C")], [("B", "A"), ("B", "C")])
    0
    >>> structural_hamming_distance([("A", "B"), ("B", "C")], [("B", "A"), ("B", "C")], compare="graph")
    1
    """
    a, b = _both(truth, learned, compare)
    differ = (a != b) | (a != b).T
    return int(np.triu(differ).sum())


def edge_scores(truth: Any, learned: Any, *, directed: bool = False, compare: str = "cpdag") -> EdgeScores:
    """Precision, recall and f1 of edges; directed: an edge counts only where its direction is right as well.

    >>> edge_scores([("A", "B"), ("B", "C")], [("A", "B"), ("A", "C")])
    EdgeScores(precision=0.5, recall=0.5, f1=0.5)
    """
    a, b = _both(truth, learned, compare)
    joined_a, joined_b = np.triu(a | a.T), np.triu(b | b.T)
    common = joined_a & joined_b
    if directed:
        common &= (a == b) & (a == b).T
    hits, found, true = int(common.sum()), int(joined_b.sum()), int(joined_a.sum())
    precision, recall = (hits / found if found else 1.0), (hits / true if true else 1.0)
    return EdgeScores(precision, recall, 2 * hits / (found + true) if found + true else 1.0)


def _both(truth: Any, learned: Any, compare: str) -> tuple[BoolArray, BoolArray]:
    if compare not in ("cpdag", "graph"):
        raise ModelError(f'compare must be "cpdag" or "graph", got {compare!r}')
    a, b = read_graph(truth), read_graph(learned)
    for here, there, isolated in ((a, b, truth), (b, a, learned)):
        missing = [name for name in there.names if name not in here.names]
        if missing and not isinstance(isolated, list | tuple):  # edges alone do not name variables without one
            raise ModelError(f"the two graphs have different variables: {missing[0]!r} is in one of them only")
    names = list(dict.fromkeys([*a.names, *b.names]))
    if compare == "cpdag":
        a, b = (graph.cpdag() if graph.is_dag else graph for graph in (a, b))
    return a.over(names).matrix, b.over(names).matrix


def read_graph(given: Any) -> PDAG:
    """A PDAG from whatever stands for a graph."""
    if isinstance(given, PDAG):
        return given
    if isinstance(given, Model):
        matrix = np.zeros((len(given.variables),) * 2, np.bool_)
        for child, parents in enumerate(parents_of(given)):
            matrix[parents, child] = True
        return PDAG(tuple(variable.name for variable in given.variables), matrix)
    return PDAG.from_edges(given) if isinstance(given, list | tuple) else PDAG.from_networkx(given)
