"""Held-out data as users give them: checked, and named in errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from besag.data.attributes import show_value
from besag.errors import ModelError


@contextmanager
def reading_held_out(given: Any, most: int = 2) -> Iterator[None]:
    """ModelError if it is no pair (X, y), or what else may follow; errors of what is read inside say where it is."""
    if not isinstance(given, (tuple, list)) or not 2 <= len(given) <= most:
        raise ModelError(f"held_out must be a pair (X, y), as fit takes them, got {show_value(given)}")
    try:
        yield
    except ModelError as error:
        raise ModelError(f"held_out: {error}") from None
