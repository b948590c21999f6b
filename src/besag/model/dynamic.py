"""Two-slice dynamic networks: one slice after the other, all with the same CPTs.

A slice model is a Bayesian network over the variables X of a slice and some X' of the next one:

    p(X_0, .., X_T-1) = prod_X p(X_0 | parents)  prod_t>0 prod_X p(X_t | parents in slices t - 1 and t)

    X  and X'    the CPT of X is for the first slice, that of X' for all others; in it, X is slice t - 1, X' slice t
    X  alone     is in every slice with the same CPT; its parents are in its slice

"rain -> rain'; rain -> umbrella" is a hidden Markov model. Unrolled, X of slice t is "X[t]". theta and hard zeros are
those of the slice model: the CPTs of all slices are one table, and what is learnt unrolled is learnt for the slices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from besag.arrays import IntArray
from besag.errors import ModelError
from besag.model.model import FactorGroup, Model
from besag.model.variable import NameList, Variables
from besag.registry import is_whole

PRIME = "'"


@dataclass(frozen=True, slots=True, eq=False)
class Slices:
    """A slice model read: names (B,) of a slice's variables; of each variable of the model, its place and slice.

    place (V,): which of the B it is; later (V,): 1 for X', 0 for X; changes (B,): whether X has an X'.
    """

    model: Model
    names: tuple[str, ...]
    place: IntArray
    later: IntArray
    changes: IntArray

    @property
    def first(self) -> IntArray:
        """(B,): the variables X."""
        return np.flatnonzero(self.later == 0)

    @property
    def interface(self) -> list[str]:
        """The variables through which a slice tells the next one: the X that some X' has as a parent."""
        found = set()
        for group in self.model.groups:
            for scope in group.scopes.tolist():
                if self.later[scope[-1]]:
                    found |= {int(self.place[v]) for v in scope[:-1] if not self.later[v]}
        return [self.names[b] for b in sorted(found)]


def read_slices(model: Any) -> Slices:
    """The slices of a model; ModelError where it is no two-slice network."""
    if not (isinstance(model, Model) and model.is_bayesian_network):
        raise ModelError("a slice model is a Bayesian network over X and X', as besag.bayesian_network makes them")
    all_names = model.variables.names_at(range(len(model.variables)))
    names = tuple(name for name in all_names if not name.endswith(PRIME))
    number = {name: b for b, name in enumerate(names)}
    later = np.array([name.endswith(PRIME) for name in all_names], np.int64)
    place = np.zeros(len(all_names), np.int64)
    changes = np.zeros(len(names), np.int64)
    for v, name in enumerate(all_names):
        base = name.removesuffix(PRIME)
        if base not in number:
            raise ModelError(f"{name!r} is the next {base!r}, and there is no {base!r} for the first slice")
        place[v] = number[base]
        if later[v]:
            changes[number[base]] = 1
            if model.variables.states(v) != model.variables.states(all_names.index(base)):
                raise ModelError(f"{name!r} must have the states of {base!r}, in the same order")
    slices = Slices(model, names, place, later, changes)
    _check_parents(slices, all_names)
    return slices


def _check_parents(slices: Slices, names: list[str]) -> None:
    for group in slices.model.groups:
        for scope in group.scopes.tolist():
            child, late = scope[-1], [v for v in scope[:-1] if slices.later[v]]
            if late and not slices.later[child]:
                raise ModelError(
                    f"{names[child]!r} cannot depend on {names[late[0]]!r}, which is in the next slice; name it "
                    f"{names[child] + PRIME!r} there"
                )


def unroll(slice_model: Model, T: int) -> Model:
    """T slices as one Bayesian network, whose variables are "X[0]", ..., "X[T-1]" and whose CPTs are shared.

    >>> import besag
    >>> weather = besag.bayesian_network(
    ...     "rain -> rain'; rain -> umbrella",
    ...     cpts={"rain'": [[0.7, 0.3], [0.3, 0.7]], "umbrella": [[0.8, 0.2], [0.1, 0.9]]},
    ... )
    >>> days = besag.unroll(weather, 3)
    >>> days.marginals(evidence={"umbrella[0]": "1", "umbrella[1]": "1"})["rain[2]"].round(4)
    array([0.3467, 0.6533])
    """
    if not is_whole(T) or T < 1:
        raise ModelError(f"T must be a whole number of slices from 1 on, got {T!r}")
    slices = read_slices(slice_model)
    states = [slice_model.variables.states(int(v)) for v in slices.first]
    names = NameList([f"{name}[{t}]" for t in range(T) for name in slices.names])
    groups = [_unrolled(slices, group, T) for group in slice_model.groups]
    return Model(Variables.from_spaces(names, states * T), groups, slice_model.theta, slice_model.support)


def _unrolled(slices: Slices, group: FactorGroup, T: int) -> FactorGroup:
    """The factors of a group in all slices; factor i of the model is the CPT of variable i."""
    n, inputs = len(slices.names), []
    scopes = []
    rows = np.zeros(len(group), np.int64) if group.inputs is None else np.asarray(group.inputs)
    for scope, row in zip(group.scopes, rows.tolist(), strict=True):
        late = slices.later[scope]
        if late[-1]:
            times = np.arange(1, T)
            own = times[:, None] - 1 + late[None]
        else:
            times = np.arange(1 if slices.changes[slices.place[scope[-1]]] else T)
            own = np.repeat(times[:, None], len(scope), axis=1)
        scopes.append(own * n + slices.place[scope][None])
        inputs.append(np.full(len(times), row))
    joined = np.concatenate(scopes)
    rows_of = None if group.inputs is None else np.concatenate(inputs)
    return FactorGroup(group.template, joined, rows_of, True, joined[:, -1])
