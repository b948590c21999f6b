"""Time the contestants of a case in turns, and compare their answers."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.environments import ROOT, python_of
from benchmarks.suite import OWN, Case, Suite, Summary

ONE_THREAD = {
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


class WorkerFailure(Exception):
    """A contestant that raised an error or died."""


@dataclass
class Timing:
    """What one contestant showed on one case.

    `seconds` and `cpu_seconds` have one entry for each repeat; `summaries` has more than one only where runs differ.
    """

    contestant: str
    prepare_seconds: float | None = None
    warm_up_seconds: float | None = None
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    peak_bytes: int = 0
    python: str = ""
    packages: dict[str, str] = field(default_factory=dict)
    summaries: list[Summary] = field(default_factory=list)
    error: str | None = None

    @property
    def best(self) -> float | None:
        return min(self.seconds, default=None)

    @property
    def median(self) -> float | None:
        return statistics.median(self.seconds) if self.seconds else None


@dataclass
class CaseResult:
    """All timings of a case, and where the answers disagree."""

    case: str
    timings: list[Timing]
    disagreements: list[str]

    @property
    def complaints(self) -> list[str]:
        """Everything that makes the case a failure."""
        failed = [f"{timing.contestant} failed: {timing.error}" for timing in self.timings if timing.error is not None]
        return failed + self.disagreements

    @property
    def baseline(self) -> Timing | None:
        """The first peer."""
        return next((timing for timing in self.timings if timing.contestant != OWN), None)


class Worker:
    """The process of one contestant on one case."""

    def __init__(self, suite: Suite, path: Path, case: Case, contestant: str) -> None:
        core = max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        python = python_of(suite.environment(contestant))
        index = suite.cases.index(case)
        self.process = subprocess.Popen(
            [python, "-m", "benchmarks.worker", path, str(index), contestant, str(core)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | ONE_THREAD | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"},
        )

    def read(self) -> dict[str, Any]:
        """The next reply."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise WorkerFailure(f"the process ended with exit code {self.process.wait()}")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise WorkerFailure(reply["error"])
        return reply

    def ask(self, request: str) -> dict[str, Any]:
        """Send a request and wait for its reply."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{request}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the end of its output says more
        return self.read()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.process.kill()
        with self.process:  # closes its input, which ends it, and waits
            pass


def run_case(suite: Suite, path: Path, case: Case, contestants: Sequence[str], repeat: int) -> CaseResult:
    """Prepare and warm up each contestant, then time them in turns: a, b, c, a, b, c, ..."""
    timings = {name: Timing(name) for name in contestants}
    with ExitStack() as stack:
        workers: dict[str, Worker] = {}

        def step(name: str, number: int) -> None:
            timing = timings[name]
            if timing.error is not None:
                return
            try:
                if number == 0:
                    workers[name] = stack.enter_context(Worker(suite, path, case, name))
                    timing.prepare_seconds = workers[name].read()["prepare_seconds"]
                record(timing, workers[name].ask("run"), warm_up=number == 0)
                if number == repeat:
                    vars(timing).update(workers[name].ask("facts"))
            except WorkerFailure as failure:
                timing.error = str(failure)

        for number in range(repeat + 1):
            for name in contestants:
                step(name, number)
    return CaseResult(case.name, list(timings.values()), disagreements(list(timings.values()), case.tolerance))


def record(timing: Timing, reply: Mapping[str, Any], *, warm_up: bool) -> None:
    """Note one run."""
    if reply["summary"] not in timing.summaries:
        timing.summaries.append(reply["summary"])
    if warm_up:
        timing.warm_up_seconds = reply["seconds"]
    else:
        timing.seconds.append(reply["seconds"])
        timing.cpu_seconds.append(reply["cpu_seconds"])


def disagreements(timings: Sequence[Timing], tolerance: float) -> list[str]:
    """Numbers that differ between contestants, or between the runs of one."""
    found: list[str] = []
    first: dict[str, tuple[str, float]] = {}
    for timing in timings:
        for summary in timing.summaries:
            for key, value in summary.items():
                name, expected = first.setdefault(key, (timing.contestant, value))
                if not math.isclose(value, expected, rel_tol=tolerance, abs_tol=tolerance * 1e-3):
                    found.append(f"{key} differs: {value!r} from {timing.contestant}, {expected!r} from {name}")
    return found
