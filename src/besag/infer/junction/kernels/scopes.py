"""The axes of small tables, and where the marginals of variables are read.

A factor has an axis for each variable of its scope; those that are free are axes of its clique, those that are fixed
move its base by code times stride. A message has the axes of its separator, outer separator | inner separator.

The marginal of a variable is read off the smallest separator that holds it, or, if there is none, off the belief of its
clique. A clique's belief is needed if something is read off it, or off a separator below it.

Shapes: V variables, F factors, C cliques, O small tables.
"""

from __future__ import annotations

import numpy as np

from besag.arrays import Array, BoolArray, IntArray
from besag.infer.junction.kernels.maps import FACTOR, MESSAGE, VARIABLE
from besag.kernels.compile import inlined

Owners = tuple[IntArray, IntArray, IntArray]
Scopes = tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]
Reading = tuple[BoolArray, BoolArray, IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]


@inlined
def scopes(
    kinds: IntArray,
    numbers: IntArray,
    factor_offsets: IntArray,
    factor_variables: IntArray,
    state_offsets: IntArray,
    counts: IntArray,
    axis_offsets: IntArray,
    axes: IntArray,
    splits: IntArray,
) -> Scopes:
    """The axes of all small tables.

    -> free_offsets (O + 1,), free_variables, free_strides, fixed_offsets (O + 1,), fixed_variables, fixed_strides
    """
    n = len(kinds)
    free_offsets, fixed_offsets = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    room = 0
    for o in range(n):
        if kinds[o] == FACTOR:
            room += factor_offsets[numbers[o] + 1] - factor_offsets[numbers[o]]
        elif kinds[o] == MESSAGE:
            room += axis_offsets[numbers[o] + 1] - axis_offsets[numbers[o]]
        else:
            room += 1
    free_variables, free_strides = np.empty(room, np.int64), np.empty(room, np.int64)
    fixed_variables, fixed_strides = np.empty(room, np.int64), np.empty(room, np.int64)
    top, bottom = 0, 0
    for o in range(n):
        i, stride = numbers[o], 1
        if kinds[o] == FACTOR:
            for s in range(factor_offsets[i + 1] - 1, factor_offsets[i] - 1, -1):
                v = factor_variables[s]
                if counts[v] > 1:
                    free_variables[top], free_strides[top] = v, stride
                    top += 1
                else:
                    fixed_variables[bottom], fixed_strides[bottom] = v, stride
                    bottom += 1
                stride *= state_offsets[v + 1] - state_offsets[v]
        elif kinds[o] == MESSAGE:
            first, last = axis_offsets[i], axis_offsets[i + 1]
            for a in range(last - 1, first - 1, -1):
                if first + splits[i, 0] <= a < first + splits[i, 2]:
                    continue
                free_variables[top], free_strides[top] = axes[a], stride
                top += 1
                stride *= counts[axes[a]]
        else:
            free_variables[top], free_strides[top] = i, 1
            top += 1
        free_offsets[o + 1], fixed_offsets[o + 1] = top, bottom
    return (
        free_offsets,
        free_variables[:top].copy(),
        free_strides[:top].copy(),
        fixed_offsets,
        fixed_variables[:bottom].copy(),
        fixed_strides[:bottom].copy(),
    )


@inlined
def owners(
    axis_offsets: IntArray,
    axes: IntArray,
    splits: IntArray,
    parent: IntArray,
    separator_sizes: IntArray,
    entries: Array,
    counts: IntArray,
    clique_of: IntArray,
    soft: BoolArray,
    read: BoolArray,
) -> Owners:
    """(V,) or -1: the clique of a variable's evidence, the clique and the separator that its marginal is read off.

    Of the cliques or separators that hold the variable, the smallest; of equal ones, the last.
    """
    n = len(counts)
    evidence, output, separator = np.full(n, -1, np.int64), np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    for c in range(len(parent)):
        for a in range(axis_offsets[c], axis_offsets[c + 1]):
            v, place = axes[a], a - axis_offsets[c]
            if counts[v] <= 1:
                continue
            if soft[v] and (evidence[v] < 0 or entries[c] <= entries[evidence[v]]):
                evidence[v] = c
            if not read[v] or parent[c] < 0 or splits[c, 0] <= place < splits[c, 2]:
                continue
            if separator[v] < 0 or separator_sizes[c] <= separator_sizes[separator[v]]:
                separator[v] = c
    for v in range(n):
        if read[v] and counts[v] > 1 and separator[v] < 0:
            output[v] = clique_of[v]
    return evidence, output, separator


@inlined
def find_reads(
    kinds: IntArray,
    numbers: IntArray,
    table_offsets: IntArray,
    parent: IntArray,
    axis_offsets: IntArray,
    axes: IntArray,
    splits: IntArray,
    counts: IntArray,
    digit_offsets: IntArray,
    separator_of: IntArray,
    message_offsets: IntArray,
    factor_sizes: IntArray,
) -> Reading:
    """What to read where; see `passes.Reads`.

    separator_of (V,): the child of the separator that the marginal of a variable is read off, or -1. factor_sizes (F,):
    table entries, or (0,) if marginals of factors are not wanted.
    """
    n_cliques = len(parent)
    offsets = np.zeros(n_cliques + 1, np.int64)
    for v in range(len(separator_of)):
        if separator_of[v] >= 0:
            offsets[separator_of[v] + 1] += 1
    for c in range(n_cliques):
        offsets[c + 1] += offsets[c]
    n_reads = offsets[n_cliques]
    before, count = np.ones(n_reads, np.int64), np.ones(n_reads, np.int64)
    after, target = np.ones(n_reads, np.int64), np.zeros(n_reads, np.int64)
    filled = offsets[:n_cliques].copy()
    for v in range(len(separator_of)):
        c = separator_of[v]
        if c < 0:
            continue
        i = filled[c]
        filled[c] += 1
        target[i], count[i] = digit_offsets[v], counts[v]
        found = False
        for a in range(axis_offsets[c], axis_offsets[c + 1]):
            place = a - axis_offsets[c]
            if splits[c, 0] <= place < splits[c, 2]:
                continue
            if axes[a] == v:
                found = True
            elif found:
                after[i] *= counts[axes[a]]
            else:
                before[i] *= counts[axes[a]]
    needed, wanted = np.zeros(n_cliques, np.bool_), np.zeros(len(kinds), np.bool_)
    rooms = np.zeros(len(kinds) + 1, np.int64)
    for c in range(n_cliques):
        for o in range(table_offsets[c], table_offsets[c + 1]):
            k, size = numbers[o], 0
            if kinds[o] == VARIABLE:
                size = counts[k]
            elif kinds[o] == FACTOR and len(factor_sizes) > 0:
                size = factor_sizes[k]
            elif kinds[o] == MESSAGE and (needed[k] or offsets[k + 1] > offsets[k]):
                size = message_offsets[k + 1] - message_offsets[k]
            wanted[o] = size > 0
            rooms[o + 1] = rooms[o] + size
            needed[c] = needed[c] or wanted[o]
    return needed, wanted, rooms, offsets, before, count, after, target
