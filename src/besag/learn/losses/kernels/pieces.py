"""Every factor a piece: how often its table is read, and its entries at the labels.

R rows, V variables, F factors, T tables, L table entries
"""

from __future__ import annotations

import math
from collections.abc import Callable

from besag.arrays import Array, IntArray
from besag.kernels.factors import POTTS, TABLE, Factors


def make_counted_pieces() -> Callable[..., int]:
    """Kernel: adds weights (R, V), those of first variables, to counts (L,) and of_tables (T,), where labels are known.

    Structured factors that are not known here count in of_tables only. Returns row F + factor of a factor whose labels
    have probability zero; -1 if there is none.
    """

    def count(factors: Factors, labels: IntArray, weights: Array, counts: Array, of_tables: Array) -> int:
        state_offsets, scope_offsets = factors.state_offsets, factors.scope_offsets
        scope_variables, kinds, log_potentials = factors.scope_variables, factors.kinds, factors.log_potentials
        for r in range(len(labels)):
            row = labels[r]
            for f in range(len(kinds)):
                first, last = scope_offsets[f], scope_offsets[f + 1]
                table, weight, known = factors.table_of_factor[f], weights[r, scope_variables[first]], True
                entry, stride = factors.table_offsets[table], 1
                for e in range(last - 1, first - 1, -1):
                    v = scope_variables[e]
                    known = known and row[v] >= 0
                    entry += stride * row[v]
                    stride *= state_offsets[v + 1] - state_offsets[v]
                if not known:
                    continue
                of_tables[table] += weight
                if kinds[f] == TABLE:
                    if log_potentials[entry] == -math.inf:
                        return r * len(kinds) + f
                    counts[entry] += weight
                elif kinds[f] == POTTS and row[scope_variables[first]] != row[scope_variables[last - 1]]:
                    counts[factors.table_offsets[table]] += weight
        return -1

    return count
