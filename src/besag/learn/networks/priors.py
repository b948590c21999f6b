"""Priors of CPTs: a Dirichlet on each row p(child | configuration), by its pseudo-counts, which are added to counts.

    dirichlet[count=a]     a for every entry
    laplace[count=1]       the same under its usual name
    k2                     1 for every entry
    bdeu[strength=s]       s / (entries of the table): all tables together are worth s rows, whatever the structure
    a Model, strength s    s p(parents, child): s rows drawn from the model

The CPT is the mean of the posterior, (N + pseudo-counts) / their sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from besag.arrays import Array
from besag.errors import ModelError
from besag.model.model import Model
from besag.model.variable import Variables
from besag.registry import Registry, is_number

STRENGTH = 10.0  # of a Model and of bdeu, where nobody says


class Prior(Protocol):
    """What gives pseudo-counts to a family."""

    def pseudo_counts(self, variables: Variables, scope: Sequence[int]) -> Array:
        """A table with axes (parents..., child)."""


@dataclass(frozen=True)
class DirichletPrior:
    """The same pseudo-count for every entry."""

    count: float = 1.0

    def __post_init__(self) -> None:
        PRIORS.check_positive(self, "count")

    def pseudo_counts(self, variables: Variables, scope: Sequence[int]) -> Array:
        """All are `count`."""
        return np.full(variables.cardinalities[list(scope)], self.count)


@dataclass(frozen=True)
class LaplacePrior(DirichletPrior):
    """Add-one smoothing, or add another number."""


@dataclass(frozen=True)
class K2Prior:
    """Every CPT equally probable."""

    def pseudo_counts(self, variables: Variables, scope: Sequence[int]) -> Array:
        """All are 1."""
        return np.ones(variables.cardinalities[list(scope)])


@dataclass(frozen=True)
class BDeuPrior:
    """Equal weights that add up to `strength` in each family."""

    strength: float = STRENGTH

    def __post_init__(self) -> None:
        PRIORS.check_positive(self, "strength")

    def pseudo_counts(self, variables: Variables, scope: Sequence[int]) -> Array:
        """All are strength over the number of entries."""
        shape = variables.cardinalities[list(scope)].tolist()
        return np.full(shape, self.strength / math.prod(shape))


@dataclass(frozen=True, eq=False)
class ModelPrior:
    """As if `strength` rows had been drawn from a model with the same variables and states."""

    model: Model
    strength: float = STRENGTH

    def pseudo_counts(self, variables: Variables, scope: Sequence[int]) -> Array:
        """strength p(scope)."""
        names = variables.names_at(scope)
        for v, name in zip(scope, names, strict=True):
            known = self.model.variable(name).states
            if known != variables.states(v):
                raise ModelError(
                    f"{name!r} has states {list(known)} in the model that is the prior, {list(variables.states(v))} "
                    f"in the data; declare them: states={{{name!r}: {list(known)}}}"
                )
        return self.strength * self.model.joint(names)


PRIORS: Registry[Prior] = Registry(
    "prior",
    "pseudo_counts",
    "bdeu[strength=10]",
    {
        "dirichlet": ("besag.learn.networks.priors", "DirichletPrior"),
        "laplace": ("besag.learn.networks.priors", "LaplacePrior"),
        "k2": ("besag.learn.networks.priors", "K2Prior"),
        "bdeu": ("besag.learn.networks.priors", "BDeuPrior"),
    },
)


def read_prior(given: str | Prior | Model | None, strength: float | None) -> Prior | None:
    """A prior from text, an object or a Model; strength: of bdeu and of a Model."""
    if strength is not None and not (is_number(strength) and 0 < strength < math.inf):
        raise ModelError(f"prior_strength must be a number above 0, or None, got {strength!r}")
    if given is None:
        return None
    if isinstance(given, Model):
        return ModelPrior(given, STRENGTH if strength is None else strength)
    if isinstance(given, ModelPrior):
        return given
    return PRIORS.read(given, strength=strength)
