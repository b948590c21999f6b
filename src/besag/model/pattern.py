"""Pattern: parameters on some (input column, basis element) pairs only, and products with sparse inputs.

With a million string features and a hundred labels, only the pairs seen in training cost time and memory. Products with
inputs (F, D) are done by `besag.kernels.sparse` from the arrays below, which depend on the pattern alone and are made
once:

    order (nnz,)       the order of parameters by (row, column); None if they are in it already
    starts (D + 1,)    where the parameters of an input column begin
    row_of (D,)        the number of its full row, -1 where it has few parameters
    places (M,)        the places of the parameters `kept` (M,) in the full rows, flat
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from besag.arrays import AnyArray, Array, IntArray, Rebuilt, freeze, invert, offsets_of, secure
from besag.errors import ModelError

FULL_FROM = 3  # parameters of an input column from which on a full row is faster than single terms


class ProductPlan(NamedTuple):
    """The layout of parameters for kernels: the arrays of the module's docstring."""

    order: IntArray | None
    starts: IntArray
    elements: IntArray
    row_of: IntArray
    kept: IntArray
    places: IntArray
    n_rows: int


@dataclass(frozen=True, slots=True, eq=False)
class Pattern(Rebuilt):
    """The (input column, basis element) pairs with a parameter: rows (nnz,) and columns (nnz,), in theta's order."""

    rows: IntArray
    columns: IntArray
    _plan: tuple[tuple[int, int], ProductPlan] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", secure(np.asarray(self.rows, np.int64)))
        object.__setattr__(self, "columns", secure(np.asarray(self.columns, np.int64)))
        if self.rows.ndim != 1 or self.rows.shape != self.columns.shape:
            raise ModelError(
                f"a pattern needs rows and columns of one length, got {self.rows.shape}, {self.columns.shape}"
            )
        pairs = self.rows * (self.columns.max(initial=0) + 1) + self.columns
        if not is_increasing(pairs) and len(np.unique(pairs)) != len(pairs):
            raise ModelError("a pattern must not name one (input, basis element) pair twice")

    def __len__(self) -> int:
        return len(self.rows)

    def block(self, theta: Array, n_inputs: int, n_basis: int) -> Array:
        """(D, Q): the parameters as a dense block, 0 where there is none."""
        full = np.zeros((n_inputs, n_basis))
        full[self.rows, self.columns] = theta
        return full

    def plan(self, n_inputs: int, width: int) -> ProductPlan:
        """The layout for D input columns and full rows of at least `width` basis elements, made at the first call."""
        held = self._plan  # read once: another thread may replace it by one of another width
        if held is None or held[0] != (n_inputs, width):
            held = ((n_inputs, width), _plan_of(self.rows, self.columns, n_inputs, width))
            object.__setattr__(self, "_plan", held)
        return held[1]

    def prepared(self, theta: Array, n_inputs: int, n_basis: int) -> ThetaColumns:
        """theta (nnz,) as kernels read it: worth keeping where it does not change."""
        plan = self.plan(n_inputs, n_basis)
        ordered = freeze(theta if plan.order is None else theta[plan.order])
        rows = np.zeros(plan.n_rows * n_basis)
        rows[plan.places] = ordered[plan.kept]
        return ThetaColumns(plan, ordered, freeze(rows), n_basis)

    def products(self, theta: Array, inputs: Any, n_basis: int) -> Array:
        """(F, Q): inputs (F, D) CSR times the block of theta (nnz,)."""
        return self.prepared(theta, inputs.shape[1], n_basis).products(*csr_parts(inputs))

    def moments(self, inputs: Any, statistics: Array) -> Array:
        """The adjoint: (F, Q) -> (nnz,)."""
        n_basis = statistics.shape[1]
        plan = self.plan(inputs.shape[1], n_basis)
        rows, ordered = np.zeros(plan.n_rows * n_basis), np.zeros(len(self))
        first, columns, values = csr_parts(inputs)
        kernel = _kernel("make_moments", len(columns), n_basis, len(values))
        flat = freeze(statistics.reshape(-1))
        kernel(first, columns, values, plan.row_of, plan.starts, plan.elements, flat, rows, ordered)
        ordered[plan.kept] = rows[plan.places]
        return ordered if plan.order is None else ordered[invert(plan.order)]


class ThetaColumns(NamedTuple):
    """A block of theta on a pattern as kernels read it: sorted, and full rows (R Q,)."""

    plan: ProductPlan
    theta: Array
    rows: Array
    n_basis: int

    def products(self, first: IntArray, columns: AnyArray, values: Array) -> Array:
        """(F, Q): CSR inputs times the block; values () if all are one."""
        out = np.empty((len(first) - 1) * self.n_basis)
        plan, kernel = self.plan, _kernel("make_products", len(columns), self.n_basis, len(values))
        kernel(first, columns, values, plan.row_of, self.rows, plan.starts, plan.elements, self.theta, out)
        return out.reshape(-1, self.n_basis)


def is_increasing(values: IntArray) -> bool:
    """Whether each number is larger than the one before."""
    return bool((values[1:] > values[:-1]).all())


def _plan_of(rows: IntArray, columns: IntArray, n_inputs: int, n_basis: int) -> ProductPlan:
    pairs = rows * n_basis + columns
    order = None if is_increasing(pairs) else np.argsort(pairs)
    if order is not None:
        rows, columns = rows[order], columns[order]
    counts = np.bincount(rows, minlength=n_inputs)
    full = counts >= min(FULL_FROM, n_basis)
    row_of = np.where(full, np.cumsum(full) - 1, -1)
    kept = np.flatnonzero(full[rows])
    places = row_of[rows[kept]] * n_basis + columns[kept]
    starts = offsets_of(counts)
    return ProductPlan(
        order=None if order is None else freeze(order),
        starts=freeze(starts),
        elements=freeze(columns),
        row_of=freeze(row_of),
        kept=freeze(kept),
        places=freeze(places),
        n_rows=int(full.sum()),
    )


def csr_parts(inputs: Any) -> tuple[IntArray, AnyArray, Array]:
    """Offsets (F + 1,), columns (nnz,) and values (nnz,) of a CSR matrix, () if all values are one."""
    values = np.zeros(0) if inputs.dtype == np.bool_ else np.asarray(inputs.data, np.float64)
    return freeze(inputs.indptr.astype(np.int64, copy=False)), freeze(inputs.indices), freeze(values)


def _kernel(name: str, work: int, n_basis: int, n_values: int) -> Any:
    from besag.kernels import sparse
    from besag.kernels.compile import kernel_of, worth_compiling

    return kernel_of(getattr(sparse, name), n_basis, int(n_values > 0), compile=worth_compiling(float(work) * n_basis))
