"""Scores of a structure: sums over families of a child with K states and q configurations of its parents.

    log_likelihood   log p(data | CPTs that fit best)
    aic              log-likelihood - q (K - 1)
    bic              log-likelihood - q (K - 1) log(N) / 2, N the weight of all rows, at least 1
    bdeu             log of the marginal likelihood, a Dirichlet prior with pseudocount strength / (q K) on each entry
    k2               the same with pseudocount 1

Higher is better. All but k2 give structures of one equivalence class the same score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from besag.registry import Registry


@dataclass(frozen=True)
class Criterion:
    """is_equivalent: one score for a class. is_marginal: of the marginal likelihood, by pseudocounts."""

    is_equivalent: ClassVar[bool] = True
    is_marginal: ClassVar[bool] = False

    def price(self, total: float) -> float:
        """What a parameter costs, where rows have this total weight."""
        return 0.0

    def pseudocount(self, entries: float) -> float:
        """Of each entry of a CPT that has so many."""
        raise NotImplementedError


@dataclass(frozen=True)
class LogLikelihood(Criterion):
    """No price for parameters: more parents are never worse."""


@dataclass(frozen=True)
class AIC(Criterion):
    """Akaike's: a parameter costs 1."""

    def price(self, total: float) -> float:
        return 1.0


@dataclass(frozen=True)
class BIC(Criterion):
    """Schwarz's: a parameter costs log(N) / 2."""

    def price(self, total: float) -> float:
        return 0.5 * math.log(max(total, 1.0))


@dataclass(frozen=True)
class BDeu(Criterion):
    """Heckerman, Geiger and Chickering's with equal weights; strength: how many rows the prior is worth."""

    strength: float = 1.0
    is_marginal: ClassVar[bool] = True

    def __post_init__(self) -> None:
        CRITERIA.check_positive(self, "strength")

    def pseudocount(self, entries: float) -> float:
        return self.strength / entries


@dataclass(frozen=True)
class K2(Criterion):
    """Cooper and Herskovits': every CPT equally probable."""

    is_equivalent: ClassVar[bool] = False
    is_marginal: ClassVar[bool] = True

    def pseudocount(self, entries: float) -> float:
        return 1.0


_HERE = "besag.learn.networks.structure.criteria"
CRITERIA: Registry[Criterion] = Registry(
    "criterion",
    "pseudocount",
    "bdeu[strength=1]",
    {
        "bic": (_HERE, "BIC"),
        "aic": (_HERE, "AIC"),
        "bdeu": (_HERE, "BDeu"),
        "k2": (_HERE, "K2"),
        "log_likelihood": (_HERE, "LogLikelihood"),
    },
)
