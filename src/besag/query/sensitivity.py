"""How much an answer of a Bayesian network hangs on each entry of its CPTs.

With Z_e = sum over y of prod_v theta_{y_v | y_parents(v)} times the likelihood of e, p = P(T = s | e) = Z_se / Z_e.
Z is linear in every entry, and its slope is what multiplies the entry: the sum over all y with the family in (x, u) of
the other factors,

    dZ_e / dtheta_{x|u} = P(x, u, e) / theta_{x|u}                                               where theta > 0
                        = Z'_e P'(x, u | e)        ' = the same network, but the CPT of this family is 1 everywhere

    dp / dtheta = (dZ_se / dtheta - p dZ_e / dtheta) / Z_e

The first form gives all families from one call with two rows, e and e + (T = s), and their factor marginals. The second
needs no division, so it is right where theta = 0, and takes one more call for each family that has zeros.

`derivative` is this partial derivative: the other entries of the row stay, so the row no longer sums to one. `covaried`
moves along distributions: as theta_{x|u} grows, the other entries of its row shrink in proportion,

    dtheta_{x'|u} / dtheta_{x|u} = -theta_{x'|u} / sum of theta_{x''|u} over x'' != x

or evenly, by 1 / (K - 1) each, where they are all 0. Families that share a table count one by one.
See Castillo, Gutierrez and Hadi, "Sensitivity analysis in discrete Bayesian networks" (1997), and Chan and Darwiche,
"When do numbers really matter?" (2002).

Arrays: tables and slopes (U, K), a row for each joint state of the parents.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from besag.arrays import Array
from besag.errors import ModelError
from besag.graph.evidence import Evidence
from besag.infer.result import factor_offsets
from besag.model.bayes import cpt, from_parents
from besag.model.cpt import state_code
from besag.model.dag import parents_of
from besag.query.analysis import free_target, infer_rows, one_row, target_states, with_states
from besag.query.run import Options

if TYPE_CHECKING:
    import pandas as pd

    from besag.model.model import Model

SMALLEST = 1e-100  # an entry below this is treated as a zero: a marginal divided by it could have underflowed
ROUNDING = 1e-14  # the difference of two numbers that agree up to this is all rounding


def sensitivity(model: Model, target: str, state: Any, evidence: Any, options: Options) -> pd.DataFrame:
    """The derivatives of P(target = state | evidence) by every CPT entry, largest covaried one first."""
    _refuse_undirected(model)
    given = one_row(model, evidence, "sensitivity")
    v = free_target(model, target, given)
    code = state_code(model.variables, v, state)
    query = _Query(with_states(given, v, np.array([code])), target_states(model, v).start + code, options)
    return _frame(model, _slopes(_with_own_tables(model), query))


def _refuse_undirected(model: Model) -> None:
    if not model.is_bayesian_network:
        raise ModelError(
            "sensitivity is by CPT entries and needs a Bayesian network, every factor a CPT; for another model the "
            "derivative of P(state | evidence) by model.theta is P(state | evidence) times "
            "(model.moments(evidence) - model.moments({**evidence, target: state}))"
        )


def _with_own_tables(model: Model) -> Model:
    """The same network where every family has a table, and no two read one."""
    readers = model.problem.table_of_factor
    tabular = all(group.template.structured is None for group in model.groups)
    if tabular and len(np.unique(readers)) == len(readers):
        return model
    cpts = {name: cpt(model, name) for name in model.variables.names_at(range(len(model.variables)))}
    return from_parents(model.variables, parents_of(model), cpts)


class _Query(NamedTuple):
    """The rows e and e + (T = s), where s is on the flat axis of states, and the options."""

    rows: Evidence
    at: int
    options: Options


class _Answer(NamedTuple):
    """log Z_e, p, and on the flat axis of all factor tables P(family, T = s | e) and P(family | e)."""

    log_z: float
    p: float
    with_state: Array
    families: Array


def _answer(model: Model, query: _Query) -> _Answer:
    result = infer_rows(model, query.rows, {"log_partition", "variables", "factors"}, query.options)
    assert result.log_partitions is not None
    assert result.probabilities is not None
    assert result.factor_marginals is not None
    p = float(result.probabilities[0, query.at])
    families, clamped = result.factor_marginals
    with_state = p * clamped if p > 0 else np.zeros_like(clamped)
    return _Answer(float(result.log_partitions[0]), p, with_state, families)


def _slopes(model: Model, query: _Query) -> dict[int, tuple[Array, Array]]:
    """The CPT of every variable and dp / dtheta by its entries, {variable: ((U, K), (U, K))}."""
    graph, whole = model.graph, _answer(model, query)
    offsets = factor_offsets(graph)
    found = {}
    for f in range(graph.n_factors):
        part = slice(int(offsets[f]), int(offsets[f + 1]))
        theta = np.exp(model.problem.table(f))
        if theta.min() >= SMALLEST:
            slopes = _difference(whole.with_state[part], whole.p * whole.families[part]) / theta.reshape(-1)
        else:
            ones = model.with_tables({int(graph.factor_positions[f]): np.zeros(theta.shape)})
            other = _answer(ones, query)
            slopes = _difference(other.with_state[part], whole.p * other.families[part])
            slopes = slopes * np.exp(other.log_z - whole.log_z)
        shape = (-1, theta.shape[-1])
        found[int(graph.scope(f)[-1])] = theta.reshape(shape), slopes.reshape(shape)
    return found


def _difference(a: Array, b: Array) -> Array:
    """a - b, and 0 where that is all rounding."""
    difference = a - b
    return np.where(np.abs(difference) <= ROUNDING * np.maximum(np.abs(a), np.abs(b)), 0.0, difference)


def _covaried(theta: Array, slopes: Array) -> Array:
    """The slopes along rows that still sum to one, (U, K); a row with one entry cannot move."""
    k = theta.shape[1]
    if k == 1:
        return np.zeros_like(slopes)
    others = 1.0 - np.eye(k)
    rest = theta @ others
    shrinking = (theta * slopes) @ others / np.where(rest > 0, rest, 1.0)
    return _difference(slopes, np.where(rest > 0, shrinking, slopes @ others / (k - 1)))


def _frame(model: Model, found: dict[int, tuple[Array, Array]]) -> pd.DataFrame:
    import pandas as pd

    parents, order = parents_of(model), sorted(found)
    keys = [
        (model.variables.names[v], x, u)
        for v in order
        for u in _rows(model, parents[v])
        for x in model.variables.states(v)
    ]
    values, slopes = (np.concatenate([found[v][i].reshape(-1) for v in order]) for i in (0, 1))
    covaried = np.concatenate([_covaried(*found[v]).reshape(-1) for v in order])
    frame = pd.DataFrame(keys, columns=["variable", "state", "given"])
    frame = frame.assign(value=values, derivative=slopes, covaried=covaried)
    return frame.iloc[np.argsort(-np.abs(covaried), kind="stable")].reset_index(drop=True)


def _rows(model: Model, parents: list[int]) -> list[str]:
    """The joint states of the parents as text, in the order of the CPT's rows: "rain=yes, sprinkler=off"."""
    names = model.variables.names_at(parents)
    states = product(*(model.variables.states(v) for v in parents))
    return [", ".join(f"{name}={state}" for name, state in zip(names, row, strict=True)) for row in states]
