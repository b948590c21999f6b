"""Noisy-MAX nodes of XDSL: from the parameters of each cause alone to the CPT, and back if nothing was changed.

The states of the node go from the strongest effect to the weakest, which is no effect. Each cause i, alone, has an
effect Y_i; causes outside of the model have one too, the leak Y_0; the node is the strongest of these effects:

    P(Y not stronger than y | x_1..x_n) = q_0(y) prod_i q_i(x_i, y),   q(y) = sum of p(y') over y' from y to the weakest

P(Y = y) is the difference of two such products, in which small numbers would cancel. It is computed cause by cause
instead, by Q q - Q' q' = P q + Q' p, all of it positive: P, Q of the previous causes, p, q of the next one, ' of the
next weaker state.

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

SAME = 1e-12


def expand_noisy(parameters: Array, strengths: Sequence[int], cardinalities: Sequence[int], n_states: int) -> Array:
    """The CPT (parents..., child) of a noisy-MAX node; ModelError if parameters or strengths do not fit."""
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
    not_stronger = np.cumsum(effects[:, ::-1], axis=1)[:, ::-1]
    table, below = effects[-1], not_stronger[-1]
    for begin, end in pairwise(offsets_of(np.array(cardinalities, np.int64)).tolist()):
        order = np.array(strengths[begin:end], np.int64)
        if sorted(order.tolist()) != list(range(end - begin)):
            raise ModelError(
                f"must have as strengths the states 0 to {end - begin - 1} of a parent, got {order.tolist()}"
            )
        if (columns[end - 1, :-1] != 0).any():
            raise ModelError("must have the column 0 ... 0 1 for the weakest state of each parent")
        p, q = np.empty((end - begin, n_states)), np.empty((end - begin, n_states))
        p[order], q[order] = effects[begin:end], not_stronger[begin:end]
        weaker = np.append(below[..., 1:], np.zeros((*below.shape[:-1], 1)), axis=-1)
        table = table[..., None, :] * q + weaker[..., None, :] * p
        below = below[..., None, :] * q
    return np.asarray(table)


def still_holds(table: Array, parameters: Sequence[float], strengths: Sequence[int]) -> bool:
    """Whether a CPT (parents..., child) is what the parameters expand to."""
    *cardinalities, n_states = table.shape
    try:
        wanted = expand_noisy(np.array(parameters, np.float64), strengths, cardinalities, n_states)
    except (ModelError, ValueError, OverflowError):
        return False
    return bool((np.abs(wanted - table) <= SAME).all())
