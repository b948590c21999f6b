"""The order of a sweep of coordinate ascent: colour by colour, in chunks for threads.

`order` has the variables by colour. Next to each stand the factors that tell it something, and on which axis of their
tables it is. A stage is what must be done before the next one starts: one colour, whose chunks may run side by side, or
several small colours one after the other in a single chunk. Stages and chunks depend on the problem only, and within a
chunk variables go in the order of `order`: the sweep is the same on any number of threads.

    V variables, F factors, I = (variable, factor) pairs of the factors in use, H chunks
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from besag.arrays import BoolArray, IntArray, freeze, offsets_of
from besag.kernels.factors import TABLE, Factors

CHUNK_WORK = 1 << 19  # table entries: a task of less costs more than it gives
MAX_CHUNKS = 16  # of a colour
VARIABLE_WORK = 8  # what a variable costs beside its tables, in entries


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Schedule:
    """See the module; positions count along `order`."""

    order: IntArray  # (V,)
    first: IntArray  # (V + 1,) pairs of position i are first[i] to first[i + 1]
    factor: IntArray  # (I,)
    axis: IntArray  # (I,)
    chunks: IntArray  # (H + 1,) into order
    stages: tuple[tuple[int, int], ...]  # chunks of each stage, first and one past the last
    work: int  # table entries of a sweep


def make_schedule(factors: Factors, colours: IntArray, used: BoolArray, *, merged: bool = True) -> Schedule:
    """The schedule of variables of colours (V,) and used factors (F,), all of two or more variables.

    merged: small colours may share a stage.
    """
    order = np.argsort(colours, kind="stable")
    arities = np.diff(factors.scope_offsets)
    factor = np.repeat(np.arange(len(arities)), arities)
    axis = np.arange(len(factor)) - np.repeat(factors.scope_offsets[:-1], arities)
    kept = used[factor]
    variable, factor, axis = factors.scope_variables[kept], factor[kept], axis[kept]
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    by_position = np.argsort(position[variable], kind="stable")
    n_pairs = np.bincount(variable, minlength=len(order))[order]
    entries = _entries(factors)[factor[by_position]]
    first = offsets_of(n_pairs)
    work = np.diff(np.concatenate([[0], np.cumsum(entries)])[first]) + VARIABLE_WORK
    chunks, stages = _stages(colours[order], np.cumsum(work), merged)
    return Schedule(
        order=freeze(order),
        first=freeze(first),
        factor=freeze(factor[by_position]),
        axis=freeze(axis[by_position]),
        chunks=freeze(chunks),
        stages=stages,
        work=int(work.sum()),
    )


def _entries(factors: Factors) -> IntArray:
    """(F,): what it takes to read a factor; one row of the table where it is a formula."""
    sizes = np.diff(factors.table_offsets)[factors.table_of_factor]
    cardinalities = np.diff(factors.state_offsets)
    last = factors.scope_variables[np.maximum(factors.scope_offsets[1:] - 1, 0)] if len(sizes) else sizes
    return np.where(factors.kinds == TABLE, sizes, cardinalities[last]) if len(sizes) else sizes


def _stages(colours: IntArray, work: IntArray, merged: bool) -> tuple[IntArray, tuple[tuple[int, int], ...]]:
    """Chunks, as offsets into the order, and the chunks of each stage, from colours in order and work summed up."""
    ends = np.append(np.flatnonzero(np.diff(colours)) + 1, len(colours)).tolist() if len(colours) else []
    chunks, stages, start, open_stage = [0], list[tuple[int, int]](), 0, False
    for end in ends:
        before = int(work[start - 1]) if start else 0
        n_chunks = min(max(1, (int(work[end - 1]) - before) // CHUNK_WORK), MAX_CHUNKS, end - start)
        if n_chunks == 1 and open_stage and merged:
            chunks[-1] = end
        else:
            share = before + (int(work[end - 1]) - before) * np.arange(1, n_chunks) / n_chunks
            inner = start + 1 + np.searchsorted(work[start:end], share)
            cuts = np.unique(np.clip(inner, start + 1, end - 1)).tolist() if n_chunks > 1 else []
            stages.append((len(chunks) - 1, len(chunks) + len(cuts)))
            chunks += [*cuts, end]
        open_stage = n_chunks == 1
        start = end
    return np.array(chunks, np.int64), tuple(stages)
