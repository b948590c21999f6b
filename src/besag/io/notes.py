"""What a reader has mended without a word, for those who ask: `with noted() as notes: load(path)`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_notes: ContextVar[list[str] | None] = ContextVar("notes", default=None)


def note(text: str) -> None:
    """Say it to whoever is listening."""
    listening = _notes.get()
    if listening is not None:
        listening.append(text)


@contextmanager
def note_all() -> Iterator[list[str]]:
    """A list that fills with the notes of all readers inside."""
    heard: list[str] = []
    token = _notes.set(heard)
    try:
        yield heard
    finally:
        _notes.reset(token)
