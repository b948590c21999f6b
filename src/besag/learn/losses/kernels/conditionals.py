"""One variable at a time: the terms of pseudolikelihood, their links, and what their labels look up.

A term is a variable of a row whose own label and those of its neighbours are known. A link is a factor on it: its cell
is the table entry at state 0, the neighbours at their labels, and its step is the variable's stride; see `terms`.

    V variables, R rows of labels, M terms, J links, L table entries
"""

from __future__ import annotations

import math
from collections.abc import Callable

from besag.arrays import AnyArray, Array, BoolArray, IntArray
from besag.kernels.factors import POTTS, TABLE, Factors


def make_kept() -> Callable[..., None]:
    """Kernel: which variables of each row are terms, kept (R, V), and how many links each has, counts (R, V)."""

    def find_kept(factors: Factors, labels: IntArray, kept: BoolArray, counts: IntArray) -> None:
        scope_offsets, scope_variables = factors.scope_offsets, factors.scope_variables
        kinds = factors.kinds
        for r in range(len(labels)):
            row, own = labels[r], kept[r]
            for v in range(len(row)):
                own[v] = row[v] >= 0
            for f in range(len(kinds)):
                known = True
                for e in range(scope_offsets[f], scope_offsets[f + 1]):
                    known = known and row[scope_variables[e]] >= 0
                linked = kinds[f] == TABLE or kinds[f] == POTTS
                for e in range(scope_offsets[f], scope_offsets[f + 1]):
                    if not known:
                        own[scope_variables[e]] = False
                    if linked:
                        counts[r, scope_variables[e]] += 1

    return find_kept


def make_linked() -> Callable[..., None]:
    """Kernel: the cells and steps of all links; free (R, V): the next free link of each term, -1 where it is none."""

    def link(factors: Factors, labels: IntArray, free: IntArray, cells: AnyArray, steps: AnyArray) -> None:
        state_offsets, scope_offsets = factors.state_offsets, factors.scope_offsets
        scope_variables, kinds = factors.scope_variables, factors.kinds
        for r in range(len(labels)):
            row, next_of = labels[r], free[r]
            for f in range(len(kinds)):
                first, last = scope_offsets[f], scope_offsets[f + 1]
                start = factors.table_offsets[factors.table_of_factor[f]]
                if kinds[f] == POTTS:
                    for e in range(first, last):
                        v = scope_variables[e]
                        if next_of[v] >= 0:
                            cells[next_of[v]] = start
                            steps[next_of[v]] = -1 - row[scope_variables[first + last - 1 - e]]
                            next_of[v] += 1
                elif kinds[f] == TABLE:
                    entry, stride = start, 1
                    for e in range(last - 1, first - 1, -1):
                        v = scope_variables[e]
                        entry += stride * max(row[v], 0)
                        stride *= state_offsets[v + 1] - state_offsets[v]
                    stride = 1
                    for e in range(last - 1, first - 1, -1):
                        v = scope_variables[e]
                        if next_of[v] >= 0:
                            cells[next_of[v]] = entry - stride * row[v]
                            steps[next_of[v]] = stride
                            next_of[v] += 1
                        stride *= state_offsets[v + 1] - state_offsets[v]

    return link


def make_counted() -> Callable[..., int]:
    """Kernel: adds the weights of terms to the table entries at their labels, counts (L,).

    Returns a term whose label has probability zero; -1 if there is none.
    """

    def count(
        first: AnyArray,
        cells: AnyArray,
        steps: AnyArray,
        labels: IntArray,
        weights: Array,
        log_potentials: Array,
        counts: Array,
    ) -> int:
        for t in range(len(labels)):
            for j in range(first[t], first[t + 1]):
                if steps[j] >= 0:
                    entry = cells[j] + labels[t] * steps[j]
                    if log_potentials[entry] == -math.inf:
                        return t
                    counts[entry] += weights[t]
                elif labels[t] != -1 - steps[j]:
                    counts[cells[j]] += weights[t]
        return -1

    return count
