"""Where the small tables of a clique lie against its tiles.

Small tables meet a clique as operands of its product (factors, messages of children, evidence on a variable) and as
outputs of its belief (the marginal on the separator of a child, on the scope of a factor, on a variable). A small table
has a stride for each of its axes; entry i of tile t is at

    base + outer[t] + inner[i]

and the base depends on the row of evidence. For an output the tile is also split into the places of its scope times the
steps that are summed: place[j] + step[l] runs through the tile, and belongs to inner[place[j]].

Shapes: V variables, F factors, C cliques, A axes of all cliques, O small tables.
"""

from __future__ import annotations

import numpy as np

from besag.arrays import IntArray
from besag.kernels.compile import inlined

FACTOR, MESSAGE, EVIDENCE, VARIABLE = 0, 1, 2, 3

Tables = tuple[IntArray, IntArray, IntArray, IntArray]
Maps = tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]


@inlined
def tables(
    clique_of_factor: IntArray, parent: IntArray, clique_of_evidence: IntArray, clique_of_output: IntArray
) -> Tables:
    """The small tables of each clique -> table_offsets (C + 1,), n_operands (C,), kinds (O,), numbers (O,).

    Operands come first, then the tables that are outputs only: the marginals of variables that no separator holds.
    numbers: the factor, child or variable. clique_of_factor (F,) or -1, parent (C,), clique_of_evidence (V,) or -1,
    clique_of_output (V,) or -1.
    """
    n_cliques = len(parent)
    offsets, n_operands = np.zeros(n_cliques + 1, np.int64), np.zeros(n_cliques, np.int64)
    for owners in (clique_of_factor, parent, clique_of_evidence):
        for i in range(len(owners)):
            if owners[i] >= 0:
                n_operands[owners[i]] += 1
    for c in range(n_cliques):
        offsets[c + 1] = n_operands[c]
    for v in range(len(clique_of_output)):
        if clique_of_output[v] >= 0:
            offsets[clique_of_output[v] + 1] += 1
    for c in range(n_cliques):
        offsets[c + 1] += offsets[c]
    kinds, numbers = np.empty(offsets[n_cliques], np.int64), np.empty(offsets[n_cliques], np.int64)
    top = offsets[:n_cliques].copy()
    for kind, owners in enumerate((clique_of_factor, parent, clique_of_evidence, clique_of_output)):
        for i in range(len(owners)):
            if owners[i] >= 0:
                kinds[top[owners[i]]], numbers[top[owners[i]]] = kind, i
                top[owners[i]] += 1
    return offsets, n_operands, kinds, numbers


@inlined
def spread_digits(
    axes: IntArray,
    low: int,
    high: int,
    strides: IntArray,
    coded: bool,
    codes: IntArray,
    digit_offsets: IntArray,
    counts: IntArray,
    out: IntArray,
    start: int,
) -> int:
    """out[start:] = sum of digit times stride over axes low..high, in walking order; returns how many entries.

    Axis v has counts[v] digits: 0, 1, ... or, if coded, codes[digit_offsets[v]:]. Its stride is strides[v];
    axes without one have 0.
    """
    out[start] = 0
    size = 1
    for a in range(high - 1, low - 1, -1):
        v = axes[a]
        for k in range(counts[v] - 1, -1, -1):
            step = (codes[digit_offsets[v] + k] if coded else k) * strides[v]
            for i in range(size):
                out[start + k * size + i] = out[start + i] + step
        size *= counts[v]
    return size


