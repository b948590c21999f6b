"""Many independent draws from a Bayesian network without evidence, parents first.

Some nanoseconds a cell and a byte of memory, where the draws of a junction tree, which can heed any evidence, take ten
times as much. codes (V, N): a row a variable, as columns of a table want them.
"""

from __future__ import annotations

import numpy as np

from besag.arrays import AnyArray, Array, IntArray, Kind, concatenate, offsets_of
from besag.graph.problem import Problem
from besag.infer.memory import default_memory_limit, refuse
from besag.infer.sampling.kernels.forward import make_forward
from besag.kernels.compile import kernel_of, worth_compiling
from besag.kernels.threads import run_chunks

CHUNK = 1 << 14  # rows that a thread takes at a time
MOST_STATES = 127  # codes of a byte, as pandas keeps them


def can_go_forward(problem: Problem) -> bool:
    """Whether there is a table for each variable given its parents, no evidence, and few states."""
    graph, children = problem.graph, problem.children
    if children is None or graph.n_instances > 1 or len(children) != graph.n_variables:
        return False
    if (np.bincount(children + 1, minlength=graph.n_variables + 1) != [0] + [1] * graph.n_variables).any():
        return False
    free = (problem.evidence.observed < 0).all() and problem.evidence.log_weights is None
    few = np.diff(problem.factors.state_offsets).max() <= MOST_STATES
    return bool(free and few and (problem.kinds == Kind.TABLE).all())


def forward_codes(
    problem: Problem, n: int, key: int, n_threads: int | None = None, memory_limit: int | None = None
) -> AnyArray:
    """n draws as int8 codes (V, n); the same key gives the same ones."""
    limit = default_memory_limit() if memory_limit is None else memory_limit
    refuse(f"{n} samples", n * problem.graph.n_variables, limit, "draw fewer at a time")
    arrays = _families(problem)
    codes = np.empty((problem.graph.n_variables, n), np.int8)
    kernel = kernel_of(make_forward, compile=worth_compiling(n * problem.graph.n_variables / 4))

    def chunk(number: int) -> None:
        kernel(codes, number * CHUNK, min((number + 1) * CHUNK, n), key, *arrays)

    run_chunks(chunk, -(-n // CHUNK), n_threads)
    return codes


def _families(problem: Problem) -> tuple[AnyArray, ...]:
    """What the kernel reads: order, parents with their strides, tables as running sums, all by variable."""
    factors, children = problem.factors, problem.children
    assert children is not None
    sizes = np.diff(factors.state_offsets)
    n_parents = np.zeros(len(sizes), np.int64)
    parents: list[IntArray] = [np.zeros(0, np.int64)] * len(sizes)
    strides, tables = list(parents), [np.zeros(0)] * len(sizes)
    for f, v in enumerate(children.tolist()):
        scope = factors.scope_variables[factors.scope_offsets[f] : factors.scope_offsets[f + 1]]
        table = problem.table(f)
        p = np.exp(table)
        above = [int(u) for u in scope if u != v]
        p = np.moveaxis(p, scope.tolist().index(v), -1)
        n_parents[v], parents[v] = len(above), np.array(above, np.int64)
        strides[v] = np.array([np.prod(p.shape[i + 1 :], dtype=np.int64) for i in range(len(above))], np.int64)
        tables[v] = _running_sums(p)
    starts = offsets_of(np.array([table.size for table in tables], np.int64))
    return (
        _order(parents),
        offsets_of(n_parents),
        concatenate(parents, np.int64),
        concatenate(strides, np.int64),
        starts,
        sizes.astype(np.int64),
        concatenate(tables, np.float64),
    )


def _running_sums(p: Array) -> Array:
    """Sums of p along the last axis; 2, which no u passes, from the last state of positive probability on."""
    sums = np.cumsum(p, axis=-1) / p.sum(axis=-1, keepdims=True)
    last = p.shape[-1] - 1 - np.argmax(p[..., ::-1] > 0, axis=-1)
    return np.where(np.arange(p.shape[-1]) >= last[..., None], 2.0, sums)


def _order(parents: list[IntArray]) -> IntArray:
    """Parents before children."""
    order: list[int] = []
    placed = np.zeros(len(parents), np.bool_)
    left = list(range(len(parents)))
    while left:
        ready = [v for v in left if placed[parents[v]].all()]
        placed[ready] = True
        order += ready
        left = [v for v in left if not placed[v]]
    return np.array(order, np.int64)
