"""How graphs of nodes become factors: a template for each type of node, and for each kind of edge and group.

    nodes of type t        intercept (K,) and weights of D features (D, K)
    edges, types t and u   a table (K, K), and what each of Q edge features adds to it
    groups on m nodes      a table (K, ..., K) for the types of their nodes, and what each feature adds to it

Nodes have one type unless types are given. Labels that a type never has in training are hard zeros of its templates.
Undirected edges have symmetric tables between nodes of one type, and begin at the type that comes first otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from besag.arrays import AnyArray, Array, BoolArray, IntArray
from besag.data.attributes import Attributes
from besag.data.node_graphs import Group, NodeGraphs
from besag.data.unions import FactorArrays, union_graph
from besag.errors import ModelError
from besag.graph.graph import Graph
from besag.model.layout import Layout
from besag.model.template import Inputs, Template


@dataclass(frozen=True, slots=True)
class GroupForm:
    """Factors of one kind: how many nodes and features they have, and the types of nodes that they are seen on."""

    size: int
    n_features: int
    kinds: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class GraphForm:
    """Nodes, edges and other groups as templates; allowed (types, K); attributes: of nodes that are lists of them."""

    n_features: int
    groups: tuple[GroupForm, ...]
    directed: bool
    types: tuple[str, ...]
    allowed: BoolArray
    attributes: Attributes | None

    @property
    def n_classes(self) -> int:
        """K."""
        return self.allowed.shape[1]

    @property
    def layout(self) -> Layout:
        """Templates intercept, node, edge, group0, ...; of each type or kind, if there are several types."""
        made = [template for t in range(len(self.types)) for template in self._alone(t)]
        pairs = [(g, kind) for g, group in enumerate(self.groups) for kind in group.kinds]
        return Layout([*made, *(self._group_template(g, kind) for g, kind in pairs)])

    def name(self, what: str, kind: tuple[int, ...]) -> str:
        """The name of the template of some types."""
        return what if len(self.types) == 1 else f"{what}:{'-'.join(self.types[t] for t in kind)}"

    def _alone(self, t: int) -> tuple[Template, Template]:
        shape, support = (self.n_classes,), self._support((t,))
        return (
            Template(self.name("intercept", (t,)), shape, support=support),
            Template(self.name("node", (t,)), shape, n_inputs=self.n_features, support=support),
        )

    def _group_template(self, number: int, kind: tuple[int, ...]) -> Template:
        group, k = self.groups[number], self.n_classes
        is_symmetric = number == 0 and not self.directed and kind[0] == kind[1]
        return Template(
            self.name(f"group{number - 1}" if number else "edge", kind),
            (k,) * group.size,
            n_inputs=1 + group.n_features,
            basis=symmetric_basis(k) if is_symmetric else None,
            support=self._support(kind),
        )

    def _support(self, kind: tuple[int, ...]) -> BoolArray | None:
        """The labels that nodes of these types may have, None for all."""
        of_types = [self.allowed[t] for t in kind]
        return None if all(one.all() for one in of_types) else reduce(np.logical_and.outer, of_types)

    def graph(self, data: NodeGraphs, states: Sequence[str]) -> Graph:
        """The union of instances."""
        layout, parts = self.layout, list[FactorArrays]()
        for t in range(len(self.types)):
            own = np.flatnonzero(data.types == t)
            nodes = data.nodes if len(own) == len(data.types) else data.nodes[own]  # type: ignore[index]
            intercept, weights = self._alone(t)
            parts += [FactorArrays(intercept, own[:, None]), FactorArrays(weights, own[:, None], nodes)]
        for number, (group, form) in enumerate(zip(data.groups, self.groups, strict=True)):
            scopes = self.ordered(number, group.scopes, data.types)
            for kind in form.kinds:
                own = np.flatnonzero((data.types[scopes] == kind).all(axis=1))
                features = None if group.features is None else group.features[own]
                parts.append(FactorArrays(self._group_template(number, kind), scopes[own], _with_constant(features)))
        return union_graph(layout, parts, states, data.offsets)

    def ordered(self, number: int, scopes: IntArray, types: IntArray) -> IntArray:
        """Undirected edges, from the type that comes first; all other scopes as they are."""
        if number or self.directed or len(self.types) == 1:
            return scopes
        return np.take_along_axis(scopes, np.argsort(types[scopes], axis=1, kind="stable"), axis=1)

    def check(self, data: NodeGraphs) -> None:
        """ModelError where instances have other features than those in training."""
        if data.nodes.shape[1] != self.n_features:  # type: ignore[union-attr]
            raise ModelError(
                f"nodes must have {self.n_features} features, as in training, got {data.nodes.shape[1]}"  # type: ignore[union-attr]
            )
        if len(data.groups) != len(self.groups):
            raise ModelError(
                f"instances must have {len(self.groups) - 1} groups, as in training, got {len(data.groups) - 1}"
            )
        for number, (group, own) in enumerate(zip(data.groups, self.groups, strict=True)):
            if len(group.scopes):
                self._check_group(number, group, own, data)

    def _check_group(self, number: int, group: Group, own: GroupForm, data: NodeGraphs) -> None:
        what = f"group {number - 1}" if number else "edges"
        if (group.scopes.shape[1], group.n_features) != (own.size, own.n_features):
            raise ModelError(
                f"{what} must have {own.n_features} features on {own.size} nodes, as in training, "
                f"got {group.n_features} on {group.scopes.shape[1]}"
            )
        scopes = self.ordered(number, group.scopes, data.types)
        unseen = set(map(tuple, np.unique(data.types[scopes], axis=0).tolist())) - set(own.kinds)
        if unseen:
            kind = min(unseen)
            row = int(np.argmax((data.types[scopes] == kind).all(axis=1)))
            n = int(np.searchsorted(data.offsets, scopes[row, 0], side="right")) - 1
            names = ", ".join(self.types[t] for t in kind)
            raise ModelError(f"instance {n}: {what} on nodes of types {names} were not seen in training")

    def check_labels(self, data: NodeGraphs, codes: IntArray, classes: Sequence[Any]) -> None:
        """ModelError where a node has a label that its type never has in training."""
        wrong = (codes >= 0) & ~self.allowed[data.types, codes]
        if wrong.any():
            v = int(np.argmax(wrong))
            n = int(np.searchsorted(data.offsets, v, side="right")) - 1
            known = [classes[k] for k in np.flatnonzero(self.allowed[data.types[v]])]
            raise ModelError(
                f"instance {n}, position {v - int(data.offsets[n])}: a node of type {self.types[data.types[v]]!r} has "
                f"one of the labels {known}, got {classes[codes[v]]!r}"
            )

    def stored(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """What a file keeps of it."""
        told: dict[str, Any] = {name: getattr(self, name) for name in ("n_features", "directed", "types")}
        told["groups"] = [[group.size, group.n_features, group.kinds] for group in self.groups]
        told["attributes"] = None if self.attributes is None else list(self.attributes.numbering)
        return {"form": told}, {"allowed": self.allowed}


def form_of(data: NodeGraphs, codes: IntArray, n_classes: int, *, directed: bool) -> GraphForm:
    """The form of instances in training, with their labels as codes (V,)."""
    allowed = np.zeros((len(data.type_names), n_classes), np.bool_)
    known = codes >= 0
    allowed[data.types[known], codes[known]] = True
    if len(allowed) == 1:
        allowed[:] = True
    if not allowed.any(axis=1).all():
        name = data.type_names[int(np.argmin(allowed.any(axis=1)))]
        raise ModelError(f"no node of type {name!r} has a label that is known: expected at least one")
    bare = GraphForm(data.nodes.shape[1], (), directed, data.type_names, allowed, data.attributes)  # type: ignore[union-attr]
    groups = tuple(_group_form(bare, number, group, data.types) for number, group in enumerate(data.groups))
    return GraphForm(bare.n_features, groups, directed, bare.types, allowed, data.attributes)


def _group_form(form: GraphForm, number: int, group: Group, types: IntArray) -> GroupForm:
    scopes = form.ordered(number, group.scopes, types)
    kinds = tuple(map(tuple, np.unique(types[scopes], axis=0).tolist())) or ((0,) * scopes.shape[1],)
    return GroupForm(scopes.shape[1], group.n_features, kinds)


def symmetric_basis(n_classes: int) -> Array:
    """(K (K + 1) / 2, K, K): one element for each unordered pair of labels."""
    pairs = list(combinations_with_replacement(range(n_classes), 2))
    basis = np.zeros((len(pairs), n_classes, n_classes))
    for q, (i, j) in enumerate(pairs):
        basis[q, i, j] = basis[q, j, i] = 1.0
    return basis


def _with_constant(features: Array | None) -> Inputs:
    return None if features is None else np.hstack([np.ones((len(features), 1)), features])
