"""Filtering in two-slice networks: p(X_t | evidence of slices 0 to t), one slice after the other.

    alpha_t(I_t) = p(I_t | e_0..t)    I: the interface, the variables that the next slice depends on
    alpha_t+1(I_t+1) ~ sum over I_t and the rest of slice t + 1 of  alpha_t(I_t) p(X_t+1, e_t+1 | I_t)

Each step is inference in one small Markov network, whose Graph all steps share: the CPTs of a slice and one table for
what is known of the one before. The work grows with the number of slices, and not with its square.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from besag.arrays import Array, IntArray
from besag.errors import EvidenceError
from besag.graph.evidence import Evidence
from besag.model.dynamic import Slices, read_slices, unroll
from besag.model.model import FactorGroup, Model
from besag.model.template import Template

PAST = "past"


def filter_slices(slice_model: Model, codes: IntArray) -> Iterator[list[Array]]:
    """For each slice the marginals (K,) of its variables, given it and those before; codes (T, B), -1 = unknown."""
    slices = read_slices(slice_model)
    first, step = unroll(slice_model, 1), _step_model(slices)
    n, past = len(slices.names), np.ones(1)
    for t, own in enumerate(codes):
        model = first if t == 0 else _with_past(step, past)
        known = Evidence(own if t == 0 else np.concatenate([np.full(n, -1), own]))
        now = [f"{name}[{min(t, 1)}]" for name in slices.names]
        try:
            found = model.marginals(now, evidence=known)
        except EvidenceError as error:
            raise EvidenceError(f"row {t} is impossible after those before it: {error}", row=t) from None
        yield [np.asarray(found[name]) for name in now]
        if slices.interface and t + 1 < len(codes):
            past = model.joint([f"{name}[{min(t, 1)}]" for name in slices.interface], evidence=known)


def _step_model(slices: Slices) -> Model:
    """The CPTs of slice 1, and one table on the interface of slice 0."""
    two, n = unroll(slices.model, 2), len(slices.names)
    groups = []
    for group in two.groups:
        now = group.scopes[:, -1] >= n
        inputs = None if group.inputs is None else np.asarray(group.inputs)[now]
        groups.append(FactorGroup(group.template, group.scopes[now], inputs))
    theta, support = two.theta, two.support
    if slices.interface:
        scope = np.array([[slices.names.index(name) for name in slices.interface]])
        shape = tuple(two.variables.cardinalities[scope[0]].tolist())
        groups.append(FactorGroup(Template(PAST, shape), scope))
        theta = np.concatenate([theta, np.zeros(int(np.prod(shape)))])
        support = None if support is None else np.concatenate([support, np.ones(int(np.prod(shape)), np.bool_)])
    return Model(two.variables, groups, theta, support)


def _with_past(model: Model, past: Array) -> Model:
    if PAST not in model.layout.templates:
        return model
    theta, where = np.array(model.theta), model.layout[PAST]
    support = np.ones(len(theta), np.bool_) if model.support is None else np.array(model.support)
    table = past.reshape(-1)
    support[where] = table > 0
    theta[where] = -np.log(np.where(table > 0, table, 1.0))
    return model.with_numbers(theta, None if support.all() else support)
