"""One contestant on one case, in its own process: `python -m benchmarks.worker FILE CASE CONTESTANT CORE`.

Speaks JSON lines. It begins with {"prepare_seconds"}, once the inputs are there. To each line "run" on its input it
answers {"seconds", "cpu_seconds", "added_bytes", "summary"}, to "facts" {"python", "packages", "peak_bytes"}. Where it
fails it answers {"error", "out_of_memory"} and ends. Whatever the contestant prints goes to stderr.
"""

from __future__ import annotations

import gc
import importlib.metadata
import json
import os
import platform
import resource
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.suite import Job, load_suite


def main(arguments: list[str]) -> int:
    """Serve requests until the input ends."""
    path, case, contestant, cores = arguments
    with os.fdopen(os.dup(1), "w", buffering=1) as channel:
        os.dup2(2, 1)
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
        try:
            for reply in serve(Path(path), int(case), contestant):
                print(json.dumps(reply), file=channel)
        except Exception as error:
            traceback.print_exc()
            reply = {"error": f"{type(error).__name__}: {error}", "out_of_memory": out_of_memory(error)}
            print(json.dumps(reply), file=channel)
            return 1
    return 0


def serve(path: Path, case: int, contestant: str) -> Iterator[dict[str, Any]]:
    """Prepare the job, then answer the lines of stdin."""
    start = time.perf_counter()
    selected = load_suite(path).cases[case]
    if selected.memory_limit is not None:
        resource.setrlimit(resource.RLIMIT_AS, (selected.memory_limit, resource.RLIM_INFINITY))
    job = selected.contestants[contestant](**selected.parameters)
    memory = Memory()
    yield {"prepare_seconds": time.perf_counter() - start}
    for line in sys.stdin:
        yield run(job, memory) if line.strip() == "run" else facts(memory)


def run(job: Job, memory: Memory) -> dict[str, Any]:
    """Time the job, by the clock and in CPU time, and see how far it raises the memory of the process.

    It is run again until its least seconds have passed, and the mean is taken. Memory is that of the first run.
    """
    prepared = prepare(job)
    gc.collect()
    gc.disable()
    before = memory.begin()
    result, seconds, cpu_seconds = once(job, prepared)
    added = memory.peak_since() - before if before else 0
    n = 1
    while seconds < job.least_seconds:
        prepared, result = prepare(job), None  # what the last answer holds is taken down before the clock runs
        result, again, cpu_again = once(job, prepared)
        seconds, cpu_seconds, n = seconds + again, cpu_seconds + cpu_again, n + 1
    gc.enable()
    summary = {key: float(value) for key, value in job.summary(result).items()}
    return {"seconds": seconds / n, "cpu_seconds": cpu_seconds / n, "added_bytes": added, "summary": summary}


def prepare(job: Job) -> tuple[Any, ...]:
    """What the job is run on."""
    return () if job.prepare is None else (job.prepare(),)


def once(job: Job, prepared: tuple[Any, ...]) -> tuple[Any, float, float]:
    """The answer of the job, and how long it took by the clock and in CPU time."""
    cpu, start = time.process_time(), time.perf_counter()
    result = job.run(*prepared)
    return result, time.perf_counter() - start, time.process_time() - cpu


STATUS = Path("/proc/self/status")


class Memory:
    """The memory of this process as the system sees it, in bytes: its peak, and what a run adds."""

    def __init__(self) -> None:
        self.earlier_peak = 0

    def begin(self) -> int:
        """What is taken now; Linux counts its peak from here. 0 elsewhere."""
        if not STATUS.exists():
            return 0
        self.earlier_peak = self.peak()
        Path("/proc/self/clear_refs").write_text("5")
        return told_by_linux("VmRSS")

    def peak(self) -> int:
        """The most that was taken so far."""
        return max(self.earlier_peak, self.peak_since())

    def peak_since(self) -> int:
        """The most that was taken since `begin`."""
        if STATUS.exists():  # getrusage includes what the process that started this one took
            return told_by_linux("VmHWM")
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def told_by_linux(field: str) -> int:
    """A size among what Linux tells about this process, in bytes."""
    lines = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
    return 1024 * int(lines[field].split()[0])


def out_of_memory(error: Exception) -> bool:
    """Whether memory was refused, to Python or to the C++ below it."""
    return isinstance(error, MemoryError) or "bad_alloc" in str(error)


def facts(memory: Memory) -> dict[str, Any]:
    """The Python, the packages loaded, and the peak memory of this process."""
    installed = {item.name: item.version for item in importlib.metadata.distributions()}
    owners = importlib.metadata.packages_distributions()
    loaded = {name for module in sys.modules for name in (module, *owners.get(module, ()))}
    return {
        "python": platform.python_version(),
        "packages": {name: installed[name] for name in sorted(loaded & set(installed), key=str.lower)},
        "peak_bytes": memory.peak(),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
