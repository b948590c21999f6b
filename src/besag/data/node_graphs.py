"""Graphs given as arrays of nodes and edges, PyStruct's form, many of them one after the other.

An instance is (node features, edges, edge features, groups, types), of which all but the first may be left out:

    node features   (n, D) numbers, or a list of n items of attributes, see `besag.data.attributes`
    edges           (E, 2) numbers of nodes
    edge features   (E, Q) numbers
    groups          [(scopes (F, m), features (F, G) or None), ...] of factors on more nodes; the same in every instance
    types           (n,) texts or integers: nodes of different types have different weights and sets of labels
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from besag.arrays import AnyArray, Array, IntArray, freeze, offsets_of
from besag.data.attributes import Attributes, Features
from besag.data.chains import csr_inputs
from besag.errors import ModelError
from besag.model.template import Inputs

EXPECTED = "(node_features, edges, edge_features, groups, types), of which all but the first may be left out"


class Group(NamedTuple):
    """Factors of one kind in all instances: scopes (F, m) in the union's numbering, features (F, G) or None."""

    scopes: IntArray
    features: Array | None

    @property
    def n_features(self) -> int:
        """G, 0 without features."""
        return 0 if self.features is None else self.features.shape[1]


class NodeGraphs(NamedTuple):
    """All nodes (T, D), dense or CSR, edges as the first of the groups, how many nodes each instance has.

    types (T,): of the nodes, numbers of their names; one without a name where none are given.
    """

    nodes: Inputs
    groups: list[Group]
    lengths: IntArray
    attributes: Attributes | None
    types: IntArray
    type_names: tuple[str, ...]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """(n,) of each instance."""
        return [(n,) for n in self.lengths.tolist()]

    @property
    def offsets(self) -> IntArray:
        """(N + 1,): where the nodes of each instance begin."""
        return offsets_of(self.lengths)


def read_node_graphs(
    given: Any, attributes: Attributes | None = None, type_names: tuple[str, ...] | None = None
) -> NodeGraphs:
    """Instances as arrays; attributes and type_names: those of training."""
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes)):
        raise ModelError(f"X must be a list of {EXPECTED}; got {type(given).__name__}")
    instances = [_parts(n, instance) for n, instance in enumerate(given)]
    if not instances:
        raise ModelError("X has no instances")
    nodes, lengths, attributes = _nodes([instance[0] for instance in instances], attributes)
    offsets = offsets_of(lengths)
    edges = [_group(n, "edges", e, f, 2, offsets) for n, (_, e, f, *_) in enumerate(instances)]
    groups = [_joined("edges", edges)]
    count = len(instances[0][3])
    for n, (_, _, _, listed, _) in enumerate(instances):
        if len(listed) != count:
            raise ModelError(f"instance {n} has {len(listed)} groups, instance 0 has {count}; empty ones may be given")
    for g in range(count):
        own = [
            _group(n, f"group {g}", *_pair(n, g, listed[g]), None, offsets)
            for n, (*_, listed, _) in enumerate(instances)
        ]
        groups.append(_joined(f"group {g}", own))
    types, names = _types([instance[4] for instance in instances], lengths, type_names)
    return NodeGraphs(nodes, groups, lengths, attributes, types, names)


def _types(given: list[Any], lengths: IntArray, names: tuple[str, ...] | None) -> tuple[IntArray, tuple[str, ...]]:
    """The types (T,) of all nodes, and their names."""
    if all(types is None for types in given) and names in (None, ("",)):
        return np.zeros(int(lengths.sum()), np.int64), ("",)
    parts = list[AnyArray]()
    for n, (types, length) in enumerate(zip(given, lengths.tolist(), strict=True)):
        if names == ("",) or types is None:
            has = "no types of nodes" if types is None else "types of nodes"
            raise ModelError(f"instance {n} has {has}: give them in all instances, in training too, or in none")
        read = np.asarray(types)
        if read.shape != (length,) or read.dtype.kind not in "iuU":
            raise ModelError(
                f"instance {n}: types must be texts or integers of shape ({length},), one for each node, "
                f"got {read.dtype} of shape {read.shape}"
            )
        parts.append(read.astype(str))
    every = np.concatenate(parts)
    known = tuple(np.unique(every).tolist()) if names is None else names
    unseen = ~np.isin(every, known)
    if unseen.any():
        v = int(np.argmax(unseen))
        n = int(np.searchsorted(np.cumsum(lengths), v, side="right"))
        raise ModelError(f"instance {n}: type {str(every[v])!r} was not seen in training, which has {list(known)}")
    return np.searchsorted(np.array(known), every), known


