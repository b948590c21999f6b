"""Progress of a fit, on standard error: one line that is written over on a terminal, at most two in a second."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from besag.arrays import Array
from besag.learn.history import Iteration, OnIteration
from besag.query.progress import Progress, pace


class FitProgress(Progress):
    """What `on_step` of a fit is given; the user's own `on_step` is called at each iteration too."""

    def __init__(
        self, who: str, on_step: OnIteration | None = None, most: int | None = None, time_limit: float | None = None
    ) -> None:
        super().__init__(most, time_limit)
        self.who, self.on_step = who, on_step
        self.untold: Iteration | None = None

    def told(self, row: Iteration, theta: Array) -> bool:
        """Show an iteration where it is time for one; True where the user's own function ends the fit."""
        self.untold = row
        if self.due():
            self._tell(row)
        return bool(self.on_step(row, theta)) if self.on_step is not None else False

    def end(self) -> None:
        """Show the last iteration."""
        if self.untold is not None:
            self._tell(self.untold)
        super().end()

    def _tell(self, row: Iteration) -> None:
        value = "" if math.isnan(row.value) else f", value {row.value:.6g}"
        rate = pace(row.iteration, row.seconds, self.most, self.time_limit)
        self.write(
            f"{self.who}: iteration {row.iteration}, {row.seconds:.1f} s{value}, gradient {row.grad_norm:.2g}{rate}"
        )
        self.untold = None


@contextmanager
def ended(progress: Progress | None) -> Iterator[None]:
    """Leaves the line of a progress at the end, however it came."""
    try:
        yield
    finally:
        if progress is not None:
            progress.end()
