"""From the tables of a file to parts of a Model: the tables of one shape become one Template with a row of theta each.

    weight_part    weights:  h = -log t                         0 is a hard zero
    cpt_part       CPTs:     h = -log (t / row sum)             rows must sum to one within `ROW_TOLERANCE`
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from besag.arrays import Array, BoolArray, IntArray
from besag.errors import ModelError
from besag.model.cpt import check_cpt
from besag.model.model import FactorGroup
from besag.model.template import Template
from besag.model.variable import Variables

Part: TypeAlias = tuple[FactorGroup, Array, BoolArray]

ROW_TOLERANCE = 1e-3
MAX_ARITY = 60  # numpy's arrays have at most 64 axes


class TableError(ModelError):
    """A table that is no CPT; `position` is the number of its factor."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


def weight_part(scopes: IntArray, positions: IntArray, tables: Array) -> Part:
    """Factors on scopes (F, n) with tables (F, K1..Kn) of weights, finite and not negative."""
    return _part("table", scopes, positions, tables, conditional=False)


def cpt_part(variables: Variables, scopes: IntArray, positions: IntArray, tables: Array) -> Part:
    """CPTs on scopes (F, n), the child last, with tables (F, K1..Kn); TableError where a row does not sum to one."""
    sums = tables.sum(axis=-1, keepdims=True)
    right = (np.abs(sums - 1) <= ROW_TOLERANCE) & (tables >= 0).all(axis=-1, keepdims=True)
    if not right.all():
        at = int(np.argmin(right.reshape(len(tables), -1).all(axis=1)))
        *parents, child = scopes[at].tolist()
        try:
            check_cpt(variables, parents, child, tables[at], ROW_TOLERANCE)
        except ModelError as error:
            raise TableError(str(error), int(positions[at])) from None
    return _part("cpt", scopes, positions, tables / sums, conditional=True)


def _part(kind: str, scopes: IntArray, positions: IntArray, tables: Array, conditional: bool) -> Part:
    support = tables > 0
    energies = np.log(tables, where=support, out=np.zeros(tables.shape))
    np.subtract(0.0, energies, out=energies)
    shape = tables.shape[1:]
    template = Template(f"{kind}[{','.join(map(str, shape))}]", shape, len(tables))
    return FactorGroup(template, scopes, np.arange(len(tables)), conditional, positions), energies, support
