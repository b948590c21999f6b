"""A limit on table entries that a file implies without listing them: defaults, noisy gates, deterministic nodes.

A few lines can ask for tables of any size. A file of N characters may make at most SPARE_ENTRIES +
ENTRIES_PER_CHARACTER N entries; anything beyond is refused as an error of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

SPARE_ENTRIES = 1 << 22
ENTRIES_PER_CHARACTER = 16


class EntryBudget:
    """The number of entries that a file may still make."""

    __slots__ = ("left",)

    def __init__(self, n_characters: int) -> None:
        self.left = SPARE_ENTRIES + ENTRIES_PER_CHARACTER * n_characters

    def holds(self, shape: Sequence[int]) -> bool:
        """Take the entries of a table of this shape from the budget; returns whether it may be made."""
        self.left -= prod(shape)
        return self.left >= 0
