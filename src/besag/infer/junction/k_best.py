"""The k labellings of least energy of a junction tree, for each row or for each instance of a union.

codes (B, k, V), energies (B, k) or (N, k), best first; if there are fewer labellings of finite energy, energies end in
+inf. The kernel's weights are sums of differences and round; the energies are the model's own, and decide the order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from besag.arrays import Array, IntArray, Semiring, freeze, offsets_of
from besag.graph.problem import Problem
from besag.infer.brute import most_labellings
from besag.infer.junction.evidence_rows import Bound, GivenRows
from besag.infer.junction.kernels.k_best import Search, make_k_best
from besag.infer.junction.kernels.rows import RowWork
from besag.infer.junction.numbers import CliqueNumbers
from besag.infer.junction.plan import CliquePlan
from besag.kernels.compile import kernel_of, worth_compiling

if TYPE_CHECKING:
    from besag.infer.junction.run import JunctionRun


def find_k_best(run: JunctionRun, plan: CliquePlan, k: int) -> tuple[IntArray, Array]:
    """Codes and energies of the k best labellings, or of all if there are fewer."""
    graph = run.graph
    k = int(min(k, most_labellings(graph)))
    run.refuse_labellings(k, graph.n_variables + len(plan.join.parent))
    compile = worth_compiling(plan.sketch.entries.sum() * run.problem.evidence.n_rows * (1 + k))
    numbers = run.numbers(plan, Semiring.MAX)
    labels, possible = [], []
    for start, stop in run.slabs(k * (graph.n_variables + len(plan.join.parent))):
        given = run.evidence_rows(start, stop)
        weights, found = k_best(numbers, given, k, n_threads=run.n_threads, compile=compile)
        labels.append(found)
        possible.append((weights[0] if graph.n_instances > 1 else weights[:, 0]) > -np.inf)
    codes = np.concatenate(labels)
    energies = np.where(np.concatenate(possible), _energies(run.given, codes), np.inf)
    order = np.argsort(energies, axis=1, kind="stable")
    if graph.n_instances > 1:
        rank = np.repeat(order, np.diff(graph.instance_offsets), axis=0).T[None]
    else:
        rank = order[:, :, None]
    return np.take_along_axis(codes, rank, axis=1), np.take_along_axis(energies, order, axis=1)


def _energies(problem: Problem, codes: IntArray) -> Array:
    """(B, k), or (N, k) for a union."""
    if problem.graph.n_instances > 1:
        return np.stack([problem.energy(labels) for labels in codes[0]], axis=1)
    if len(codes) == 1:
        return problem.energy(codes[0])[None]
    return np.stack([problem.energy(codes[:, i]) for i in range(codes.shape[1])], axis=1)


def k_best(
    numbers: CliqueNumbers, given: GivenRows, k: int, *, n_threads: int | None = None, compile: bool = True
) -> tuple[Array, IntArray]:
    """Logarithms of the k largest weights (R, G, k), -inf where there are fewer labellings, and codes (R, k, V).

    numbers: in MAX.
    """
    bound, n_groups = Bound(numbers, given), numbers.groups.n
    n_rows, n = given.observed.shape
    groups = numbers.group_of_clique[::-1]
    cliques = freeze((len(groups) - 1 - np.argsort(groups, kind="stable")).astype(np.int64))
    sizes = np.bincount(groups, minlength=n_groups)
    offsets, longest = freeze(offsets_of(sizes)), int(sizes.max(initial=0))
    values, digits = np.full((n_rows, n_groups, k), -np.inf), np.zeros((n_rows, k, n), np.int64)
    kernel = kernel_of(make_k_best, compile=compile)

    def rows(work: RowWork, first: int, last: int) -> bool:
        places, origin, start = (np.empty(k, np.int64) for _ in range(3))
        search = Search(np.empty((k, longest)), np.empty(k), places, origin, start, np.empty(bound.numbers.longest))
        tree = (numbers.plan.join, numbers.walk, bound.rows, work)
        kernel(*tree, first, last, cliques, offsets, search, bound.log_z, values, digits)
        return False

    bound.run(rows, n_threads)
    return values, bound.codes_of(digits)
