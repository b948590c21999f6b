"""Notes on what a reader has silently corrected, for callers who ask: `with note_all() as notes: load(path)`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_notes: ContextVar[list[str] | None] = ContextVar("notes", default=None)


def note(text: str) -> None:
    """Add a note to the list of the innermost `note_all` block, if there is one."""
    listening = _notes.get()
    if listening is not None:
        listening.append(text)


@contextmanager
def note_all() -> Iterator[list[str]]:
    """A list that collects the notes of all readers inside the block."""
    heard: list[str] = []
    token = _notes.set(heard)
    try:
        yield heard
    finally:
        _notes.reset(token)
