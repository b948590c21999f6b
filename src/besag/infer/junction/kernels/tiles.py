"""Tiles of a clique: the product of its operands is formed tile by tile, and summed from there.

Entry i of tile t of an operand is store[base + outer[t] + inner[i]] (`maps`), read by single loads, or in runs if
successive entries of the tile are contiguous in the operand too, or all at one place. Sums go to the message of the
clique, by rows of the tile, or to the scope of an output, by places and steps.

A tile is a flat work array of R rows (inner residual) times J (inner separator).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from besag.arrays import Array, IntArray
from besag.kernels.compile import at, gathering, inlined
from besag.kernels.semiring import MAX, SUM, one_of

SHORTEST_RUN = 8  # below this single loads are faster than loops over runs


class Join(NamedTuple):
    """A tree of cliques, as the kernels see it."""

    shape: IntArray  # (C, 4) states of outer separator, outer residual, inner residual, inner separator
    parent: IntArray  # (C,)
    message_offsets: IntArray  # (C + 1,)
    table_offsets: IntArray  # (C + 1,)
    n_operands: IntArray  # (C,)
    kinds: IntArray  # (O,)
    numbers: IntArray  # (O,)
    outer_offsets: IntArray
    outer: IntArray
    inner_offsets: IntArray
    inner: IntArray  # int32
    place_offsets: IntArray
    place: IntArray  # int32
    step_offsets: IntArray
    step: IntArray  # int32
    runs: IntArray  # (O,) length of a run: entries contiguous in tile and table, or minus those at one place


@gathering
def gather(n: int, x: Array, base: int, index: IntArray, start: int, y: Array) -> None:
    """y_i = x[base + index_i]."""
    for i in range(n):
        y[i] = x[at(base + index[at(start + i)])]


@gathering
def gather_product(
    semiring: int, n: int, x: Array, base: int, start: int, base2: int, start2: int, index: IntArray, y: Array
) -> None:
    """y = one operand times another."""
    for i in range(n):
        a, b = x[at(base + index[at(start + i)])], x[at(base2 + index[at(start2 + i)])]
        y[i] = a * b if semiring == SUM else a + b


@gathering
def multiply_gather(semiring: int, n: int, x: Array, base: int, index: IntArray, start: int, y: Array) -> None:
    """y = y times an operand."""
    for i in range(n):
        if semiring == SUM:
            y[i] *= x[at(base + index[at(start + i)])]
        else:
            y[i] += x[at(base + index[at(start + i)])]


@inlined
def set_run(n: int, run: int, x: Array, here: int, y: Array, start: int) -> None:
    """y = n entries of an operand, contiguous (run > 0) or all the same."""
    if run > 0:
        for i in range(n):
            y[at(start + i)] = x[at(here + i)]
    else:
        value = x[here]
        for i in range(n):
            y[at(start + i)] = value


@inlined
def multiply_run(semiring: int, n: int, run: int, x: Array, here: int, y: Array, start: int) -> None:
    """y = y times n entries of an operand, contiguous (run > 0) or all the same."""
    if run > 0:
        for i in range(n):
            if semiring == SUM:
                y[at(start + i)] *= x[at(here + i)]
            else:
                y[at(start + i)] += x[at(here + i)]
    else:
        value = x[here]
        for i in range(n):
            if semiring == SUM:
                y[at(start + i)] *= value
            else:
                y[at(start + i)] += value


@gathering
def multiply_runs(
    semiring: int, n: int, run: int, x: Array, base: int, index: IntArray, start: int, started: bool, y: Array
) -> None:
    """y = an operand in runs, or y times it if y has been started."""
    length = abs(run)
    for i in range(0, n, length):
        here = base + index[start + i]
        if started:
            multiply_run(semiring, length, run, x, here, y, i)
        else:
            set_run(length, run, x, here, y, i)


@gathering
def product(
    semiring: int, join: Join, c: int, t: int, store: Array, bases: IntArray, left_out: int, tile: Array
) -> None:
    """tile = the product of all operands of clique c but one, at tile t."""
    n = join.shape[c, 2] * join.shape[c, 3]
    first = join.table_offsets[c]
    held, held_base, held_start, started = False, 0, 0, False
    for o in range(first, first + join.n_operands[c]):
        if o == left_out:
            continue
        base, start, run = bases[o] + join.outer[join.outer_offsets[o] + t], join.inner_offsets[o], join.runs[o]
        if abs(run) >= SHORTEST_RUN:
            multiply_runs(semiring, n, run, store, base, join.inner, start, started, tile)
            started = True
        elif not held:
            held, held_base, held_start = True, base, start
        elif started:
            multiply_gather(semiring, n, store, base, join.inner, start, tile)
        else:
            gather_product(semiring, n, store, held_base, held_start, base, start, join.inner, tile)
            started, held_start = True, -1
    if held and held_start >= 0:
        if started:
            multiply_gather(semiring, n, store, held_base, join.inner, held_start, tile)
        else:
            gather(n, store, held_base, join.inner, held_start, tile)
    elif not started:
        for i in range(n):
            tile[i] = one_of(semiring)


@inlined
def add_rows(semiring: int, n_rows: int, width: int, tile: Array, store: Array, start: int) -> None:
    """store[start + j] (+)= sum over rows r of tile[r, j]."""
    if semiring == SUM and width >= 8:
        for r in range(n_rows):
            for j in range(width):
                store[at(start + j)] += tile[at(r * width + j)]
    elif semiring == MAX and width >= 8:
        for r in range(n_rows):
            for j in range(width):
                store[at(start + j)] = max(store[at(start + j)], tile[at(r * width + j)])
    else:
        for j in range(width):
            store[start + j] = total(semiring, n_rows, tile, j, width, store[start + j])


@inlined
def total(semiring: int, n: int, x: Array, start: int, stride: int, value: float) -> float:
    """value (+) sum of x[start + i stride]."""
    if semiring == SUM:
        for i in range(n):
            value += x[at(start + i * stride)]
        return value
    highest = max(value, highest_of(n, x, start, stride))
    if semiring == MAX or highest == -math.inf:
        return highest
    value = math.exp(value - highest)
    for i in range(n):
        value += math.exp(x[at(start + i * stride)] - highest)
    return highest + math.log(value)


@inlined
def highest_of(n: int, x: Array, start: int, stride: int) -> float:
    """The largest of x[start + i stride]; four at a time, so that no comparison waits for the previous one."""
    a, b, c, d = -math.inf, -math.inf, -math.inf, -math.inf
    whole = n - n % 4
    for i in range(0, whole, 4):
        a = max(a, x[at(start + i * stride)])
        b = max(b, x[at(start + (i + 1) * stride)])
        c = max(c, x[at(start + (i + 2) * stride)])
        d = max(d, x[at(start + (i + 3) * stride)])
    for i in range(whole, n):
        a = max(a, x[at(start + i * stride)])
    return max(a, b, c, d)


@gathering
def project(semiring: int, join: Join, o: int, t: int, tile: Array, out: Array, base: int, sums: Array) -> None:
    """out (+)= the sum of the tile onto the scope of output o."""
    first, places = join.place_offsets[o], join.place_offsets[o + 1] - join.place_offsets[o]
    low, steps = join.step_offsets[o], join.step_offsets[o + 1] - join.step_offsets[o]
    base += join.outer[join.outer_offsets[o] + t]
    inner, run = join.inner_offsets[o], join.runs[o]
    if semiring == SUM and run >= SHORTEST_RUN:
        for j in range(0, places, run):
            p = join.place[first + j]
            target = base + join.inner[inner + p]
            for k in range(steps):
                add_run(run, tile, p + join.step[low + k], out, target)
    elif semiring == SUM and run <= -SHORTEST_RUN:
        for j in range(places):
            p = join.place[first + j]
            value = 0.0
            for k in range(0, steps, -run):
                value += total(SUM, -run, tile, p + join.step[low + k], 1, 0.0)
            out[base + join.inner[inner + p]] += value
    elif semiring == SUM and places >= 8:
        add_steps(places, steps, tile, join.place, first, join.step, low, sums)
        for j in range(places):
            out[at(base + join.inner[at(inner + join.place[at(first + j)])])] += sums[j]
    else:
        for j in range(places):
            p = join.place[first + j]
            target = base + join.inner[inner + p]
            out[target] = total_steps(semiring, steps, tile, p, join.step, low, out[target])


@inlined
def add_run(n: int, x: Array, here: int, y: Array, start: int) -> None:
    """y += n entries of x."""
    for i in range(n):
        y[at(start + i)] += x[at(here + i)]


@gathering
def add_steps(
    places: int, steps: int, tile: Array, place: IntArray, first: int, step: IntArray, low: int, sums: Array
) -> None:
    """sums_j = sum over steps l of tile[place_j + step_l]."""
    for j in range(places):
        sums[j] = 0.0
    for k in range(steps):
        here = step[low + k]
        for j in range(places):
            sums[j] += tile[at(here + place[at(first + j)])]


@gathering
def total_steps(semiring: int, steps: int, tile: Array, place: int, step: IntArray, low: int, value: float) -> float:
    """value (+) the sum over steps l of tile[place + step_l]."""
    if semiring == SUM:
        for k in range(steps):
            value += tile[at(place + step[at(low + k)])]
        return value
    highest = value
    for k in range(steps):
        highest = max(highest, tile[place + step[low + k]])
    if highest == -math.inf:
        return highest
    value = math.exp(value - highest)
    for k in range(steps):
        value += math.exp(tile[place + step[low + k]] - highest)
    return highest + math.log(value)


@inlined
def scale_rows(semiring: int, n_rows: int, width: int, store: Array, start: int, tile: Array) -> None:
    """tile[r, j] (x)= store[start + j]."""
    for r in range(n_rows):
        for j in range(width):
            if semiring == SUM:
                tile[at(r * width + j)] *= store[at(start + j)]
            else:
                tile[at(r * width + j)] += store[at(start + j)]
