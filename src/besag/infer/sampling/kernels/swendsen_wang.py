"""The sampler of Swendsen and Wang (Physical Review Letters 58, 1987): clusters of agreeing neighbours move at once.

For factors exp(c [y_u = y_v]) with c >= 0, and factors of one variable:

    bonds    neighbours that agree are bonded with probability 1 - exp(-c)
    labels   each cluster of bonded variables takes the state k with probability proportional to
             exp(sum over its variables of base[v, k])

The second distribution, given the bonds, is the Rao-Blackwellised conditional of every variable of the cluster. The
score of a sweep is the sum of c over the edges that agreed before it.

    U units = R rows x C chains; M edges, ends (M, 2), coupling (M,) which may be +inf; base (R, S), states (U, V)
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from besag.arrays import Array, IntArray
from besag.infer.sampling.kernels.single_site import weigh
from besag.kernels.incidence import root_of
from besag.kernels.random import pick, stream, uniform

LARGE = 1e6  # stands for an infinite coupling in a score


def make_clusters() -> Callable[..., None]:
    """Kernel: one step of units [first_unit, last_unit); arguments as in `single_site`."""

    def clusters(
        state_offsets: IntArray,
        ends: IntArray,
        coupling: Array,
        base: Array,
        n_chains: int,
        first_unit: int,
        last_unit: int,
        key: int,
        states: IntArray,
        keep: bool,
        sums: Array,
        scores: Array,
    ) -> None:
        n_variables = len(state_offsets) - 1
        most = 1
        for v in range(n_variables):
            most = max(most, state_offsets[v + 1] - state_offsets[v])
        parent, logits = np.empty(n_variables, np.int64), np.empty((n_variables, most))
        label, total = np.empty(n_variables, np.int64), np.empty(n_variables)
        for u in range(first_unit, last_unit):
            mine, row = states[u], base[u // n_chains]
            bond_seed, label_seed, score = stream(key, u, 0), stream(key, u, 1), 0.0
            for v in range(n_variables):
                parent[v] = v
                for k in range(most):
                    logits[v, k] = 0.0
            for m in range(len(coupling)):
                a, b = ends[m, 0], ends[m, 1]
                if mine[a] == mine[b]:
                    score += min(coupling[m], LARGE)
                    if uniform(bond_seed, m) >= math.exp(-coupling[m]):
                        parent[root_of(parent, a)] = root_of(parent, b)
            for v in range(n_variables):
                r = root_of(parent, v)
                for k in range(state_offsets[v + 1] - state_offsets[v]):
                    logits[r, k] += row[state_offsets[v] + k]
            for v in range(n_variables):
                if parent[v] == v:
                    n = state_offsets[v + 1] - state_offsets[v]
                    total[v] = weigh(logits[v], n)
                    label[v] = pick(logits[v], n, uniform(label_seed, v) * total[v])
            for v in range(n_variables):
                r = root_of(parent, v)
                mine[v] = label[r]
                if keep and total[r] > 0.0:
                    for k in range(state_offsets[v + 1] - state_offsets[v]):
                        sums[u, state_offsets[v] + k] += logits[r, k] / total[r]
            scores[u, 0] = score

    return clusters
