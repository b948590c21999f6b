"""Small machines, and enumeration of their visible rows."""

from itertools import product

import numpy as np

from besag.arrays import AnyArray, Array
from besag.learn.rbm.machine import Machine


def machine(*, binary: bool = True, n_hidden: int = 3, scale: float = 1.0, seed: int = 0) -> Machine:
    """Six binary variables, or four of 2, 3, 1 and 2 states."""
    rng = np.random.default_rng(seed)
    offsets = np.arange(7) if binary else np.array([0, 2, 5, 6, 8])
    n = int(offsets[-1])
    numbers = rng.normal(size=(n, n_hidden)), rng.normal(size=n), rng.normal(size=n_hidden), 0.3 * rng.normal(size=n)
    return Machine(*(scale * part for part in numbers[:3]), numbers[3], offsets, binary)


def all_rows(of: Machine) -> AnyArray:
    """The units of every visible row."""
    if of.is_binary:
        return np.array(list(product((0, 1), repeat=of.n_visible)), np.float32)
    groups = [np.eye(k) for k in np.diff(of.offsets)]
    return np.array([np.concatenate(row) for row in product(*groups)], np.float32)


def all_hidden(of: Machine) -> AnyArray:
    """(2^H, H)."""
    return np.array(list(product((0, 1), repeat=of.n_hidden)), np.float32)


def joint(of: Machine) -> Array:
    """p(v, h) of all rows and all hidden states, by the energy alone."""
    v, h = all_rows(of).astype(np.float64), all_hidden(of).astype(np.float64)
    logs = (v @ of.visible)[:, None] + h @ of.hidden + v @ of.weights.astype(np.float64) @ h.T
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def log_z(of: Machine) -> float:
    v, h = all_rows(of).astype(np.float64), all_hidden(of).astype(np.float64)
    logs = (v @ of.visible)[:, None] + h @ of.hidden + v @ of.weights.astype(np.float64) @ h.T
    return float(np.logaddexp.reduce(logs.reshape(-1)))
