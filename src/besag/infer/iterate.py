"""Iterating: what engines and optimisers share that work in steps, and what engines do with it.

`drive` takes steps until one of them says why to stop, the time is over, or Ctrl-C comes, and says which it was:

    converged        as each of them judges for itself
    max_iterations   so many steps were taken, or as many as there are
    time_limit       so many seconds have passed since the question, as a Clock tells after each step, or within it
    interrupted      Ctrl-C, also where it came within a kernel
    no_progress      a process, or an optimiser, has found that more of the same brings nothing
    early_stopping, unbounded      of optimisers only

It has two users, whose steps differ in kind. Here, a Process is an engine at work on one problem: `iterate` drives it,
keeps the trace and shows each step to whoever watches. It has converged where the residual, how much the last step
changed, is at most `tolerance`; never where that is 0, nor where it is None, for engines that judge by other means. A
Process that has an end is `finished` there; one that gives up says in `ended` why. It has an answer wherever a step is
left. In `besag.learn.optimisers.base` a Method goes from Point to Point: a step that is broken off has not been taken,
and within an iteration only the time is looked at.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from besag.errors import CapabilityError, TooLargeError
from besag.infer.engine import OnStep, Want
from besag.infer.result import Diagnostics, Result
from besag.registry import is_number, is_whole

if TYPE_CHECKING:
    import pandas as pd

Stopped: TypeAlias = Literal[
    "converged", "max_iterations", "time_limit", "interrupted", "no_progress", "early_stopping", "unbounded"
]
SHOWN: frozenset[Want] = frozenset({"log_partition", "variables"})  # what a step shows


class Process(Protocol):
    """An engine at work on one problem."""

    def step(self) -> float:
        """Takes one step; how much it changed, inf where that is not known yet. `steps_taken`: how many, if not one."""

    def answer(self, want: frozenset[Want]) -> Result:
        """The answer as it stands, without diagnostics; its `state` continues the work where it is given as `warm`."""

    def details(self) -> Mapping[str, Any]:
        """What diagnostics are to say besides engine, converged, iterations, seconds, residual, stopped and rows."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop; see the module."""

    max_iterations: int
    tolerance: float | None
    time_limit: float | None = None

    def __post_init__(self) -> None:
        if not is_whole(self.max_iterations) or self.max_iterations < 1:
            raise CapabilityError(f"max_iterations must be a whole number of at least 1, got {self.max_iterations!r}")
        if self.tolerance is not None and not (is_number(self.tolerance) and 0 <= self.tolerance < math.inf):
            raise CapabilityError(f"tolerance must be a number from 0 on, got {self.tolerance!r}")


GRACE = 1.0  # seconds by which a limit may be missed

Look: TypeAlias = Callable[[], None]  # called within a step, to end it by an exception


def no_look() -> None:
    """For work that has all the time there is."""


class OutOfTime(Exception):
    """The time of a question is over, in the middle of a step."""


class Clock:
    """The time that a question has, from `began` on; now: what tells the time."""

    def __init__(
        self, limit: float | None = None, began: float | None = None, now: Callable[[], float] | None = None
    ) -> None:
        self.now = time.perf_counter if now is None else now
        self.began = self.now() if began is None else began
        self.end = math.inf if limit is None else self.began + limit

    @property
    def left(self) -> float:
        """Seconds; inf where there is no limit."""
        return self.end - self.now() if self.end < math.inf else math.inf

    @property
    def seconds(self) -> float:
        """Since the question."""
        return self.now() - self.began

    def look(self) -> None:
        """OutOfTime where nothing is left."""
        if self.left <= 0:
            raise OutOfTime


def refuse_late(what: str, seconds: float, clock: Clock) -> None:
    """TooLargeError where a beginning of so many seconds, which cannot be cut short, would miss a limit by one."""
    if seconds > clock.left + GRACE:
        raise TooLargeError(
            f"{what}: starting takes about {seconds:.1f} s on a graph of this size, but time_limit leaves "
            f"{max(clock.left, 0.0):.2g} s; give it more time, or take bp or naive mean_field",
            seconds=seconds,
        )


class TraceRow(NamedTuple):
    """One iteration: value is log Z as it stands, summed over rows; bound is on the same; nan where there is none.

    Where a labelling is sought, value is its energy, and bound a lower bound on the least one.
    """

    iteration: int
    seconds: float
    value: float
    bound: float
    residual: float


class Trace(NamedTuple):
    """The rows of r.trace: the first n of a list that later steps, whose Results share it, may have made longer."""

    rows: list[TraceRow]
    n: int

    def with_bound(self, bound: float) -> Trace:
        """The same rows with a bound that has another source."""
        return Trace([row._replace(bound=bound) for row in self.rows[: self.n]], self.n)

    def to_frame(self) -> pd.DataFrame:
        """Columns iteration, seconds, value, bound, residual."""
        import pandas as pd

        return pd.DataFrame(self.rows[: self.n], columns=list(TraceRow._fields))


