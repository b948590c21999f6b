"""Ctrl-C while numba loads or compiles a kernel.

numba's internal state does not survive an exception while it loads or compiles: if interrupted there, it fails at every
later call of the process. So Ctrl-C waits until the kernel is ready, and is then raised as KeyboardInterrupt. A second
Ctrl-C does not wait.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def delay_interrupts() -> Iterator[None]:
    """Delay Ctrl-C to the end of the block. Only the main thread receives it, so this does nothing in others."""
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
    """Delay Ctrl-C whenever machine code of a kernel is loaded or compiled for arguments of new types."""
    if not hasattr(kernel, "compile"):  # NUMBA_DISABLE_JIT
        return
    compile = kernel.compile

    def whole(*arguments: Any) -> Any:
        with delay_interrupts():
            return compile(*arguments)

    kernel.compile = whole
