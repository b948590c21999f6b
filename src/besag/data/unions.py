"""Many instances as one Graph, from arrays: no Python loop over instances, and inputs are not copied.

Instance n has variables [offsets[n], offsets[n + 1]). All factors of a template are given at once, as scopes (F, n) in
the numbering of the union, sorted by instance, with their inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from besag.arrays import IntArray, concatenate, freeze, offsets_of
from besag.graph.graph import Block, Graph
from besag.model.layout import Layout
from besag.model.template import Inputs, Template
from besag.model.variable import RangeNames, Variables


class FactorArrays(NamedTuple):
    """All factors of one template: scopes (F, n), and inputs as a Template takes them."""

    template: Template
    scopes: IntArray
    inputs: Inputs = None


def union_graph(layout: Layout, parts: Iterable[FactorArrays], states: Sequence[str], offsets: IntArray) -> Graph:
    """The union of instances whose variables all have the same states; templates without factors are left out."""
    blocks: list[Block] = []
    for template, scopes, inputs in parts:
        if len(scopes):
            blocks.append(Block(template, blocks[-1].stop if blocks else 0, freeze(scopes), inputs))
    order, counts = _number_factors([block.scopes[:, 0] for block in blocks], offsets)
    n = int(offsets[-1])
    return Graph(
        variables=Variables(RangeNames(n), (tuple(states),), np.zeros(n, np.int64)),
        layout=layout,
        blocks=tuple(blocks),
        instance_offsets=freeze(offsets),
        factor_order=freeze(order),
        factor_offsets=freeze(offsets_of(counts)),
    )


def _number_factors(firsts: list[IntArray], offsets: IntArray) -> tuple[IntArray, IntArray]:
    """The factors ordered by instance, numbered block by block, and how many each instance has."""
    instance = np.searchsorted(offsets, concatenate(firsts, np.int64), side="right") - 1
    return np.argsort(instance, kind="stable"), np.bincount(instance, minlength=len(offsets) - 1)
