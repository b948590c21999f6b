"""Chunks of work on several threads.

Kernels release the GIL. The number of chunks depends on the problem and never on the number of threads, so that answers
do not depend on it either. The caller's thread works too; the others live for one call, so that nothing has to survive
a fork or be shared between calls. Each begins with its own share of neighbouring chunks, the same from call to call,
because they are in its cache, and then takes chunks that others have left.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import copy_context
from itertools import pairwise


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
    bounds = [n_chunks * i // n_threads for i in range(n_threads + 1)]
    shares = [deque(range(start, stop)) for start, stop in pairwise(bounds)]
    errors = list[tuple[int, BaseException]]()

    def work(own: int) -> None:
        chunk = -1
        try:
            for chunk in _own_then_others(shares, own):
                function(chunk)
        except BaseException as error:  # including Ctrl-C: start no more chunks
            errors.append((chunk, error))
            _clear(shares)

    helpers = list[threading.Thread]()
    try:
        for i in range(1, n_threads):
            helper = threading.Thread(target=copy_context().run, args=(work, i), daemon=True)
            helper.start()
            helpers.append(helper)
    except RuntimeError:  # the system gives no more threads
        pass
    except BaseException as error:
        errors.append((-1, error))
        _clear(shares)
    work(0)
    while helpers:  # the arrays they write to must not be released before they are done, whatever is raised meanwhile
        try:
            helpers[-1].join()
            helpers.pop()
        except KeyboardInterrupt as error:
            errors.append((-1, error))
            _clear(shares)
    if errors:
        raise min(errors, key=lambda found: found[0])[1]


def _clear(shares: list[deque[int]]) -> None:
    for share in shares:
        share.clear()


def _own_then_others(shares: list[deque[int]], own: int) -> Iterator[int]:
    """The chunks of a share from its start, then those left in the other shares from their ends."""
    for i in range(len(shares)):
        share = shares[(own + i) % len(shares)]
        while True:
            try:
                yield share.pop() if i else share.popleft()
            except IndexError:
                break
