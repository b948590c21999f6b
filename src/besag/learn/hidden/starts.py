"""Where EM begins: at the model's own parameters, and in restarts at random ones near by.

States of a hidden variable that the model does not tell apart are never told apart by EM: with every factor the same at
both, so are all posteriors, and so is the next model. That is said before the first step; noise breaks it.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from besag.arrays import BoolArray, IntArray
from besag.errors import ModelError
from besag.graph.problem import Problem
from besag.learn.hidden.steps import Numbers, Visible
from besag.learn.hidden.tables import Tables, has_tables
from besag.model.model import Model

NOISE = 1.0  # standard deviation of what is added to every energy


def random_start(model: Model, number: int, seed: int) -> Numbers:
    """The parameters of a model with noise on every energy; those of a Bayesian network again one, zeros kept."""
    rng = np.random.default_rng([seed, number])
    theta = model.theta + NOISE * rng.standard_normal(model.layout.n_parameters)
    if model.support is not None:
        theta = np.where(model.support, theta, 0.0)
    if not has_tables(model):
        return Numbers(theta, model.support)
    weights = np.exp(-theta)
    if model.support is not None:
        weights = weights * model.support
    return Tables(model).maximise(Numbers(model.theta, model.support), weights, rng)


def refuse_symmetry(visible: Visible, restarts: int, counted: Collection[str] = ()) -> None:
    """ModelError where EM would never tell two states of a hidden variable apart, unless it begins again with noise.

    counted: variables that are not hidden, because other rows have been counted.
    """
    graph, model = visible.batch.graph, visible.model
    hidden = np.array([v for v in visible.never_seen.tolist() if graph.variables.names[v] not in counted], np.int64)
    if restarts or not len(hidden):
        return
    same = same_states(graph.bind(model.theta, support=model.support), hidden)
    if same is not None:
        v, one, other = same
        states = graph.variables.states(v)
        raise ModelError(
            f"no instance gives {graph.variables.names[v]!r}, and no factor of the model tells its states "
            f"{states[one]!r} and {states[other]!r} apart: EM never would; begin with other parameters, or restarts=5"
        )


def same_states(problem: Problem, hidden: IntArray) -> tuple[int, int, int] | None:
    """A hidden variable and two of its states that no factor tells apart, or None."""
    graph = problem.graph
    for v in hidden.tolist():
        apart = _apart(problem, v, np.flatnonzero(graph.scope_variables == v))
        alike = np.argwhere(np.triu(~apart, 1))
        if len(alike):
            return v, int(alike[0, 0]), int(alike[0, 1])
    return None


def _apart(problem: Problem, v: int, entries: IntArray) -> BoolArray:
    """(K, K): which states of a variable some factor tells apart."""
    graph = problem.graph
    apart = np.zeros((int(graph.variables.cardinalities[v]),) * 2, np.bool_)
    for e in entries.tolist():
        f = int(np.searchsorted(graph.scope_offsets, e, side="right")) - 1
        table = np.moveaxis(problem.table(f), e - int(graph.scope_offsets[f]), 0).reshape(len(apart), -1)
        apart |= (table[:, None] != table[None]).any(axis=-1)
    return np.asarray(apart)
