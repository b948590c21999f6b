"""Bayesian networks: p(y) = prod_i p(y_i | y_parents(i)), as factors on (parents, child).

The CPT of a variable is a table with axes (parents..., child); each row, over the child, sums to one. CPTs of one shape
are pooled in one Template, energies -log p, with `conditional` set on its group. Factor i is the CPT of variable i. A
noisy-OR, -AND or -MAX (`besag.model.structured.noisy`) may be in the place of a table, and is never made one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from besag.arrays import Array
from besag.errors import ModelError, TooLargeError
from besag.foreign import hinting
from besag.model.arrows import read_arrows
from besag.model.build import FactorPart, assemble
from besag.model.cpt import TOLERANCE, check_cpt, state_code
from besag.model.dag import parents_of, topological
from besag.model.model import FactorGroup, Model
from besag.model.structured.noisy import NoisyMax, noisy_and, noisy_max, noisy_or
from besag.model.template import Template
from besag.model.variable import Variables, mapping_from, states_from

LARGEST_CPT = 2**30  # bytes that a table of a noisy-MAX may take while it is made
WORK_OF_TABLE = 40  # bytes for each entry


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
    as in `with_cpt`, or a factor such as `besag.factors.noisy_or`. Parents are in the order that the structure has.

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
    noisy: dict[NoisyMax, list[int]] = {}
    for child, above in enumerate(parents):
        if isinstance(given.get(child), NoisyMax):
            noisy.setdefault(given[child], []).append(child)
            continue
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
    parts += [_noisy_part(variables, parents, term, children) for term, children in noisy.items()]
    return assemble(variables, parts)


def _noisy_part(variables: Variables, parents: list[list[int]], term: NoisyMax, children: list[int]) -> FactorPart:
    """The children of one noisy-MAX."""
    for child in children:
        shape = tuple(variables.cardinalities[[*parents[child], child]].tolist())
        if shape != term.shape:
            axes = ", ".join(variables.names_at([*parents[child], child]))
            name = variables.names[child]
            raise ModelError(f"the noisy-MAX of {name!r} must be of shape {shape}, axes ({axes}), got {term.shape}")
    template = Template(f"noisy_max[{variables.names[children[0]]}]", term.shape, basis=term)
    scopes = np.array([[*parents[child], child] for child in children], np.int64)
    return FactorPart(FactorGroup(template, scopes, None, True, np.array(children, np.int64)), [np.ones(1)])


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


def _locate(model: Model, name: str) -> tuple[FactorGroup, int]:
    """The group of a variable's CPT, and its place in the group."""
    child = model.variables.index(name)
    for group in model.groups:
        hit = np.flatnonzero(group.scopes[:, -1] == child) if group.conditional else np.zeros(0, np.int64)
        if hit.size:
            return group, int(hit[0])
    raise ModelError(f"{name!r} has no CPT: the model is not a Bayesian network")


def cpt_scope(model: Model, name: str) -> tuple[slice, list[int]]:
    """The slice of theta of a variable's CPT, and its scope (parents..., child); ModelError where it is no table."""
    group, at = _locate(model, name)
    if group.template.structured is not None:
        raise ModelError(f"the CPT of {name!r} is a {group.template.structured.name}, of which no table is stored")
    row = 0 if group.inputs is None else int(group.inputs[at])
    start = model.layout[group.template.name].start + row * group.template.n_basis
    return slice(start, start + group.template.n_basis), group.scopes[at].tolist()


def conditional_of(model: Model, name: str) -> Array | NoisyMax:
    """What a CPT is made of: a table with axes (parents..., child), or a noisy-MAX."""
    term = _locate(model, name)[0].template.structured
    if isinstance(term, NoisyMax):
        return term
    where, scope = cpt_scope(model, name)
    table = np.exp(-model.theta[where])
    if model.support is not None:
        table = table * model.support[where]
    return np.asarray(table.reshape(model.variables.cardinalities[scope]))


def cpt(model: Model, name: str) -> Array:
    """The CPT of a variable, axes (parents..., child); TooLargeError where that of a noisy-MAX does not fit."""
    found = conditional_of(model, name)
    return expand(found, name) if isinstance(found, NoisyMax) else found


def expand(term: NoisyMax, name: str) -> Array:
    """The table of a noisy-MAX, or TooLargeError."""
    needed = WORK_OF_TABLE * math.prod(term.shape)
    if needed > LARGEST_CPT:
        raise TooLargeError(
            f"the table of {name!r} has {math.prod(term.shape):.3g} entries and is never made for inference: "
            f"it would take {needed:.3g} bytes, more than {LARGEST_CPT}"
        )
    return term.table()


