"""GridCRF: conditional random fields on pictures, 002: how labels of neighbouring pixels depend on the image.

    p(y | x) = exp(sum_i (b[y_i] + <w[y_i], x_i>) - sum_ij c_ij(x) [y_i != y_j]) / Z(x)

with the coupling of two neighbours

    "potts"       c_ij = v_0                               + <v, features of the edge>, if they are given
    "contrast"    c_ij = v_0 + v_1 g_ij                    + <v, features of the edge>; g in `besag.data.grids`
    "table"       a table (K, K) for each direction in place of -c [y_i != y_j], which may depend on edge features

fit minimises the objective over b, w, v and tables; l1 and l2 do not count b.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Self

import numpy as np

from besag.arrays import AnyArray, Array, IntArray, freeze
from besag.data.grids import (
    DIRECTIONS,
    Pictures,
    measure_contrast,
    measure_scale,
    picture_edges,
    read_pictures,
)
from besag.data.label_arrays import find_classes, list_labels
from besag.data.unions import FactorArrays, union_graph
from besag.errors import ModelError
from besag.estimators.base import check_choice
from besag.estimators.class_weights import ClassWeight
from besag.estimators.held_out import reading_held_out
from besag.estimators.one_label import prefers_one_label, warn_of_one_label
from besag.estimators.structured import Form, StructuredCRF, split
from besag.graph.graph import Graph
from besag.infer.engine import Engine
from besag.learn.history import OnIteration
from besag.learn.losses.base import read_objective
from besag.learn.optimisers.base import Optimizer
from besag.model.build import grid_edges
from besag.model.layout import Layout
from besag.model.structured.potts import potts
from besag.model.template import Inputs, Template

PAIRWISE = ("potts", "contrast", "table")
FAST, SURE = "pseudolikelihood", "likelihood[engine=bp]"  # what objective="auto" takes


@dataclass(frozen=True, slots=True, eq=False)
class GridForm:
    """Pixels and edges as templates; scale (D,) is that of contrasts, n_edge the number of given edge features."""

    n_classes: int
    n_features: int
    n_edge: int
    pairwise: str
    connectivity: int
    scale: Array

    @property
    def directions(self) -> tuple[str, ...]:
        """Names of the directions of edges."""
        return DIRECTIONS[: self.connectivity // 2]

    @property
    def edge_templates(self) -> list[Template]:
        """One that all edges share, or one for each direction where they are tables."""
        k = self.n_classes
        n_inputs = 1 + self.n_edge + (self.pairwise == "contrast")
        if self.pairwise == "table":
            return [Template(name, (k, k), n_inputs=n_inputs) for name in self.directions]
        return [Template("edge", (k, k), n_inputs=n_inputs, basis=potts(k))]

    @property
    def layout(self) -> Layout:
        """Templates intercept, node, and those of edges."""
        k = self.n_classes
        alone = [Template("intercept", (k,)), Template("node", (k,), n_inputs=self.n_features)]
        return Layout([*alone, *self.edge_templates])

    def graph(self, pictures: Pictures, states: Sequence[str]) -> Graph:
        """The union of pictures."""
        layout, offsets = self.layout, pictures.offsets
        pixels = np.arange(offsets[-1])[:, None]
        parts = [
            FactorArrays(layout.templates["intercept"], pixels),
            FactorArrays(layout.templates["node"], pixels, pictures.nodes),
        ]
        edges = picture_edges(pictures, self.connectivity)
        inputs = [self.edge_inputs(pictures, scopes, d) for d, scopes in enumerate(edges)]
        if self.pairwise == "table":
            parts += map(FactorArrays, self.edge_templates, edges, inputs)
        else:
            scopes = np.concatenate(edges)
            order = np.argsort(np.searchsorted(offsets, scopes[:, 0], side="right"), kind="stable")
            joined = None if inputs[0] is None else freeze(np.concatenate(inputs)[order])
            parts.append(FactorArrays(self.edge_templates[0], scopes[order], joined))
        return union_graph(layout, parts, states, offsets)

    def edge_inputs(self, pictures: Pictures, scopes: IntArray, direction: int) -> Inputs:
        """(E, 1 + ...): a constant, the contrast, and what is given; None where there is but the constant."""
        columns = [np.ones((len(scopes), 1))]
        if self.pairwise == "contrast":
            columns.append(measure_contrast(pictures.nodes, scopes, self.scale)[:, None])
        if pictures.edge_features is not None:
            columns.append(pictures.edge_features[direction])
        return freeze(np.hstack(columns)) if len(columns) > 1 else None

    def check(self, pictures: Pictures) -> None:
        """ModelError where pictures have other features than those in training."""
        self.check_pixels(pictures)
        given = 0 if pictures.edge_features is None else pictures.edge_features[0].shape[1]
        if given != self.n_edge:
            raise ModelError(f"edges must have {self.n_edge} features, as in training, got {given}: edge_features=...")

    def check_pixels(self, pictures: Pictures) -> None:
        """ModelError where pixels have other features than those in training."""
        if pictures.nodes.shape[1] != self.n_features:
            raise ModelError(
                f"images must have {self.n_features} features a pixel, as in training, got {pictures.nodes.shape[1]}; "
                "images is a list: write [image] for one"
            )

    def stored(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """What a file keeps of it."""
        told = {name: getattr(self, name) for name in ("n_classes", "n_features", "n_edge", "pairwise", "connectivity")}
        return {"form": told}, {"scale": self.scale}


class GridCRF(StructuredCRF):
    """A CRF on pictures: images (H, W, D) of features, labels (H, W); -1 and `ignore_label` stand for unknown labels.

    pairwise: "potts", "contrast" or "table", see `besag.estimators.grid_crf`. connectivity: 4 or 8 neighbours.
    objective: "pseudolikelihood", "piecewise", "likelihood[engine=bp]", ...; "auto" learns by pseudolikelihood, and
    where one label everywhere is then more probable than the true labels, once more by likelihood[engine=bp], but not
    with class_weight or checkpoint; `learnt_by_` tells which it was. decode: "map", the most probable labelling, or
    "marginal", the most probable label of each pixel; engine: what predicts. n_jobs: threads, None = all cores.
    class_weight: {label: weight} of the terms of pixels with that label, "balanced" for one over their frequency; of
    objectives that are sums over pixels. verbose: tell on stderr how far the fit has come.

    >>> import numpy as np
    >>> image = np.random.default_rng(0).normal(size=(8, 8, 1)) + np.arange(8)[:, None, None] - 3.5
    >>> labels = (np.arange(8) > 3).astype(int)[:, None].repeat(8, axis=1)
    >>> crf = GridCRF(pairwise="potts", objective="likelihood").fit([image], [labels])
    >>> crf.score([image], [labels])
    1.0
    """

    def __init__(
        self,
        *,
        pairwise: str = "contrast",
        connectivity: int = 4,
        objective: str = "auto",
        l1: float = 0.0,
        l2: float = 1.0,
        engine: str | Engine = "auto",
        decode: str = "map",
        ignore_label: Any = None,
        class_weight: ClassWeight = None,
        optimizer: str | Optimizer | None = None,
        max_iter: int = 1000,
        tol: float | None = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.pairwise, self.connectivity, self.objective = pairwise, connectivity, objective
        self.l1, self.l2, self.engine, self.decode, self.ignore_label = l1, l2, engine, decode, ignore_label
        self.optimizer, self.max_iter, self.tol = optimizer, max_iter, tol
        self.class_weight = class_weight
        self.time_limit, self.n_jobs, self.verbose = time_limit, n_jobs, verbose

    def fit(
        self,
        images: Iterable[Any],
        labels: Iterable[Any],
        sample_weight: Any = None,
        *,
        edge_features: Iterable[Any] | None = None,
        held_out: tuple[Any, ...] | None = None,
        checkpoint: str | PathLike[str] | None = None,
        on_step: OnIteration | None = None,
    ) -> Self:
        """Learn from images, which may differ in size, and the labels of their pixels.

        edge_features: for each image an array of each direction, (H, W-1, Q) right, (H-1, W, Q) down, (H-1, W-1, Q)
        down-right and down-left. held_out: (images, labels), or with edge features as a third, whose loss is watched;
        sample_weight, checkpoint and on_step as in ChainCRF.
        """
        self._check_parameters(checkpoint)
        if isinstance(labels, np.ndarray) and labels.ndim == 2 and labels.dtype != object:
            raise ModelError(
                f"labels is a list of arrays (H, W), got one of shape {labels.shape}: write [image], [labels]"
            )
        pictures, y = read_pictures(images, edge_features, self.connectivity), list_labels(labels)
        classes = find_classes(y, pictures.shapes, self._ignored())
        form = self._make_form(pictures, len(classes))
        watched = None
        if held_out is not None:
            with reading_held_out(held_out, most=3):
                others = read_pictures(held_out[0], held_out[2] if len(held_out) > 2 else None, self.connectivity)
                form.check(others)
            watched = (others, held_out[1])

        began = time.perf_counter()

        def fit_by(objective: str, time_limit: float | None) -> bool:
            """Whether the model that was learnt prefers one label everywhere, where that may be."""
            given = (y, sample_weight, watched, checkpoint, on_step, objective, time_limit)
            learnt = self._fit(classes, form, pictures, *given)
            if read_objective(objective).surrogate not in ("pseudolikelihood", "piecewise"):
                return False
            return prefers_one_label(learnt.graph.bind(self.model_.theta), learnt.labels[0], pictures.offsets)

        wrong = fit_by(FAST if self.objective == "auto" else self.objective, self.time_limit)
        left = None if self.time_limit is None else self.time_limit - (time.perf_counter() - began)
        is_timed_out = left is not None and left <= 0
        if wrong and self.objective == "auto" and self.class_weight is None and checkpoint is None and not is_timed_out:
            wrong = fit_by(SURE, left)
        if wrong:
            warn_of_one_label(self.learnt_by_)
        return self

    def _check_parameters(self, checkpoint: Any = None) -> None:
        super()._check_parameters(checkpoint)
        check_choice("pairwise", self.pairwise, PAIRWISE)
        check_choice("connectivity", self.connectivity, (4, 8))

    def _read(self, images: Any, edge_features: Any = None) -> Pictures:
        """Pictures with the features of those in training."""
        form = self._form
        pictures = read_pictures(images, edge_features, form.connectivity)
        form.check(pictures)
        return pictures

    def _make_form(self, data: Pictures, n_classes: int) -> GridForm:
        scale = np.zeros(0)
        if self.pairwise == "contrast":
            scale = measure_scale(data.nodes, picture_edges(data, self.connectivity))
        n_edge = 0 if data.edge_features is None else data.edge_features[0].shape[1]
        return GridForm(n_classes, data.nodes.shape[1], n_edge, self.pairwise, self.connectivity, scale)

    def _ignored(self) -> Sequence[Any]:
        given = self.ignore_label
        return () if given is None else list(given) if isinstance(given, (list, tuple, set)) else (given,)

    @property
    def _form(self) -> GridForm:
        self._check_fitted()
        form = self.model_.form
        assert isinstance(form, GridForm)
        return form

    @classmethod
    def _restored_form(cls, told: Mapping[str, Any], arrays: Mapping[str, Any]) -> Form:
        return GridForm(**told["form"], scale=arrays["scale"])

    # Answers ---------------------------------------------------------------------------------------------------------

    def predict(self, images: Iterable[Any], edge_features: Iterable[Any] | None = None) -> list[AnyArray]:
        """The labels (H, W) of each image."""
        return self._predict(self._read(images, edge_features))

    def predict_marginals(self, images: Iterable[Any], edge_features: Iterable[Any] | None = None) -> list[Array]:
        """The probability of each label at each pixel: (H, W, K) for each image, in the order of classes_."""
        pictures = self._read(images, edge_features)
        return split(self._marginals(pictures), pictures)

    def log_proba(
        self, images: Iterable[Any], labels: Iterable[Any], edge_features: Iterable[Any] | None = None
    ) -> Array:
        """(N,): log p(y | x) of each image; unknown labels are summed out; an estimate where inference is."""
        return self._log_proba(self._read(images, edge_features), labels)

    def score(
        self,
        images: Iterable[Any],
        labels: Iterable[Any],
        sample_weight: Any = None,
        *,
        edge_features: Iterable[Any] | None = None,
    ) -> float:
        """The share of pixels that are labelled correctly; unknown labels do not count."""
        return self._score(self._read(images, edge_features), labels, sample_weight)

    def decision_maps(self, images: Iterable[Any]) -> list[Array]:
        """The log-potentials of single pixels, b + <w, x>: (H, W, K) for each image; what edges do is left out."""
        form, pictures = self._form, read_pictures(images)
        form.check_pixels(pictures)
        return split(pictures.nodes @ self.coef_.T + self.intercept_, pictures)

    def edge_strength(self, image: Any, edge_features: Any = None) -> tuple[Array, ...]:
        """How much more probable equal labels of two neighbours are, by this image: an array for each direction.

        The log-potential of equal labels minus that of different ones, c_ij, (H, W-1) for edges to the right, (H-1, W)
        down, and so on; the means of both where the pairwise term is a table.
        """
        pictures = self._read([image], None if edge_features is None else [edge_features])
        form, shape = self._form, pictures.shapes[0]
        sizes = grid_edges((shape[0], shape[1]), form.connectivity)[1]
        values = [
            self._strengths(form.edge_inputs(pictures, scopes, direction), direction, len(scopes))
            for direction, scopes in enumerate(picture_edges(pictures, form.connectivity))
        ]
        return tuple(value.reshape(size) for value, size in zip(values, sizes, strict=True))

    def _strengths(self, inputs: Inputs, direction: int, n_edges: int) -> Array:
        weights = np.ones((n_edges, 1)) if inputs is None else inputs
        form = self._form
        if form.pairwise != "table":
            return np.asarray(-weights @ self.model_.block("edge"))
        tables = self.model_.block(form.directions[direction]).reshape(-1, form.n_classes, form.n_classes)
        same = np.eye(form.n_classes, dtype=np.bool_)
        return np.asarray(weights @ (tables[:, same].mean(axis=1) - tables[:, ~same].mean(axis=1)))
