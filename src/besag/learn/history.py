"""The history of a fit: one row for each iteration, and how it ended."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from besag.arrays import Array
from besag.infer.iterate import Stopped

if TYPE_CHECKING:
    import pandas as pd


class Iteration(NamedTuple):
    """value: loss plus penalty, summed over instances; step: the length eta by which the direction was scaled."""

    iteration: int
    seconds: float
    value: float
    grad_norm: float
    step: float


OnIteration: TypeAlias = Callable[[Iteration, Array], bool | None]  # of (row, theta); True ends the fit


@dataclass(slots=True)
class History:
    """Rows so far; stopped: why the fit ended, as `besag.infer.iterate` has it.

    went_back: how many of the last rows are no iterations, but the way back to a theta that was left behind. held_out:
    the loss on held-out data at each row, where there are some. has_value: False for objectives with a gradient only,
    whose rows have nan in place of values. columns: what else is known of each row, by name.
    """

    rows: list[Iteration] = field(default_factory=list)
    stopped: Stopped | None = None
    began: float = field(default_factory=time.perf_counter)
    went_back: int = 0
    held_out: list[float] = field(default_factory=list)
    has_value: bool = True
    columns: dict[str, list[float]] = field(default_factory=dict)

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached."""
        return self.stopped == "converged"

    @property
    def n_iterations(self) -> int:
        """How many were made."""
        return self.rows[-1].iteration - self.went_back if self.rows else 0

    @property
    def seconds(self) -> float:
        """Since the fit began; what earlier parts of a resumed fit took is counted."""
        return time.perf_counter() - self.began

    @property
    def value(self) -> float:
        """The last value; nan before the first."""
        return self.rows[-1].value if self.rows else math.nan

    def add(self, value: float, grad_norm: float, step: float) -> Iteration:
        """One more row."""
        number = self.rows[-1].iteration + 1 if self.rows else 0
        row = Iteration(number, self.seconds, value, grad_norm, step)
        self.rows.append(row)
        return row

    def note(self, more: Mapping[str, float]) -> None:
        """What else is known of the last row, by column; rows of which nothing was noted have nan."""
        for name, value in more.items():
            column = self.columns.setdefault(name, [])
            column[len(self.rows) - 1 :] = []
            column += [math.nan] * (len(self.rows) - 1 - len(column)) + [value]

    def go_back(self, value: float, grad_norm: float) -> None:
        """A last row, of step 0, for a theta that was left behind."""
        self.add(value, grad_norm, 0.0)
        self.went_back += 1

    def to_frame(self) -> pd.DataFrame:
        """Columns iteration, seconds, value, grad_norm, step, held_out, and more; without those that are empty."""
        import pandas as pd

        frame = pd.DataFrame(self.rows, columns=list(Iteration._fields))
        frame = frame if self.has_value else frame.drop(columns="value")
        more = {"held_out": self.held_out} | self.columns
        padded = {name: values + [math.nan] * (len(frame) - len(values)) for name, values in more.items() if values}
        return frame.assign(**padded)
