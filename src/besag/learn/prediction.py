"""Prediction: what a model that was learnt says of data, labelled or not.

    predict             argmax_y p(y | x, theta)        002 (2), (22), F(x; theta) of 004       codes (V,)
    predict_marginals   p(y_v | x, theta)               002 (24)                                (V, K)
    log_proba           log p(y | x, theta)             002 (11), unknown labels summed out     a number

of one StructuredData; of a list, an iterator or a Dataset of N of them a list of N such arrays, and log_proba (N,).
They are one union of graphs, and one call of an engine. Labels are int codes, as in StructuredData.labels, so that the
two can be compared; variables need not have states in common. K is the largest cardinality of the instance. The engine
is that of `engine=`, "auto" if none is named, whatever a fit has learnt with.

Structured data have attributes x and decisions y: what is predicted is all of y, and labels are not looked at. Rows on
the graph of the model have no attributes: what is known in a row is evidence, the rest is predicted. Codes (N, V) give
codes (N, V), a DataFrame a DataFrame of states with the same index, and marginals are (N, V, K).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.data.dataset import Dataset
from besag.data.structured import StructuredData
from besag.errors import EvidenceError, ModelError
from besag.graph.compile import compile_graph
from besag.graph.evidence import Evidence, free, read_evidence
from besag.graph.graph import Graph
from besag.infer.engine import Want
from besag.infer.result import Result
from besag.model.model import Model
from besag.model.on_data import numbers_on
from besag.model.variable import Variables
from besag.query.conflict import impossible_rows
from besag.query.labels import labels_frame
from besag.query.probability import log_probability
from besag.query.run import Options, Question, ask_visibly, check_options, engine_from, warn_unconverged
from besag.query.verbs import map_, marginals


class Joined(NamedTuple):
    """Instances with graphs of their own: labels (V,), -1 where none is known; labelled (N,); is_one: not in a list."""

    graph: Graph
    labels: IntArray
    unlabelled: list[int]
    is_one: bool


def predict(model: Model, data: Any, options: Options) -> Any:
    """The most probable labels; see the module."""
    parts = _parts(data)
    if parts is None:
        rows = _evidence(model, data)
        codes = map_(model, rows, 1, options).codes
        assert codes is not None
        return labels_frame(model.variables, codes[:, 0], rows.index) if hasattr(data, "columns") else codes[:, 0]
    codes = _infer(model, parts, frozenset({"map"}), options).codes
    assert codes is not None
    return _each(parts, np.array(codes[0, 0]))


def predict_marginals(model: Model, data: Any, options: Options) -> Any:
    """The marginals of all variables; see the module."""
    parts = _parts(data)
    if parts is None:
        p = marginals(model, None, _evidence(model, data), options).probabilities
        assert p is not None
        return _padded(p, model.variables)
    wants = engine_from(options).capabilities.wants
    p = _infer(model, parts, frozenset[Want]({"variables"}) | (wants & {"log_partition"}), options).probabilities
    assert p is not None
    padded = _padded(p, parts.graph.variables)[0]
    cards = _each(parts, parts.graph.variables.cardinalities)
    if parts.is_one:
        return padded
    return [part[:, : own.max(initial=0)] for part, own in zip(_each(parts, padded), cards, strict=True)]


def log_proba(model: Model, data: Any, options: Options) -> Any:
    """log p of the labels; see the module."""
    parts = _parts(data)
    if parts is None:
        return log_probability(model, _evidence(model, data), options)
    if parts.unlabelled:
        raise ModelError(f"instance {parts.unlabelled[0]} has no labels, of which log_proba is the probability")
    log_z = _log_z(model, parts, None, options)
    if (parts.labels >= 0).all():
        theta, support = numbers_on(model, parts.graph.layout)
        known = -parts.graph.bind(theta, support=support).energy(parts.labels)
    else:
        known = _log_z(model, parts, Evidence(parts.labels), options)
    values = np.minimum(known - log_z, 0.0)
    return float(values[0]) if parts.is_one else values


def _parts(data: Any) -> Joined | None:
    """The union of structured data; None where the data are rows."""
    if isinstance(data, Dataset):
        return Joined(data.all.graph, data.all.labels[0], [], False) if data.is_union else None
    given = [data] if isinstance(data, StructuredData) else list(data) if isinstance(data, Iterator) else data
    if not (isinstance(given, Sequence) and given and isinstance(given[0], StructuredData)):
        return None
    for n, part in enumerate(given):
        if not isinstance(part, StructuredData):
            raise ModelError(f"instance {n} must be StructuredData like the first one, got {type(part).__name__}")
    labels = [np.full(len(part.variables), -1) if part.labels is None else part.labels for part in given]
    unlabelled = [n for n, part in enumerate(given) if part.labels is None]
    return Joined(compile_graph(*given), np.concatenate(labels), unlabelled, isinstance(data, StructuredData))


def _evidence(model: Model, data: Any) -> Evidence:
    """What is known in rows: of a Dataset, a DataFrame, or int codes."""
    if hasattr(data, "columns"):
        return read_evidence(model.variables, data)
    dataset = data if isinstance(data, Dataset) else Dataset.rows(model, data)
    return Evidence(dataset.all.labels, batched=True)


def _infer(
    model: Model, parts: Joined, want: frozenset[Want], options: Options, evidence: Evidence | None = None
) -> Result:
    """One call of the engine for all instances; EvidenceError where hard zeros leave one of them no labelling."""
    check_options(options)
    theta, support = numbers_on(model, parts.graph.layout)
    known = free(parts.graph.variables) if evidence is None else evidence
    problem = parts.graph.bind(theta, evidence=known, support=support)
    result = ask_visibly(Question(engine_from(options), problem, options), want)
    impossible = impossible_rows(result)
    if impossible.any():
        raise EvidenceError(f"instance {int(np.argmax(impossible))} has no labelling that the hard zeros allow")
    warn_unconverged(result)
    return result


def _log_z(model: Model, parts: Joined, evidence: Evidence | None, options: Options) -> Array:
    """(N,)."""
    log_z = _infer(model, parts, frozenset({"log_partition"}), options, evidence).log_partitions
    assert log_z is not None
    return log_z


def _each(parts: Joined, of_variables: AnyArray) -> Any:
    """The rows of each instance in a list; those of the only one as they are."""
    return of_variables if parts.is_one else np.split(of_variables, parts.graph.instance_offsets[1:-1])


def _padded(p: Array, variables: Variables) -> Array:
    """(B, S) -> (B, V, K), K the largest cardinality, and 0 for states that a variable does not have."""
    states = np.arange(variables.cardinalities.max(initial=0))
    exists = states < variables.cardinalities[:, None]
    places = np.where(exists, variables.state_offsets[:-1, None] + states, 0)
    return np.where(exists, p[:, places], 0.0)
