"""Structured factors drawn at random, of every kind that a scope takes, with weights of both signs.

Their tables come from the formulas of docs/factors.md, entry by entry, without the library.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from besag import factors
from besag.errors import ModelError
from besag.model.structured.bilinear import Bilinear
from besag.model.structured.scaled import Scaled

WEIGHTS = (1.0, 1.0, 1.0, 0.4, -0.8, 2.5, 0.0)


class Term(NamedTuple):
    """A structured factor, and its log-potentials with weight 1 at each labelling of its scope."""

    structured: Any
    table: np.ndarray


Formula = Callable[[tuple[int, ...]], float]


def tabulate(shape: tuple[int, ...], cost: Formula) -> np.ndarray:
    """Minus the cost of every labelling."""
    return np.array([0.0 - cost(y) for y in np.ndindex(shape)]).reshape(shape)


def drawn(rng: np.random.Generator, shape: tuple[int, ...], spared: tuple[int, ...]) -> tuple[Term, float] | None:
    """A term on a scope and its weight, None where no kind fits; what is spared is no hard zero."""
    made = [term for kind in KINDS if (term := kind(rng, shape)) is not None and term.table[spared] > -math.inf]
    if not made:
        return None
    term = made[rng.integers(len(made))]
    positive = term.structured.name == "robust_potts"
    return term, abs(float(rng.choice(WEIGHTS))) if positive else float(rng.choice(WEIGHTS))


def weighted(table: np.ndarray, weight: float) -> np.ndarray:
    """Log-potentials times a weight; hard zeros stay."""
    hard = table == -math.inf
    return np.where(hard, -math.inf, weight * np.where(hard, 0.0, table))


def _of_labels(rng: np.random.Generator, shape: tuple[int, ...]) -> Term | None:
    if len(shape) != 2 or shape[0] != shape[1]:
        return None
    k, limit = shape[0], float(rng.choice([0.6, 1.0, 2.5, 9.0, math.inf]))
    kind = int(rng.integers(3))
    made = [lambda: factors.potts(k), lambda: factors.truncated_linear(k, limit)]
    made.append(lambda: factors.truncated_quadratic(k, limit))
    costs: list[Formula] = [lambda y: float(y[0] != y[1]), lambda y: min(abs(y[0] - y[1]), limit)]
    costs.append(lambda y: min((y[0] - y[1]) ** 2, limit))
    return Term(made[kind](), tabulate(shape, costs[kind]))


def _spring(rng: np.random.Generator, shape: tuple[int, ...]) -> Term | None:
    if len(shape) != 2 or shape[0] != shape[1]:
        return None
    width = int(rng.choice([w for w in range(1, shape[0] + 1) if shape[0] % w == 0]))
    offset, scale = rng.normal(scale=1.5, size=2), rng.uniform(0.5, 2.0, size=2)
    limit = [None, 0.3, 2.0][rng.integers(3)]

    def cost(y: tuple[int, ...]) -> float:
        away = np.subtract(divmod(y[1], width), divmod(y[0], width)) - offset
        return min(float(((away / scale) ** 2).sum()) / 2, math.inf if limit is None else limit)

    return Term(factors.displacement((shape[0] // width, width), offset, scale, limit), tabulate(shape, cost))


def _count(rng: np.random.Generator, shape: tuple[int, ...]) -> Term | None:
    if set(shape) != {2}:
        return None
    values = rng.normal(size=len(shape) + 1)
    values[rng.random(len(values)) < rng.choice([0.0, 0.4])] = -math.inf
    values[int(rng.integers(len(values))) :] = rng.normal()  # the same from some count on
    return Term(factors.count(values), tabulate(shape, lambda y: -values[sum(y)]))


def _relation(rng: np.random.Generator, shape: tuple[int, ...]) -> Term | None:
    if set(shape) != {2}:
        return None
    kind, n = int(rng.integers(3)), len(shape)
    if kind == 0 or n == 1:
        return Term(factors.parity(n), tabulate(shape, lambda y: math.inf if sum(y) % 2 else 0.0))
    asked = (any, all)[kind - 1]
    made = (factors.any_of, factors.all_of)[kind - 1](n - 1)
    return Term(made, tabulate(shape, lambda y: 0.0 if y[-1] == int(asked(y[:-1])) else math.inf))


def _robust(rng: np.random.Generator, shape: tuple[int, ...]) -> Term | None:
    if len(set(shape)) != 1:
        return None
    n, k = len(shape), shape[0]
    slope, least = rng.uniform(0.5, 1.5, size=k), rng.normal(scale=0.3, size=k)
    limit = float(rng.choice([0.2, 0.5, 0.9])) + float(least.min())
    if n > 4:
        limit += 0.5

    def cost(y: tuple[int, ...]) -> float:
        return min(limit, *(least[x] + slope[x] * sum(z != x for z in y) for x in range(k)))

    try:
        return Term(factors.robust_potts(n, k, slope, limit, least), tabulate(shape, cost))
    except ModelError:
        return None


def _scaled(rng: np.random.Generator, shape: tuple[int, ...]) -> Term | None:
    costs = rng.normal(size=shape)
    return Term(Scaled(costs), -costs)


def _bilinear(rng: np.random.Generator, shape: tuple[int, ...]) -> Term | None:
    if len(shape) != 2 or shape[0] < 2 or shape[1] != 2:
        return None
    return Term(Bilinear(shape[0]), tabulate(shape, lambda y: float(y[0] > 0 and y[1] == 1)))


def noisy(rng: np.random.Generator, shape: tuple[int, ...]) -> Term | None:
    """p(child | parents), the effects of all parents drawn one after the other."""
    if len(shape) < 2:
        return None
    n = shape[-1]
    weakest, strongest = [(0, max), (n - 1, min)][rng.integers(2)]
    rows = [_distributions(rng, k, n, weakest) for k in shape[:-1]]
    leak = _distributions(rng, 1, n, weakest)[0]
    p = np.zeros(shape)
    for x in np.ndindex(shape[:-1]):
        found = leak
        for row, code in zip(rows, x, strict=True):
            so_far, found = found, np.zeros(n)
            for a, b in np.ndindex(n, n):
                found[strongest(a, b)] += so_far[a] * row[code, b]
        p[x] = found
    with np.errstate(divide="ignore"):
        return Term(factors.noisy_max(rows, leak, weakest), np.log(p))


def _distributions(rng: np.random.Generator, k: int, n: int, weakest: int) -> np.ndarray:
    """Rows of probabilities on n states; some are sure, some have hard zeros, and most have one without effect."""
    rows = np.round(rng.dirichlet(np.ones(n), size=k), 3)
    rows[rng.random((k, n)) < 0.2] = 0.0
    sure = (rows.sum(axis=1) <= 0) | (rng.random(k) < 0.15)
    rows[sure] = np.eye(n)[rng.integers(n, size=k)][sure]
    if rng.random() < 0.7:
        rows[0] = np.eye(n)[weakest]
    return rows / rows.sum(axis=1, keepdims=True)


KINDS = (*[_of_labels] * 4, *[_spring] * 3, *[_count] * 2, *[_relation] * 3, _robust, _scaled, _bilinear, noisy)
