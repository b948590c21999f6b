"""The distribution q that an answer stands for, as a Model; and KL(q || p), 001.

    naive, tree      q(y) = prod_f q_f(y_Sf) / prod_v q_v(y_v)^(d_v - 1), over the factors f that q keeps, a forest
    spanning_tree    q(y) = prod_r q(y_r) prod_c q(y_c | y_p)
    bp, trw          the first, where all factors form a forest; on a cycle their marginals belong to no distribution

With each tree hung from a root, f from its parent variable u, both are prod_r q_r prod_f q_f / q_u: conditional tables,
so that log Z of the Model is 0. It has the evidence in it: states that evidence or hard zeros rule out have weight 0.

    KL(q || p) = log Z - bound,        as bound = E_q[log-weight] + entropy(q)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from besag.arrays import Array, BoolArray, IntArray
from besag.errors import CapabilityError, ModelError, TooLargeError
from besag.graph.graph import Graph
from besag.graph.problem import Problem
from besag.infer.engine import ENGINES
from besag.infer.result import Result, factor_offsets
from besag.infer.trees.plan import plan_forest

if TYPE_CHECKING:
    from besag.model.model import Model

MESSAGES = ("bp", "trw")
BELOW = 1e-6  # of a log Z in single precision or of few digits, which may be below its bound


def approximation(result: Result) -> Model | list[Model]:
    """q as a Model on the same variables; a list of them for a batch."""
    rows = range(len(_probabilities(result)))
    state = result.state or {}
    if "trees" in state:
        made = [_model(result.graph, _of_tree(result, row)) for row in rows]
    else:
        inside = _kept(result, state)
        if inside.any():
            result.factor(0)  # asks for the marginals of all factors, where there are none yet
        made = [_model(result.graph, _of_forest(result, inside, row)) for row in rows]
    return made if result.batched else made[0]


def _probabilities(result: Result) -> Array:
    if result.probabilities is None:
        raise CapabilityError("r.approximation is made of marginals; model.marginals(engine=...) gives them")
    return result.probabilities


def _kept(result: Result, state: Any) -> BoolArray:
    """(F,): the factors that q keeps."""
    if "inside" in state:
        return np.asarray(state["inside"], np.bool_)
    engine, graph = result.diagnostics["engine"], result.graph
    if engine not in MESSAGES:
        why = "model.condition(evidence) is its q" if result.bound == "exact" else "mean_field has one"
        raise CapabilityError(f"engine {engine!r} answers by no approximating distribution; {why}")
    if plan_forest(graph.state_offsets, graph.scope_offsets, graph.scope_variables) is None:
        raise CapabilityError(
            f"the marginals of {engine!r} belong to no distribution where factors form cycles; mean_field has one"
        )
    return np.asarray(np.diff(graph.scope_offsets) >= 2)


Tables = list[tuple[IntArray, Array]]  # scopes (n,) and weights (K1..Kn)


def _of_forest(result: Result, inside: BoolArray, row: int) -> Tables:
    """q of one row from the marginals of the factors of a forest, each divided by that of its parent variable."""
    graph, numbers = result.graph, np.flatnonzero(inside)
    scopes = [graph.scope(int(f)) for f in numbers]
    offsets = np.concatenate([[0], np.cumsum([len(scope) for scope in scopes])]).astype(np.int64)
    flat = np.concatenate([np.zeros(0, np.int64), *scopes])
    forest = plan_forest(graph.state_offsets, offsets, flat)
    assert forest is not None
    tables: Tables = [(np.array([v]), _of_variable(result, row, v)) for v in forest.roots.tolist()]
    places, values = factor_offsets(graph), result.factor_marginals
    for i, axis in zip(forest.order.tolist(), forest.parent_axis.tolist(), strict=True):
        assert values is not None
        scope, f = scopes[i], numbers[i]
        joint = values[row, places[f] : places[f + 1]].reshape(graph.variables.cardinalities[scope])
        tables.append((scope, _divided(joint, axis)))
    return tables


def _divided(joint: Array, axis: int) -> Array:
    """A joint distribution given the variable on an axis; zeros where that has no probability."""
    others = tuple(a for a in range(joint.ndim) if a != axis)
    total = joint.sum(axis=others, keepdims=True)
    return np.asarray(joint / np.where(total > 0, total, 1.0))


def _of_variable(result: Result, row: int, v: int) -> Array:
    offsets = result.graph.state_offsets
    return _probabilities(result)[row, offsets[v] : offsets[v + 1]]


def _of_tree(result: Result, row: int) -> Tables:
    """q of one row from conditional tables on a spanning tree."""
    assert result.state is not None
    edges, _, down = result.state["trees"][row]
    sizes = result.graph.variables.cardinalities
    parents = np.full(len(sizes), -1)
    for p, c in edges:
        parents[c] = p
    tables: Tables = [(np.array([v]), _of_variable(result, row, v)) for v in np.flatnonzero(parents < 0).tolist()]
    start = 0
    for c in np.flatnonzero(parents >= 0).tolist():
        p = int(parents[c])
        stop = start + int(sizes[p] * sizes[c])
        given = _of_variable(result, row, p)[:, None] > 0  # rows of what cannot be mean nothing
        tables.append((np.array([p, c]), np.where(given, down[start:stop].reshape(sizes[p], sizes[c]), 0.0)))
        start = stop
    return tables


def _model(graph: Graph, tables: Tables) -> Model:
    from besag.model.factors import markov_network

    groups: dict[tuple[int, ...], Tables] = {}
    for scope, weights in tables:
        groups.setdefault(weights.shape, []).append((scope, weights))
    factors = [
        ([graph.variables.names_at(scope) for scope, _ in group], np.stack([weights for _, weights in group]))
        for group in groups.values()
    ]
    model = markov_network(graph.variables, factors, given="weight")
    return model if graph.shape is None else model.with_parts(shape=graph.shape)


def kl_of(result: Result, problem: Problem, log_partition: Any, options: dict[str, Any]) -> Any:
    """KL(q || p): a number, (B,) for a batch; log Z as it is given, or made by the engine `exact`."""
    if result.log_partitions is None or not result.state or "marginals" not in result.state:
        raise CapabilityError(
            f"r.kl() is log Z - bound for the bound of mean_field, got an answer of {result.diagnostics['engine']!r}; "
            "besag.kl(r.approximation, model) serves every r that has an approximation"
        )
    log_z = _exactly(problem, options) if log_partition is None else _read_log_z(log_partition, result.log_partitions)
    values = np.maximum(log_z - result.log_partitions, 0.0)
    return values if result.batched else float(values[0])


def _exactly(problem: Problem, options: dict[str, Any]) -> Array:
    """log Z of each row by exact inference."""
    exact = ENGINES.read("exact", memory_limit=options.get("memory_limit"), n_threads=options.get("n_threads"))
    try:
        found = exact.infer(problem, frozenset({"log_partition"}), time_limit=options.get("time_limit"))
    except TooLargeError as error:
        raise TooLargeError(f"r.kl() takes log Z: {error}; or give it, r.kl(log_z)", seconds=error.seconds) from None
    assert found.log_partitions is not None
    return found.log_partitions


def _read_log_z(given: Any, bounds: Array) -> Array:
    """log Z of each row as a user gives it; ModelError where it is none, or below its lower bounds."""
    try:
        log_z = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"log Z must be a number, or one for each row, got {given!r}") from None
    if log_z.shape not in ((), bounds.shape) or not np.isfinite(log_z).all():
        raise ModelError(f"log Z must be a finite number, or one for each of {len(bounds)} rows, got {given!r}")
    below = log_z < bounds - BELOW * np.maximum(1.0, np.abs(bounds))
    if below.any():
        row = int(np.argmax(below))
        told = float(np.broadcast_to(log_z, bounds.shape)[row])
        raise ModelError(f"log Z cannot be {told}: the answer bounds it from below by {bounds[row]}")
    return log_z
