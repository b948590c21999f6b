"""Numbers prepared for the passes: tables and base in the domain of a semiring, and whether SUM can hold them.

SUM takes exp(log-potential - shift), the shift being the largest entry of the table to the nearest whole number (sums
of which are exact), and the same for base with one shift for each variable, or none if all of base is benign. The
shifts go to the scales of the messages. `delta` is 0 if the range needs no check (see `sums`)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, Semiring, freeze
from besag.infer.trees.plan import Forest
from besag.kernels.factors import Factors
from besag.kernels.semiring import limits

SAFE_RANGE = 150.0  # nats
BENIGN = 60.0  # |base| up to which exp needs no shift


class DomainTables(NamedTuple):
    """Tables in the domain of a semiring, and levels of structured factors."""

    values: Array  # (L',)
    offsets: IntArray  # (T + 1,)
    shifts: Array  # (T,)
    delta: float
    window: float
    narrow: bool


class Base(NamedTuple):
    """Base in the domain of a semiring."""

    values: Array  # (R, S)
    scale: Array  # (R, V); (0, 0) for the log domains, which do not read it
    narrow: bool


def prepare_tables(factors: Factors, forest: Forest, semiring: Semiring) -> DomainTables:
    """Tables in the domain of the semiring."""
    logs, offsets = factors.log_potentials, factors.table_offsets
    n_tables = len(offsets) - 1
    if semiring != Semiring.SUM or len(forest.order) == 0:
        return DomainTables(freeze(logs), freeze(offsets), freeze(np.zeros(n_tables)), 0.0, 1.0, False)
    delta, window = limits(forest.max_arity)
    used = np.zeros(n_tables, np.bool_)
    used[factors.table_of_factor[forest.order]] = True
    high, low = _extent(logs, offsets)
    largest_range = float((high - low)[used].max(initial=0.0))
    shifts, sizes = np.floor(0.5 + high), np.diff(offsets)
    relative = logs - np.repeat(shifts, sizes)
    if largest_range * (forest.max_children + 1) <= SAFE_RANGE:
        delta = 0.0
    elif _hides(relative, np.repeat(used, sizes), math.log(delta)):
        return DomainTables(logs, offsets, shifts, delta, window, True)
    with np.errstate(under="ignore"):
        values = np.exp(relative)
    return DomainTables(freeze(values), freeze(offsets), freeze(shifts), delta, window, False)


def _extent(logs: Array, offsets: IntArray) -> tuple[Array, Array]:
    """Highest and lowest entry of each table, (T,)."""
    high, low = np.maximum.reduceat(logs, offsets[:-1]), np.minimum.reduceat(logs, offsets[:-1])
    high[high == -math.inf] = 0.0  # a table of zeros only: there is nothing to take out
    return high, low


def _hides(relative: Array, used: BoolArray, lowest: float) -> bool:
    """Whether some finite entry that is used lies below the range of SUM."""
    return bool(np.any((relative < lowest) & (relative > -math.inf) & used))


def prepare_base(base: Array, state_offsets: IntArray, semiring: Semiring, delta: float, max_arity: int) -> Base:
    """Base (R, S) in the domain of the semiring."""
    if semiring != Semiring.SUM:
        return Base(freeze(base), freeze(np.zeros((0, 0))), False)
    n_variables = len(state_offsets) - 1
    # A factor multiplies up to max_arity vectors before anything is rescaled, so each has only a share of the range.
    benign = min(BENIGN, -0.5 * math.log(limits(max_arity)[0]))
    with np.errstate(under="ignore"):
        if np.all((np.abs(base) <= benign) | (base == -math.inf)):
            return Base(freeze(np.exp(base)), freeze(np.zeros((len(base), n_variables))), False)
        scale = np.maximum.reduceat(base, state_offsets[:-1], axis=1)
        scale = np.where(scale == -math.inf, 0.0, np.rint(scale))
        relative = base - np.repeat(scale, np.diff(state_offsets), axis=1)
        narrow = delta > 0.0 and bool(np.any((relative < math.log(delta)) & (relative > -math.inf)))
        return Base(freeze(np.exp(relative)), freeze(scale), narrow)
