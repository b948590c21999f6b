"""Positions in a drawing, (x, y), as text."""

from __future__ import annotations

import re
from math import isfinite

_POSITION = re.compile(r"position\s*=\s*\(\s*([-+.\deE]+)\s*,\s*([-+.\deE]+)\s*\)", re.ASCII)


def position_text(position: tuple[float, float]) -> str:
    """A position as the property of BIF and XMLBIF.

    >>> position_text((3, 4.5))
    'position = (3, 4.5)'
    """
    return "position = ({!r}, {!r})".format(*position)


def position_of(text: str) -> tuple[float, float] | None:
    """The position that a property gives; None if it is no position.

    >>> position_of("position = (3, 4.5)"), position_of("position = here")
    ((3, 4.5), None)
    """
    match = _POSITION.fullmatch(text)
    return None if match is None else pair_of(*match.groups())


def pair_of(*words: str) -> tuple[float, float] | None:
    """Two words as numbers, ints if whole; None if they are not two, or not numbers that a file can carry."""
    numbers = [_coordinate(word) for word in words]
    if len(numbers) != 2 or numbers[0] is None or numbers[1] is None:
        return None
    return numbers[0], numbers[1]


def _coordinate(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    if not isfinite(value):
        return None
    return int(text) if text.lstrip("+-").isdecimal() else value
