"""How numbers are given: as log-potentials, energies or weights; and how they become energies.

    given = "log_potential":  h = -t        -inf is a hard zero
    given = "energy":         h = t         +inf is a hard zero
    given = "weight":         h = -log t    0 is a hard zero

A hard zero is energy 0 with support False; NaN and the infinity of the other sign are errors.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from besag import recycled
from besag.arrays import Array, BoolArray
from besag.errors import ModelError

Given: TypeAlias = Literal["log_potential", "energy", "weight"]


def energies_from(table: object, given: Given, *, where: str) -> tuple[Array, BoolArray | None]:
    """Numbers as given -> (energies, finite everywhere; support, False at hard zeros, or None where there is none)."""
    try:
        values = _float64(table)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{where}: expected an array of numbers, got {type(table).__name__} ({error})") from None
    if given == "weight":
        bad = ~((values >= 0) & (values < np.inf))
        wanted = "weights must be finite and not negative"
        support = values > 0
        energies = -np.log(np.where(support, values, 1.0))
    elif given in ("log_potential", "energy") and np.isfinite(values).all():
        own = isinstance(table, np.ndarray) and table.dtype != values.dtype  # a copy already
        sign = np.subtract if given == "log_potential" else np.add  # 0 - x and 0 + x: no negative zeros
        return sign(0.0, values, out=values if own else None), None
    elif given in ("log_potential", "energy"):
        zero = -np.inf if given == "log_potential" else np.inf
        bad = np.isnan(values) | (values == -zero)
        wanted = f"{given.replace('_', '-')} must be a number or {zero} (a hard zero)"
        support = values != zero
        energies = np.where(support, values if given == "energy" else -values, 0.0)
    else:
        raise ModelError(f'given must be "log_potential", "energy" or "weight", got {given!r}')
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ModelError(f"{where}: {wanted}, but the entry at {at} is {values[at]}")
    return energies + 0.0, support


def _float64(table: object) -> Array:
    """The numbers, in an array of their own only where they are of another type."""
    if isinstance(table, np.ndarray) and table.dtype.kind in "fiub" and table.dtype != np.float64:
        return recycled.copied(table)
    return np.asarray(table, np.float64)
