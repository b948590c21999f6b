"""Moments as users give them: (P,) numbers, or another model q, whose moments are E_q[phi] of the features of this one.

    mu = sum over factors f of this model of  sum_c q(y_Sf = c) phi_f(x_f, c)

by one inference of q, to which the factors of this model are added with theta = 0. Variables are found by their names;
q may have more of them, and any factors.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from besag.arrays import Array, IntArray, freeze
from besag.errors import ModelError
from besag.infer.engine import Engine
from besag.model.model import FactorGroup, Model
from besag.model.template import Template

MASS = 1e-9  # of probability that hard zeros may rule out: rounding


def read_moments(model: Model, given: Any, engine: str | Engine, n_threads: int | None) -> Array:
    """mu (P,), finite; ModelError where they are not those of this model."""
    if isinstance(given, Model):
        return _moments_under(given, model, engine, n_threads)
    try:
        values = np.array(given, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"moments must be numbers (P,) or a Model, got {type(given).__name__}") from None
    if values.shape != (model.layout.n_parameters,):
        raise ModelError(f"moments must have shape ({model.layout.n_parameters},), as theta has, got {values.shape}")
    if not np.isfinite(values).all():
        at = int(np.argmin(np.isfinite(values)))
        raise ModelError(f"moments must be finite numbers, got {values[at]} at {at}")
    return values


def _moments_under(other: Model, model: Model, engine: str | Engine, n_threads: int | None) -> Array:
    places = _places(other, model)
    own = [replace(g, template=replace(g.template, name=f"q.{g.template.name}")) for g in other.groups]
    asked = [_moved(group, places) for group in model.groups]
    masses = [_ruled_out(group, places) for group in model.groups if group.template.support is not None]
    size = model.layout.n_parameters
    n_masses = len({group.template.name for group in masses})
    theta = np.concatenate([other.theta, np.zeros(size + n_masses)])
    support = None
    if other.support is not None:
        support = np.concatenate([other.support, np.ones(size + n_masses, np.bool_)])
    joined = Model(other.variables, [*_unnumbered(own), *asked, *masses], theta, support)
    found = joined.moments(engine=engine, n_threads=n_threads)[len(other.theta) :]
    _refuse_ruled_out(model, found[:size], found[size:])
    return found[:size]


def _places(other: Model, model: Model) -> IntArray:
    """(V,): the number in `other` of each variable of `model`."""
    places = np.empty(len(model.variables), np.int64)
    for v, name in enumerate(model.variables.names_at(range(len(places)))):
        at = other.variables.names.find(name)
        if at is None:
            raise ModelError(f"the model whose moments are matched has no variable {name!r}")
        if other.variables.states(at) != model.variables.states(v):
            raise ModelError(
                f"{name!r} has states {other.variables.states(at)} in the model whose moments are matched, "
                f"{model.variables.states(v)} in this one"
            )
        places[v] = at
    return places


def _unnumbered(groups: list[FactorGroup]) -> list[FactorGroup]:
    return [replace(group, positions=None, names=None) for group in groups]


def _moved(group: FactorGroup, places: IntArray) -> FactorGroup:
    """A group on the variables of another model; nothing is ruled out by it."""
    template = replace(group.template, name=f"p.{group.template.name}", support=None)
    return FactorGroup(template, freeze(places[group.scopes]), group.inputs)


def _ruled_out(group: FactorGroup, places: IntArray) -> FactorGroup:
    """Factors whose one statistic says that a hard zero of the group's template is met."""
    support = group.template.support
    assert support is not None
    template = Template(f"zeros.{group.template.name}", support.shape, basis=(~support)[None].astype(np.float64))
    return FactorGroup(template, freeze(places[group.scopes]))


def _refuse_ruled_out(model: Model, moments: Array, masses: Array) -> None:
    """ModelError where the other model allows what hard zeros of this one rule out: their divergence is infinite."""
    names = list(dict.fromkeys(g.template.name for g in model.groups if g.template.support is not None))
    wrong = [name for name, mass in zip(names, masses, strict=True) if mass > MASS]
    if model.support is not None and (np.abs(moments[~model.support]) > MASS).any():
        at = int(np.argmax(~model.support & (np.abs(moments) > MASS)))
        wrong += [name for name in model.layout.templates if model.layout[name].start <= at < model.layout[name].stop]
    if wrong:
        raise ModelError(
            f"hard zeros of template {wrong[0]!r} rule out what the model whose moments are matched allows: no theta "
            "makes their divergence finite"
        )
