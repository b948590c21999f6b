"""A job that runs in this process and in a second one at the same time, on a core each.

Nothing is shared but the machine: what a second core can give at most is twice the time of one job alone over the time
of both.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.suite import Job


def beside(make: Callable[..., Job], *arguments: Any) -> Job:
    """The job that `make(*arguments)` gives, twice at once; `make` is a function that a new process can import."""
    job, (own, other) = make(*arguments), sorted(os.sched_getaffinity(0))[:2]
    here, there = get_context("spawn").Pipe()
    get_context("spawn").Process(target=_serve, args=(there, other, make, arguments), daemon=True).start()
    here.recv()

    def run() -> Any:
        os.sched_setaffinity(0, {own})
        here.send("run")
        found = job.run()
        here.recv()
        return found

    return Job(run, job.summary)


def _serve(calls: Connection, core: int, make: Callable[..., Job], arguments: tuple[Any, ...]) -> None:
    """Runs the job whenever it is called, once beforehand."""
    os.sched_setaffinity(0, {core})
    job = make(*arguments)
    job.run()
    with suppress(EOFError):  # the other one has ended
        while True:
            calls.send("done")
            calls.recv()
            job.run()