@inlined
def maps(
    axis_offsets: IntArray,
    axes: IntArray,
    splits: IntArray,
    shape: IntArray,
    table_offsets: IntArray,
    scope_offsets: IntArray,
    scope_variables: IntArray,
    scope_strides: IntArray,
    kinds: IntArray,
    cells: bool,
    counts: IntArray,
    codes: IntArray,
    digit_offsets: IntArray,
) -> Maps:
    """The index maps of all small tables.

    scope_offsets (O + 1,), scope_variables, scope_strides: their free axes, with a stride each. Tables of factors have
    entries for all states, of which only some may be allowed: they are indexed by codes. cells: whether marginals of
    factors are wanted. -> outer_offsets, outer, inner_offsets, inner, place_offsets, place, step_offsets, step, runs
    (O,); inner, place and step are int32; only outputs have places and steps.
    """
    n_cliques, n_tables = len(axis_offsets) - 1, len(scope_offsets) - 1
    outer_offsets, inner_offsets = np.zeros(n_tables + 1, np.int64), np.zeros(n_tables + 1, np.int64)
    place_offsets, step_offsets = np.zeros(n_tables + 1, np.int64), np.zeros(n_tables + 1, np.int64)
    strides = np.zeros(len(counts), np.int64)
    largest = 1
    for c in range(n_cliques):
        tile = shape[c, 2] * shape[c, 3]
        largest = max(largest, tile)
        for o in range(table_offsets[c], table_offsets[c + 1]):
            outer_offsets[o + 1] = outer_offsets[o] + shape[c, 0] * shape[c, 1]
            inner_offsets[o + 1] = inner_offsets[o] + tile
            places = 0
            if is_output(kinds[o], cells):
                for s in range(scope_offsets[o], scope_offsets[o + 1]):
                    strides[scope_variables[s]] = 1
                places = 1
                for a in range(axis_offsets[c] + splits[c, 1], axis_offsets[c + 1]):
                    places *= counts[axes[a]] if strides[axes[a]] else 1
                for s in range(scope_offsets[o], scope_offsets[o + 1]):
                    strides[scope_variables[s]] = 0
            place_offsets[o + 1] = place_offsets[o] + places
            step_offsets[o + 1] = step_offsets[o] + (tile // places if places else 0)
    outer = np.empty(outer_offsets[n_tables], np.int64)
    inner = np.empty(inner_offsets[n_tables], np.int32)
    place = np.empty(place_offsets[n_tables], np.int32)
    step = np.empty(step_offsets[n_tables], np.int32)
    inside, outside = np.zeros(len(counts), np.int64), np.zeros(len(counts), np.int64)
    wide, runs = np.empty(largest, np.int64), np.zeros(n_tables, np.int64)
    for c in range(n_cliques):
        first, split, last = axis_offsets[c], axis_offsets[c] + splits[c, 1], axis_offsets[c + 1]
        for o in range(table_offsets[c], table_offsets[c + 1]):
            for s in range(scope_offsets[o], scope_offsets[o + 1]):
                strides[scope_variables[s]] = scope_strides[s]
            coded = kinds[o] == FACTOR
            spread_digits(axes, first, split, strides, coded, codes, digit_offsets, counts, outer, outer_offsets[o])
            size = spread_digits(axes, split, last, strides, coded, codes, digit_offsets, counts, wide, 0)
            for i in range(size):
                inner[inner_offsets[o] + i] = wide[i]
            runs[o] = run_of(axes, split, last, strides, coded, codes, digit_offsets, counts)
            if is_output(kinds[o], cells):
                along = 1
                for a in range(last - 1, split - 1, -1):
                    v = axes[a]
                    inside[v], outside[v] = (along, 0) if strides[v] else (0, along)
                    along *= counts[v]
                size = pick(axes, split, last, inside, counts, wide)
                for i in range(size):
                    place[place_offsets[o] + i] = wide[i]
                size = pick(axes, split, last, outside, counts, wide)
                for i in range(size):
                    step[step_offsets[o] + i] = wide[i]
            for s in range(scope_offsets[o], scope_offsets[o + 1]):
                strides[scope_variables[s]] = 0
    return outer_offsets, outer, inner_offsets, inner, place_offsets, place, step_offsets, step, runs


@inlined
def is_output(kind: int, cells: bool) -> bool:
    """Whether a marginal on a small table may be wanted."""
    return kind in (MESSAGE, VARIABLE) or (cells and kind == FACTOR)


@inlined
def run_of(
    axes: IntArray,
    low: int,
    high: int,
    strides: IntArray,
    coded: bool,
    codes: IntArray,
    digit_offsets: IntArray,
    counts: IntArray,
) -> int:
    """How many entries from the first on are contiguous in the table, or minus how many share one place."""
    same, apart = 1, 1
    for a in range(high - 1, low - 1, -1):
        v = axes[a]
        gap = coded and codes[digit_offsets[v] + counts[v] - 1] - codes[digit_offsets[v]] != counts[v] - 1
        if strides[v] == 0 and apart == 1:
            same *= counts[v]
        elif strides[v] == apart and same == 1 and not gap:
            apart *= counts[v]
        else:
            break
    return -same if same > 1 else apart


@inlined
def pick(axes: IntArray, low: int, high: int, strides: IntArray, counts: IntArray, out: IntArray) -> int:
    """out = sum of digit times stride over those axes low..high that have a stride; returns how many entries."""
    out[0] = 0
    size = 1
    for a in range(high - 1, low - 1, -1):
        v = axes[a]
        if strides[v] == 0:
            continue
        for k in range(counts[v] - 1, 0, -1):
            for i in range(size):
                out[k * size + i] = out[i] + k * strides[v]
        size *= counts[v]
    return size
