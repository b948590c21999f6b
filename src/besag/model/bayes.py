"""Bayesian networks: p(y) = prod_i p(y_i | y_parents(i)), as factors on (parents, child).

The CPT of a variable is a table with axes (parents..., child); each row, over the child, sums to one. CPTs of one shape
are pooled in one Template, energies -log p, with `conditional` set on its group. Factor i is the CPT of variable i.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from besag.arrays import Array
from besag.errors import ModelError
from besag.foreign import hinting
from besag.model.arrows import read_arrows
from besag.model.build import FactorPart, assemble
from besag.model.cpt import TOLERANCE, check_cpt, state_code
from besag.model.dag import parents_of, topological
from besag.model.model import FactorGroup, Model
from besag.model.template import Template
from besag.model.variable import Variables, mapping_from, states_from


@hinting
def bayesian_network(
    structure: Any,
    states: Mapping[str, Any] | None = None,
    cpts: Mapping[str, Any] | None = None,
    tolerance: float = TOLERANCE,
) -> Model:
    """A Bayesian network from text, edges or a networkx.DiGraph; CPTs are uniform until they are given.

    structure: "A[no,yes] -> B; A -> C[lo,mid,hi] <- B", a list of (parent, child), or a DiGraph (with isolated nodes).
    states: {name: states or cardinality}, for variables that are not binary or that have no edge. cpts: {name: table},
    as in `with_cpt`. Parents are in the order in which the structure names them.

    >>> import besag
    >>> model = besag.bayesian_network(
    ...     "rain[no,yes] -> wet[no,yes]", cpts={"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.2, 0.8]]}
    ... )
    >>> model.marginals(evidence={"wet": "yes"})["rain"].round(4)
    array([0.3333, 0.6667])
    """
    named, edges = read_structure(structure)
    known = {name: given or ("0", "1") for name, given in named.items()}
    given_states = mapping_from({} if states is None else states, "states must be {name: states or cardinality}")
    for name, given in given_states.items():
        known[str(name)] = states_from(given, str(name))
    if not known:
        raise ModelError("a model needs at least one variable; the structure names none")
    variables = Variables.from_states(known)
    parents: list[list[int]] = [[] for _ in known]
    for parent, child in edges:
        if parent == child:
            raise ModelError(f"{child!r} cannot be its own parent")
        parents[variables.index(child)].append(variables.index(parent))
    topological(variables, parents)
    tables = mapping_from({} if cpts is None else cpts, "cpts must be {name: table}")
    return from_parents(variables, parents, tables, tolerance)


def from_parents(
    variables: Variables, parents: list[list[int]], cpts: Mapping[str, Any], tolerance: float = TOLERANCE
) -> Model:
    """A Bayesian network from the parents of each variable, by index, in the order of its table's axes."""
    given = {variables.index(name): table for name, table in cpts.items()}
    pools: dict[tuple[int, ...], list[int]] = {}
    for child, above in enumerate(parents):
        shape = tuple(variables.cardinalities[[*above, child]].tolist())
        pools.setdefault(shape, []).append(child)
    parts = []
    for shape, children in pools.items():
        tables = np.full((len(children), *shape), 1.0 / shape[-1])
        for row, child in enumerate(children):
            if child in given:
                tables[row] = check_cpt(variables, parents[child], child, given[child], tolerance)
        support = tables > 0
        template = Template(f"cpt[{','.join(map(str, shape))}]", shape, len(children))
        scopes = np.array([[*parents[child], child] for child in children], np.int64)
        group = FactorGroup(template, scopes, np.arange(len(children)), True, np.array(children, np.int64))
        energies = -np.log(np.where(support, tables, 1.0))
        parts.append(FactorPart(group, [energies], "energy", None if support.all() else support))
    return assemble(variables, parts)


def read_structure(structure: Any) -> tuple[dict[str, tuple[str, ...] | None], list[tuple[str, str]]]:
    """({name: states, None where they are not given}, [(parent, child), ...]), of text, edges or a DiGraph."""
    if isinstance(structure, str):
        return read_arrows(structure)
    if hasattr(structure, "edges") and hasattr(structure, "nodes"):
        if not structure.is_directed():
            raise ModelError("a Bayesian network needs a directed graph; got an undirected networkx graph")
        nodes = [str(node) for node in structure.nodes]
        if len(set(nodes)) < len(nodes):
            twice = next(name for name in nodes if nodes.count(name) > 1)
            raise ModelError(f"names of variables are text, and two nodes have the text {twice!r}; relabel one of them")
        edges = [(str(parent), str(child)) for parent, child in structure.edges()]
        return dict.fromkeys(nodes), list(dict.fromkeys(edges))  # a multigraph may repeat an edge
    if not isinstance(structure, Iterable):
        raise ModelError(f"structure must be text, edges or a networkx.DiGraph, got {type(structure).__name__}")
    edges = []
    for edge in structure:
        if isinstance(edge, str) or not hasattr(edge, "__len__") or len(edge) != 2:
            raise ModelError(f"an edge is (parent, child), got {edge!r}")
        if (pair := (str(edge[0]), str(edge[1]))) not in edges:
            edges.append(pair)
    return dict.fromkeys(name for edge in edges for name in edge), edges


def cpt_scope(model: Model, name: str) -> tuple[slice, list[int]]:
    """The slice of theta of a variable's CPT, and its scope (parents..., child)."""
    child = model.variables.index(name)
    for group in model.groups:
        hit = np.flatnonzero(group.scopes[:, -1] == child) if group.conditional else np.zeros(0, np.int64)
        if hit.size:
            row = 0 if group.inputs is None else int(group.inputs[hit[0]])
            start = model.layout[group.template.name].start + row * group.template.n_basis
            return slice(start, start + group.template.n_basis), group.scopes[hit[0]].tolist()
    raise ModelError(f"{name!r} has no CPT: the model is not a Bayesian network")


def cpt(model: Model, name: str) -> Array:
    """The CPT of a variable, axes (parents..., child)."""
    where, scope = cpt_scope(model, name)
    table = np.exp(-model.theta[where])
    if model.support is not None:
        table = table * model.support[where]
    return np.asarray(table.reshape(model.variables.cardinalities[scope]))


def with_cpts(model: Model, cpts: Mapping[str, Any]) -> Model:
    """The same network with other CPTs; the compiled Graph is kept."""
    theta = np.array(model.theta)
    support = np.ones(theta.shape, np.bool_) if model.support is None else np.array(model.support)
    for name, given in cpts.items():
        where, scope = cpt_scope(model, name)
        table = check_cpt(model.variables, scope[:-1], scope[-1], given).reshape(-1)
        support[where] = table > 0
        theta[where] = -np.log(np.where(table > 0, table, 1.0))
    return model.with_numbers(theta, support)


def do(model: Model, interventions: Mapping[str, object]) -> Model:
    """Pearl's intervention: the variables lose their parents and take the given states with certainty."""
    parents = parents_of(model)
    cpts: dict[str, Any] = {variable.name: cpt(model, variable.name) for variable in model.variables}
    expected = "do takes the states that variables are set to, {name: state}, as in model.do({'A': 'yes'})"
    for name, state in mapping_from(interventions, expected).items():
        if isinstance(state, Iterable) and not isinstance(state, str):
            raise ModelError(f"{expected}; got several for {name!r}: {state!r}")
        v = model.variables.index(name)
        parents[v] = []
        code = state_code(model.variables, v, state)
        cpts[model.variables.names[v]] = np.eye(int(model.variables.cardinalities[v]))[code]
    return from_parents(model.variables, parents, cpts)
