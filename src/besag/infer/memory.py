"""How much memory an engine may take when nobody says, and what does not fit into it.

Engines count before they work: what stays (plans, messages, the answer) and what comes and goes beside it, at its most.
Counts are in numbers of eight bytes and lie at or above what is taken, by a few per cent; kernels and Python's own
objects are not in them. Rows of evidence that do not fit side by side are done in slabs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from besag.errors import TooLargeError
from besag.graph.graph import Graph
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


def refuse(what: str, needed: float, limit: int, advice: str, *, least: float = 0) -> None:
    """TooLargeError where so many bytes are more than the limit.

    least: bytes of what was named alone. They count by themselves where all is SMALL: plans and what comes and goes are
    then less than a process takes to load a kernel.
    """
    counted = needed if needed > SMALL else least
    if counted > limit:
        raise TooLargeError(f"{what} would take {counted:.0f} bytes, more than memory_limit={limit}; {advice}")


def rows_at_once(n_rows: int, left: float, bytes_of_row: int, *, most: int, least: int = 1) -> int:
    """How many rows a slab has: as many as fit into what is left, at most `most`, and `least` in any case."""
    return int(max(least, min(most, n_rows, left // max(bytes_of_row, 1))))


def slabs(n_rows: int, size: int) -> Iterator[tuple[int, int]]:
    """(start, stop) of slabs of rows."""
    for start in range(0, n_rows, size):
        yield start, min(start + size, n_rows)


def count_linked(graph: Graph) -> int:
    """Entries of the scopes of factors of two or more variables."""
    arities = np.diff(graph.scope_offsets)
    return int(arities[arities > 1].sum())


def message_entries(graph: Graph) -> int:
    """Numbers of one message for each of them."""
    common = graph.variables.common_cardinality
    if common is not None:
        return common * count_linked(graph)
    arities = np.diff(graph.scope_offsets)
    return int(np.diff(graph.state_offsets)[graph.scope_variables[np.repeat(arities > 1, arities)]].sum())


def bytes_of_rows(problem: Problem) -> int:
    """What a batch of evidence takes, as long as it is asked about; 0 for one row, which belongs to the model."""
    evidence = problem.evidence
    weights = 0 if evidence.log_weights is None else evidence.log_weights.nbytes
    return evidence.observed.nbytes + weights if evidence.n_rows > 1 else 0


def refuse_marginals(n_rows: int, size: int, limit: int, besides: float = 0.0) -> None:
    """TooLargeError where factor marginals of so many numbers a row would not fit beside what else there is."""
    least, advice = 8 * n_rows * size, "moments are their sums and take no room"
    refuse("all factor marginals", besides + least, limit, advice, least=least)


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
