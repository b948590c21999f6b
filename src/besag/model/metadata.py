"""Data of a file about a model or a variable besides its numbers: names, positions, comments. No engine reads them.

Readers and writers of all formats use the same keys, so that data which two formats can carry are converted:

    name         of the model
    label        a longer name, for people
    comment      text, lines separated by new lines
    position     (x, y) of a variable in a drawing
    properties   texts "key = value", or free text, in order
    energy_limit of the model: labellings of this energy or more are forbidden; `map` warns if its answer is one

Data that only one format has are kept under a key of its own, such as "xdsl", to be written back to that format.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from besag.errors import ModelError


class Metadata(Mapping[str, Any]):
    """A read-only mapping of texts, numbers, True, False and None, and of tuples and mappings of these.

    >>> Metadata({"position": [3, 4]})["position"]
    (3, 4)
    """

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[str, Any] | None = None) -> None:
        self._entries = {_key(key): _frozen(key, value) for key, value in (entries or {}).items()}

    def __getitem__(self, key: str) -> Any:
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __hash__(self) -> int:
        return hash(frozenset(self._entries.items()))

    def __repr__(self) -> str:
        return repr(self._entries)

    def __reduce__(self) -> tuple[Any, ...]:
        return Metadata, (self._entries,)


NONE = Metadata()

TEXTS = ("name", "label", "comment")


def check_metadata(given: Mapping[str, Any] | None, whose: str) -> Metadata:
    """Checked metadata: the keys that all formats share must have values of the right kind, else ModelError."""
    if given is not None and not isinstance(given, Mapping):
        raise ModelError(f"the metadata of {whose} must be a dict, got {type(given).__name__}")
    try:
        entries = Metadata(given)
    except RecursionError:
        raise ModelError(f"the metadata of {whose} must not be nested so deeply") from None
    for key in TEXTS:
        if key in entries and not isinstance(entries[key], str):
            raise ModelError(f"{key!r} of {whose} must be text, got {show_value(entries[key])}")
    position = entries.get("position", (0, 0))
    if not isinstance(position, tuple) or len(position) != 2 or not all(_is_finite(number) for number in position):
        raise ModelError(f"'position' of {whose} must be two numbers (x, y), got {show_value(position)}")
    if "energy_limit" in entries and not _is_finite(entries["energy_limit"]):
        raise ModelError(f"'energy_limit' of {whose} must be a number, got {show_value(entries['energy_limit'])}")
    properties = entries.get("properties", ())
    if not isinstance(properties, tuple) or not all(isinstance(text, str) for text in properties):
        raise ModelError(f"'properties' of {whose} must be a list of texts, got {show_value(properties)}")
    return entries


def is_nothing(value: object) -> bool:
    """Whether a value is empty: None, or an empty text, list or dict.

    >>> is_nothing(""), is_nothing(0)
    (True, False)
    """
    return value is None or (isinstance(value, (str, tuple, Mapping)) and not value)


def show_value(value: object) -> str:
    """A value for a message."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits; deeply nested dicts
        text = type(value).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."


def _is_finite(value: object) -> bool:
    """Whether a value is a number within the range of doubles."""
    try:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise ModelError(f"keys of metadata must be text, got {key!r}")
    return key


def _frozen(key: str, value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        raise ModelError(f"metadata {key!r} must hold finite numbers, got {value!r}")
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Metadata):
        return value
    if isinstance(value, Mapping):
        return Metadata(value)
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(key, item) for item in value)
    raise ModelError(
        f"metadata {key!r} must be text, numbers, True, False, None, or lists and dicts of these, "
        f"got {type(value).__name__}"
    )
