"""Chunks of work on a pool of threads.

Kernels release the interpreter lock. The number of chunks depends on the problem and never on the number of threads, so
that answers do not depend on it either. The pool lives for one call: nothing survives a fork, nothing is shared.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def available_threads() -> int:
    """Cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # not on every platform
        return os.cpu_count() or 1


def run_chunks(function: Callable[[int], object], n_chunks: int, n_threads: int | None = None) -> None:
    """Call function(chunk) for every chunk, on at most n_threads threads (None: all cores); errors propagate."""
    n_threads = min(available_threads() if n_threads is None else n_threads, n_chunks)
    if n_threads <= 1:
        for chunk in range(n_chunks):
            function(chunk)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        futures = [pool.submit(function, chunk) for chunk in range(n_chunks)]
        try:
            for future in futures:
                future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # an error or Ctrl-C: start nothing more
            raise
