"""What a suite declares.

A file in benchmarks/suites has a `SUITE`: its cases, and for each case the contestants by name. A contestant is a
function that makes the inputs (from a fixed seed, so that all contestants get the same ones) and returns a `Job`. It
runs in the contestant's environment, so its imports are inside the function; what the file imports at its top, every
environment must have.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

SUITES = Path(__file__).parent / "suites"
OWN = "besag"  # the contestant, and the name of its environment, that is this project's own

Summary = Mapping[str, float]


class Job(NamedTuple):
    """The work to time, and a few numbers that show its result to be right.

    Where there is a `prepare`, it is called before each run, and what it returns is the argument of `run`. Neither it
    nor the summary is timed. A run is repeated until `least_seconds` have passed, as `timeit` does it: a single short
    one after a garbage collection shows how long it takes to bring the program back into the caches.
    """

    run: Callable[..., Any]
    summary: Callable[[Any], Summary]
    prepare: Callable[[], Any] | None = None
    least_seconds: float = 0.0


@dataclass(frozen=True)
class Case:
    """One row of a comparison: `contestants[name](**parameters)` is a Job.

    Speeds are relative to the fastest contestant of `baseline`, or to the first that is not besag where that is empty.
    Numbers that several contestants have in their summaries must agree to the relative tolerance. A contestant that
    has run for `patience` seconds is not run again; where its first run took that long, that one counts. One that
    takes more than `time_limit` seconds for a run or `memory_limit` bytes of addresses is stopped and reported as
    such, which is no failure. It runs on so many `cores`. `slow` cases run only when asked for.
    """

    name: str
    contestants: Mapping[str, Callable[..., Job]]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    tolerance: float = 1e-6
    baseline: tuple[str, ...] = ()
    patience: float = math.inf
    time_limit: float | None = None
    memory_limit: int | None = None
    cores: int = 1
    slow: bool = False


@dataclass(frozen=True)
class Suite:
    """Cases under one title. A contestant runs in the environment of its name, unless `environments` has another.

    Where the cases are one question about many models, `averaged` reports geometric means of the speeds. `scores` are
    numbers of the summaries that are reported too.
    """

    title: str
    cases: tuple[Case, ...]
    environments: Mapping[str, str] = field(default_factory=dict)
    averaged: bool = False
    scores: tuple[str, ...] = ()

    def environment(self, contestant: str) -> str:
        return self.environments.get(contestant, contestant)

    @property
    def peers(self) -> tuple[str, ...]:
        names = (name for case in self.cases for name in case.contestants if name != OWN)
        return tuple(dict.fromkeys(names))


def find_suites() -> dict[str, Path]:
    """The files in benchmarks/suites, by name."""
    return {path.stem: path for path in sorted(SUITES.glob("*.py"))}


def load_suite(path: Path) -> Suite:
    """The SUITE of a file."""
    spec = importlib.util.spec_from_file_location(f"benchmark_suite_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    suite = module.SUITE
    if not isinstance(suite, Suite):
        raise TypeError(f"SUITE of {path} is {type(suite).__name__}, expected benchmarks.suite.Suite")
    return suite
