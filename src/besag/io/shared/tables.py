"""From the tables of a file to a Model: tables of one shape share a Template, each with a row of theta.

The readers put the tables one after the other into one flat array, pool by pool, of which theta is h = -log t; 0 is a
hard zero. Rows of CPTs must sum to one within ROW_TOLERANCE and are first divided by their sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from besag.arrays import Array, BoolArray, IntArray, freeze, offsets_of
from besag.errors import ModelError
from besag.io.notes import note
from besag.model.cpt import check_cpt
from besag.model.metadata import NONE
from besag.model.model import FactorGroup, Model
from besag.model.template import Template
from besag.model.variable import Variables

ROW_TOLERANCE = 1e-3
NOTABLE = 1e-9  # deviations above this do not come from rounding doubles
ROUNDING = 1e-15  # by how much the sum of K decimals may miss one from rounding, or EPSILON K if that is more:
EPSILON = 2.0**-52  # such rows are not normalised, so that a file is read as it was written
MAX_ARITY = 60  # numpy's arrays have at most 64 axes


class TablePool(NamedTuple):
    """Factors whose tables have one shape: scopes (F, n) and the positions (F,) of the factors in the file."""

    shape: tuple[int, ...]
    scopes: IntArray
    positions: IntArray


class TableError(ModelError):
    """A table that is no CPT; `position` is the number of its factor."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


def energies_of(weights: Array) -> tuple[Array, BoolArray]:
    """Weights, finite and not negative -> energies and support."""
    support = weights > 0
    energies = np.log(weights, where=support, out=np.zeros(len(weights)))
    return np.subtract(0.0, energies, out=energies), support


def normalise_rows(variables: Variables, pools: Sequence[TablePool], weights: Array) -> Array:
    """CPTs, pool by pool, with rows that sum to one; TableError if one does not within ROW_TOLERANCE."""
    counts = [len(pool.scopes) * prod(pool.shape[:-1]) for pool in pools]
    lengths = np.repeat([pool.shape[-1] for pool in pools], counts)
    sums = np.add.reduceat(weights, offsets_of(lengths)[:-1])
    if not (np.abs(sums - 1) <= ROW_TOLERANCE).all() or (weights < 0).any():
        raise _no_cpt(variables, pools, weights)
    if np.abs(sums - 1).max(initial=0.0) > NOTABLE:
        note_rows(sums)
    exact = np.abs(sums - 1) <= np.maximum(ROUNDING, EPSILON * lengths)
    return np.asarray(weights / np.repeat(np.where(exact, 1.0, sums), lengths))


def note_rows(sums: Array) -> None:
    """Note how many rows of CPTs do not sum to one, and by how much at most."""
    missed = np.abs(sums - 1)
    note(f"rows of CPTs that did not sum to one: {(missed > NOTABLE).sum()}, off by {missed.max():.2g} at most")


def _no_cpt(variables: Variables, pools: Sequence[TablePool], weights: Array) -> TableError:
    start = 0
    for pool in pools:
        size = prod(pool.shape)
        for scope, position in zip(pool.scopes.tolist(), pool.positions.tolist(), strict=True):
            table = weights[start : start + size].reshape(pool.shape)
            start += size
            try:
                check_cpt(variables, scope[:-1], scope[-1], table, ROW_TOLERANCE * (1 - 1e-9))  # sums may be rounded
            except ModelError as error:
                return TableError(str(error), position)
    raise AssertionError("all tables are CPTs")


def model_of(
    variables: Variables,
    pools: Sequence[TablePool],
    energies: Array,
    support: BoolArray,
    conditional: bool,
    metadata: Mapping[str, Any] | None = None,
) -> Model:
    """A Model from the energies of all tables, pool by pool."""
    kind = "cpt" if conditional else "table"
    groups, rows = [], freeze(np.arange(max((len(pool.scopes) for pool in pools), default=0)))
    for pool in pools:
        n = len(pool.scopes)
        template = Template(f"{kind}[{','.join(map(str, pool.shape))}]", pool.shape, n)
        groups.append(FactorGroup(template, freeze(pool.scopes), rows[:n], conditional, freeze(pool.positions)))
    return Model(variables, tuple(groups), energies, None if support.all() else support, metadata=metadata or NONE)
