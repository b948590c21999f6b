"""Work started before it is needed, on a thread of its own.

The work must not depend on anything that changes meanwhile, so that its result is the same whether it is done ahead or
not. It is cancelled when no reference to the Ahead object is left. If it fails, the caller does it again and meets the
error there.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from contextvars import copy_context
from typing import Generic, TypeVar

Made = TypeVar("Made")


class CancelledError(Exception):
    """The result of this work is no longer needed."""


class Ahead(Generic[Made]):
    """Calls `make` on a thread, with a check that raises CancelledError when its result is no longer needed.

    `make` must not hold a reference to this object.
    """

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
        """Wait for the result; None if the work failed."""
        self._thread.join()
        return self._made[0] if self._made else None
