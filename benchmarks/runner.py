"""Time the contestants of a case in turns, and compare their answers."""

from __future__ import annotations

import json
import math
import os
import select
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


class LimitExceeded(Exception):
    """A contestant that needs more time or memory than its case allows."""


@dataclass
class Timing:
    """What one contestant showed on one case.

    `seconds` and `cpu_seconds` have one entry for each repeat; `summaries` has more than one only where runs differ.
    `added_bytes` is the most that a run after the warm-up raised the memory of the process. `exceeded` names the limit
    that stopped it.
    """

    contestant: str
    environment: str = ""
    prepare_seconds: float | None = None
    warm_up_seconds: float | None = None
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    peak_bytes: int = 0
    added_bytes: int = 0
    python: str = ""
    packages: dict[str, str] = field(default_factory=dict)
    summaries: list[Summary] = field(default_factory=list)
    error: str | None = None
    exceeded: str | None = None

    @property
    def spent(self) -> float:
        return (self.warm_up_seconds or 0.0) + sum(self.seconds)

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
    baselines: tuple[str, ...] = ()

    @property
    def complaints(self) -> list[str]:
        """Everything that makes the case a failure."""
        failed = [f"{timing.contestant} failed: {timing.error}" for timing in self.timings if timing.error is not None]
        return failed + self.disagreements

    @property
    def baseline(self) -> Timing | None:
        """The fastest of the named contestants, or the first peer where none is named."""
        if not self.baselines:
            return next((timing for timing in self.timings if timing.contestant != OWN), None)
        named = [timing for timing in self.timings if timing.contestant in self.baselines and timing.best]
        return min(named, key=lambda timing: timing.best or math.inf, default=None)

    def speed(self, timing: Timing) -> float | None:
        """How many times faster than the baseline."""
        base = self.baseline and self.baseline.best
        return base / timing.best if base and timing.best else None


class Worker:
    """The process of one contestant on one case."""

    def __init__(self, suite: Suite, path: Path, case: Case, contestant: str) -> None:
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
        used = ",".join(map(str, cores[-case.cores :]))
        python = python_of(suite.environment(contestant))
        index = suite.cases.index(case)
        self.case = case
        self.process = subprocess.Popen(
            [python, "-m", "benchmarks.worker", path, str(index), contestant, used],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | ONE_THREAD | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"},
        )

    def read(self) -> dict[str, Any]:
        """The next reply, which must come within the case's time limit."""
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], self.case.time_limit)[0]:
            self.process.kill()
            raise LimitExceeded(f"over {self.case.time_limit:.4g} s")
        line = self.process.stdout.readline()
        if not line:
            raise WorkerFailure(f"the process ended with exit code {self.process.wait()}")
        reply: dict[str, Any] = json.loads(line)
        if self.case.memory_limit is not None and reply.get("out_of_memory"):
            raise LimitExceeded(f"over {self.case.memory_limit / 1e9:.4g} GB")
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

    def finish(self) -> dict[str, Any]:
        """The facts; then the process ends, so that its memory is there for the others."""
        facts = self.ask("facts")
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        return facts

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
    timings = {name: Timing(name, suite.environment(name)) for name in contestants}
    workers: dict[str, Worker] = {}
    with ExitStack() as stack:

        def start(name: str) -> None:
            workers[name] = stack.enter_context(Worker(suite, path, case, name))
            timings[name].prepare_seconds = workers[name].read()["prepare_seconds"]

        def turn(name: str, number: int) -> bool:
            """Whether there is another turn."""
            timing = timings[name]
            try:
                if number == 0:
                    start(name)
                record(timing, workers[name].ask("run"), case.patience)
                if number < repeat and timing.spent < case.patience:
                    return True
                vars(timing).update(workers[name].finish())
            except LimitExceeded as limit:
                timing.exceeded = str(limit)
            except WorkerFailure as failure:
                timing.error = str(failure)
            return False

        playing = list(contestants)
        for number in range(repeat + 1):
            playing = [name for name in playing if turn(name, number)]
    found = disagreements(list(timings.values()), case.tolerance)
    return CaseResult(case.name, list(timings.values()), found, case.baseline)


def record(timing: Timing, reply: Mapping[str, Any], patience: float) -> None:
    """Note one run; the first is the warm-up, and counts where there will be no other."""
    if reply["summary"] not in timing.summaries:
        timing.summaries.append(reply["summary"])
    warm_up = timing.warm_up_seconds is None
    if warm_up:
        timing.warm_up_seconds = reply["seconds"]
    if not warm_up or timing.spent >= patience:
        timing.seconds.append(reply["seconds"])
        timing.cpu_seconds.append(reply["cpu_seconds"])
        timing.added_bytes = max(timing.added_bytes, reply["added_bytes"])


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
