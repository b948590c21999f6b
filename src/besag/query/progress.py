"""Progress of an iterative engine, on standard error: one line that is written over on a terminal."""

from __future__ import annotations

import sys
import time

import numpy as np

from besag.infer.result import Result

SECONDS = 0.5  # between two lines


def pace(done: int, seconds: float, most: int | None = None, time_limit: float | None = None) -> str:
    """How fast it goes, and how long at most: all that are left, or the rest of the time.

    >>> pace(20, 4.0, 100, 60.0)
    ', 5 a second, at most 16 s left'
    >>> pace(20, 0.0)
    ''
    """
    if done <= 0 or seconds <= 0:
        return ""
    ends = [] if most is None else [(most - done) * seconds / done]
    ends += [] if time_limit is None else [time_limit - seconds]
    left = f", at most {max(min(ends), 0.0):.2g} s left" if ends else ""
    return f", {done / seconds:.2g} a second{left}"


class ProgressLine:
    """One line, at most twice a second, which each new one is written over."""

    def __init__(self) -> None:
        self.last, self.shown = time.perf_counter(), False

    def due(self) -> bool:
        """Whether it is time for a line."""
        return time.perf_counter() - self.last >= SECONDS

    def show(self, line: str) -> None:
        """Show a line if it is time for one."""
        if self.due():
            self.write(line)

    def write(self, line: str) -> None:
        """Show a line."""
        over = sys.stderr.isatty()
        sys.stderr.write(f"\r{line:<78}" if over else f"{line}\n")
        sys.stderr.flush()
        self.last, self.shown = time.perf_counter(), over

    def end(self) -> None:
        """Leave the line that was written over."""
        if self.shown:
            sys.stderr.write("\n")


class Progress(ProgressLine):
    """Of an engine; what it shows costs about as much as a step. most: iterations, as far as it is known."""

    def __init__(self, most: int | None = None, time_limit: float | None = None) -> None:
        super().__init__()
        self.most, self.time_limit = most, time_limit

    def __call__(self, result: Result) -> None:
        """Show how far an answer has come."""
        told = result.diagnostics
        line = f"{told['engine']}: iteration {told['iterations']}, {told['seconds']:.1f} s"
        if result.log_partitions is not None:
            line += f", log Z {float(np.sum(result.log_partitions)):.6g}"
        elif result.energies is not None and result.energy_bounds is not None:
            line += f", energy {float(result.energies[:, 0].sum()):.8g}"
            bound = float(result.energy_bounds.sum())
            line += f", at least {bound:.8g}" if np.isfinite(bound) else ""
        if told["residual"] is not None and np.isfinite(told["residual"]):
            line += f", residual {told['residual']:.2g}"
        self.write(line + pace(told["iterations"], told["seconds"], self.most, self.time_limit))
