"""Markov networks from the moments of their factors, 004: p(y) ~ exp(sum_C log-potential_C(y_C)) with p(y_C) = mu_C.

    decomposable    prod_C mu_C / prod_C mu_S_C: what iterative proportional fitting ends at after one pass
    other graphs    theta = argmin <theta, mu> + log Z(theta), by L-BFGS through exact or approximate inference

A cell with mu_C(y_C) = 0 has its optimum at infinity. It is a hard zero here: the limit itself, on the face of the
marginal polytope where the other cells have a finite optimum, unless that lies on a smaller face yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from besag.arrays import Array
from besag.errors import DataError
from besag.learn.fit import Fit, fit
from besag.learn.networks.cliques import decomposition, neighbours_of
from besag.model.factors import markov_network
from besag.model.model import Model
from besag.model.variable import Variables

Scope = tuple[int, ...]
AGREE = 1e-6  # of moments of the same variables in two tables


def closed_form(variables: Variables, scopes: Sequence[Scope], moments: Sequence[Array]) -> Model | None:
    """The model with these moments, tables that sum to one, where scopes are the cliques of a decomposable graph."""
    parts = decomposition(neighbours_of(len(variables), scopes))
    at = {tuple(sorted(scope)): i for i, scope in enumerate(scopes)}
    if parts is None or set(at) != {clique for clique, _ in parts}:
        return None
    weights: list[Array] = [np.zeros(0)] * len(scopes)
    earlier: list[int] = []
    for clique, separator in parts:
        i = at[clique]
        _check_agreement(variables, scopes, moments, [*earlier, i], separator)
        rest = tuple(k for k, v in enumerate(scopes[i]) if v not in separator)
        below = moments[i].sum(axis=rest, keepdims=True)
        weights[i] = np.divide(moments[i], below, out=np.zeros(moments[i].shape), where=below > 0)
        earlier.append(i)
    return network(variables, scopes, weights, "weight")


def _check_agreement(
    variables: Variables, scopes: Sequence[Scope], moments: Sequence[Array], tables: list[int], separator: Scope
) -> None:
    """DataError where the last table says otherwise of the separator than the one before that has all of it."""
    before = next((i for i in reversed(tables[:-1]) if set(separator) <= set(scopes[i])), None)
    if before is None or not separator:
        return
    one, other = (_onto(scopes[i], moments[i], separator) for i in (before, tables[-1]))
    if np.abs(one - other).max() > AGREE:
        names = [tuple(variables.names_at(scopes[i])) for i in (before, tables[-1])]
        raise DataError(
            f"no distribution has these moments: those of {names[0]} and {names[1]} differ by "
            f"{np.abs(one - other).max():.2g} for {tuple(variables.names_at(separator))}"
        )


def _onto(scope: Scope, table: Array, onto: Scope) -> Array:
    """p(onto), axes in its order."""
    kept = [v for v in scope if v in onto]
    small = table.sum(axis=tuple(k for k, v in enumerate(scope) if v not in onto))
    return np.transpose(small, [kept.index(v) for v in onto])


def network(variables: Variables, scopes: Sequence[Scope], tables: Sequence[Array], given: Any) -> Model:
    """A Markov network with a table for each scope."""
    named = {variable.name: variable.states for variable in variables}
    factors = [(tuple(variables.names_at(scope)), table) for scope, table in zip(scopes, tables, strict=True)]
    return markov_network(named, factors, given)


def by_factor(model: Model, values: Array) -> Iterator[tuple[Scope, Array]]:
    """(scope, table) of every factor from numbers (P,) in the layout of theta; the model has tables only."""
    for group in model.groups:
        template = group.template
        tables = values[model.layout[template.name]].reshape(-1, *template.shape)
        rows = np.zeros(len(group), np.int64) if group.inputs is None else np.asarray(group.inputs)
        for scope, row in zip(group.scopes.tolist(), rows.tolist(), strict=True):
            yield tuple(scope), tables[row]


def match_moments(
    variables: Variables, scopes: Sequence[Scope], moments: Sequence[Array], l2: float, **options: Any
) -> Fit:
    """The Fit of a model with these moments, hard zeros where they are 0 unless l2 keeps theta finite."""
    allowed = [np.ones(table.shape) if l2 > 0 else (table > 0).astype(np.float64) for table in moments]
    model = network(variables, scopes, allowed, "weight")
    aimed = network(variables, scopes, moments, "energy").theta  # in the order of theta
    return fit(model, moments=aimed, l2=l2, **options)