def is_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C was pressed; within the call of a kernel, numba makes SystemErrors of it, one of another."""
    while isinstance(error, SystemError):
        error = error.__cause__ or error.__context__
    return isinstance(error, KeyboardInterrupt)


@contextmanager
def clear_interrupts() -> Iterator[None]:
    """Ctrl-C comes out of the block as what it is.

    No function is decorated with this: frames of contextlib would hide from warnings where the user's own code is.
    """
    try:
        yield
    except SystemError as error:
        if is_interrupt(error):
            raise KeyboardInterrupt from error
        raise


def drive(advance: Callable[[], Stopped | None]) -> Stopped:
    """Takes steps until one of them says why to stop; why it was, see the module."""
    try:
        with clear_interrupts():
            while (stopped := advance()) is None:
                pass
            return stopped
    except OutOfTime:
        return "time_limit"
    except KeyboardInterrupt:
        return "interrupted"


class Course:
    """How far a Process has come: steps taken, time, residual."""

    def __init__(self, engine: str, process: Process, limits: Limits, began: float, *, traced: bool) -> None:
        self.engine, self.process, self.limits = engine, process, limits
        self.clock, self.iterations, self.residual = Clock(limits.time_limit, began), 0, math.inf
        self.stopped: Stopped | None = None
        self.trace: list[TraceRow] | None = [] if traced else None

    def advance(self) -> None:
        """One step, and whether it was the last."""
        self.residual = self.process.step()
        self.iterations += getattr(self.process, "steps_taken", 1)
        if self.limits.tolerance and self.residual <= self.limits.tolerance:
            self.stopped = "converged"
        elif self.iterations >= self.limits.max_iterations or getattr(self.process, "finished", False):
            self.stopped = "max_iterations"
        elif self.clock.left <= 0:
            self.stopped = "time_limit"
        else:
            self.stopped = getattr(self.process, "ended", None)

    def show(self, want: frozenset[Want] = SHOWN) -> Result:
        """The answer as it stands, for people who watch; also noted in the trace."""
        result = self.process.answer(want)
        if self.trace is not None:
            self.trace.append(TraceRow(self.iterations, self.clock.seconds, *_worth(result), self.residual))
        return self.tell(result)

    def tell(self, result: Result) -> Result:
        """An answer with its diagnostics and the trace so far."""
        diagnostics = Diagnostics(
            engine=self.engine,
            converged=self.stopped == "converged",
            iterations=self.iterations,
            seconds=self.clock.seconds,
            residual=self.residual,
            tolerance=self.limits.tolerance,
            stopped=self.stopped,
            rows=_count_rows(result),
            **self.process.details(),
        )
        trace = None if self.trace is None else Trace(self.trace, len(self.trace))
        return replace(result, diagnostics=diagnostics, trace_log=trace)


def _worth(result: Result) -> tuple[float, float]:
    """Value and bound of a row of a trace."""
    if result.log_partitions is not None:
        value = float(result.log_partitions.sum())
        return value, value if result.bound in ("lower", "upper", "exact") else math.nan
    if result.energies is not None and result.energy_bounds is not None:
        return float(result.energies[:, 0].sum()), float(result.energy_bounds.sum())
    return math.nan, math.nan


def _count_rows(result: Result) -> int:
    values = result.energies if result.log_partitions is None else result.log_partitions
    return 1 if values is None else len(values)


def iterate(
    engine: str, process: Process, want: frozenset[Want], limits: Limits, began: float, on_step: OnStep | None = None
) -> Result:
    """The answer of a process when it has converged or a limit is reached; `began` is time.perf_counter() of then."""
    course = Course(engine, process, limits, began, traced="trace" in want)
    due = getattr(on_step, "due", _always)

    def advance() -> Stopped | None:
        course.advance()
        watched = on_step is not None and due()
        if watched or course.trace is not None:
            result = course.show()
            if watched and on_step is not None:
                on_step(result)
        return course.stopped

    course.stopped = drive(advance)
    return course.tell(process.answer(want))


def each_step(engine: str, process: Process, want: frozenset[Want], limits: Limits, began: float) -> Iterator[Result]:
    """A Result for each step, with messages where they are wanted, the last one as `iterate` would give it."""
    course = Course(engine, process, limits, began, traced=True)
    while course.stopped is None:
        try:
            with clear_interrupts():
                course.advance()
        except OutOfTime:
            course.stopped = "time_limit"
            break
        result = course.show(SHOWN | (want & {"messages"}))
        if course.stopped is None:
            yield result
    yield course.tell(process.answer(want | SHOWN))


def _always() -> bool:
    return True


def warm_state(engine: str, warm: Result | None, like: Mapping[str, tuple[int, ...]]) -> Mapping[str, Any] | None:
    """The state that a Result was left in by the same engine on a problem of the same shapes; None where there is none.

    like: the shape of each array of the state.
    """
    if warm is None:
        return None
    state = warm.state
    if state is None or state.get("engine") != engine:
        raise CapabilityError(f"init must be a Result of engine {engine!r}, got one of {warm.diagnostics['engine']!r}")
    for name, shape in like.items():
        if np.shape(state[name]) != shape:
            raise CapabilityError(
                f"init is of another model or another number of rows: its {name} have shape {np.shape(state[name])}, "
                f"expected {shape}"
            )
    return dict(state)
