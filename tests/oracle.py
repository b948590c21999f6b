"""The oracle of the tests: enumeration in plain numpy, written without besag.infer.

`Enumeration` looks at every labelling of a model under evidence as a user writes it, and answers from the definitions:

    Z = sum_y w(y),   p(y) = w(y) / Z,   w(y) = exp(-H(y)) times the evidence's likelihood of y

It reads tables through `Problem.table`. `phi` and `allowed` go one step further back: they make the features of every
labelling from templates and inputs, number by number, so that `bind` itself is held to H(y) = <theta, phi(y)>.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from besag.graph.problem import Problem
from besag.model.model import FactorGroup, Model


def labellings(cardinalities: Sequence[int]) -> np.ndarray:
    """Every labelling, the last variable fastest: (M, V) codes."""
    return np.array(list(itertools.product(*(range(k) for k in cardinalities))), np.int64)


def log_sum(values: np.ndarray) -> float:
    """log sum exp, -inf for nothing but zeros."""
    top = values.max()
    return -math.inf if top == -math.inf else float(top) + math.log(math.fsum(np.exp(values - top)))


def likelihood(value: Any, state: str) -> float:
    """What evidence on one variable makes of one of its states: a state, a set of states or {state: likelihood}."""
    if value is None or value != value:
        return 1.0
    if isinstance(value, Mapping):
        return next(float(weight) for key, weight in value.items() if _is(key, state))
    if isinstance(value, list | tuple | set | frozenset):
        return float(any(_is(key, state) for key in value))
    return float(_is(value, state))


def _is(value: Any, state: str) -> bool:
    return str(value) == state or (isinstance(value, float) and value.is_integer() and str(int(value)) == state)


class Enumeration:
    """Every labelling of a model under one row of evidence, {name: value}."""

    def __init__(self, model: Model, evidence: Mapping[str, Any] | None = None) -> None:
        self.model = model
        self.labels = labellings(model.variables.cardinalities.tolist())
        self.log_weights = table_sums(model.problem, self.labels)
        for name, value in (evidence or {}).items():
            states = model.variable(name).states
            with np.errstate(divide="ignore"):
                added = np.log([likelihood(value, state) for state in states])
            self.log_weights = self.log_weights + added[self.column(name)]

    def column(self, name: str) -> np.ndarray:
        """(M,): the code of a variable in every labelling."""
        return self.labels[:, [v.name for v in self.model.variables].index(name)]

    @cached_property
    def log_z(self) -> float:
        return log_sum(self.log_weights)

    @cached_property
    def p(self) -> np.ndarray:
        """(M,): the probability of every labelling."""
        return np.exp(self.log_weights - self.log_z)

    @property
    def map_energy(self) -> float:
        return -float(self.log_weights.max())

    def joint(self, names: Sequence[str]) -> np.ndarray:
        """p(names), axes in that order."""
        table = np.zeros([len(self.model.variable(name).states) for name in names])
        np.add.at(table, tuple(self.column(name) for name in names), self.p)
        return table

    def marginal(self, name: str) -> np.ndarray:
        """(K,): p of one variable."""
        return self.joint([name])

    def factor(self, number: int) -> np.ndarray:
        """p of the variables of a factor, by its number in the graph."""
        return self.joint(self.model.variables.names_at(self.model.graph.scope(number)))

    def moments(self) -> np.ndarray:
        """(P,): E[phi]."""
        possible = self.p > 0  # features of others may be infinite
        return self.p[possible] @ phi(self.model, self.labels[possible])

    def covariance(self) -> np.ndarray:
        """(P, P): E[phi phi^T] - E[phi] E[phi]^T."""
        possible = self.p > 0
        p, features = self.p[possible], phi(self.model, self.labels[possible])
        mean = p @ features
        return np.einsum("m,mi,mj->ij", p, features, features) - np.outer(mean, mean)

    def entropy(self) -> float:
        positive = self.p[self.p > 0]
        return -float(positive @ np.log(positive))


def table_sums(problem: Problem, labels: np.ndarray) -> np.ndarray:
    """(M,): the sum of all factors' log-potentials at every labelling of a problem of one instance."""
    total = np.zeros(len(labels))
    for f in range(problem.graph.n_factors):
        total = total + problem.table(f)[tuple(labels[:, problem.graph.scope(f)].T)]
    return total


def phi(model: Model, labels: np.ndarray, at_zeros: float = math.inf) -> np.ndarray:
    """(M, P): the features of labellings (M, V) from the definition, the sum over factors of x_f (x) basis[:, y_Sf].

    at_zeros: in place of the infinite features of hard zeros; 0 as moments have it.
    """
    starts = _starts(model)
    features = np.zeros((len(labels), sum(_n_parameters(t) for t in model.layout.templates.values())))
    for group in model.groups:
        block = slice(starts[group.template.name], starts[group.template.name] + _n_parameters(group.template))
        for f in range(len(group)):
            own = group_phi(group, f, labels[:, group.scopes[f]])
            features[:, block] += np.where(np.isinf(own), at_zeros, own)
    return features


def group_phi(group: FactorGroup, f: int, codes: np.ndarray) -> np.ndarray:
    """The features of factor f of a group at codes (M, n) of its scope: (M, parameters of its template)."""
    template = group.template
    statistics = dense_basis(template)[(slice(None), *codes.T)]
    block = np.einsum("d,qm->mdq", dense_input(group, f), statistics)
    if template.pattern is not None:
        return block[:, template.pattern.rows, template.pattern.columns]
    return block.reshape(len(codes), -1)


def dense_basis(template: Any) -> np.ndarray:
    """(Q, K1..Kn): the basis as numbers, one element for each table entry where the template has none."""
    if template.basis is None:
        size = math.prod(template.shape)
        return np.eye(size).reshape(size, *template.shape)
    return template.basis if isinstance(template.basis, np.ndarray) else template.basis.dense()


def dense_input(group: FactorGroup, f: int) -> np.ndarray:
    """(D,): what factor f of a group reads, as numbers."""
    if group.inputs is None:
        return np.ones(1)
    if hasattr(group.inputs, "toarray"):
        return np.asarray(group.inputs.toarray()[f])
    if group.inputs.ndim == 1:
        return np.eye(group.template.n_inputs)[group.inputs[f]]
    return group.inputs[f]


def allowed(model: Model, labels: np.ndarray) -> np.ndarray:
    """(M,): which labellings no hard zero rules out, from the supports of templates and of the model."""
    keep = np.ones(len(labels), np.bool_)
    for group in model.groups:
        for f in range(len(group)):
            if group.template.support is not None:
                keep &= group.template.support[tuple(labels[:, group.scopes[f]].T)]
    if model.support is not None:
        keep &= (phi(model, labels)[:, ~model.support] == 0).all(axis=1)
    return keep


def _starts(model: Model) -> dict[str, int]:
    starts, start = {}, 0
    for name, template in model.layout.templates.items():
        starts[name] = start
        start += _n_parameters(template)
    return starts


def _n_parameters(template: Any) -> int:
    return template.n_inputs * len(dense_basis(template)) if template.pattern is None else len(template.pattern.rows)
