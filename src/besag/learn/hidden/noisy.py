"""EM for noisy-MAX factors: a Bayesian network whose tables have their parameters, with the effects as variables.

A noisy-MAX is the strongest of independent effects (`besag.model.structured.noisy`). With a variable Y_i for the effect
of each parent and Y_0 for the leak, and M_i for the strongest of the first ones, it is tables,

    p(Y_i | x_i), what is to be learnt      M_i = max(M_{i-1}, Y_i), with hard zeros, which EM keeps      M_n the child

so that EM counts how often each parent has had which effect, and the M-step is that of tables, in closed form. Complete
data need it as well: they do not say which of the parents it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from besag.arrays import Array
from besag.errors import ModelError
from besag.model.bayes import conditional_of, cpt, from_parents
from besag.model.dag import parents_of
from besag.model.model import Model
from besag.model.structured.noisy import NoisyMax
from besag.model.variable import NameList, Variables


def noisy_children(model: Model) -> dict[int, NoisyMax]:
    """The noisy-MAX of each child that has one, in the order of the variables."""
    if not any(isinstance(group.template.structured, NoisyMax) for group in model.groups):
        return {}
    terms = ((v, conditional_of(model, model.variables.names[v])) for v in range(len(model.variables)))
    return {v: term for v, term in terms if isinstance(term, NoisyMax)}


def spell_out(model: Model) -> Model:
    """The network with variables for the effects and the strongest of them, after all others."""
    parents, terms = parents_of(model), noisy_children(model)
    names = model.variables.names_at(range(len(model.variables)))
    cpts: dict[str, Any] = {name: conditional_of(model, name) for v, name in enumerate(names) if v not in terms}
    spaces = [model.variables.states(v) for v in range(len(names))]
    for v, term in terms.items():
        n_states, child = term.effects.shape[1], names[v]
        tables = _effects(term)
        first = len(names)
        names += [_effect(child, i) for i in range(len(tables))]
        names += [f"\x00{child} strongest {i}" for i in range(1, len(tables) - 1)]
        spaces += [tuple(map(str, range(n_states)))] * (len(names) - first)
        above = parents[v]
        parents += [[parent] for parent in above] + [[]]
        cpts |= dict(zip(names[first:], tables, strict=False))
        before = first + len(above)  # the leak
        for i in range(len(above)):
            last = i == len(above) - 1
            at, strongest = v if last else first + len(tables) + i, _strongest(n_states)
            pair = [before, first + i]
            cpts[names[at]] = strongest[..., term.ranks] if last else strongest
            if last:
                parents[v] = pair
            else:
                parents.append(pair)
            before = at
    variables = Variables.from_spaces(NameList(names), spaces)
    return from_parents(variables, parents, cpts)


def gather_up(model: Model, learnt: Model) -> Model:
    """The network with the effects that were learnt, and with its other tables."""
    parents, terms = parents_of(model), noisy_children(model)
    names = model.variables.names_at(range(len(model.variables)))
    cpts: dict[str, Any] = {name: cpt(learnt, name) for v, name in enumerate(names) if v not in terms}
    for v, term in terms.items():
        rows = [np.atleast_2d(cpt(learnt, _effect(names[v], i))) for i in range(len(parents[v]) + 1)]
        cpts[names[v]] = NoisyMax(np.concatenate(rows)[:, term.ranks], term.cardinalities, term.ranks)
    return from_parents(model.variables, parents, cpts).with_parts(metadata=model.metadata)


def widen(model: Model, spelled: Model, data: Any) -> Any:
    """The data of a model with nothing known of the other variables: columns of -1 for int codes."""
    if hasattr(data, "columns"):
        return data
    try:
        codes = np.asarray(data)
    except ValueError:
        codes = np.zeros(0)
    if codes.ndim != 2 or codes.dtype.kind not in "iu" or codes.shape[1] != len(model.variables):
        raise ModelError(
            "a model with noisy-MAX factors learns from a DataFrame of states, or int codes "
            f"(N, {len(model.variables)})"
        )
    return np.concatenate([codes, np.full((len(codes), len(spelled.variables) - codes.shape[1]), -1)], axis=1)


def check_counts(model: Model, prior_counts: Any) -> None:
    """ModelError where prior counts are not those of tables, or a number."""
    noisy = {model.variables.names[v] for v in noisy_children(model)}
    if isinstance(prior_counts, Mapping) and noisy & set(prior_counts):
        raise ModelError(f"{min(noisy & set(prior_counts))!r} is a noisy-MAX: prior_counts of it must be a number")
    if np.ndim(prior_counts) == 1:
        raise ModelError("prior_counts of a model with noisy-MAX factors must be a number or {child: table}")


def refuse_noisy(model: Model) -> None:
    """ModelError where a model has parameters that no gradient learns."""
    if any(isinstance(group.template.structured, NoisyMax) for group in model.groups):
        raise ModelError(
            "noisy-MAX factors are learnt by besag.em(model, data), from complete data too, not by gradients"
        )


def _effects(term: NoisyMax) -> list[Array]:
    """p(Y_i | x_i) of each parent, (K_i, K) by rank, and of the leak, (K,)."""
    by_rank = term.effects[:, np.argsort(term.ranks)]
    parts = np.split(by_rank, term.offsets[1:])
    return [*parts[:-1], parts[-1][0]]


def _effect(child: str, number: int) -> str:
    return f"\x00{child} effect {number}"


def _strongest(n_states: int) -> Array:
    """(K, K, K): whether the last one is the larger of the two before it."""
    one, other, strongest = np.ogrid[:n_states, :n_states, :n_states]
    return np.where(np.maximum(one, other) == strongest, 1.0, 0.0)
