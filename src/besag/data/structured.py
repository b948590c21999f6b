"""Structured data, 002: a factor graph, attributes of every factor, and, if it is labelled, decisions.

    (S, F, E, {X_f}, x)       unlabelled: variables, groups of factors with their inputs x_f
    (S, F, E, {X_f}, x, y)    labelled: a state of every variable; None or -1 if it is unknown

It is a Model without theta. Many of them, with templates shared by name, form a Dataset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from besag.arrays import IntArray, Rebuilt, secure
from besag.errors import ModelError
from besag.graph.evidence import is_missing, no_state
from besag.model.layout import Layout
from besag.model.model import FactorGroup, Model, check_scopes
from besag.model.variable import Variables, variables_from


@dataclass(frozen=True, slots=True, eq=False)
class StructuredData(Rebuilt):
    """One instance: variables, groups of factors, and labels (V,) as codes, -1 = unknown, or None.

    >>> import besag
    >>> template = besag.Template("pixel", (2,), n_inputs=3)
    >>> group = besag.FactorGroup(template, [[0], [1]], inputs=[[1.0, 0.5, 0.2], [1.0, 0.1, 0.9]])
    >>> StructuredData([2, 2], [group], labels=["0", None]).labels
    array([ 0, -1])
    """

    variables: Variables
    groups: tuple[FactorGroup, ...]
    labels: IntArray | None = None
    layout: Layout = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", variables_from(self.variables))
        object.__setattr__(self, "groups", tuple(self.groups))
        for group in self.groups:
            check_scopes(self.variables, group)
        object.__setattr__(self, "layout", Layout(group.template for group in self.groups))
        if self.labels is not None:
            object.__setattr__(self, "labels", secure(read_labels(self.variables, self.labels)))

    def __repr__(self) -> str:
        known = "unlabelled" if self.labels is None else f"{int((self.labels >= 0).sum())} labels known"
        return f"StructuredData({len(self.variables)} variables, {self.n_factors} factors, {known})"

    @classmethod
    def from_model(cls, model: Model, labels: Any = None) -> StructuredData:
        """The factor graph and the inputs of a model."""
        return cls(model.variables, model.groups, labels)

    @property
    def n_factors(self) -> int:
        """F."""
        return sum(len(group) for group in self.groups)

    @property
    def shape(self) -> None:
        """Instances of a union have no shape of their own."""
        return None


def read_labels(variables: Variables, given: Any) -> IntArray:
    """Labels of all variables as codes (V,): int codes with -1, states with None, or {name: state}."""
    if isinstance(given, Mapping):
        codes = np.full(len(variables), -1, np.int64)
        for name, state in given.items():
            v = variables.index(name)
            codes[v] = _code(variables, v, state)
        return codes
    if isinstance(given, np.ndarray) and given.dtype.kind in "iu":
        return _checked(variables, given.astype(np.int64, copy=False))
    labels = list(_sequence(given))
    if len(labels) != len(variables):
        raise ModelError(f"labels must be {len(variables)}, one for each variable, got {len(labels)}")
    return np.array([_code(variables, v, state) for v, state in enumerate(labels)], np.int64)


def _sequence(given: Any) -> Iterable[Any]:
    if isinstance(given, (Sequence, np.ndarray)) and not isinstance(given, (str, bytes)):
        return given
    raise ModelError(f"labels must be int codes, states, or {{name: state}}, got {type(given).__name__}")


def _checked(variables: Variables, codes: IntArray) -> IntArray:
    if codes.shape != (len(variables),):
        raise ModelError(f"labels must have shape ({len(variables)},), one for each variable, got {codes.shape}")
    wrong = (codes < -1) | (codes >= variables.cardinalities)
    if wrong.any():
        v = int(np.argmax(wrong))
        raise ModelError(
            f"the label of {variables.names[v]!r} must be from 0 to {variables.cardinalities[v] - 1}, or -1 = unknown, "
            f"got {codes[v]}"
        )
    return codes


def _code(variables: Variables, v: int, state: object) -> int:
    if is_missing(state):
        return -1
    code = variables.find_state(v, state)
    if code is None and isinstance(state, (int, np.integer)) and state == -1:
        return -1
    if code is None:
        raise ModelError(no_state(variables, v, state))
    return code
