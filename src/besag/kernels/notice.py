"""Tells who waits that kernels are being compiled.

Compiling takes a kernel from a tenth of a second to many seconds, once on a machine, and nothing is seen of it. So the
logger "besag" says at level WARNING, which Python shows on stderr of scripts and notebooks unless somebody has set up
logging, what is compiled and about how long that takes, when it has taken `after` seconds in all; and how long it took,
when no kernel has been compiled for `pause` seconds, or the process ends. Then it begins anew: later kernels that take
as long are told of by two lines of their own. Of kernels that come from the cache on disk nothing is said.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

LOG = logging.getLogger("besag")
AFTER, PAUSE = 2.0, 1.0

# Seconds that all kernels of a first question take which come from a room, on one core, as measured; others take less.
SECONDS = {
    "infer/bounds": 10,
    "infer/bp": 10,
    "infer/join_graph": 30,
    "infer/junction": 25,
    "infer/map": 15,
    "infer/mean_field": 10,
    "infer/orders": 10,
    "infer/trees": 15,
    "infer/trw": 10,
}
OTHERS = 5


class Notice:
    """What compiling has taken so far, and what was said of it. clock and timer: those of Python, or a test's."""

    def __init__(
        self,
        *,
        told: bool = False,
        clock: Callable[[], float] = time.perf_counter,
        timer: Callable[[float, Callable[[], None]], threading.Timer] = threading.Timer,
    ) -> None:
        self.after, self.pause, self.told = AFTER, PAUSE, told
        self._clock, self._timer, self._lock = clock, timer, threading.Lock()
        self._waiting: threading.Timer | None = None
        self._at_work, self._kernels, self._seconds, self._room = 0, 0, 0.0, ""

    @contextmanager
    def compiling(self, room: str) -> Iterator[None]:
        """A kernel of a room is compiled inside."""
        began = self._clock()
        with self._lock:
            self._at_work, self._room = self._at_work + 1, room
            self._wait(None if self.told else self.after - self._seconds, self.tell)
        try:
            yield
        finally:
            with self._lock:
                self._at_work, self._kernels = self._at_work - 1, self._kernels + 1
                self._seconds += self._clock() - began
                enough = self._seconds >= self.after
                self._wait(self.pause if enough and not self._at_work else None, self.finish)
            if enough:
                self.tell()

    def _wait(self, seconds: float | None, action: Callable[[], None]) -> None:
        """An action after some seconds, in place of what was waited for before; None for nothing."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        if seconds is not None:
            self._waiting = self._timer(max(seconds, 0.0), action)
            self._waiting.daemon = True  # the end of the process waits for no thread of ours
            with suppress(RuntimeError):  # no thread can be had: it is told when the kernel is done
                self._waiting.start()

    def tell(self) -> None:
        """Kernels are being compiled; a timer that could not be stopped any more says nothing."""
        with self._lock:
            due = not self.told and (self._at_work > 0 or self._seconds >= self.after)
            self.told |= due
        if due:
            text = "besag compiles kernels of %s for this machine, once, in some %d s; `besag warmup` does so ahead ..."
            LOG.warning(text, self._room, SECONDS.get(self._room, OTHERS))

    def finish(self) -> None:
        """It is done, as far as can be seen."""
        with self._lock:
            kernels, seconds = self._kernels, self._seconds
            if self._at_work or seconds < self.after or not kernels or not self.told:
                return
            self._kernels, self._seconds, self.told = 0, 0.0, False
            self._wait(None, self.finish)
        LOG.warning("besag has compiled %d kernel%s, which took %.1f s", kernels, "s" * (kernels > 1), seconds)


_notices = [Notice()]


@atexit.register
def _finish() -> None:
    _notices[0].finish()  # of a child that was forked, its own


if hasattr(os, "register_at_fork"):  # a child has neither the threads of its parent nor the use of a lock they held
    os.register_at_fork(after_in_child=lambda: _notices.__setitem__(0, Notice(told=_notices[0].told)))


def watch(kernel: Any) -> None:
    """Let the notice know when numba compiles a kernel."""
    compiler = getattr(kernel, "_compiler", None)
    if compiler is None:  # another numba: nothing is said, and answers are the same
        return
    compile_, room = compiler.compile, room_of(kernel.py_func.__module__)

    def watched(*arguments: Any) -> Any:
        with _notices[0].compiling(room):
            return compile_(*arguments)

    compiler.compile = watched


def room_of(module: str) -> str:
    """The room of a module of kernels.

    >>> room_of("besag.infer.junction.kernels.rows")
    'infer/junction'
    >>> room_of("besag.kernels.support")
    'besag'
    """
    return "/".join(module.split(".kernels", maxsplit=1)[0].split(".")[1:]) or "besag"
