"""Products and sums of dense tables whose scopes are nested.

Tables are flat, the variables of a scope in ascending order, the last one fastest. Many lie one after the other:

    first (n + 1,)      where the scope of each begins in `variables`
    entries (n + 1,)    where the numbers of each begin

A large table is walked from its first entry to its last, block by block, and a small one on some of its axes is read or
written alongside. Neighbouring axes that are both in the small one, or both not, are merged; if the last merged axis is
long, it is the block, along which the place in the small table

    RUN       counts up
    STILL     stays
    LISTED    is looked up in a list: the last axes are short, and several of them make a block

Sums over an axis are numbers, or, with log, logarithms of sums of exponentials.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from besag.arrays import Array, IntArray
from besag.kernels.compile import at, gathering, inlined

STILL, RUN, LISTED = 0, 1, 2
SHORT = 8  # axes with fewer entries are faster with a list
ENOUGH, MOST_LISTED = 256, 4096  # entries of a list: from ENOUGH on no axis is added
MOST_AXES = 64  # with two states each: more than any memory holds

Scopes = tuple[IntArray, IntArray, IntArray]  # first, variables, entries
Scratch = tuple[IntArray, IntArray, IntArray, IntArray]  # sizes, strides and digits of axes, the last first; offsets
Walk = tuple[int, int, int, int]  # the first axis outside the block, the number of axes, entries of the block, mode


@inlined
def scratch_of() -> Scratch:
    """Work space of a walk."""
    return (
        np.empty(MOST_AXES, np.int64),
        np.empty(MOST_AXES, np.int64),
        np.empty(MOST_AXES, np.int64),
        np.empty(MOST_LISTED, np.int64),
    )


@inlined
def walk_of(
    cards: IntArray,
    large: IntArray,
    large_start: int,
    large_stop: int,
    small: IntArray,
    small_start: int,
    small_stop: int,
    scratch: Scratch,
) -> Walk:
    """How to walk a table on the variables large[large_start:large_stop], which include those of the small one."""
    sizes, strides, digits, offsets = scratch
    n, step, s, run, n_run, alike = 0, 1, small_stop - 1, 1, 0, True
    for i in range(large_stop - 1, large_start - 1, -1):
        sizes[n], strides[n], digits[n] = cards[large[i]], 0, 0
        if s >= small_start and small[s] == large[i]:
            strides[n] = step
            step *= sizes[n]
            s -= 1
        alike = alike and (strides[n] > 0) == (strides[0] > 0)
        if alike:
            run *= sizes[n]
            n_run += 1
        n += 1
    if n_run == n or run >= SHORT:
        return 1, merge_axes(n, scratch), run, RUN if n > 0 and strides[0] > 0 else STILL
    offsets[0] = 0
    block, used = 1, 0
    while used < n and block < ENOUGH and block * sizes[used] <= MOST_LISTED:
        for k in range(1, sizes[used]):
            for i in range(block):
                offsets[k * block + i] = offsets[i] + k * strides[used]
        block *= sizes[used]
        used += 1
    return used, n, block, LISTED


@inlined
def merge_axes(n: int, scratch: Scratch) -> int:
    """Merge neighbouring axes that are both in the small table or both not; returns how many are left."""
    sizes, strides = scratch[0], scratch[1]
    kept = 0
    for a in range(1, n):
        if (strides[a] > 0) == (strides[kept] > 0):
            sizes[kept] *= sizes[a]
        else:
            kept += 1
            sizes[kept], strides[kept] = sizes[a], strides[a]
    return kept + 1


@inlined
def advance(used: int, n: int, scratch: Scratch, offset: int) -> tuple[int, int]:
    """Go to the next block: the axis that counted up, n at the end, and the place in the small table."""
    sizes, strides, digits = scratch[0], scratch[1], scratch[2]
    a = used
    while a < n:
        digits[a] += 1
        offset += strides[a]
        if digits[a] < sizes[a]:
            return a, offset
        offset -= sizes[a] * strides[a]
        digits[a] = 0
        a += 1
    return n, offset


@gathering
def scale_listed(log: int, block: int, offsets: IntArray, large: Array, place: int, small: Array, offset: int) -> None:
    """A block of the large table times listed entries of the small one."""
    for i in range(block):
        if log:
            large[at(place + i)] += small[at(offset + offsets[i])]
        else:
            large[at(place + i)] *= small[at(offset + offsets[i])]


@inlined
def scale_run(log: int, block: int, large: Array, place: int, small: Array, offset: int) -> None:
    """A block of the large table times a run of the small one."""
    for i in range(block):
        if log:
            large[at(place + i)] += small[at(offset + i)]
        else:
            large[at(place + i)] *= small[at(offset + i)]


@inlined
def scale_still(log: int, block: int, large: Array, place: int, factor: float) -> None:
    """A block of the large table times one number."""
    for i in range(block):
        if log:
            large[at(place + i)] += factor
        else:
            large[at(place + i)] *= factor


@inlined
def multiply(log: int, walk: Walk, scratch: Scratch, large: Array, place: int, small: Array, offset: int) -> None:
    """The large table, which begins at `place`, times the small one, which begins at `offset`."""
    used, n, block, mode = walk
    axis = used - 1
    while axis < n:
        if mode == RUN:
            scale_run(log, block, large, place, small, offset)
        elif mode == STILL:
            scale_still(log, block, large, place, small[offset])
        else:
            scale_listed(log, block, scratch[3], large, place, small, offset)
        place += block
        axis, offset = advance(used, n, scratch, offset)


@inlined
def add_run(block: int, large: Array, place: int, small: Array, offset: int) -> None:
    """A run of the small table plus a block of the large one."""
    for i in range(block):
        small[at(offset + i)] += large[at(place + i)]


@inlined
def total(block: int, large: Array, place: int) -> float:
    """The sum of a block."""
    answer = 0.0
    for i in range(block):
        answer += large[at(place + i)]
    return answer


@inlined
def add_up(walk: Walk, scratch: Scratch, large: Array, place: int, small: Array, offset: int) -> None:
    """The small table plus the large one, summed over the other axes."""
    used, n, block, mode = walk
    axis, offsets = used - 1, scratch[3]
    while axis < n:
        if mode == RUN:
            add_run(block, large, place, small, offset)
        elif mode == STILL:
            small[offset] += total(block, large, place)
        else:
            for i in range(block):
                small[at(offset + offsets[i])] += large[at(place + i)]
        place += block
        axis, offset = advance(used, n, scratch, offset)


@inlined
def place_in(mode: int, offsets: IntArray, offset: int, i: int) -> int:
    """Where entry i of a block is in the small table."""
    if mode == LISTED:
        return offset + offsets[i]  # type: ignore[no-any-return]
    return offset + i if mode == RUN else offset


@inlined
def log_add_up(walk: Walk, scratch: Scratch, large: Array, place: int, size: int, small: Array, offset: int) -> None:
    """The small table of this size: the logarithms of the sums of exponentials over the other axes."""
    used, n, block, mode = walk
    start, first, offsets = place, offset, scratch[3]
    highest = np.full(size, -math.inf)
    axis = used - 1
    while axis < n:
        for i in range(block):
            j = place_in(mode, offsets, offset, i) - first
            highest[j] = max(highest[j], large[place + i])
        place += block
        axis, offset = advance(used, n, scratch, offset)
    for j in range(size):
        small[first + j] = 0.0
    axis, place, offset = used - 1, start, first
    while axis < n:
        for i in range(block):
            j = place_in(mode, offsets, offset, i)
            if large[place + i] > -math.inf:
                small[j] += math.exp(large[place + i] - highest[j - first])
        place += block
        axis, offset = advance(used, n, scratch, offset)
    for j in range(size):
        small[first + j] = math.log(small[first + j]) + highest[j] if small[first + j] > 0.0 else -math.inf


@inlined
def sum_out(
    log: int, walk: Walk, scratch: Scratch, large: Array, place: int, size: int, small: Array, offset: int
) -> None:
    """The small table of this size: the sums of the large one over the other axes."""
    if log:
        log_add_up(walk, scratch, large, place, size, small, offset)
    else:
        for j in range(size):
            small[at(offset + j)] = 0.0
        add_up(walk, scratch, large, place, small, offset)


@inlined
def quotient(log: int, tiny: float, above: float, below: float) -> float:
    """above / below, and 0 where below is 0, since above is 0 there too."""
    if log:
        return above - below if below > -math.inf else -math.inf
    return above / below if below > tiny else 0.0


def make_marginal(log: int) -> Callable[..., None]:
    """Kernel: the sum of a table over the variables that are not in a scope."""

    def marginal(cards: IntArray, variables: IntArray, values: Array, scope: IntArray, out: Array) -> None:
        scratch = scratch_of()
        walk = walk_of(cards, variables, 0, len(variables), scope, 0, len(scope), scratch)
        sum_out(log, walk, scratch, values, 0, len(out), out, 0)

    return marginal


def make_marginals(log: int) -> Callable[..., None]:
    """Kernel: for scopes start to stop, the sum of table source[i] over the variables that are not in scope i."""

    def marginals(
        cards: IntArray,
        tables: Scopes,
        values: Array,
        source: IntArray,
        scopes: Scopes,
        start: int,
        stop: int,
        out: Array,
    ) -> None:
        first, variables, entries = tables
        small_first, small_variables, small_entries = scopes
        scratch = scratch_of()
        for i in range(start, stop):
            c, begin, size = source[i], small_entries[i], small_entries[i + 1] - small_entries[i]
            walk = walk_of(
                cards, variables, first[c], first[c + 1], small_variables, small_first[i], small_first[i + 1], scratch
            )
            sum_out(log, walk, scratch, values, entries[c], size, out, begin)

    return marginals


def make_conditionals(log: int) -> Callable[..., None]:
    """Kernel: divide tables start to stop, in place, each by its own marginal on a part of its variables."""

    def conditionals(
        cards: IntArray, tables: Scopes, parts: Scopes, start: int, stop: int, tiny: float, values: Array
    ) -> None:
        first, variables, entries = tables
        part_first, part_variables, part_entries = parts
        scratch = scratch_of()
        for i in range(start, stop):
            size = part_entries[i + 1] - part_entries[i]
            if part_first[i] == part_first[i + 1]:
                continue
            sums = np.empty(size, np.float64)
            walk = walk_of(
                cards, variables, first[i], first[i + 1], part_variables, part_first[i], part_first[i + 1], scratch
            )
            sum_out(log, walk, scratch, values, entries[i], size, sums, 0)
            for j in range(size):
                sums[j] = quotient(log, tiny, 0.0 if log else 1.0, sums[j])
            multiply(log, walk, scratch, values, entries[i], sums, 0)

    return conditionals
