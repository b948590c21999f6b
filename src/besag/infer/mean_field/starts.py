"""Where mean field starts from: product distributions q (R, S) that evidence allows, of finite bound if one is found.

    uniform      over the states that are left
    random       uniform on the simplex of each variable
    given        an array, or the marginals of a Result, on the states that are left

A start whose states can meet a hard zero has the bound -inf. It is restricted to a box in which everything is allowed
(`besag.infer.zeros.kernels.box`), chosen by weight, at random, or near the distribution that was given.
"""

from __future__ import annotations

import numpy as np

from besag.arrays import AnyArray, Array
from besag.errors import CapabilityError
from besag.infer.answers import normalise_weights
from besag.infer.prepared import Prepared
from besag.infer.result import Result
from besag.infer.zeros.kernels.box import find_box, is_box

LOWEST = 1e-300  # of a probability, so that it has a logarithm


def uniform_start(setting: Prepared) -> Array:
    """(R, S)."""
    shape = setting.base.shape
    return feasible(setting, normalise_weights(setting, np.ones(shape)), np.zeros(shape))


def random_start(setting: Prepared, rng: np.random.Generator) -> Array:
    """(R, S)."""
    shape = setting.base.shape
    q = normalise_weights(setting, rng.standard_exponential(shape))
    return feasible(setting, q, rng.gumbel(size=shape) if setting.has_zeros else q)


def read_start(setting: Prepared, given: AnyArray) -> Array:
    """(R, S) from an array of (S,), (R, S), (V, K) or a grid's (H, W, K), one row for all where it has one."""
    rows, n_states = setting.base.shape
    values = np.asarray(given, np.float64)
    if values.size not in (n_states, rows * n_states):
        raise CapabilityError(
            f"init must have a probability for each of {n_states} states, for one row or {rows}, got {values.shape}"
        )
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise CapabilityError("init must be probabilities: finite numbers from 0 on")
    q = normalise_weights(setting, np.broadcast_to(values.reshape(-1, n_states), (rows, n_states)))
    return feasible(setting, q, np.log(np.maximum(q, LOWEST)))


def warm_start(setting: Prepared, warm: Result) -> Array:
    """(R, S) from where mean field stopped, or from the marginals of another engine."""
    state = warm.state
    own = state["marginals"] if state is not None and state.get("engine") == "mean_field" else warm.probabilities
    if own is None:
        raise CapabilityError("init must be a Result with marginals: model.marginals() gives one")
    if np.shape(own) != setting.base.shape:
        raise CapabilityError(
            f"init is of another model or another number of rows: its marginals have shape {np.shape(own)}, "
            f"expected {setting.base.shape}"
        )
    return read_start(setting, own)


def feasible(setting: Prepared, q: Array, bonus: Array) -> Array:
    """Rows of q (R, S); those that meet hard zeros are restricted to a box that meets none, where one is found."""
    if not setting.has_zeros:
        return q
    boxes = q > 0
    for box, base, extra in zip(boxes, setting.base, bonus, strict=True):
        if not is_box(setting.factors, box, compile=setting.compile):
            box[:] = find_box(setting.factors, base, extra, base > -np.inf, compile=setting.compile)
    return normalise_weights(setting, np.where(boxes, np.maximum(q, LOWEST), 0.0))
