"""How much memory an engine may take when nobody says."""

from __future__ import annotations

import os
from pathlib import Path

FRACTION = 0.5


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
