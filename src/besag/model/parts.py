"""Pictorial structures: where the parts of a figure are, 001; a tree of parts, each tied to its parent by a spring.

    H(y) = - sum over parts v of s_v(y_v) + sum over children v of spring_v(y_parent(v), y_v)

s_v (H, W) is what the picture says of part v at each place, a log-likelihood; a spring is a `displacement`. On a tree
all marginals and the best figure are exact, and take time and memory in proportion to the places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from besag.arrays import Array, secure
from besag.errors import ModelError
from besag.model.factors import markov_network
from besag.model.model import Model
from besag.model.structured.displacement import displacement


@dataclass(frozen=True, slots=True, eq=False)
class Whereabouts:
    """Where one part is: a distribution on a grid, as numbers; (y, x) is (row, column)."""

    map: Array  # (H, W), sums to one
    mode: tuple[int, int]
    mean: Array  # (2,)
    covariance: Array  # (2, 2)
    entropy: float


def parts_model(
    scores: Mapping[str, Any], springs: Mapping[str, tuple[str, Sequence[float], Any]], limit: float | None = None
) -> Model:
    """A figure of parts on one grid: log-likelihoods (H, W) of each part, and {child: (parent, offset, scale)}.

    A spring says that the child is at the parent's place plus offset (dy, dx), give or take scale, a standard deviation
    for each axis or one for both; limit: what a spring costs at most. Felzenszwalb and Huttenlocher (2005).

    >>> import numpy as np, besag
    >>> scores = {"head": np.zeros((20, 20)), "body": np.zeros((20, 20))}
    >>> scores["head"][4, 10] = 50.0
    >>> model = besag.factors.parts_model(scores, {"body": ("head", (6, 0), 1.5)})
    >>> body = besag.factors.place_of(model.marginals()["body"], (20, 20))
    >>> body.mode, body.mean.round(2).tolist()
    ((10, 10), [10.0, 10.0])
    """
    if not scores:
        raise ModelError("parts_model needs the scores of one part or more, got none")
    parts = {name: np.asarray(given, np.float64) for name, given in scores.items()}
    shape = next(iter(parts.values())).shape
    for name, given in parts.items():
        if given.ndim != 2 or given.shape != shape:
            raise ModelError(f"parts_model: scores of every part are one (H, W), got {given.shape} for {name!r}")
    for child, (parent, *_) in springs.items():
        for name in (child, parent):
            if name not in parts:
                raise ModelError(f"parts_model: the spring of {child!r} names {name!r}, which has no scores")
    alone = [((name,), given.reshape(-1)) for name, given in parts.items()]
    tied = [
        ((parent, child), displacement(shape, offset, scale, limit))
        for child, (parent, offset, scale) in springs.items()
    ]
    return markov_network(dict.fromkeys(parts, shape[0] * shape[1]), [*alone, *tied])


def place_of(probabilities: Any, shape: tuple[int, int]) -> Whereabouts:
    """Where a part is, from its marginal, K = H W numbers: map, mode, mean, covariance and entropy.

    >>> import besag
    >>> place = besag.factors.place_of([0.0, 0.5, 0.0, 0.5], (2, 2))
    >>> place.mode, place.mean.tolist(), place.covariance.tolist(), round(place.entropy, 4)
    ((0, 1), [0.5, 1.0], [[0.25, 0.0], [0.0, 0.0]], 0.6931)
    """
    given = np.asarray(probabilities, np.float64)
    if given.size != shape[0] * shape[1]:
        raise ModelError(f"place_of: a grid {shape} has {shape[0] * shape[1]} places, got {given.size} numbers")
    p = given.reshape(shape)
    places = np.moveaxis(np.indices(shape), 0, -1).reshape(-1, 2).astype(np.float64)
    flat, mean = p.reshape(-1), p.reshape(-1) @ places
    away = places - mean
    some = flat[flat > 0]
    row, column = divmod(int(flat.argmax()), shape[1])
    return Whereabouts(
        secure(p),
        (row, column),
        secure(mean),
        secure((flat[:, None] * away).T @ away),
        float(-(some * np.log(some)).sum()),
    )
