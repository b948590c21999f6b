"""Where parameters occur in the data: sparse features and a Pattern, compiled once for hundreds of passes.

    first_row (T + 1,), row (A,)           the attributes of token t that have full rows of parameters, by their number
    first_single (T + 1,), single (B,)     single parameters of token t: number W + label
    row_value (A,), single_value (B,)      their values, () if all are one

Rows are numbered as in the ProductPlan. Single parameters have numbers of their own in each shard, since most of them
are rare and occur in one shard only. W is the width of a row. Looking up every attribute in tables of all of them, in
every pass, would take as long as the arithmetic.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from besag.arrays import AnyArray, Array, IntArray, freeze, index_type, offsets_of
from besag.data.sequences import Sequences, ranges
from besag.model.pattern import ProductPlan


class Occurrences(NamedTuple):
    """The parameters of each token, as in the module's docstring."""

    first_row: AnyArray
    row: AnyArray
    row_value: Array
    first_single: AnyArray
    single: AnyArray
    single_value: Array


class Singles(NamedTuple):
    """The single parameters of a shard: their places (S,) in theta; the first number (D,) of each attribute."""

    which: IntArray
    first: IntArray


def singles_of(batch: Sequences, plan: ProductPlan) -> Singles:
    """Numbers for the single parameters that occur in a range of sequences."""
    _, entries = _entries(batch)
    occurs = np.zeros(len(plan.row_of), np.bool_)
    occurs[batch.features.indices[entries]] = True
    few = np.flatnonzero(occurs & (plan.row_of < 0))
    counts = plan.starts[few + 1] - plan.starts[few]
    numbers = np.zeros(len(plan.row_of), np.int64)
    numbers[few] = offsets_of(counts)[:-1]
    return Singles(freeze(ranges(plan.starts[few], counts)), numbers)


def occurrences_of(batch: Sequences, plan: ProductPlan, singles: Singles, width: int) -> Occurrences:
    """The occurrences in a range of sequences, whose single parameters have these numbers."""
    first, entries = _entries(batch)
    attributes, values = batch.features.indices[entries], batch.features.values
    row: AnyArray = plan.row_of.astype(index_type(plan.n_rows))[attributes]
    full = row >= 0
    few = attributes[~full]
    counts = plan.starts[few + 1] - plan.starts[few]
    single = ranges(singles.first[few], counts) * width + plan.elements[ranges(plan.starts[few], counts)]
    n_singles = np.zeros(len(attributes), np.int64)
    n_singles[~full] = counts
    own = np.zeros(0) if values is None else values[entries]
    return Occurrences(
        first_row=_offsets(offsets_of(full)[first]),
        row=freeze(row[full]),
        row_value=freeze(own if values is None else own[full]),
        first_single=_offsets(offsets_of(n_singles)[first]),
        single=freeze(single.astype(index_type(len(singles.which) * width))),
        single_value=freeze(own if values is None else np.repeat(own[~full], counts)),
    )


def _entries(batch: Sequences) -> tuple[IntArray, slice]:
    """Where the attributes of each token begin, (T + 1,), and the slice of all of them in the features."""
    tokens = batch.offsets[[batch.start, batch.stop]]
    first = batch.features.indptr[tokens[0] : tokens[1] + 1]
    return first - first[0], slice(int(first[0]), int(first[-1]))


def _offsets(offsets: IntArray) -> AnyArray:
    return freeze(offsets.astype(index_type(int(offsets[-1]))))