def with_cpts(model: Model, cpts: Mapping[str, Any]) -> Model:
    """The same network with other CPTs; the compiled Graph is kept where tables take the place of tables."""
    mixed = any(isinstance(given, NoisyMax) for given in cpts.values())
    if mixed or any(_locate(model, name)[0].template.structured is not None for name in cpts):
        return _rebuilt(model, parents_of(model), cpts)
    theta = np.array(model.theta)
    support = np.ones(theta.shape, np.bool_) if model.support is None else np.array(model.support)
    for name, given in cpts.items():
        where, scope = cpt_scope(model, name)
        table = check_cpt(model.variables, scope[:-1], scope[-1], given).reshape(-1)
        support[where] = table > 0
        theta[where] = -np.log(np.where(table > 0, table, 1.0))
    return model.with_numbers(theta, support)


def _rebuilt(model: Model, parents: list[list[int]], cpts: Mapping[str, Any]) -> Model:
    """The network with other parents, and with these CPTs in place of its own."""
    own = {
        name: conditional_of(model, name) for name in model.variables.names_at(range(len(parents))) if name not in cpts
    }
    return from_parents(model.variables, parents, {**own, **cpts})


def with_noisy(model: Model, child: str, parents: Iterable[str], term: NoisyMax) -> Model:
    """The network in which a variable has these parents, and a noisy-MAX of them in place of its CPT."""
    above, v = [model.variables.index(name) for name in parents], model.variables.index(child)
    if v in above:
        raise ModelError(f"{child!r} cannot be its own parent")
    all_parents = parents_of(model)
    all_parents[v] = above
    topological(model.variables, all_parents)
    return _rebuilt(model, all_parents, {child: term}).with_parts(metadata=model.metadata)


def with_noisy_binary(
    model: Model, child: str, causes: Mapping[str, float], leak: float, on: str | None, kind: str
) -> Model:
    """`with_noisy_or` and `with_noisy_and`."""
    given = mapping_from(causes, f"{kind} takes {{parent: probability}}")
    names = [str(name) for name in given]
    codes = [_code_of_on(model, name, on) for name in [*names, child]]
    made = (noisy_or if kind == "with_noisy_or" else noisy_and)(list(given.values()), leak)
    rows = np.array([2 * i + (k if codes[i] else 1 - k) for i in range(len(names)) for k in (0, 1)] + [2 * len(names)])
    columns = [0, 1] if codes[-1] else [1, 0]
    term = NoisyMax(made.effects[rows][:, columns], made.cardinalities, made.ranks[columns])
    return with_noisy(model, child, names, term)


def _code_of_on(model: Model, name: str, on: str | None) -> int:
    """Which state of a binary variable is on: the one of this name, or the second."""
    v = model.variables.index(name)
    if int(model.variables.cardinalities[v]) != 2:
        states = list(model.variables.states(v))
        raise ModelError(f"{name!r} must be binary, got states {states}; with_noisy_max takes any number of states")
    return 1 if on is None else state_code(model.variables, v, on)


def with_noisy_max(model: Model, child: str, causes: Mapping[str, Any], leak: Any, weakest: str | None) -> Model:
    """`with_noisy_max`: tables in any form that a CPT may have."""
    given = mapping_from(causes, "with_noisy_max takes {parent: table}")
    variables, v = model.variables, model.variables.index(child)
    tables = [check_cpt(variables, [variables.index(str(name))], v, table) for name, table in given.items()]
    spare = None if leak is None else check_cpt(variables, [], v, leak)
    least = 0 if weakest is None else state_code(variables, v, weakest)
    return with_noisy(model, child, [str(name) for name in given], noisy_max(tables, spare, least))


def do(model: Model, interventions: Mapping[str, object]) -> Model:
    """Pearl's intervention: the variables lose their parents and take the given states with certainty."""
    parents = parents_of(model)
    cpts: dict[str, Any] = {}
    expected = "do takes the states that variables are set to, {name: state}, as in model.do({'A': 'yes'})"
    for name, state in mapping_from(interventions, expected).items():
        if isinstance(state, Iterable) and not isinstance(state, str):
            raise ModelError(f"{expected}; got several for {name!r}: {state!r}")
        v = model.variables.index(name)
        parents[v] = []
        code = state_code(model.variables, v, state)
        cpts[model.variables.names[v]] = np.eye(int(model.variables.cardinalities[v]))[code]
    return _rebuilt(model, parents, cpts)
