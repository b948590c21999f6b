"""Chains of all lengths as one Graph, from arrays: no Python loop over sequences.

Sequence n has variables [offsets[n], offsets[n + 1]), one factor on each variable and one on each two neighbours,

    H(x, y) = sum_t <theta_state, x_t (x) [y_t]> + sum_t theta_transition[y_t, y_t+1]

and, if their templates are given, one on each three neighbours, and factors on the first and last variable with hard
zeros only, for labels that may not begin or end a sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from besag.arrays import IntArray, offsets_of
from besag.data.attributes import Features
from besag.data.unions import FactorArrays, union_graph
from besag.graph.graph import Graph
from besag.model.layout import Layout
from besag.model.template import Inputs, Template


class ChainTemplates(NamedTuple):
    """The templates of a chain; None if there is no such factor."""

    state: Template
    transition: Template
    triple: Template | None = None
    begin: Template | None = None
    end: Template | None = None

    def layout(self) -> Layout:
        """The slice of theta of each template."""
        return Layout(template for template in self if template is not None)


def chain_graph(templates: ChainTemplates, states: Sequence[str], lengths: IntArray, inputs: Inputs) -> Graph:
    """The union of chains with these lengths (N,), inputs (sum of lengths, D) of the state factors."""
    offsets = offsets_of(lengths)
    parts = [
        (templates.state, np.arange(offsets[-1])[:, None], inputs),
        (templates.transition, windows(offsets, 2), None),
        (templates.triple, windows(offsets, 3), None),
        (templates.begin, offsets[:-1][lengths > 0][:, None], None),
        (templates.end, (offsets[1:] - 1)[lengths > 0][:, None], None),
    ]
    given = [FactorArrays(template, scopes, own) for template, scopes, own in parts if template is not None]
    return union_graph(templates.layout(), given, states, offsets)


def windows(offsets: IntArray, size: int) -> IntArray:
    """(F, size): all runs of so many neighbours within sequences."""
    starts = np.arange(offsets[-1])
    last = np.repeat(offsets[1:], np.diff(offsets))
    starts = starts[starts + size <= last]
    return starts[:, None] + np.arange(size)


def csr_inputs(features: Features, n_attributes: int) -> Any:
    """Features as the inputs (T, D) of state factors; values of a repeated attribute add up."""
    from scipy.sparse import csr_array

    values = np.ones(len(features.indices)) if features.values is None else np.array(features.values)
    shape = (len(features.indptr) - 1, max(n_attributes, 1))
    inputs = csr_array((values, features.indices.copy(), features.indptr.copy()), shape=shape)
    inputs.sum_duplicates()
    return inputs
