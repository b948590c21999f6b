"""What can be said of a model without inference: its size, its shape, and what is odd about it.

Tables are looked at as they are stored, in the log domain: T tables (T, entries) of a block, each read by one factor or
more. An entry of -inf is a hard zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from besag.arrays import AnyArray, BoolArray, IntArray, concatenate
from besag.graph.graph import Graph
from besag.model.model import Model


class Oddity(NamedTuple):
    """Something to look at: what, how often, and who."""

    what: str
    times: int
    names: list[str]


EXAMPLES = 5


def size_of(model: Model) -> dict[str, Any]:
    """Numbers of variables, factors and parameters, and the shape of the graph."""
    graph, cardinalities = model.graph, model.variables.cardinalities
    arities, counts = np.unique(np.diff(graph.scope_offsets), return_counts=True)
    degrees = graph.degrees
    return {
        "kind": "Bayesian network" if model.is_bayesian_network else "Markov network",
        "variables": graph.n_variables,
        "states": {"least": int(cardinalities.min()), "most": int(cardinalities.max())},
        "factors": graph.n_factors,
        "arities": {str(arity): int(count) for arity, count in zip(arities, counts, strict=True)},
        "degrees": {"least": int(degrees.min()), "mean": float(degrees.mean()), "most": int(degrees.max())},
        "parameters": model.layout.n_parameters,
        "components": len(np.unique(components(graph))),
    }


def components(graph: Graph) -> IntArray:
    """(V,): the least variable that each is connected with.

    Every scope joins the trees of its variables, the tree of the larger root below the smaller one; then all point to
    their roots. This is repeated until no scope joins two trees.
    """
    first = np.repeat(graph.scope_variables[graph.scope_offsets[:-1]], np.diff(graph.scope_offsets))
    root = np.arange(graph.n_variables)
    while True:
        one, other = root[first], root[graph.scope_variables]
        if (one == other).all():
            return root
        np.minimum.at(root, np.maximum(one, other), np.minimum(one, other))
        while (root[root] != root).any():
            root = root[root]


def oddities(model: Model) -> list[Oddity]:
    """What is odd about a model, if it is not what was meant."""
    graph = model.graph
    neighbours = np.zeros(graph.n_variables, np.int64)
    np.add.at(
        neighbours, graph.scope_variables, np.repeat(np.diff(graph.scope_offsets), np.diff(graph.scope_offsets)) - 1
    )
    zeros, uniform, determined, n_entries = _looked_at(model)
    found = [
        _variables(model, "variables of one state", model.variables.cardinalities == 1),
        _variables(model, "isolated variables", neighbours == 0),
        _factors(model, "uniform tables, perhaps never set", uniform),
        _factors(model, "deterministic tables", determined),
        _factors(model, f"tables with hard zeros, {zeros.sum() / max(n_entries, 1):.1%} of all entries", zeros > 0),
        _factors(model, "factors on the variables of another one", _repeated(graph)),
    ]
    return [oddity for oddity in found if oddity.times]


def _variables(model: Model, what: str, which: BoolArray) -> Oddity:
    found = np.flatnonzero(which)
    return Oddity(what, len(found), model.variables.names_at(found[:EXAMPLES]))


def _factors(model: Model, what: str, which: BoolArray) -> Oddity:
    """In the model's order; a CPT goes by its child."""
    order = model.graph.factor_order
    found = order[which[order]]
    directed = model.is_bayesian_network
    names = [
        model.variables.names[int(model.graph.scope(f)[-1])] if directed else model.graph.factor_name(f)
        for f in found[:EXAMPLES].tolist()
    ]
    return Oddity(what, len(found), names)


def _looked_at(model: Model) -> tuple[IntArray, BoolArray, BoolArray, int]:
    """Of each factor: its hard zeros, whether it is uniform, whether it is deterministic; and the number of entries."""
    parts = list(_by_block(model))
    zeros, uniform, determined, sizes = (concatenate([part[i] for part in parts], np.int64) for i in range(4))
    return zeros, uniform.astype(np.bool_), determined.astype(np.bool_), int(sizes.sum())


def _by_block(model: Model) -> Iterator[tuple[AnyArray, AnyArray, AnyArray, AnyArray]]:
    problem = model.problem
    for number, block in enumerate(model.graph.blocks):
        tables, readers = problem.block_tables(number)
        flat = tables.reshape(len(tables), -1)
        allowed = flat > -np.inf
        dense = block.template.structured is None and flat.shape[1] > 1
        uniform = (flat == flat[:, :1]).all(axis=1) & dense
        rows = allowed.reshape(len(tables), -1, block.template.shape[-1]).sum(axis=2) if dense else allowed
        determined = (rows == 1).all(axis=1) & dense & (block.template.shape[-1] > 1)
        zeros = flat.shape[1] - allowed.sum(axis=1)
        sizes = np.full(len(readers), flat.shape[1])
        yield zeros[readers], uniform[readers], determined[readers], sizes


def _repeated(graph: Graph) -> BoolArray:
    """(F,): whether an earlier factor has the same variables, in whatever order."""
    again = np.zeros(graph.n_factors, np.bool_)
    arities, order = np.diff(graph.scope_offsets), graph.factor_order
    for arity in np.unique(arities).tolist():
        factors = order[arities[order] == arity]
        scopes = graph.scope_variables[graph.scope_offsets[factors][:, None] + np.arange(arity)]
        _, first = np.unique(np.sort(scopes, axis=1), axis=0, return_index=True)
        again[factors] = True
        again[factors[first]] = False
    return again
