"""JSON with the extensions that toulbar2 allows, as nested lists.

An object {key: value, ...} becomes the list [key, value, ...], because here

    - quotes around texts, commas and colons may be missing: {problem {name x} [1 2]}
    - the brackets of arrays and objects are interchangeable
    - a line that begins with "#" is a comment
    - the very last bracket may be missing, which causes a LossWarning.

Numbers become int or float; in quotes they stay text. Strict JSON is read by `json`, which is faster; other texts are
cut into words by one regular expression and assembled with a stack, without recursion. Lists of numbers of LONG
characters or more stay text as in `besag.io.shared.json_text`, here as a WordList.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from besag.arrays import Array
from besag.errors import LossWarning, ParseError, warn
from besag.io.shared.files import floats, line_of
from besag.io.shared.json_places import TOKEN, place_of
from besag.io.shared.json_text import STRING, cut_out, number_lists, too_many_brackets, without_escapes

MAX_DEPTH = 64
MAX_DIGITS = 18  # of an integer; longer ones become floats
LONG = 256
PER_BRACKET = 4  # characters of text required for each list and each object

_COMMENT = re.compile(r"(?<![^\r\n])[ \t]*#[^\r\n]*")
_QUOTED = r'"[^"]*"'
_TOKEN = re.compile(rf'{_QUOTED}|["\[\]{{}}]|[^\s\[\]{{}},:"]+')
_WORD = re.compile(r"[^\s,:]+")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_STRICT_LISTS = number_lists(STRING, r"\[", r"\]", r"-+.\deE,\s", LONG)
_LISTS = number_lists(_QUOTED, r"\[{", r"\]}", r"-+.\deE,:\s", LONG)


@dataclass(frozen=True, slots=True)
class WordList:
    """A list without brackets inside, most often of numbers, at text[start:end]."""

    text: str
    start: int
    end: int

    def items(self) -> list[int | float | str]:
        """The items of the list."""
        return [_bare(word) for word in _WORD.findall(self.text, self.start + 1, self.end - 1)]

    def array(self) -> Array:
        """The items as numbers; ValueError if one is not."""
        return floats(self.text[self.start + 1 : self.end - 1].replace(",", " ").replace(":", " ").encode())


class Nested(NamedTuple):
    """The lists of a text, and the means to find the lines of their items; token: what an item begins with."""

    items: list[Any]
    text: str
    path: str
    token: re.Pattern[str]

    def fail(self, message: str, *steps: int) -> ParseError:
        """The error of the item that steps lead to, numbers of items from 0."""
        place = place_of(self.text, steps, self.token)
        return ParseError(message, path=self.path, line=None if place is None else line_of(self.text, place))


def parse_nested(text: str, path: str) -> Nested:
    """The one array or object of a text; ParseError if there is none."""
    text = without_comments(text)
    brackets = too_many_brackets(text, PER_BRACKET, PER_BRACKET)
    if brackets is not None:
        raise ParseError(f"{brackets} brackets are too many for a file of {len(text)} characters", path=path)
    token = TOKEN
    try:
        found = _strict(text)
    except (json.JSONDecodeError, RecursionError):
        found, token = _relaxed(text, path), _TOKEN
    if not isinstance(found, list):
        raise ParseError("expected { ... }, got a single value", path=path, line=line_of(text, len(text.rstrip())))
    return Nested(found, text, path, token)


def without_comments(text: str) -> str:
    """The text without comments; lines keep their numbers."""
    return _COMMENT.sub("", text) if "#" in text else text


def _strict(text: str) -> Any:
    short, back = _cut(text, without_escapes(text), _STRICT_LISTS)

    def flat(pairs: list[tuple[str, Any]]) -> Any:
        return back([item for pair in pairs for item in pair])

    return json.loads(short, object_pairs_hook=flat, parse_int=_whole, parse_constant=str)


def _cut(text: str, plain: str, pattern: re.Pattern[str]) -> tuple[str, Callable[[list[Any]], Any]]:
    """The text without the lists that a pattern finds in `plain`, and a function that puts them back in."""
    mark = secrets.token_hex(8)
    short, spans = cut_out(text, plain, pattern, mark)

    def back(items: list[Any]) -> Any:
        return WordList(text, *spans[items[1]]) if items and items[0] == mark else items

    return short, back


def _whole(digits: str) -> int | float:
    """An integer, or a float if it has more than MAX_DIGITS digits."""
    return int(digits) if len(digits) <= MAX_DIGITS else float(digits)


def _bare(word: str) -> int | float | str:
    if _NUMBER.fullmatch(word) is None:
        return word
    return _whole(word) if word.lstrip("+-").isdigit() else float(word)


def _relaxed(text: str, path: str) -> Any:
    short, back = _cut(text, text, _LISTS)
    root: list[Any] = []
    stack = [root]
    for match in _TOKEN.finditer(short):
        token = match[0]
        if token in "[{":
            stack.append([])
            stack[-2].append(stack[-1])
        elif token in "]}":
            closed = stack.pop()
            if stack:
                stack[-1][-1] = back(closed)
        elif token[0] == '"':
            stack[-1].append(token[1:-1])
        else:
            stack[-1].append(_bare(token))
        if token == '"' or not stack or len(stack) > MAX_DEPTH or (len(stack) == 1 and len(root) > 1):
            raise _misplaced(text, path, match, len(stack))
    if len(stack) > 2:
        line = line_of(text, len(text.rstrip()))
        raise ParseError(f"the file ends inside {len(stack) - 1} brackets", path=path, line=line)
    if len(stack) == 2:
        warn(LossWarning(f"{path}: the last bracket is missing; is the file complete?"))
    return root[0] if root else None


def _misplaced(text: str, path: str, place: re.Match[str], depth: int) -> ParseError:
    if place[0] == '"':
        message = "a text in quotes has no end"
    elif depth > MAX_DEPTH:
        message = "the brackets are nested too deeply"
    else:
        message = f"expected the end of the file, got {place[0][:40]!r}"
    return ParseError(message, path=path, line=line_of(text, place.start()))
