"""JSON with the liberties that toulbar2 takes, as nested lists.

An object {key: value, ...} becomes the list [key, value, ...], because here

    - quotes around texts, commas and colons may be missing: {problem {name x} [1 2]}
    - the brackets of arrays and objects may stand for each other
    - a line that begins with "#" is a comment.

Numbers become int or float, in quotes they stay text. Strict JSON is read by `json`, which is faster; what it refuses
is cut into words by one regular expression and put together with a stack, without recursion.
"""

from __future__ import annotations

import json
import re
from typing import Any

from besag.errors import ParseError
from besag.io.files import line_of

MAX_DEPTH = 64
MAX_DIGITS = 18  # of an integer that stays one

_COMMENT = re.compile(r"^[ \t]*+#[^\n]*+", re.MULTILINE)
_TOKEN = re.compile(r'"[^"]*+"|["\[\]{}]|[^\s\[\]{},:"]++')
_NUMBER = re.compile(r"[+-]?(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d++)?", re.ASCII)


def nested(text: str, path: str) -> list[Any]:
    """The one array or object of a text; ParseError where there is none."""
    text = without_comments(text)
    try:
        found = json.loads(text, object_pairs_hook=_flat, parse_int=_whole, parse_constant=str)
    except RecursionError:
        raise ParseError("the brackets are nested too deeply", path=path) from None
    except json.JSONDecodeError:
        found = _relaxed(text, path)
    if not isinstance(found, list):
        raise ParseError("expected { ... }, got a single value", path=path)
    return found


def without_comments(text: str) -> str:
    """The text without comments; lines keep their numbers."""
    return _COMMENT.sub("", text) if "#" in text else text


def _flat(pairs: list[tuple[str, Any]]) -> list[Any]:
    return [item for pair in pairs for item in pair]


def _whole(digits: str) -> int | float:
    """An integer; a float where it is too long to be one that is meant."""
    return int(digits) if len(digits) <= MAX_DIGITS else float(digits)


def _bare(word: str) -> int | float | str:
    if _NUMBER.fullmatch(word) is None:
        return word
    return _whole(word) if word.lstrip("+-").isdigit() else float(word)


def _relaxed(text: str, path: str) -> Any:
    root: list[Any] = []
    stack = [root]
    for number, token in enumerate(_TOKEN.findall(text)):
        if token in "[{":
            stack.append([])
            stack[-2].append(stack[-1])
        elif token in "]}":
            stack.pop()
        elif token[0] == '"':
            stack[-1].append(token[1:-1])
        else:
            stack[-1].append(_bare(token))
        if token == '"' or not stack or len(stack) > MAX_DEPTH or (len(stack) == 1 and len(root) > 1):
            raise _misplaced(text, path, number, len(stack))
    if len(stack) > 1:
        line = line_of(text, len(text.rstrip()))
        raise ParseError(f"the file ends inside {len(stack) - 1} brackets", path=path, line=line)
    return root[0] if root else None


def _misplaced(text: str, path: str, number: int, depth: int) -> ParseError:
    place = next(match for i, match in enumerate(_TOKEN.finditer(text)) if i == number)
    if place.group() == '"':
        message = "a text in quotes has no end"
    elif depth > MAX_DEPTH:
        message = "the brackets are nested too deeply"
    else:
        message = f"expected the end of the file, got {place.group()[:40]!r}"
    return ParseError(message, path=path, line=line_of(text, place.start()))
