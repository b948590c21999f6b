"""CPTs from counts, and how well they fit.

    p(x | u) = (N_ux + a_ux) / sum_x (N_ux + a_ux)       a: the pseudo-counts of a prior, or 0
             = 1 / K                                      for a configuration u that is never seen, without prior
    log-likelihood = sum_ux N_ux log p(x | u)

    posterior of a row: Dirichlet(N_u + a_u); without a prior a = 1, the flat density, whose mode the CPT is
    log marginal likelihood of a family
        = sum_u lgamma(a_u.) - lgamma(N_u. + a_u.) + sum_x lgamma(N_ux + a_ux) - lgamma(a_ux)

AIC and BIC take away 1 and log(N) / 2 for each free parameter: higher is better, as everywhere here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from besag.arrays import Array, BoolArray
from besag.learn.networks.counts import FamilyCounts
from besag.learn.networks.priors import Prior
from besag.model.bayes import cpt, from_parents, with_cpts
from besag.model.model import Model
from besag.model.variable import NameList, Variables

if TYPE_CHECKING:
    import pandas as pd


def variables_of(counts: FamilyCounts) -> Variables:
    """The columns as variables."""
    return Variables.from_spaces(NameList(counts.names), [column.states for column in counts.types])


def pseudo_counts(variables: Variables, counts: FamilyCounts, prior: Prior | None) -> list[Array] | None:
    """Those of each family, axes (parents..., child)."""
    if prior is None:
        return None
    return [prior.pseudo_counts(variables, (*above, child)) for child, above in enumerate(counts.parents)]


def normalise(table: Array) -> tuple[Array, BoolArray]:
    """The rows of a table (..., K) of counts as probabilities, uniform where there are none; and where that is."""
    sums = table.sum(axis=-1, keepdims=True)
    unseen = sums[..., 0] <= 0
    return np.where(sums > 0, table / np.where(sums > 0, sums, 1.0), 1.0 / table.shape[-1]), unseen


def model_of_counts(counts: FamilyCounts, pseudo: list[Array] | None) -> Model:
    """The network whose CPTs are the counts and pseudo-counts, normalised."""
    variables = variables_of(counts)
    cpts = {}
    for v, (name, table) in enumerate(zip(counts.names, counts.tables, strict=True)):
        cpts[name] = normalise(table if pseudo is None else table + pseudo[v])[0]
    return from_parents(variables, [list(above) for above in counts.parents], cpts)


def log_likelihood(counts: FamilyCounts, model: Model) -> float:
    """sum N log p; -inf where something was counted that the model rules out."""
    total = 0.0
    for name, table in zip(counts.names, counts.tables, strict=True):
        p = cpt(model, name)
        seen = table > 0
        if (p[seen] == 0).any():
            return -math.inf
        total += float((table[seen] * np.log(p[seen])).sum())
    return total


def best_log_likelihood(counts: FamilyCounts) -> float:
    """The largest that CPTs can give."""
    total = 0.0
    for rows in counts.rows:
        sums = rows.sum(axis=1)
        total += _x_log_x(rows) - _x_log_x(sums)
    return total


def _x_log_x(values: Array) -> float:
    positive = values[values > 0]
    return float((positive * np.log(positive)).sum())


def n_free(counts: FamilyCounts) -> int:
    """The free parameters: K - 1 for each configuration of parents."""
    return sum(rows.shape[0] * (rows.shape[1] - 1) for rows in counts.rows)


def log_marginal_likelihood(counts: FamilyCounts, pseudo: list[Array]) -> float:
    """log p(data | structure), CPTs integrated out under their prior."""
    from scipy.special import gammaln

    total = 0.0
    for rows, own in zip(counts.rows, pseudo, strict=True):
        alpha = own.reshape(rows.shape)
        total += float((gammaln(rows + alpha) - gammaln(alpha)).sum())
        total += float((gammaln(alpha.sum(axis=1)) - gammaln(rows.sum(axis=1) + alpha.sum(axis=1))).sum())
    return total


def draw_models(
    model: Model, counts: FamilyCounts, pseudo: list[Array] | None, n: int, rng: np.random.Generator
) -> list[Model]:
    """n networks with CPTs drawn from the posterior; they share a Graph."""
    drawn: list[dict[str, Array]] = [{} for _ in range(n)]
    for v, (name, table) in enumerate(zip(counts.names, counts.tables, strict=True)):
        alpha = table + (1.0 if pseudo is None else pseudo[v])
        for cpts, values in zip(drawn, _dirichlet(alpha, n, rng), strict=True):
            cpts[name] = values
    return [with_cpts(model, cpts) for cpts in drawn]


def _dirichlet(alpha: Array, n: int, rng: np.random.Generator) -> Array:
    """(n, ...): n draws of every row, where alpha is below 1 by way of logarithms, which do not underflow.

    Gamma(a) = Gamma(a + 1) U^(1/a). An alpha of 0, of what the prior rules out, gives 0; a row of them is flat.
    """
    shape = (n, *alpha.shape)
    alpha = np.where(alpha.sum(axis=-1, keepdims=True) > 0, alpha, 1.0)
    with np.errstate(divide="ignore"):
        logs = np.log(rng.standard_gamma(alpha + 1.0, shape)) + np.log(rng.random(shape)) / alpha
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def unseen_configurations(counts: FamilyCounts) -> pd.DataFrame:
    """The variables some of whose parents' configurations no row has: columns configurations, unseen, first."""
    import pandas as pd

    rows = {}
    for v, name in enumerate(counts.names):
        empty = np.argwhere(counts.tables[v].sum(axis=-1) <= 0)
        if len(empty):
            first = ", ".join(
                f"{counts.names[p]}={counts.types[p].states[k]}"
                for p, k in zip(counts.parents[v], empty[0].tolist(), strict=True)
            )
            rows[name] = (len(counts.rows[v]), len(empty), first)
    return pd.DataFrame.from_dict(rows, orient="index", columns=["configurations", "unseen", "first"])
