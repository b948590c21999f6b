"""Probabilities of a hidden Markov model as users give them: arrays or DataFrames, checked and named."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from besag.arrays import Array
from besag.errors import ModelError
from besag.learn.hidden.chains import ChainParameters

TOLERANCE = 1e-6  # of what rows add up to


class HiddenMarkovModel(NamedTuple):
    """Names of states (K,) and symbols (M,), () where log-likelihoods are given; their probabilities."""

    states: tuple[Any, ...]
    symbols: tuple[Any, ...]
    parameters: ChainParameters


def read_model(
    start: Any, transition: Any, emission: Any, states: Any = None, symbols: Any = None
) -> HiddenMarkovModel:
    """From start (K,), transition (K, K) and emission (K, M) or None; a DataFrame's index and columns are names."""
    if states is None and hasattr(emission, "iloc"):
        states = emission.index
    if symbols is None and hasattr(emission, "iloc"):
        symbols = emission.columns
    first = _table("start", start, 1)
    k = len(first)
    steps = _table("transition", transition, 2)
    if steps.shape != (k, k):
        raise ModelError(f"transition must have shape ({k}, {k}), as start has {k} states, got {steps.shape}")
    if emission is None:
        rows = np.zeros((k, 0))
    elif len(rows := _table("emission", emission, 2)) != k:
        raise ModelError(f"emission must have shape ({k}, M), a row for each state, got {rows.shape}")
    parameters = ChainParameters(first, steps, rows)
    return HiddenMarkovModel(
        _names("states", states, k), _names("symbols", symbols, rows.shape[1]), parameters.normalised(parameters)
    )


def _names(what: str, given: Any, n: int) -> tuple[Any, ...]:
    if given is None:
        return tuple(range(n))
    names = read_names(what, given)
    if len(names) != n:
        raise ModelError(f"{what} must be {n} names, got {len(names)}")
    return names


def read_names(what: str, given: Any) -> tuple[Any, ...]:
    """Texts or whole numbers, each once."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise ModelError(f"{what} must be a list of names, got {given!r}")
    names = tuple(name.item() if isinstance(name, np.generic) else name for name in given)
    if not names:
        raise ModelError(f"{what} must be a list of names, and there is none")
    for i, name in enumerate(names):
        if not isinstance(name, (str, int)):
            raise ModelError(f"{what} must be texts or whole numbers, got {name!r}")
        if type(name) is int and name == -1:
            raise ModelError(f"{what}: -1 means missing in data, and cannot be a name")
        if name in names[:i]:
            raise ModelError(f"{what} must differ, and {name!r} comes twice")
    return names


def _table(what: str, given: Any, n_axes: int) -> Array:
    """Probabilities whose rows add up to one."""
    try:
        values = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{what} must be probabilities, an array of {n_axes} axes, got {given!r}") from None
    if values.ndim != n_axes:
        raise ModelError(f"{what} must have {n_axes} axes, got shape {values.shape}")
    if values.size == 0:
        raise ModelError(f"{what} is empty: expected probabilities")
    if not ((values >= 0) & (values < np.inf)).all():
        raise ModelError(
            f"{what} must be probabilities from 0 on, got {values[~((values >= 0) & (values < np.inf))][0]}"
        )
    sums = np.atleast_1d(values.sum(axis=-1))
    wrong = np.abs(sums - 1.0) > TOLERANCE
    if wrong.any():
        row = int(np.argmax(wrong))
        where = what if n_axes == 1 else f"row {row} of {what}"
        rest = ": nothing is allowed there" if sums[row] == 0 else ""
        raise ModelError(f"{where} must add up to 1, got {sums[row]:.9g}{rest}")
    return values
