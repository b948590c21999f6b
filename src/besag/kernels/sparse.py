"""Sparse inputs times a sparse block of parameters, and the adjoint: the work of string features.

Factor t has inputs x_t with few non-zeros, CSR: `first` (T + 1,), `columns` (nnz,), and `values` (nnz,), or () if all
are one. Input column d has parameters on some of Q basis elements. If these are more than a handful, d has a full row
of Q numbers in `rows` (R, Q), number row_of[d], since adding rows of a known length is vectorised. The others, with
row_of[d] < 0, have theta[starts[d]:starts[d + 1]] on the basis elements elements[starts[d]:starts[d + 1]]:

    out[t, q] = sum over d in x_t of x_td theta_dq                     `make_products`
    block[d, q] += sum over t of x_td marginals[t, q]                  `make_moments`, the adjoint
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from besag.arrays import AnyArray, Array, IntArray
from besag.kernels.compile import at, inlined

Kernel: TypeAlias = Callable[..., None]


@inlined
def add_row(n: int, out: Array, o: int, row: Array, r: int, x: float) -> None:
    """out[o:o + n] += x row[r:r + n]."""
    for k in range(n):
        out[at(o + k)] += x * row[at(r + k)]


def make_products(n_basis: int, weighted: int) -> Kernel:
    """The kernel for Q basis elements; weighted: 0 where all values are one."""

    def kernel(
        first: IntArray,
        columns: AnyArray,
        values: Array,
        row_of: IntArray,
        rows: Array,
        starts: IntArray,
        elements: IntArray,
        theta: Array,
        out: Array,
    ) -> None:
        for t in range(len(first) - 1):
            o = t * n_basis
            for k in range(n_basis):
                out[at(o + k)] = 0.0
            for j in range(first[t], first[t + 1]):
                d = columns[j]
                x = values[j] if weighted else 1.0
                r = row_of[d]
                if r >= 0:
                    add_row(n_basis, out, o, rows, r * n_basis, x)
                else:
                    for p in range(starts[d], starts[d + 1]):
                        out[o + elements[p]] += x * theta[p]

    return kernel


def make_moments(n_basis: int, weighted: int) -> Kernel:
    """The adjoint: adds to `rows` and to `theta`, which are outputs here."""

    def kernel(
        first: IntArray,
        columns: AnyArray,
        values: Array,
        row_of: IntArray,
        starts: IntArray,
        elements: IntArray,
        marginals: Array,
        rows: Array,
        theta: Array,
    ) -> None:
        for t in range(len(first) - 1):
            o = t * n_basis
            for j in range(first[t], first[t + 1]):
                d = columns[j]
                x = values[j] if weighted else 1.0
                r = row_of[d]
                if r >= 0:
                    add_row(n_basis, rows, r * n_basis, marginals, o, x)
                else:
                    for p in range(starts[d], starts[d + 1]):
                        theta[p] += x * marginals[o + elements[p]]

    return kernel