def _parts(n: int, instance: Any) -> tuple[Any, Any, Any, Sequence[Any], Any]:
    if not isinstance(instance, (tuple, list)) or not 1 <= len(instance) <= 5:
        raise ModelError(f"instance {n} must be a tuple {EXPECTED}; got {type(instance).__name__}")
    nodes, edges, features, groups, types = (*instance, None, None, None, None)[:5]
    return nodes, np.zeros((0, 2), np.int64) if edges is None else edges, features, list(groups or ()), types


def _pair(n: int, g: int, given: Any) -> tuple[Any, Any]:
    if isinstance(given, (tuple, list)) and len(given) == 2:
        return given[0], given[1]
    raise ModelError(f"instance {n}: group {g} must be (scopes, features or None), got {type(given).__name__}")


def _nodes(given: list[Any], attributes: Attributes | None) -> tuple[Inputs, IntArray, Attributes | None]:
    if attributes is None and all(isinstance(nodes, np.ndarray) or _is_numeric(nodes) for nodes in given):
        arrays = [_numbers(n, "node features", nodes) for n, nodes in enumerate(given)]
        depth = arrays[0].shape[1]
        for n, array in enumerate(arrays):
            if array.shape[1] != depth or not len(array):
                raise ModelError(f"instance {n}: node features must be (n, {depth}), n at least 1, got {array.shape}")
        lengths = np.array([len(array) for array in arrays], np.int64)
        return freeze(np.concatenate(arrays)), lengths, None
    features: Features
    if attributes is None:
        attributes, features = Attributes.fit(given)
    else:
        features = attributes.transform(given)
    if not features.lengths.all():
        raise ModelError(f"instance {int(np.argmin(features.lengths))} has no nodes")
    return csr_inputs(features, len(attributes)), features.lengths, attributes


def _is_numeric(nodes: Any) -> bool:
    """Whether nodes are a nested list of numbers, and not of attributes."""
    first = nodes[0] if isinstance(nodes, (list, tuple)) and nodes else None
    return isinstance(first, (list, tuple)) and bool(first) and all(isinstance(x, (int, float)) for x in first)


def _numbers(n: int, what: str, given: Any) -> Array:
    try:
        array = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"instance {n}: {what} must be numbers") from None
    if array.ndim != 2:
        raise ModelError(f"instance {n}: {what} must have two axes, got shape {array.shape}")
    if not np.isfinite(array).all():
        row, column = (int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ModelError(f"instance {n}: {what} must be finite, got {array[row, column]} in row {row}, column {column}")
    return array


def _group(n: int, what: str, scopes: Any, features: Any, size: int | None, offsets: IntArray) -> Group:
    """Scopes and features of one instance, checked, its scopes in the numbering of the union."""
    read = np.asarray(scopes)
    if read.size == 0:
        read = np.zeros((0, size or (read.shape[1] if read.ndim == 2 else 1)), np.int64)
    if read.ndim != 2 or read.dtype.kind not in "iu" or (size is not None and read.shape[1] != size):
        raise ModelError(f"instance {n}: {what} must be integers of shape (.., {size or 'm'}), got {read.shape}")
    n_nodes = int(offsets[n + 1] - offsets[n])
    wrong = (read < 0) | (read >= n_nodes)
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        raise ModelError(f"instance {n}: {what}, row {row}: there is no node {read[row, column]} of {n_nodes}")
    ordered = np.sort(read, axis=1)
    if (ordered[:, 1:] == ordered[:, :-1]).any():
        row = int(np.argmax((ordered[:, 1:] == ordered[:, :-1]).any(axis=1)))
        raise ModelError(f"instance {n}: {what}, row {row} names a node twice: {read[row].tolist()}")
    own = None if features is None else _numbers(n, f"features of {what}", features)
    if own is not None and len(own) != len(read):
        raise ModelError(f"instance {n}: {what} are {len(read)}, and their features {len(own)}; expected as many")
    return Group(read.astype(np.int64) + offsets[n], own)


def _joined(what: str, parts: list[Group]) -> Group:
    """One kind of factors of all instances."""
    filled = [(n, part) for n, part in enumerate(parts) if len(part.scopes)]
    if not filled:
        return Group(parts[0].scopes, parts[0].features)
    n_first, first = filled[0]
    for n, part in filled:
        if part.n_features != first.n_features or part.scopes.shape[1] != first.scopes.shape[1]:
            raise ModelError(
                f"{what} have {part.n_features} features on {part.scopes.shape[1]} nodes in instance {n}, "
                f"{first.n_features} on {first.scopes.shape[1]} in instance {n_first}"
            )
    scopes = np.concatenate([part.scopes for _, part in filled])
    features = [part.features for _, part in filled if part.features is not None]
    return Group(freeze(scopes), freeze(np.concatenate(features)) if features else None)
