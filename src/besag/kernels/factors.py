"""The factors of a problem as kernels read them."""

from __future__ import annotations

from typing import NamedTuple

from besag.arrays import AnyArray, Array, IntArray, Kind, freeze

TABLE, POTTS = int(Kind.TABLE), int(Kind.POTTS)  # as integers that kernels compare with


class Factors(NamedTuple):
    """All factors of a problem, flat; factors of one variable may be among them and are left out."""

    state_offsets: IntArray  # (V + 1,) states of variable v on the flat axis S
    scope_offsets: IntArray  # (F + 1,)
    scope_variables: IntArray  # (E,) in the order of the table's axes
    kinds: IntArray  # (F,) 0 a table, row-major; else structured: `besag.arrays.Kind`, and levels for entries
    table_of_factor: IntArray  # (F,)
    table_offsets: IntArray  # (T + 1,)
    log_potentials: Array  # (L,) -inf allowed, +inf and NaN not

    @classmethod
    def of(cls, *arrays: AnyArray) -> Factors:
        """The arrays in the order of the fields, read-only; copied only where they have to be."""
        return cls(*map(freeze, arrays))
