"""MultiLabelCRF: several labels of one instance, each 0 or 1, tied to each other.

p(y | x) = exp(sum_l (b_l + <w_l, x>) [y_l = 1] + sum_lm T_lm[y_l, y_m]) / Z(x)

structure="full"        every two labels are tied
structure="chow_liu"    the tree of largest mutual information between labels in training
or a list of pairs of labels, by number
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np

from besag.arrays import AnyArray, Array, IntArray, freeze
from besag.data.unions import FactorArrays, union_graph
from besag.errors import ModelError
from besag.estimators.base import check_choice
from besag.estimators.held_out import reading_held_out
from besag.estimators.structured import Form, StructuredCRF
from besag.graph.graph import Graph
from besag.infer.engine import Engine
from besag.learn.history import OnIteration
from besag.learn.optimisers.base import Optimizer
from besag.model.layout import Layout
from besag.model.template import Template

STRUCTURES = ("full", "chow_liu")
ON = np.array([[0.0, 1.0]])  # the basis of a term that counts where a label is 1
PAIR = np.array([[[0.0, 0.0], [0.0, 1.0]]])  # and of two; with terms of one label it makes any table of two


class Rows(NamedTuple):
    """Features (N, D) of instances that have L labels each."""

    nodes: Array
    n_labels: int

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """(L,) for each instance."""
        return [(self.n_labels,)] * len(self.nodes)

    @property
    def offsets(self) -> IntArray:
        """(N + 1,)."""
        return np.arange(len(self.nodes) + 1) * self.n_labels


@dataclass(frozen=True, slots=True, eq=False)
class LabelForm:
    """Labels and pairs of them as templates, each with parameters of its own."""

    n_labels: int
    n_features: int
    pairs: tuple[tuple[int, int], ...]

    @property
    def layout(self) -> Layout:
        """Templates intercept (a row a label), label0, ..., pair (a row a pair)."""
        templates = [Template("intercept", (2,), n_inputs=self.n_labels, basis=ON)]
        templates += [Template(f"label{i}", (2,), n_inputs=self.n_features, basis=ON) for i in range(self.n_labels)]
        if self.pairs:
            templates.append(Template("pair", (2, 2), n_inputs=len(self.pairs), basis=PAIR))
        return Layout(templates)

    def graph(self, rows: Rows, states: Sequence[str]) -> Graph:
        """The union of instances."""
        layout, n = self.layout, len(rows.nodes)
        labels = np.arange(n * self.n_labels)[:, None]
        parts = [FactorArrays(layout.templates["intercept"], labels, np.tile(np.arange(self.n_labels), n))]
        for i in range(self.n_labels):
            own = labels[i :: self.n_labels]
            parts += [FactorArrays(layout.templates[f"label{i}"], own, rows.nodes)]
        if self.pairs:
            pairs = np.array(self.pairs, np.int64)
            scopes = (pairs + rows.offsets[:-1, None, None]).reshape(-1, 2)
            parts.append(FactorArrays(layout.templates["pair"], scopes, np.tile(np.arange(len(pairs)), n)))
        return union_graph(layout, parts, states, rows.offsets)

    def check(self, rows: Rows) -> None:
        """ModelError where rows have other features or labels than those in training."""
        if (rows.nodes.shape[1], rows.n_labels) != (self.n_features, self.n_labels):
            raise ModelError(
                f"rows must have {self.n_features} features and {self.n_labels} labels, as in training, got "
                f"{rows.nodes.shape[1]} and {rows.n_labels}"
            )

    def stored(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """What a file keeps of it."""
        return {"form": {"n_labels": self.n_labels, "n_features": self.n_features, "pairs": list(self.pairs)}}, {}


class MultiLabelCRF(StructuredCRF):
    """A CRF on the labels of one instance: X (N, D), Y (N, L) of 0 and 1, -1 where a label is unknown.

    structure: "full", "chow_liu", or pairs of labels. Other parameters as in GridCRF; inference is exact where labels
    are few or their ties are a tree.

    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> crf = MultiLabelCRF(l2=0.01).fit(X, [[0, 0], [0, 0], [1, 1], [1, 1]])
    >>> crf.predict(X).tolist()
    [[0, 0], [0, 0], [1, 1], [1, 1]]
    """

    def __init__(
        self,
        *,
        structure: str | Iterable[tuple[int, int]] = "full",
        objective: str = "likelihood",
        l1: float = 0.0,
        l2: float = 1.0,
        engine: str | Engine = "auto",
        decode: str = "map",
        optimizer: str | Optimizer | None = None,
        max_iter: int = 1000,
        tol: float | None = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.structure, self.objective, self.l1, self.l2 = structure, objective, l1, l2
        self.engine, self.decode, self.optimizer = engine, decode, optimizer
        self.max_iter, self.tol, self.time_limit = max_iter, tol, time_limit
        self.n_jobs, self.verbose = n_jobs, verbose

    def fit(
        self,
        X: Any,
        Y: Any,
        sample_weight: Any = None,
        *,
        held_out: tuple[Any, Any] | None = None,
        checkpoint: str | PathLike[str] | None = None,
        on_step: OnIteration | None = None,
    ) -> Self:
        """Learn from rows; held_out, checkpoint and on_step as in ChainCRF."""
        self._check_parameters(checkpoint)
        rows, labels = self._pair_up(X, Y)
        form = LabelForm(rows.n_labels, rows.nodes.shape[1], self._pairs(labels))
        watched = None
        if held_out is not None:
            with reading_held_out(held_out):
                others, own = self._pair_up(*held_out)
                form.check(others)
            watched = (others, own)
        self._fit((0, 1), form, rows, labels, sample_weight, watched, checkpoint, on_step)
        return self

    def _check_parameters(self, checkpoint: Any = None) -> None:
        super()._check_parameters(checkpoint)
        if isinstance(self.structure, str):
            check_choice("structure", self.structure, STRUCTURES)

    def _pair_up(self, X: Any, Y: Any) -> tuple[Rows, IntArray]:
        labels, features = read_labels(Y), read_features(X)
        if len(labels) != len(features):
            raise ModelError(f"X has {len(features)} rows and Y has {len(labels)}; each row of X has one in Y")
        return Rows(features, labels.shape[1]), labels

    def _pairs(self, labels: IntArray) -> tuple[tuple[int, int], ...]:
        n = labels.shape[1]
        if isinstance(self.structure, str):
            return find_tree(labels) if self.structure == "chow_liu" else tuple(combinations(range(n), 2))
        pairs = tuple((int(i), int(j)) for i, j in self.structure)
        inside = all(0 <= i < n and 0 <= j < n and i != j for i, j in pairs)
        if not inside or len({frozenset(pair) for pair in pairs}) < len(pairs):
            raise ModelError(f"structure must be pairs of labels from 0 to {n - 1}, each once, got {list(pairs)}")
        return pairs

    def _read(self, X: Any) -> Rows:
        """Rows with the features of those in training."""
        form = self._form
        rows = Rows(read_features(X), form.n_labels)
        form.check(rows)
        return rows

    @property
    def _form(self) -> LabelForm:
        self._check_fitted()
        form = self.model_.form
        assert isinstance(form, LabelForm)
        return form

    @classmethod
    def _restored_form(cls, told: Mapping[str, Any], arrays: Mapping[str, Any]) -> Form:
        form = told["form"]
        return LabelForm(form["n_labels"], form["n_features"], tuple((i, j) for i, j in form["pairs"]))

    # What was learnt -------------------------------------------------------------------------------------------------

    @property
    def coef_(self) -> Array:
        """(L, D): the weight of each feature for label l; positive is more probable."""
        return np.stack([self.model_.block(f"label{i}") for i in range(self._form.n_labels)])

    @property
    def pair_coef_(self) -> dict[tuple[int, int], float]:
        """{(label, label): weight of both being 1}; positive where they come together."""
        pairs = self._form.pairs
        return dict(zip(pairs, self.model_.block("pair").tolist(), strict=True)) if pairs else {}

    # Answers ---------------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> IntArray:
        """(N, L): the labels of each row."""
        return np.stack(self._predict(self._read(X)))

    def predict_marginals(self, X: Any) -> Array:
        """(N, L): the probability that each label is 1."""
        rows = self._read(X)
        return self._marginals(rows)[:, 1].reshape(-1, rows.n_labels)

    def log_proba(self, X: Any, Y: Any) -> Array:
        """(N,): log p(y | x) of each row; unknown labels are summed out."""
        return self._log_proba(self._read(X), read_labels(Y))

    def score(self, X: Any, Y: Any, sample_weight: Any = None) -> float:
        """The share of labels that are right, 1 minus the Hamming loss; unknown labels do not count."""
        return self._score(self._read(X), read_labels(Y), sample_weight)


def read_features(X: Any) -> Array:
    """X as (N, D) finite numbers."""
    try:
        features = np.asarray(X, np.float64)
    except (TypeError, ValueError):
        raise ModelError("X must be an array (N, D) of numbers") from None
    if features.ndim != 2 or features.size == 0:
        raise ModelError(f"X must have shape (N, D), got {features.shape}")
    if not np.isfinite(features).all():
        row, column = (int(i) for i in np.argwhere(~np.isfinite(features))[0])
        raise ModelError(f"X must be finite, got {features[row, column]} in row {row}, column {column}")
    return freeze(features)


def read_labels(Y: Any) -> IntArray:
    """Y as (N, L) codes 0, 1, and -1 for unknown labels."""
    try:
        given = np.asarray(Y, np.float64)
    except (TypeError, ValueError):
        raise ModelError("Y must be an array (N, L) of 0 and 1, and -1 where a label is unknown") from None
    if given.ndim != 2 or given.size == 0:
        raise ModelError(f"Y must have shape (N, L), got {given.shape}")
    labels = np.where(np.isnan(given), -1.0, given)
    wrong = ~np.isin(labels, (-1, 0, 1))
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        raise ModelError(f"Y must be 0, 1, or -1 = unknown, got {labels[row, column]:g} in row {row}, column {column}")
    return labels.astype(np.int64)


def find_tree(labels: IntArray) -> tuple[tuple[int, int], ...]:
    """The Chow-Liu tree of labels (N, L): edges of the largest total mutual information, from known labels."""
    n = labels.shape[1]
    weight = np.zeros((n, n))
    for i, j in combinations(range(n), 2):
        weight[i, j] = weight[j, i] = _information(labels[:, i], labels[:, j])
    inside, best, parent = [0], weight[0].copy(), np.zeros(n, np.int64)
    pairs = []
    for _ in range(n - 1):
        best[inside] = -np.inf
        new = int(np.argmax(best))
        pairs.append((int(min(new, parent[new])), int(max(new, parent[new]))))
        inside.append(new)
        closer = weight[new] > best
        parent[closer], best[closer] = new, weight[new][closer]
    return tuple(sorted(pairs))


def _information(one: IntArray, other: IntArray) -> float:
    """I of two labels, in nats, where both are known."""
    known = (one >= 0) & (other >= 0)
    p = np.bincount(2 * one[known] + other[known], minlength=4).reshape(2, 2) / max(int(known.sum()), 1)
    product = p.sum(axis=1, keepdims=True) * p.sum(axis=0, keepdims=True)
    return float((p[p > 0] * np.log(p[p > 0] / product[p > 0])).sum())
