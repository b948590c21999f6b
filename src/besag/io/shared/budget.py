"""How many table entries a file may make that it does not spell out: defaults, noisy gates, deterministic nodes.

A few lines can ask for tables of any size. What a file of N characters may make is bounded by SPARE_ENTRIES +
ENTRIES_PER_CHARACTER N; all beyond is too much to be meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

SPARE_ENTRIES = 1 << 22
ENTRIES_PER_CHARACTER = 16


class EntryBudget:
    """The entries that are left."""

    __slots__ = ("left",)

    def __init__(self, n_characters: int) -> None:
        self.left = SPARE_ENTRIES + ENTRIES_PER_CHARACTER * n_characters

    def holds(self, shape: Sequence[int]) -> bool:
        """Whether a table of this shape may be made, which takes its room."""
        self.left -= prod(shape)
        return self.left >= 0
