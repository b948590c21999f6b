"""One contestant on one case, in its own process: `python -m benchmarks.worker FILE CASE CONTESTANT CORE`.

Speaks JSON lines. It begins with {"prepare_seconds"}, once the inputs are there. To each line "run" on its input it
answers {"seconds", "cpu_seconds", "summary"}, to "facts" {"python", "packages", "peak_bytes"}. Where it fails it
answers {"error", "out_of_memory"} and ends. Whatever the contestant prints goes to stderr.
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
    yield {"prepare_seconds": time.perf_counter() - start}
    for line in sys.stdin:
        yield run(job) if line.strip() == "run" else facts()


def run(job: Job) -> dict[str, Any]:
    """Time the job once, by the clock and in CPU time."""
    prepared = () if job.prepare is None else (job.prepare(),)
    gc.collect()
    gc.disable()
    cpu, start = time.process_time(), time.perf_counter()
    result = job.run(*prepared)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    gc.enable()
    summary = {key: float(value) for key, value in job.summary(result).items()}
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "summary": summary}


def out_of_memory(error: Exception) -> bool:
    """Whether memory was refused, to Python or to the C++ below it."""
    return isinstance(error, MemoryError) or "bad_alloc" in str(error)


def facts() -> dict[str, Any]:
    """The Python, the packages loaded, and the peak memory of this process."""
    unit = 1 if sys.platform == "darwin" else 1024
    installed = {item.name: item.version for item in importlib.metadata.distributions()}
    owners = importlib.metadata.packages_distributions()
    loaded = {name for module in sys.modules for name in (module, *owners.get(module, ()))}
    return {
        "python": platform.python_version(),
        "packages": {name: installed[name] for name in sorted(loaded & set(installed), key=str.lower)},
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
