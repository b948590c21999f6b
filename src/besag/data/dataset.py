"""Datasets: labelled instances on one Graph, as a union of graphs or as rows on one graph.

    union     N instances, each with a graph of its own, in one disjoint union: labels (1, V)
    rows      N rows of labels on the graph of one model, whose inputs are the same for all: labels (N, V)

A label of -1 is unknown, and is summed out; an instance without labels has nothing but those. A Batch is some
instances: a mini-batch, or a shard; theta is shared, since a layout depends on templates only. Shards are contiguous
and have about the same number of variables.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import AnyArray, Array, IntArray, Rebuilt, secure
from besag.data.structured import StructuredData
from besag.errors import ModelError
from besag.graph.compile import compile_graph
from besag.graph.graph import Graph
from besag.model.layout import Layout

if TYPE_CHECKING:
    from besag.model.model import Model

SHARD_VARIABLES = 1 << 14  # of a shard, at least: enough that the cost of calling a kernel is negligible
MOST_SHARDS = 4  # since each makes a gradient of all parameters


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Batch(Rebuilt):
    """Instances on a Graph: labels (1, V) of a union or (N, V) of rows, weights (N,) or None = all one.

    variable_weights (V,): besides, of single variables, for losses that are sums over them, `weighs_variables`.
    is_union: whether instances have graphs of their own, as a part of a union has that is a single instance.
    """

    graph: Graph
    labels: IntArray
    weights: Array | None = None
    numbers: IntArray | None = None  # of the instances, if this is part of a larger set
    variable_weights: Array | None = None
    is_union: bool = False

    def __post_init__(self) -> None:
        labels = secure(np.atleast_2d(np.asarray(self.labels, np.int64)))
        object.__setattr__(self, "labels", labels)
        if not len(labels):
            raise ModelError("a dataset needs at least one row")
        if labels.shape[1] != self.graph.n_variables:
            raise ModelError(f"labels must have {self.graph.n_variables} columns, got {labels.shape[1]}")
        if len(labels) > 1 and self.graph.n_instances > 1:
            raise ModelError("rows of labels need a graph of one instance")
        object.__setattr__(self, "is_union", self.is_union or self.graph.n_instances > 1)
        if self.weights is not None:
            object.__setattr__(self, "weights", secure(check_weights(self.weights, len(self))))

    def __len__(self) -> int:
        return max(self.graph.n_instances, len(self.labels))

    @property
    def is_rows(self) -> bool:
        """Whether labels are rows on a graph of one instance; one instance of a union is such a row too."""
        return self.graph.n_instances == 1

    def take(self, instances: IntArray) -> Batch:
        """Some of its instances."""
        weights = None if self.weights is None else self.weights[instances]
        numbers = instances if self.numbers is None else self.numbers[instances]
        if self.is_rows:
            return Batch(self.graph, self.labels[instances], weights, numbers, self.variable_weights, self.is_union)
        offsets = self.graph.instance_offsets
        spans = [slice(offsets[n], offsets[n + 1]) for n in instances.tolist()]
        labels, own = np.concatenate([self.labels[0, span] for span in spans]), self.variable_weights
        own = None if own is None else np.concatenate([own[span] for span in spans])
        return Batch(self.graph.take(instances), labels, weights, numbers, own, is_union=True)


def check_weights(weights: Any, n: int) -> Array:
    """Weights of n instances, or a ModelError."""
    try:
        values = np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"weights must be numbers, got {weights!r}") from None
    if values.shape != (n,):
        raise ModelError(f"weights must have shape ({n},), one for each instance, got {values.shape}")
    wrong = ~((values >= 0) & (values < np.inf))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ModelError(f"weights must be finite numbers from 0 on, got {values[at]} for instance {at}")
    return values


class Dataset:
    """All instances, in memory: a union of graphs or rows on one graph.

    >>> import besag
    >>> model = besag.markov_network([2, 2], [((0, 1), [[0.0, 1.0], [2.0, 3.0]])])
    >>> data = Dataset.rows(model, [[0, 1], [1, 1], [1, -1]])
    >>> len(data), len(data.batch([0, 2]))
    (3, 2)
    """

    def __init__(self, batch: Batch) -> None:
        if not isinstance(batch, Batch):
            raise ModelError(
                f"make a dataset by Dataset.union(instances) or Dataset.rows(model, labels), got {type(batch).__name__}"
            )
        self.all = batch

    @classmethod
    def union(
        cls, instances: Iterable[StructuredData], weights: Any = None, *, layout: Layout | None = None
    ) -> Dataset:
        """Instances with graphs of their own, labelled or not; templates are shared by name."""
        parts = list(instances)
        if not parts:
            raise ModelError("a dataset needs at least one instance")
        graph = compile_graph(*parts, layout=layout)
        labels = [np.full(len(part.variables), -1) if part.labels is None else part.labels for part in parts]
        return cls(Batch(graph, np.concatenate(labels), weights, is_union=True))

    @classmethod
    def rows(cls, model: Model, data: Any, weights: Any = None) -> Dataset:
        """Rows of labels (N, V) on the graph of a model: int codes with -1 = unknown, or a DataFrame of states."""
        if hasattr(data, "columns"):
            from besag.graph.evidence import read_evidence

            evidence = read_evidence(model.variables, data)
            if evidence.log_weights is not None:
                raise ModelError("labels must be states or missing; sets of states and likelihoods are evidence")
            codes = evidence.observed
        else:
            codes = _rows(data)
            if codes.size == 0:
                raise ModelError("a dataset needs at least one row")
            if codes.dtype.kind not in "iu":
                raise ModelError(
                    f"rows must be int codes with -1 = unknown, or a DataFrame of states, got {codes.dtype}"
                )
            _check_codes(model, codes)
        return cls(Batch(graph_of(model), codes, weights))

    def __len__(self) -> int:
        return len(self.all)

    @property
    def is_union(self) -> bool:
        """Whether instances have graphs of their own."""
        return self.all.is_union

    @property
    def layout(self) -> Layout:
        """The slice of theta of each template."""
        return self.all.graph.layout

    def batch(self, instances: Sequence[int] | IntArray) -> Batch:
        """Some instances by number."""
        chosen = np.asarray(instances, np.int64)
        wrong = (chosen < 0) | (chosen >= len(self))
        if wrong.any():
            raise ModelError(f"there are instances 0 to {len(self) - 1}, got {chosen[wrong][0]}")
        return self.all.take(chosen)

    def shards(self) -> list[Batch]:
        """All instances, in parts of about the same size."""
        if self.all.is_rows:
            return [self.all]  # one part, so that their statistics are summed once
        offsets = self.all.graph.instance_offsets
        n_shards = min(MOST_SHARDS, int(np.ceil(offsets[-1] / SHARD_VARIABLES)))
        aims = np.linspace(0, offsets[-1], n_shards + 1)[1:-1]
        cuts = np.unique(np.concatenate([[0], np.searchsorted(offsets, aims), [len(self)]]))
        if len(cuts) == 2:
            return [self.all]
        return [self.all.take(np.arange(start, stop)) for start, stop in itertools.pairwise(cuts)]


def graph_of(model: Model) -> Graph:
    """The Graph of a model with its own inputs; the one that `with_inputs` keeps was compiled with others."""
    own = model.inputs
    return model.graph if all(own[b.template.name] is b.inputs for b in model.graph.blocks) else compile_graph(model)


def _rows(data: Any) -> AnyArray:
    try:
        rows = np.atleast_2d(np.asarray(data))
    except ValueError:
        raise ModelError("rows must have one length") from None
    if rows.ndim != 2:
        raise ModelError(f"rows must have shape (N, V), got {rows.shape}")
    return rows


def _check_codes(model: Model, codes: IntArray) -> None:
    if codes.shape[1] != len(model.variables):
        raise ModelError(f"rows must have {len(model.variables)} columns, one for each variable, got {codes.shape[1]}")
    wrong = (codes < -1) | (codes >= model.variables.cardinalities)
    if wrong.any():
        row, v = (int(i) for i in np.argwhere(wrong)[0])
        raise ModelError(
            f"row {row}: {model.variables.names[v]!r} has codes 0 to {model.variables.cardinalities[v] - 1} and "
            f"-1 = unknown, got {codes[row, v]}"
        )
