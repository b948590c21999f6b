"""Bounds on theta: the feasible set of 002 (1) as a box, low <= theta <= high.

    bounds=(low, high)                     of all parameters
    bounds={"edge": (0, None)}             of those of a template, in the energy sign; None: no bound on that side

A bound is a number, or an array with an entry for each parameter of the template: (P_t,), or in the shape of its table.
At a minimum the projected gradient is 0: the gradient without what only pushes against a bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from besag.arrays import Array, BoolArray, Rebuilt, secure
from besag.errors import ModelError
from besag.model.layout import Layout

Limit: TypeAlias = Any  # a number, an array, or None
Ends: TypeAlias = tuple[Limit, Limit] | Mapping[str, tuple[Limit, Limit]]


@dataclass(frozen=True, slots=True, eq=False)
class Box(Rebuilt):
    """low and high (P,), -inf and +inf where there is no bound."""

    low: Array
    high: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", secure(np.asarray(self.low, np.float64)))
        object.__setattr__(self, "high", secure(np.asarray(self.high, np.float64)))

    def clip(self, theta: Array) -> Array:
        """The nearest theta within."""
        return np.clip(theta, self.low, self.high)

    def contains(self, theta: Array) -> bool:
        """Whether theta lies within."""
        return bool(((theta >= self.low) & (theta <= self.high)).all())

    def blocks(self, theta: Array, slope: Array, near: float = 0.0) -> BoolArray:
        """(P,): where the way down leads out of the box, from a bound or from `near` one."""
        return ((slope > 0) & (theta - self.low <= near)) | ((slope < 0) & (self.high - theta <= near))

    def ahead(self, slope: Array) -> Array:
        """(P,): the bound that lies down the slope."""
        return np.where(slope > 0, self.low, self.high)


def box_of(layout: Layout, given: Ends | None) -> Box | None:
    """The box that a user gives by template.

    >>> from besag import Template
    >>> box = box_of(Layout([Template("a", (2,)), Template("b", (3,))]), {"b": (0, [1, 2, 3])})
    >>> box.low, box.high
    (array([-inf, -inf,   0.,   0.,   0.]), array([inf, inf,  1.,  2.,  3.]))
    """
    if given is None:
        return None
    low, high = np.full(layout.n_parameters, -math.inf), np.full(layout.n_parameters, math.inf)
    by_template: Mapping[Any, Any] = given if isinstance(given, Mapping) else {None: given}
    for template, pair in by_template.items():
        where, who = (slice(None), "bounds") if template is None else (layout[template], f"bounds of {template!r}")
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
            raise ModelError(f"{who} must be a pair (low, high), None for no bound on a side, got {pair!r}")
        size = len(low[where])
        low[where], high[where] = _limit(who, pair[0], size, -math.inf), _limit(who, pair[1], size, math.inf)
        crossed = ~(low[where] <= high[where])
        if crossed.any():
            at = int(np.argmax(crossed))
            raise ModelError(f"{who} must have low <= high, got {low[where][at]} and {high[where][at]} at {at}")
    if (low == math.inf).any() or (high == -math.inf).any():
        raise ModelError("bounds must leave finite numbers: low below +inf, high above -inf")
    return Box(low, high)


def _limit(who: str, given: Limit, size: int, none: float) -> Array:
    """(size,)."""
    try:
        values = np.asarray(none if given is None else given, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{who} must be numbers, got {given!r}") from None
    if values.ndim and values.size != size:
        raise ModelError(f"{who} must be a number or {size} of them, one for each parameter, got shape {values.shape}")
    return np.broadcast_to(values.reshape(-1), (size,))
