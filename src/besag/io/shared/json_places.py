"""Places of items in a JSON text, found in a second pass for the lines of errors. Linear time, without recursion.

A place is given by steps from the outermost list or object inwards: the number of an item, from 0, in a list, where an
object counts as a list of alternating keys and values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from besag.io.shared.json_text import STRING, without_escapes

TOKEN = re.compile(rf'{STRING}|["\[\]{{}}]|[^\s\[\]{{}},:"]+')
_BRACKET = re.compile(rf"{STRING}|[\[\]{{}}]")
_KEY = re.compile(rf'("[^"]*")\s*:|{STRING}|[{{}}]')
_DIGITS = re.compile(rf"{STRING}|(\d{{1000,}})", re.ASCII)


def steps_of(document: Any, keys: Sequence[str | int]) -> list[int]:
    """The steps to the item that keys and numbers lead to in a document of dicts and lists, as far as it exists."""
    steps = []
    for key in keys:
        if isinstance(document, dict) and key in document:
            steps.append(2 * list(document).index(str(key)) + 1)
        elif isinstance(document, list) and isinstance(key, int) and key < len(document):
            steps.append(key)
        else:
            break
        document = document[key]
    return steps


def place_of(text: str, steps: Sequence[int], token: re.Pattern[str] = TOKEN) -> int | None:
    """The offset of the item that steps lead to; None if there is none.

    >>> place_of('{"a": [5, 6]}', [1, 1])
    10
    """
    wanted = [0, *steps]
    seen, inside = [0], 0  # items so far in each open bracket; how many of these are on the path
    for match in token.finditer(without_escapes(text) if token is TOKEN else text):
        if match[0] in "]}":
            seen.pop()
            if not seen:
                return None
            inside = min(inside, len(seen) - 1)
            continue
        level = len(seen) - 1
        on_the_way = inside == level and seen[level] == wanted[level]
        if on_the_way and level == len(steps):
            return match.start()
        seen[level] += 1
        if match[0] in "[{":
            seen.append(0)
            inside += on_the_way
    return None


def second_of_a_key(text: str) -> int | None:
    """The offset of the first key that repeats one of its object."""
    open_objects: list[set[str]] = []
    for match in _KEY.finditer(without_escapes(text)):
        if match[0] == "{":
            open_objects.append(set())
        elif match[0] == "}" and open_objects:
            open_objects.pop()
        elif match[1] is not None and open_objects:
            key = json.loads(text[slice(*match.span(1))])
            if key in open_objects[-1]:
                return match.start()
            open_objects[-1].add(key)
    return None


def deepest(text: str) -> int:
    """The offset of the first of the brackets that are nested most deeply."""
    depth, most, place = 0, 0, 0
    for match in _BRACKET.finditer(without_escapes(text)):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match[0], 0)
        if depth > most:
            most, place = depth, match.start()
    return place


def longest_number(text: str) -> int | None:
    """The offset of the first number of thousands of digits."""
    return next((match.start() for match in _DIGITS.finditer(without_escapes(text)) if match[1]), None)
