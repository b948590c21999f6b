"""A Bayesian network between a file and a Model: nodes with names, states, parents, a CPT and metadata.

BIF, XMLBIF, NET, XDSL and DSC differ in syntax and in the order of a table's axes, and agree in everything else. Their
readers make Nodes and `model_of_nodes` turns them into a Model; `nodes_of` is the inverse for their writers.

    table (parents..., child)    probabilities; each row, over the child, sums to one
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from besag.arrays import Array, concatenate
from besag.errors import ModelError, ParseError
from besag.io.shared.numbers import weights_of
from besag.io.shared.tables import MAX_ARITY, TableError, TablePool, energies_of, model_of, normalise_rows
from besag.model.dag import CycleError, topological
from besag.model.model import Model
from besag.model.variable import NameList, Variables


@dataclass(slots=True)
class Node:
    """One variable of a file. parents: numbers of nodes, in the order of the table's axes. line: where it begins."""

    name: str
    states: tuple[str, ...]
    parents: list[int]
    table: Array
    metadata: dict[str, Any] = field(default_factory=dict)
    line: int | None = None


def model_of_nodes(nodes: Sequence[Node], path: str, metadata: dict[str, Any] | None = None) -> Model:
    """The Model of a file's nodes, in their order; ParseError, with the node's line, if one is wrong."""
    if not nodes:
        raise ParseError("expected at least one variable, got none", path=path)
    _check_names(nodes, path)
    kept = {v: node.metadata for v, node in enumerate(nodes) if node.metadata}
    variables = Variables.from_spaces(NameList(node.name for node in nodes), [node.states for node in nodes], kept)
    for node in nodes:
        _check_table(nodes, node, path)
    try:
        topological(variables, [node.parents for node in nodes])
    except CycleError as error:
        lines = [line for line in (nodes[v].line for v in error.cycle) if line is not None]
        raise ParseError(str(error), path=path, line=min(lines, default=None)) from None
    pools, weights = _pooled(nodes)
    if not np.isfinite(weights).all():
        wrong = next(node for node in nodes if not np.isfinite(node.table).all())
        raise ParseError(f"the table of {wrong.name!r} must hold finite numbers", path=path, line=wrong.line)
    try:
        weights = normalise_rows(variables, pools, weights)
    except TableError as error:
        raise ParseError(str(error), path=path, line=nodes[error.position].line) from None
    return model_of(variables, pools, *energies_of(weights), conditional=True, metadata=metadata)


def _check_names(nodes: Sequence[Node], path: str) -> None:
    seen: set[str] = set()
    for node in nodes:
        if not node.name or node.name in seen:
            message = f"variable {node.name!r} is declared twice" if node.name else "expected the name of a variable"
            raise ParseError(message, path=path, line=node.line)
        seen.add(node.name)
        if not node.states or not all(node.states) or len(set(node.states)) != len(node.states):
            raise ParseError(
                f"states of {node.name!r} must be one or more distinct names, got {list(node.states)[:20]}",
                path=path,
                line=node.line,
            )


def _check_table(nodes: Sequence[Node], node: Node, path: str) -> None:
    if len(node.parents) >= MAX_ARITY:
        raise ParseError(
            f"{node.name!r} may have {MAX_ARITY - 1} parents, got {len(node.parents)}", path=path, line=node.line
        )
    if len(set(node.parents)) != len(node.parents):
        raise ParseError(f"{node.name!r} names a parent twice", path=path, line=node.line)
    shape = (*[len(nodes[u].states) for u in node.parents], len(node.states))
    if node.table.size != prod(shape):
        raise ParseError(
            f"the table of {node.name!r} must have {prod(shape)} entries, {' x '.join(map(str, shape))}, "
            f"got {node.table.size}",
            path=path,
            line=node.line,
        )
    node.table = node.table.reshape(shape)


def _pooled(nodes: Sequence[Node]) -> tuple[list[TablePool], Array]:
    """The nodes grouped by the shape of their tables, and all tables in that order."""
    by_shape: dict[tuple[int, ...], list[int]] = {}
    for v, node in enumerate(nodes):
        by_shape.setdefault(node.table.shape, []).append(v)
    pools = [
        TablePool(shape, np.array([[*nodes[v].parents, v] for v in members], np.int64), np.array(members, np.int64))
        for shape, members in by_shape.items()
    ]
    return pools, concatenate([nodes[v].table for members in by_shape.values() for v in members], np.float64)


def nodes_of(model: Model, format_name: str) -> list[Node]:
    """The nodes of a Bayesian network, in the order of its variables; ModelError if the model is none."""
    if not model.is_bayesian_network:
        raise ModelError(
            f"{format_name} holds Bayesian networks, and this model is none: not every factor is a conditional "
            "probability table; save it as .uai or .json"
        )
    nodes: list[Node | None] = [None] * len(model.variables)
    for number, (scope, table) in enumerate(weights_of(model)):
        *parents, child = scope
        variable = model.variables[child]
        if nodes[child] is not None:
            raise ModelError(f"{variable.name!r} has two CPTs, one of them factor {number}")
        nodes[child] = Node(variable.name, variable.states, parents, table, dict(variable.metadata))
    return [node for node in nodes if node is not None]
