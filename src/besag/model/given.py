"""Numbers given as log-potentials, energies or weights, and their conversion to energies.

    given = "log_potential":  h = -t        -inf is a hard zero
    given = "energy":         h = t         +inf is a hard zero
    given = "weight":         h = -log t    0 is a hard zero

A hard zero is energy 0 with support False; NaN and the infinity of the other sign are errors.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from besag import recycled
from besag.arrays import LARGEST, AnyArray, Array, BoolArray
from besag.errors import ModelError

Given: TypeAlias = Literal["log_potential", "energy", "weight"]
AT_A_TIME = 2**15  # entries, so that results are checked while they are in the cache


def energies_from(table: object, given: Given, *, where: str) -> tuple[Array, BoolArray | None]:
    """Numbers as given -> (energies, finite everywhere; support, False at hard zeros, or None if there are none)."""
    values = _float64(numbers(table, where))
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


def numbers(table: object, where: str) -> AnyArray:
    """An array of numbers of any type, or a ModelError."""
    try:
        array = np.asarray(table)
        if array.dtype.kind not in "fiubO":
            raise TypeError(f"of {array.dtype}")
        return array if array.dtype.kind != "O" else array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{where}: expected an array of numbers, got {type(table).__name__} ({error})") from None


def wrote_log_potentials(table: AnyArray, given: Given, out: Array) -> bool:
    """Write numbers to a flat array as log-potentials; False if they are weights, or one is no finite energy."""
    if given not in ("log_potential", "energy"):
        return False
    sign = np.add if given == "log_potential" else np.subtract  # 0 + x and 0 - x: no negative zeros
    flat = table.reshape(-1)
    for start in range(0, len(flat), AT_A_TIME):
        part = sign(0.0, flat[start : start + AT_A_TIME], out=out[start : start + AT_A_TIME])
        if not (part.max() <= LARGEST and part.min() >= -LARGEST):
            return False
    return True


def _float64(values: AnyArray) -> Array:
    """The numbers as float64, copied only if they have another type."""
    return values if values.dtype == np.float64 else recycled.copy_array(values)
