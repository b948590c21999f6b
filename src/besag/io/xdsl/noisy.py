"""Noisy-MAX nodes of XDSL and `besag.model.structured.noisy`, which has their mathematics.

The states of the node go from the strongest effect to the weakest, which is no effect.

    parameters   columns (K,), one after the other: for each parent one for each of its states, and last the leak's
    strengths    for each parent its states, as numbers from 0, in the order of its columns, the strongest first; its
                 last one is the distinguished state, whose effect is none: the column 0 ... 0 1

Without strengths the columns are in the order of the states.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from besag.arrays import Array, offsets_of
from besag.errors import ModelError
from besag.io.shared.tables import ROW_TOLERANCE
from besag.model.structured.noisy import NoisyMax

SAME = 1e-12


def noisy_of(parameters: Array, strengths: Sequence[int], cardinalities: Sequence[int], n_states: int) -> NoisyMax:
    """The noisy-MAX of a node; ModelError if parameters or strengths do not fit."""
    n_columns = sum(cardinalities) + 1
    if parameters.size != n_columns * n_states:
        raise ModelError(
            f"must have {n_columns * n_states} parameters, {n_columns} x {n_states}, got {parameters.size}"
        )
    columns = parameters.reshape(n_columns, n_states)
    with np.errstate(over="ignore"):
        sums = columns.sum(axis=1, keepdims=True)
    if not ((columns >= 0).all() and (np.abs(sums - 1) <= ROW_TOLERANCE).all()):
        raise ModelError("must have columns of probabilities that sum to 1")
    effects = columns / sums
    rows = np.array(effects)
    for begin, end in pairwise(offsets_of(np.array(cardinalities, np.int64)).tolist()):
        order = np.array(strengths[begin:end], np.int64)
        if sorted(order.tolist()) != list(range(end - begin)):
            raise ModelError(
                f"must have as strengths the states 0 to {end - begin - 1} of a parent, got {order.tolist()}"
            )
        if (columns[end - 1, :-1] != 0).any():
            raise ModelError("must have the column 0 ... 0 1 for the weakest state of each parent")
        rows[begin + order] = effects[begin:end]
    return NoisyMax(rows, np.array(cardinalities, np.int64), np.arange(n_states)[::-1])


def still_holds(table: Array | NoisyMax, parameters: Sequence[float], strengths: Sequence[int]) -> bool:
    """Whether a CPT (parents..., child) is that of the parameters."""
    *cardinalities, n_states = table.shape
    try:
        wanted = noisy_of(np.array(parameters, np.float64), strengths, cardinalities, n_states)
    except (ModelError, ValueError, OverflowError):
        return False
    if isinstance(table, NoisyMax):
        return bool((wanted.ranks == table.ranks).all() and (np.abs(wanted.effects - table.effects) <= SAME).all())
    return bool((np.abs(wanted.table() - table) <= SAME).all())


def can_hold(term: NoisyMax) -> bool:
    """Whether a node can be it: its states go from the strongest to the weakest, each parent has one without effect."""
    return bool(term.extent or term.effects.shape[1] == 1) and None not in _distinguished(term)


def parameters_of(term: NoisyMax) -> tuple[list[int], Array]:
    """The strengths and the parameters of one that a node can be."""
    strengths, rows = list[int](), list[int]()
    for (begin, end), least in zip(pairwise(term.offsets.tolist()), _distinguished(term), strict=True):
        assert least is not None
        order = [*(state for state in range(end - begin) if state != least), least]
        strengths += order
        rows += [begin + state for state in order]
    return strengths, term.effects[[*rows, -1]].reshape(-1)


def _distinguished(term: NoisyMax) -> list[int | None]:
    """The state of each parent that has no effect, the last one if there are several."""
    without = term.effects[:, term.ranks == 0][:, 0] == 1.0
    found = (np.flatnonzero(without[begin:end]) for begin, end in pairwise(term.offsets.tolist()))
    return [int(states[-1]) if len(states) else None for states in found]
