"""Work begun before it is asked for, on a thread of its own.

The work must not depend on anything that changes meanwhile, so that it is the same whether it is done ahead or not. It
is given up when nobody holds it any more; what goes wrong in it is left to whoever does it again.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from contextvars import copy_context
from typing import Generic, TypeVar

Made = TypeVar("Made")


class CancelledError(Exception):
    """Nobody needs this work any more."""


class Ahead(Generic[Made]):
    """`make`, which must not hold this object, is called with a check that raises when there is no need to go on."""

    def __init__(self, make: Callable[[Callable[[], None]], Made]) -> None:
        cancelled, made = threading.Event(), list[Made]()

        def check() -> None:
            if cancelled.is_set():
                raise CancelledError

        def work() -> None:
            try:
                made.append(make(check))
            except Exception:
                made.clear()

        self._made = made
        self._thread = threading.Thread(target=copy_context().run, args=(work,), daemon=True)
        weakref.finalize(self, cancelled.set)
        self._thread.start()

    def result(self) -> Made | None:
        """What was made, when it is there; None where it went wrong."""
        self._thread.join()
        return self._made[0] if self._made else None
