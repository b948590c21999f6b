"""The E-step of latent classes: one hidden variable z, the only parent of all others, in rows with missing cells.

    log p(z, x_n) = log p(z) + sum_c log p(x_nc | z) = log p(z) + (X L)_nz      L (S, K): all log p(x_c = s | z)

X (N, S) is sparse, with a one for each known cell, so that the E-step is two products with it: X L, and X^T p(z | x)
for expected counts. A missing cell adds p(z | x_n) p(x_c | z).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from besag.arrays import Array, IntArray
from besag.learn.hidden.steps import Expected, Numbers, Visible
from besag.learn.hidden.tables import has_tables
from besag.model.bayes import cpt_scope
from besag.model.model import Model


def hidden_root(visible: Visible) -> int | None:
    """The variable that no row gives and that is the only parent of all others; None where there is none."""
    model, hidden = visible.model, visible.hidden
    if hidden is None or not hidden.is_rows or not has_tables(model):
        return None
    if len(model.variables) < 2 or any(template.support is not None for template in model.layout.templates.values()):
        return None
    root = next((int(group.scopes[0, 0]) for group in model.groups if group.scopes.shape[1] == 1), None)
    if root is None or (hidden.labels[:, root] >= 0).any():
        return None
    arities = sorted(group.scopes.shape[1] for group in model.groups)
    alone = sum(len(group) for group in model.groups if group.scopes.shape[1] == 1)
    parents = all((group.scopes[:, 0] == root).all() for group in model.groups)
    return root if arities[-1] == 2 and alone == 1 and parents else None


class Column(NamedTuple):
    """A variable: where its table (K, S) is in theta, and which rows of L are its own; missing: its rows of data."""

    where: slice
    rows: slice
    missing: IntArray


class LatentClass:
    """At work on rows whose only common hidden variable is `root`."""

    def __init__(self, visible: Visible, root: int) -> None:
        assert visible.hidden is not None
        self.visible, labels = visible, visible.hidden.labels
        model: Model = visible.model
        given = visible.hidden.weights
        self.weights = np.ones(len(labels)) if given is None else given
        names, sizes = model.variables.names_at(range(len(model.variables))), model.variables.cardinalities
        self.prior = cpt_scope(model, names[root])[0]
        others = [v for v in range(len(names)) if v != root]
        starts = np.concatenate([[0], np.cumsum(sizes[others])])
        self.columns = [
            Column(cpt_scope(model, names[v])[0], slice(starts[i], starts[i + 1]), np.flatnonzero(labels[:, v] < 0))
            for i, v in enumerate(others)
        ]
        self.cells = _one_hot(labels[:, others], starts)

    def expect(self, numbers: Numbers, rng: np.random.Generator) -> Expected:
        """h and mu."""
        logs = np.negative(numbers.theta)
        if numbers.support is not None:
            logs = np.where(numbers.support, logs, -np.inf)
        prior = logs[self.prior]
        tables = np.concatenate([logs[column.where].reshape(len(prior), -1).T for column in self.columns])
        joint = self.cells @ tables + prior
        highest = np.max(joint, axis=1, keepdims=True)
        shares = np.exp(joint - np.where(np.isfinite(highest), highest, 0.0))
        total = shares.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):
            value = float(self.weights @ (np.log(total) + highest)[:, 0])
        shares *= self.weights[:, None] / np.where(total > 0, total, 1.0)
        counts, moments = self.cells.T @ shares, np.array(self.visible.statistics)
        moments[self.prior] += shares.sum(axis=0)
        for column in self.columns:
            own = counts[column.rows].T + shares[column.missing].sum(axis=0)[:, None] * np.exp(tables[column.rows].T)
            moments[column.where] += own.reshape(-1)
        return Expected(value - self.visible.energy(numbers), moments, True)


def _one_hot(labels: IntArray, starts: Array) -> Any:
    """X (N, S) of labels (N, C), -1 = missing; column c has the places from starts[c] on."""
    from scipy.sparse import csr_array

    known = labels >= 0
    indptr = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
    places = (labels + starts[:-1])[known].astype(np.int64)
    return csr_array((np.ones(len(places)), places, indptr), shape=(len(labels), int(starts[-1])))
