"""Enumeration of a Spec, without the library: the sum of all tables as one array over all labellings.

log w(y) = sum_f log-potential_f(y) + sum_v log-likelihood of the evidence     Z = sum_y w(y)     p = w / Z
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tests.oracle import likelihood
from tests.ways.models import Factor, Spec


class Truth:
    """Every labelling of a Spec under one or several evidences, {name: value} each; of other factors where given."""

    def __init__(self, spec: Spec, *evidence: Mapping[str, Any], factors: Iterable[Factor] | None = None) -> None:
        self.spec = spec
        self.logs = np.zeros(spec.cards)
        for factor in spec.factors if factors is None else factors:
            self.logs = self.logs + self._spread(factor.scope, factor.table)
        for row in evidence:
            for name, value in row.items():
                v = spec.names.index(name)
                with np.errstate(divide="ignore"):
                    weights = np.log(likelihoods(value, spec.states[v]))
                self.logs = self.logs + self._spread((v,), weights)

    def _spread(self, scope: tuple[int, ...], table: np.ndarray) -> np.ndarray:
        """A table with the axes of all variables, of size one where it does not depend on them."""
        shape = [self.spec.cards[v] if v in scope else 1 for v in range(len(self.spec.cards))]
        return table.transpose(np.argsort(scope)).reshape(shape)

    @cached_property
    def log_z(self) -> float:
        top = self.logs.max()
        return -math.inf if top == -math.inf else float(top) + math.log(np.exp(self.logs - top).sum())

    @property
    def possible(self) -> bool:
        return self.log_z > -math.inf

    @cached_property
    def p(self) -> np.ndarray:
        """The probability of every labelling, one axis for each variable."""
        return np.exp(self.logs - self.log_z)

    def joint(self, scope: Sequence[int]) -> np.ndarray:
        """p of some variables, axes in that order."""
        others = tuple(v for v in range(self.p.ndim) if v not in scope)
        return self.p.sum(axis=others).transpose(np.argsort(np.argsort(scope)))

    @cached_property
    def marginals(self) -> np.ndarray:
        """(S,): the marginals of all variables, one after the other."""
        return self.marginals_of(range(self.p.ndim))

    def marginals_of(self, numbers: Iterable[int]) -> np.ndarray:
        """The marginals of some variables, one after the other."""
        return np.concatenate([self.joint([v]) for v in numbers])

    @cached_property
    def energies(self) -> np.ndarray:
        """The energies of all possible labellings, least first."""
        return np.sort(-self.logs[self.logs > -np.inf])

    def energy(self, codes: Sequence[int]) -> float:
        return -float(self.logs[tuple(codes)])

    def summed_logs(self, scope: Sequence[int]) -> np.ndarray:
        """log of the weights of some variables, the rest summed out, axes in that order."""
        with np.errstate(divide="ignore"):
            return np.log(self.joint(scope)) + self.log_z

    def entropy(self) -> float:
        p = self.p[self.p > 0]
        return -float(p @ np.log(p))


def likelihoods(value: Any, states: tuple[str, ...]) -> list[float]:
    """What evidence makes of each state; a float array is a likelihood in their order."""
    if isinstance(value, np.ndarray):
        return [float(x) for x in value]
    return [likelihood(value, state) for state in states]
