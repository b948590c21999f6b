"""A machine as a Model, so that every engine answers on it.

    visible      log-potentials b of the states of visible variables, 0 for state 0 of binary ones
    hidden       0 and c
    bilinear     the weights of visible and hidden variables, relative to state 0 of the visible one

Of a variable of K units, W h = W_0 h + (W_k - W_0) h, and W_0 goes to the hidden biases: the energies are the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from besag.arrays import Array, IntArray
from besag.learn.rbm.machine import Machine
from besag.model.build import FactorPart, assemble, table_part
from besag.model.model import FactorGroup, Model
from besag.model.structured.bilinear import Bilinear
from besag.model.template import Template
from besag.model.variable import NameList, Variables


def model_of(machine: Machine, names: Sequence[str], states: Sequence[tuple[str, ...]]) -> Model:
    """Variables: the visible ones by name, with their states, then hidden ones "h0", "h1", ..."""
    n, h = machine.n_visible, machine.n_hidden
    taken, prefix = set(names), "h"
    while any(f"{prefix}{j}" in taken for j in range(h)):
        prefix = f"_{prefix}"
    spaces = [*states, *[("0", "1")] * h]
    variables = Variables.from_spaces(NameList([*names, *(f"{prefix}{j}" for j in range(h))]), spaces)
    weights, visible, hidden = (np.asarray(a, np.float64) for a in (machine.weights, machine.visible, machine.hidden))
    sizes, first = np.array([len(own) for own in states]), machine.offsets[:-1]
    if not machine.is_binary:
        hidden = hidden + weights[first].sum(axis=0)
    parts = []
    for size in np.unique(sizes).tolist():
        own = np.flatnonzero(sizes == size)
        units = own[:, None] if machine.is_binary else first[own][:, None] + np.arange(size)
        parts += _layer(machine.is_binary, size, own, units, visible, weights, n)
    bias = np.stack([np.zeros(h), hidden], axis=1)
    parts.append(table_part("hidden", n + np.arange(h)[:, None], bias, "log_potential"))
    return assemble(variables, parts)


def _layer(
    is_binary: bool, size: int, own: IntArray, units: IntArray, visible: Array, weights: Array, n: int
) -> list[FactorPart]:
    """The factors of visible variables with so many states: their biases, and their ties to the hidden layer."""
    biases, ties = visible[units], weights[units]  # (V, 1 or K), (V, 1 or K, H)
    if is_binary:
        biases = np.stack([np.zeros(len(own)), biases[:, 0]], axis=1)
    else:
        ties = ties[:, 1:] - ties[:, :1]
    parts = [table_part(f"visible[{size}]", own[:, None], biases, "log_potential")]
    if size > 1:
        h = weights.shape[1]
        scopes = np.stack([np.repeat(own, h), n + np.tile(np.arange(h), len(own))], axis=1)
        template = Template(f"bilinear[{size}]", (size, 2), len(scopes), Bilinear(size))
        numbers = ties.transpose(0, 2, 1).reshape(-1)
        parts.append(FactorPart(FactorGroup(template, scopes, np.arange(len(scopes))), [numbers], "log_potential"))
    return parts
