"""The M-step of a Bayesian network, in closed form, 004: expected counts, row by row.

    p(c | parents) = (mu(parents, c) + prior(parents, c)) / sum over c of the same

theta = -log p has one number for each entry of a CPT, so that mu (P,) are counts in its own layout; CPTs that share a
table share counts. A row that was never seen stays as it was. An entry whose count is 0 becomes a hard zero.

Among the networks, whose log Z is 0, a row moves along its logits: there the gradient of the log-likelihood is
mu(parents, c) - mu(parents) p(c | parents), what `look` gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from besag.arrays import Array
from besag.errors import ModelError
from besag.learn.hidden.steps import Numbers
from besag.model.model import FactorGroup, Model


def has_tables(model: Model) -> bool:
    """Whether the model is a Bayesian network whose CPTs are read entry by entry from theta."""
    return model.is_bayesian_network and all(_is_plain(group) for group in model.groups)


def _is_plain(group: FactorGroup) -> bool:
    template, inputs = group.template, group.inputs
    return template.basis is None and template.pattern is None and (inputs is None or inputs.ndim == 1)


class Tables:
    """The closed form at work."""

    is_exact, draws = True, False

    def __init__(self, model: Model) -> None:
        self.model = model

    def maximise(self, numbers: Numbers, moments: Array, rng: np.random.Generator) -> Numbers:
        """CPTs from counts (P,)."""
        theta, support = np.array(numbers.theta), np.ones(len(numbers.theta), np.bool_)
        if numbers.support is not None:
            support[:] = numbers.support
        for where, counts in self._rows(moments):
            total = counts.sum(axis=1, keepdims=True)
            seen = np.broadcast_to(total > 0, counts.shape).reshape(-1)
            with np.errstate(divide="ignore", invalid="ignore"):
                found = -np.log(counts / total).reshape(-1)
            possible = counts.reshape(-1) > 0
            theta[where] = np.where(seen, np.where(possible, found, 0.0), theta[where])
            support[where] &= possible | ~seen
        return Numbers(theta, None if support.all() else support)

    def look(self, numbers: Numbers, moments: Array, rng: np.random.Generator) -> tuple[float | None, Array]:
        """0, as rows sum to one, and counts minus those that the rows would give."""
        rest, p = np.array(moments), np.exp(-numbers.theta)
        if numbers.support is not None:
            p = p * numbers.support
        for where, counts in self._rows(moments):
            rest[where] -= (p[where].reshape(counts.shape) * counts.sum(axis=1, keepdims=True)).reshape(-1)
        return 0.0, rest

    def _rows(self, moments: Array) -> Iterator[tuple[slice, Array]]:
        """Where the tables of each template are in theta, and their counts (rows, K)."""
        layout = self.model.layout
        for name, template in layout.templates.items():
            counts = np.maximum(moments[layout[name]], 0.0).reshape(-1, template.shape[-1])
            if template.support is not None:
                counts = (counts.reshape(-1, *template.shape) * template.support).reshape(counts.shape)
            yield layout[name], counts


def read_counts(model: Model, given: Any) -> Array | None:
    """Prior counts (P,) from a number for all entries, {child: table}, or (P,); hard zeros of the model get none."""
    if given is None:
        return None
    if not has_tables(model):
        raise ModelError("prior_counts= are those of CPTs, and this model is no Bayesian network; leave them out")
    counts = _counts_by_child(model, given) if isinstance(given, Mapping) else _counts_from_array(model, given)
    wrong = ~((counts >= 0) & (counts < np.inf))
    if wrong.any():
        raise ModelError(f"prior_counts must be finite numbers from 0 on, got {counts[wrong][0]}")
    for name, template in model.layout.templates.items():
        if template.support is not None:
            where = model.layout[name]
            counts[where] = (counts[where].reshape(-1, *template.shape) * template.support).reshape(-1)
    return counts if model.support is None else counts * model.support


def _counts_from_array(model: Model, given: Any) -> Array:
    n = model.layout.n_parameters
    try:
        values = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"prior_counts must be a number, {{child: table}} or (P,), got {given!r}") from None
    if values.ndim and values.shape != (n,):
        raise ModelError(f"prior_counts must be a number, {{child: table}} or of shape ({n},), got {values.shape}")
    return np.array(np.broadcast_to(values, (n,)))


def _counts_by_child(model: Model, given: Mapping[str, Any]) -> Array:
    counts = np.zeros(model.layout.n_parameters)
    factor_of = {int(group.scopes[i, -1]): (group, i) for group in model.groups for i in range(len(group))}
    for child, table in given.items():
        group, i = factor_of[model.variables.index(child)]
        template = group.template
        values = np.asarray(table, np.float64)
        if values.shape != template.shape:
            raise ModelError(f"prior_counts of {child!r} must have shape {template.shape}, got {values.shape}")
        start, size = model.layout[template.name].start, template.n_basis
        start += 0 if group.inputs is None else size * int(group.inputs[i])
        counts[start : start + size] += values.reshape(-1)
    return counts
