"""How much a loss bends along each parameter, before anything is learnt: where L-BFGS begins.

    c_dq = sum_f x_fd^2 Var(basis_q),    Var over the entries of the table, all equally probable

is the diagonal of the Hessian of a likelihood at theta = 0 but for ties between factors. Features of any scale and sign
are evened out by it. Where inputs are sparse, or numbers of rows, what is seen in training says more: a feature bends
the loss as long as its labels are not learnt.
"""

from __future__ import annotations

import numpy as np

from besag.arrays import Array
from besag.data.dataset import Batch
from besag.graph.graph import Block


def measure_curvature(data: Batch) -> Array | None:
    """c (P,) where some factors have dense inputs, (F, D); None elsewhere."""
    graph = data.graph
    if not any(_is_dense(block) for block in graph.blocks):
        return None
    total = np.zeros(graph.layout.n_parameters)
    for block in graph.blocks:
        total[graph.layout[block.template.name]] += _of_block(block)
    return total * len(data) if data.is_rows else total


def _is_dense(block: Block) -> bool:
    return isinstance(block.inputs, np.ndarray) and block.inputs.ndim == 2


def _of_block(block: Block) -> Array:
    template, q = block.template, block.template.n_basis
    if template.basis is None:
        spread = np.full(q, (1 - 1 / q) / q)
    else:
        spread = template.table_basis().var(axis=1)
    values = np.outer(_squares(block), spread)
    return values.reshape(-1) if template.pattern is None else values[template.pattern.rows, template.pattern.columns]


def _squares(block: Block) -> Array:
    """(D,): the sum of squares of each input."""
    inputs, n_inputs = block.inputs, block.template.n_inputs
    if inputs is None:
        return np.array([float(len(block.scopes))])
    if _is_dense(block):
        return np.asarray(np.einsum("fd,fd->d", inputs, inputs))
    if inputs.ndim == 1:
        return np.bincount(inputs, minlength=n_inputs).astype(np.float64)
    return np.asarray(inputs.astype(np.float64).power(2).sum(axis=0)).reshape(-1)
