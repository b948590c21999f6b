"""Ctrl-C while numba is at work.

numba keeps tables in the course of loading and compiling, by generators that do not survive an exception: broken off
there, it answers every later question of the process with an error of its own. So Ctrl-C waits until the kernel is
there, and comes out as what it is, a KeyboardInterrupt. A second Ctrl-C does not wait.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def delay_interrupts() -> Iterator[None]:
    """Ctrl-C waits for the end of the block. Only the main thread is told of it, so that others have nothing to do."""
    heard = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(heard):
        yield
        return
    kept: list[int] = []

    def keep(number: int, frame: Any) -> None:
        kept.append(number)
        if len(kept) > 1:
            heard(number, frame)

    signal.signal(signal.SIGINT, keep)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, heard)
        if len(kept) == 1:
            heard(kept[0], None)


def keep_interrupts(kernel: Any) -> None:
    """Let Ctrl-C wait wherever machine code of a kernel is loaded or compiled, for arguments of new types."""
    if not hasattr(kernel, "compile"):  # NUMBA_DISABLE_JIT
        return
    compile = kernel.compile

    def whole(*arguments: Any) -> Any:
        with delay_interrupts():
            return compile(*arguments)

    kernel.compile = whole
