"""What exact inference is for: what counts, what is fixed, which states are left, and what is to be read."""

from __future__ import annotations

from dataclasses import dataclass

from besag.arrays import BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class Purpose:
    """What a plan is for; V variables, F factors, S states."""

    used: BoolArray  # (F,) factors that count
    fixed: BoolArray  # (V,) variables whose code comes with the row
    allowed: BoolArray  # (S,) states that a variable may take
    soft: BoolArray  # (V,) variables with weights on their states in some row
    read: BoolArray  # (V,) variables whose marginals are wanted
    keep: BoolArray  # (V,) variables that are not summed out
    cells: bool = False  # whether marginals of factors are wanted
