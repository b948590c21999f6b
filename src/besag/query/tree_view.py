"""The junction tree of a model, for people to look at: the cliques and separators that exact inference works with.

    cliques        maximal cliques of the triangulated graph; every factor's variables are in one of them
    separators     what two neighbouring cliques share; if a variable is in two cliques, it is in every separator on the
                   way between them (running intersection)
    p(y)  =  prod over cliques of p(y_C)  /  prod over separators of p(y_S)

The order is the one that inference takes: the best that was found, with observed variables taken out and with the
states that hard zeros rule out. The tree that messages run on has further nodes, which hold products only
(`besag.infer.junction.kernels.products`); they are left out here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from besag.errors import require
from besag.graph.evidence import read_evidence
from besag.infer.junction.engine import JunctionTree
from besag.infer.junction.shown import draw_tree
from besag.markup import make_card, make_table
from besag.text import shorten, table

if TYPE_CHECKING:
    import networkx as nx

    from besag.model.model import Model

Names = tuple[str, ...]

SHOWN = 20  # cliques of a print-out
HEADER = ("clique", "variables", "separator", "parent")


class Separator(NamedTuple):
    """An edge of the tree: numbers of the clique and of its parent, and the names of the variables they share."""

    clique: int
    parent: int
    names: Names


@dataclass(frozen=True, slots=True, eq=False)
class JunctionTreeView:
    """Cliques and separators by name.

    cliques: names in the model's order; children come before parents. separators: (clique, parent, names); a model in
    several parts has a tree for each. factors: names of those that each clique multiplies, the first that has all of
    their variables. fill_in: pairs of variables that elimination joined. width: variables of the largest clique, less
    one. order: of elimination. known: variables that are in no clique, because evidence and hard zeros leave them one
    state.
    """

    cliques: list[Names]
    separators: list[Separator]
    factors: list[Names]
    fill_in: list[tuple[str, str]]
    width: int
    order: Names
    known: Names

    def to_networkx(self) -> nx.Graph[Any]:
        """A graph of cliques, which are tuples of names; `separator` of an edge has the names that are shared."""
        require("networkx", "graph", "to_networkx")
        import networkx as nx

        graph: nx.Graph[Any] = nx.Graph()
        graph.add_nodes_from(self.cliques)
        for clique, parent, names in self.separators:
            graph.add_edge(self.cliques[clique], self.cliques[parent], separator=names)
        return graph

    def __repr__(self) -> str:
        return f"junction tree: {len(self.cliques)} cliques, width {self.width}, fill-in {len(self.fill_in)}"

    def __str__(self) -> str:
        rows, more = self._rows()
        return f"{self!r}\n{table(HEADER, rows)}" + (f"\n{more}" if more else "")

    def _repr_html_(self) -> str:
        return make_card(repr(self), (), make_table(HEADER, *self._rows()))

    def _rows(self) -> tuple[list[tuple[str, ...]], str]:
        above = {separator.clique: separator for separator in self.separators}
        rows: list[tuple[str, ...]] = []
        for number, clique in enumerate(self.cliques[:SHOWN]):
            up = above.get(number)
            shared, parent = ("", "") if up is None else (shorten(up.names), str(up.parent))
            rows.append((str(number), shorten(clique), shared, parent))
        left = len(self.cliques) - len(rows)
        return rows, f"... and {left} more" if left else ""


def junction_tree(model: Model, evidence: Any) -> JunctionTreeView:
    """The tree of cliques that exact inference would take under this evidence."""
    tree = draw_tree(JunctionTree(), model.problem.with_evidence(read_evidence(model.variables, evidence)))
    names = model.variables.names_at(range(len(model.variables)))
    parents = [(c, clique.parent) for c, clique in enumerate(tree.cliques) if clique.parent >= 0]
    return JunctionTreeView(
        cliques=[tuple(names[v] for v in clique.variables) for clique in tree.cliques],
        separators=[Separator(c, parent, tuple(names[v] for v in tree.separator(c, parent))) for c, parent in parents],
        factors=[tuple(model.graph.factor_name(f) for f in clique.factors) for clique in tree.cliques],
        fill_in=[(names[a], names[b]) for a, b in tree.fill_in.tolist()],
        width=max((len(clique.variables) for clique in tree.cliques), default=1) - 1,
        order=tuple(names[v] for v in tree.order.tolist()),
        known=tuple(names[v] for v in np.flatnonzero(tree.known >= 0).tolist()),
    )
