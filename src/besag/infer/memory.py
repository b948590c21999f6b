"""How much memory an engine may take when nobody says, and what does not fit into it."""

from __future__ import annotations

import os
from pathlib import Path

from besag.errors import TooLargeError
from besag.graph.problem import Problem

FRACTION = 0.5
SMALL = 2**24  # bytes that any machine has
BYTES_PER_CODE = 24  # of a sample: the code, and what it is made from


def default_memory_limit() -> int:
    """Half of the memory that is free now, in bytes; 2 GiB where the system does not tell."""
    try:
        with Path("/proc/meminfo").open() as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(FRACTION * 1024 * int(line.split()[1]))
    except OSError:
        pass
    try:
        return int(FRACTION * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (ValueError, OSError, AttributeError):
        return 2**31


def refuse_samples(problem: Problem, n_samples: int, memory_limit: int | None) -> None:
    """TooLargeError where so many samples of each row would not fit."""
    needed = BYTES_PER_CODE * problem.evidence.n_rows * n_samples * problem.graph.n_variables
    if needed <= SMALL and memory_limit is None:
        return
    limit = default_memory_limit() if memory_limit is None else memory_limit
    if needed > limit:
        raise TooLargeError(
            f"{n_samples} samples of {problem.graph.n_variables} variables would take {needed} bytes, more than "
            f"memory_limit={limit}; draw fewer at a time, with another seed each"
        )
