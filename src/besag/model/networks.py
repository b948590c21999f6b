"""A model as a networkx graph, and a model with evidence built in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from besag.errors import EvidenceError, ModelError, require
from besag.model.dag import parents_of
from besag.model.model import FactorGroup, Model
from besag.model.template import Template

if TYPE_CHECKING:
    import networkx as nx


def to_networkx(model: Model, kind: Literal["dag", "moral", "factor", "junction_tree"]) -> nx.Graph[Any]:
    """The directed graph, the moral graph (variables that share a factor), the factor graph, or the tree of cliques."""
    require("networkx", "graph", "to_networkx")
    import networkx as nx

    names = model.variables.names_at(range(len(model.variables)))
    if kind == "dag":
        graph: nx.Graph[Any] = nx.DiGraph()
        graph.add_nodes_from(names)
        graph.add_edges_from((names[p], names[c]) for c, above in enumerate(parents_of(model)) for p in above)
        return graph
    if kind == "junction_tree":
        return model.junction_tree().to_networkx()
    graph = nx.Graph()
    if kind == "moral":
        graph.add_nodes_from(names)
        for group in model.groups:
            for i, j in zip(*np.triu_indices(group.scopes.shape[1], 1), strict=True):
                graph.add_edges_from((names[a], names[b]) for a, b in group.scopes[:, [i, j]].tolist())
        return graph
    if kind != "factor":
        raise ModelError(f'kind must be "dag", "moral", "factor" or "junction_tree", got {kind!r}')
    graph.add_nodes_from(names, bipartite=0)
    for f in range(model.graph.n_factors):
        node = ("factor", f)
        graph.add_node(node, bipartite=1, name=model.graph.factor_name(f))
        graph.add_edges_from((names[v], node) for v in model.graph.scope(f).tolist())
    return graph


def condition(model: Model, evidence: Any) -> Model:
    """p(y | evidence) as a Model: all variables stay, and each observed one gets a factor for its evidence."""
    from besag.graph.evidence import read_evidence

    read = read_evidence(model.variables, evidence)
    if read.batched:
        raise EvidenceError("condition takes one row of evidence, a dict")
    variables, offsets = model.variables, model.variables.state_offsets
    weights = np.zeros(int(offsets[-1])) if read.log_weights is None else np.array(read.log_weights[0])
    touched = set(np.flatnonzero(read.observed[0] >= 0).tolist())
    touched |= set((np.searchsorted(offsets, np.flatnonzero(weights), side="right") - 1).tolist())
    groups, blocks, masks = list(model.groups), [model.theta], [_support(model)]
    number = sum(name.startswith("evidence") for name in model.layout.templates)
    for v in sorted(touched):
        row = weights[offsets[v] : offsets[v + 1]]
        if read.observed[0, v] >= 0:
            row = np.where(np.arange(len(row)) == read.observed[0, v], row, -np.inf)
        allowed = row > -np.inf
        groups.append(FactorGroup(Template(f"evidence {number}: {variables.names[v]}", row.shape), np.array([[v]])))
        blocks.append(np.where(allowed, -np.where(allowed, row, 0.0), 0.0))
        masks.append(allowed)
    theta, support = np.concatenate(blocks), np.concatenate(masks)
    return model.with_parts(groups=groups, theta=theta, support=support)


def _support(model: Model) -> Any:
    return np.ones(len(model.theta), np.bool_) if model.support is None else model.support
