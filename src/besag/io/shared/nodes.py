"""A Bayesian network between a file and a Model: nodes with names, states, parents, a CPT and metadata.

BIF, XMLBIF, NET, XDSL and DSC differ in syntax and in the order of a table's axes, and agree in everything else. Their
readers make Nodes and `model_of_nodes` turns them into a Model; `nodes_of` is the inverse for their writers.

    table (parents..., child)    probabilities; each row, over the child, sums to one
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from besag.arrays import Array, BoolArray, concatenate
from besag.errors import ModelError, ParseError
from besag.io.shared.numbers import weights_of
from besag.io.shared.tables import MAX_ARITY, TableError, TablePool, energies_of, model_of, normalise_rows
from besag.model.dag import CycleError, parents_of, topological
from besag.model.model import FactorGroup, Model
from besag.model.structured.noisy import NoisyMax
from besag.model.template import Template
from besag.model.variable import NameList, Variables


@dataclass(slots=True)
class Node:
    """One variable of a file. parents: numbers of nodes, in the order of the table's axes. line: where it begins.

    table: the CPT, empty where a noisy-MAX is in its place.
    """

    name: str
    states: tuple[str, ...]
    parents: list[int]
    table: Array
    metadata: dict[str, Any] = field(default_factory=dict)
    line: int | None = None
    noisy: NoisyMax | None = None


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
    plain = [node for node in nodes if node.noisy is None]
    pools, weights = _pooled(nodes)
    if not np.isfinite(weights).all():
        wrong = next(node for node in plain if not np.isfinite(node.table).all())
        raise ParseError(f"the table of {wrong.name!r} must hold finite numbers", path=path, line=wrong.line)
    try:
        weights = normalise_rows(variables, pools, weights)
    except TableError as error:
        raise ParseError(str(error), path=path, line=nodes[error.position].line) from None
    model = model_of(variables, pools, *energies_of(weights), conditional=True, metadata=metadata)
    return model if len(plain) == len(nodes) else _with_noisy(model, nodes)


def _with_noisy(model: Model, nodes: Sequence[Node]) -> Model:
    """The model of all tables, with the noisy-MAX factors of the other nodes."""
    groups, support = list(model.groups), model.support
    for v, node in enumerate(nodes):
        if node.noisy is not None:
            template = Template(f"noisy_max[{node.name}]", node.noisy.shape, basis=node.noisy)
            groups.append(FactorGroup(template, np.array([[*node.parents, v]]), None, True, np.array([v])))
    n_noisy = len(groups) - len(model.groups)
    if support is not None:
        support = np.concatenate([support, np.ones(n_noisy, np.bool_)])
    return model.with_parts(groups=groups, theta=np.concatenate([model.theta, np.ones(n_noisy)]), support=support)


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
    if len(node.parents) >= MAX_ARITY and node.noisy is None:
        raise ParseError(
            f"{node.name!r} may have {MAX_ARITY - 1} parents, got {len(node.parents)}", path=path, line=node.line
        )
    if len(set(node.parents)) != len(node.parents):
        raise ParseError(f"{node.name!r} names a parent twice", path=path, line=node.line)
    shape = (*[len(nodes[u].states) for u in node.parents], len(node.states))
    if node.noisy is not None:  # made for these states by its reader
        return
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
        if node.noisy is not None:
            continue
        by_shape.setdefault(node.table.shape, []).append(v)
    pools = [
        TablePool(shape, np.array([[*nodes[v].parents, v] for v in members], np.int64), np.array(members, np.int64))
        for shape, members in by_shape.items()
    ]
    return pools, concatenate([nodes[v].table for members in by_shape.values() for v in members], np.float64)


Holds = Callable[[NoisyMax], bool]


def holds_none(term: NoisyMax) -> bool:
    """What a format without noisy-MAX says of it."""
    return False


def nodes_of(model: Model, format_name: str, holds: Holds = holds_none) -> list[Node]:
    """The nodes of a Bayesian network, in the order of its variables; ModelError if the model is none.

    holds: whether the format has a place for a noisy-MAX; a table is made of any other, or TooLargeError.
    """
    if not model.is_bayesian_network:
        raise ModelError(
            f"{format_name} holds Bayesian networks, and this model is none: not every factor is a conditional "
            "probability table; save it as .uai or .json"
        )
    nodes: list[Node | None] = [None] * len(model.variables)
    terms = noisy_terms(model)
    whole = {child: term for child, term in terms.items() if holds(term)}
    for number, (scope, table) in enumerate(weights_of(_without(model, whole))):
        *parents, child = scope
        variable = model.variables[child]
        if nodes[child] is not None:
            raise ModelError(f"{variable.name!r} has two CPTs, one of them factor {number}")
        nodes[child] = Node(variable.name, variable.states, parents, table, dict(variable.metadata))
    for child, node in enumerate(nodes):
        if child in whole and node is not None:
            node.noisy, node.parents = whole[child], parents_of(model)[child]
    return [node for node in nodes if node is not None]


def noisy_terms(model: Model) -> dict[int, NoisyMax]:
    """The noisy-MAX factors of a model, by their children."""
    return {
        int(child): group.template.structured
        for group in model.groups
        if isinstance(group.template.structured, NoisyMax)
        for child in group.scopes[:, -1]
    }


def _without(model: Model, left_out: Mapping[int, NoisyMax]) -> Model:
    """The model with a uniform table for each child of these factors, which has no parents then."""
    if not left_out:
        return model
    groups, blocks, masks = [], dict[str, Array](), dict[str, BoolArray]()
    for group in model.groups:
        where = model.layout[group.template.name]
        blocks[group.template.name] = model.theta[where]
        masks[group.template.name] = np.ones(where.stop - where.start, np.bool_)
        if model.support is not None:
            masks[group.template.name] = model.support[where]
        if int(group.scopes[0, -1]) in left_out:
            n_states = group.template.shape[-1]
            blocks[group.template.name] = np.full(n_states, np.log(n_states))
            masks[group.template.name] = np.ones(n_states, np.bool_)
            template = Template(group.template.name, (n_states,))
            group = FactorGroup(template, group.scopes[:, -1:], None, True, group.positions)
        groups.append(group)
    theta, support = np.concatenate([*blocks.values()]), np.concatenate([*masks.values()])
    return model.with_parts(groups=groups, theta=theta, support=support)
