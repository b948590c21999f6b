"""Parameters where cells are missing: EM, begun at what the known cells say, with complete rows as counts.

theta = argmax  sum over incomplete rows log p(known cells) + sum_ux (N_ux + a_ux) log p(x | u)

so that only rows with a missing cell need inference. EM begins at CPTs from the rows in which a family is known, each
entry a little above zero, because EM never leaves zero; a variable that no row knows begins at random.

A Markov network begins at the moments of its complete rows. With a penalty its likelihood is maximised directly.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from besag.arrays import Array
from besag.data.tables.code_table import CodeTable, missing_code
from besag.infer.engine import ENGINES
from besag.learn.fit import Fit, fit, read_data
from besag.learn.hidden.em import em
from besag.learn.hidden.expect import Posterior
from besag.learn.hidden.steps import Numbers, Visible
from besag.learn.losses.likelihood import Likelihood
from besag.learn.networks.counts import FamilyCounts
from besag.learn.networks.gathering import Gathered
from besag.learn.networks.moments import by_factor
from besag.learn.networks.parameters import normalise, variables_of
from besag.model.bayes import from_parents
from besag.model.model import Model

FLOOR = 0.5  # rows that each configuration of parents begins with


def fit_incomplete(gathered: Gathered, pseudo: list[Array] | None, start: Model | None, **options: Any) -> Fit:
    """The Fit of EM; start: a model to begin at, else what the known cells say."""
    counts, rows = gathered.counts, gathered.incomplete
    assert rows is not None
    begin = start if start is not None else start_of(gathered, pseudo, options.get("seed", 0))
    known = {
        name: table + (0.0 if pseudo is None else pseudo[v])
        for v, (name, table) in enumerate(zip(counts.names, counts.tables, strict=True))
    }
    return em(begin, rows.observed(), weights=rows.weights, prior_counts=known, **options)


def completed_counts(gathered: Gathered, found: Fit) -> FamilyCounts:
    """The counts of all rows, what is missing in them as the model expects it."""
    rows = gathered.incomplete
    assert rows is not None
    shares = dict(by_factor(found.model, np.asarray(found.checkpoint.kept["moments"])))
    tables = [
        table + shares[(*above, child)]
        for child, (above, table) in enumerate(zip(gathered.counts.parents, gathered.counts.tables, strict=True))
    ]
    total = gathered.counts.total + float(rows.n_rows if rows.weights is None else rows.weights.sum())
    return replace(gathered.counts, tables=tuple(tables), n_rows=gathered.counts.n_rows + rows.n_rows, total=total)


def fit_incomplete_network(
    start: Model, table: CodeTable, l2: float, *, max_iterations: int, tolerance: float, seed: int, **options: Any
) -> Fit:
    """The Fit of a Markov network, from `start` on; factors of variables that no row knows begin with noise."""
    unknown = np.array([bool((codes == missing_code(codes)).all()) for codes in table.codes])
    rng, theta = np.random.default_rng(seed), np.array(start.theta)
    if unknown.any():
        theta += rng.standard_normal(len(theta))
    rows, options = table.observed(), {**options, "weights": table.weights}
    if l2:
        optimizer = f"lbfgs[max_iterations={max_iterations},tolerance={tolerance}]"
        return fit(start, rows, theta=theta, l2=l2, optimizer=optimizer, **options)
    return em(start.with_theta(theta), rows, max_iterations=max_iterations, tolerance=tolerance, **options)


def expected_moments(model: Model, table: CodeTable, engine: Any) -> dict[tuple[int, ...], Array]:
    """The marginals of the factors in the rows, what is missing in them as the model has it."""
    engine = ENGINES.read(engine)
    visible = Visible(model, read_data(model, table.observed(), table.weights).all, Likelihood(engine, model.support))
    found = Posterior(visible, engine).expect(Numbers(model.theta, model.support), np.random.default_rng(0))
    return dict(by_factor(model, found.moments / visible.weight))


def start_of(gathered: Gathered, pseudo: list[Array] | None, seed: int) -> Model:
    """A network from the rows in which each family is known."""
    counts, rows = gathered.counts, gathered.incomplete
    assert rows is not None
    available = counts.merged(FamilyCounts.of(rows, counts.parents))
    hidden = [not counts.total and bool((codes == missing_code(codes)).all()) for codes in rows.codes]
    rng = np.random.default_rng(seed)
    cpts = {}
    for v, (name, table) in enumerate(zip(available.names, available.tables, strict=True)):
        begun = table + FLOOR / table.shape[-1] + (0.0 if pseudo is None else pseudo[v])
        if hidden[v] or any(hidden[p] for p in available.parents[v]):
            begun = begun + rng.gamma(1.0, 1.0, table.shape)
        cpts[name] = normalise(begun)[0]
    return from_parents(variables_of(available), [list(above) for above in available.parents], cpts)
