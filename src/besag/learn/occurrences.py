"""Where parameters occur in the data: sparse features and a Pattern, compiled for passes that are made a hundred times.

    first_row (T + 1,), row (A,)           the attributes of token t that have full rows of parameters, by their number
    first_single (T + 1,), single (B,), label (B,)     single parameters of token t, and the labels that they are of
    row_value (A,), single_value (B,)      their values, () where all are one

Looking up attribute after attribute in tables of all of them, pass after pass, takes as long as the arithmetic.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from besag.arrays import AnyArray, Array, IntArray, frozen, index_type, offsets_of
from besag.data.sequences import Sequences, ranges
from besag.model.pattern import Plan


class Occurrences(NamedTuple):
    """See the module."""

    first_row: IntArray
    row: AnyArray
    row_value: Array
    first_single: IntArray
    single: AnyArray
    label: AnyArray
    single_value: Array

    def statistics(self, plan: Plan, width: int, codes: IntArray, weights: Array) -> Array:
        """(nnz,): what parameters are multiplied with when tokens have labels codes (T,), weights (T,); sorted."""
        tokens = np.repeat(np.arange(len(codes)), np.diff(self.first_row))
        at = self.row.astype(np.int64) * width + codes[tokens]
        in_rows = np.bincount(at, _weighted(weights[tokens], self.row_value), minlength=plan.n_rows * width)
        tokens = np.repeat(np.arange(len(codes)), np.diff(self.first_single))
        right = np.where(self.label == codes[tokens], weights[tokens], 0.0)
        return self._joined(plan, in_rows.astype(np.float64), _weighted(right, self.single_value))

    def _joined(self, plan: Plan, in_rows: Array, of_singles: Array) -> Array:
        total = np.bincount(self.single, of_singles, minlength=len(plan.elements)).astype(np.float64)
        total[plan.kept] = in_rows[plan.places]
        return total


def _weighted(weights: Array, values: Array) -> Array:
    return weights * values if len(values) else weights


def occurrences_of(batch: Sequences, plan: Plan) -> Occurrences:
    """The occurrences in a range of sequences."""
    features, tokens = batch.features, batch.offsets[[batch.start, batch.stop]]
    first = features.indptr[tokens[0] : tokens[1] + 1]
    entries = slice(int(first[0]), int(first[-1]))
    attributes, first = features.indices[entries], first - first[0]
    integer = index_type(max(plan.n_rows, int(plan.starts[-1])))
    row: AnyArray = plan.row_of.astype(integer)[attributes]
    full = row >= 0
    few = attributes[~full]
    counts = plan.starts[few + 1] - plan.starts[few]
    single = ranges(plan.starts[few], counts)
    n_singles = np.zeros(len(attributes), np.int64)
    n_singles[~full] = counts
    ones = features.values is None
    values = np.zeros(0) if features.values is None else features.values[entries]
    return Occurrences(
        first_row=frozen(offsets_of(full)[first]),
        row=frozen(row[full]),
        row_value=frozen(values if ones else values[full]),
        first_single=frozen(offsets_of(n_singles)[first]),
        single=frozen(single.astype(integer)),
        label=frozen(plan.elements[single].astype(np.int32)),
        single_value=frozen(values if ones else np.repeat(values[~full], counts)),
    )
