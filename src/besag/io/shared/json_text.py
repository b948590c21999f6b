"""JSON of any size: long lists of numbers stay text until they are needed, and are then parsed piece by piece.

A number takes 32 bytes in a list, and its text as few as two; so lists of numbers of LONG characters or more are cut
out of the text, and `json` reads the rest. A LongList takes the place of such a list.

    mark  = {"<16 random hex digits>": number}    stands for a list while the text is read, padded with blanks to the
                                                  list's length, so that all else keeps its place

Lists and objects cost memory too, even empty ones: a text with too many of them for its length is refused.
"""

from __future__ import annotations

import json
import re
import secrets
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

LONG = 1 << 12
PIECE = 1 << 16  # characters that become numbers at once
SPARE = 1 << 21
PER_LIST, PER_OBJECT = 8, 20  # characters of text required for each list and each object, beyond SPARE

STRING = r'"[^"]*"?'  # of a text without escapes; also one that never ends, so that the search goes on after it
STRETCH = 1 << 10  # most texts and brackets that one match may pass over, since it keeps memory for each


def number_lists(string: str, begin: str, end: str, inside: str, long: int) -> re.Pattern[str]:
    """A stretch of text up to the next long list, group 1, if that is near; arguments: sets of its characters."""
    plain = rf'[^"{begin}]*'
    before = rf"(?:{plain}(?:{string}|[{begin}](?![{inside}]{{{long}}}))){{0,{STRETCH}}}{plain}"
    return re.compile(rf"{before}([{begin}][{inside}]+[{end}])?", re.ASCII)


_LONG_LISTS = number_lists(STRING, r"\[", r"\]", r"-+.\deE,\s", LONG)
_STRING = re.compile(STRING)


def without_escapes(text: str) -> str:
    r"""The text with blanks for escaped quotes and backslashes, so that each quote begins or ends a string.

    >>> without_escapes(r'["a\"b", "\\"]')
    '["a  b", "  "]'
    """
    return text.replace("\\\\", "  ").replace('\\"', "  ") if "\\" in text else text


@dataclass(frozen=True, slots=True)
class LongList:
    """The list of numbers at text[start:end], including its brackets."""

    text: str
    start: int
    end: int

    def __len__(self) -> int:
        return self.text.count(",", self.start, self.end) + 1

    def pieces(self) -> Iterator[list[Any]]:
        """Its numbers, some at a time; JSONDecodeError, with the offset in the whole text, if one is not a number."""
        at, last = self.start + 1, self.end - 1
        while at <= last:
            comma = self.text.find(",", min(at + PIECE, last), last)
            stop = last if comma < 0 else comma
            try:
                numbers = json.loads(f"[{self.text[at:stop]}]")
            except json.JSONDecodeError as error:
                raise json.JSONDecodeError(error.msg, self.text, at - 1 + error.pos) from None
            if not numbers:
                raise json.JSONDecodeError("Expecting value", self.text, stop)
            yield numbers
            at = stop + 1


def parse(text: str) -> Any:
    """The value of a JSON text, with LongLists in it; ValueError if it is not valid, or a key is given twice."""
    mark = secrets.token_hex(8)
    short, spans = cut_out(text, without_escapes(text), _LONG_LISTS, mark)

    def made(pairs: list[tuple[str, Any]]) -> Any:
        return LongList(text, *spans[pairs[0][1]]) if pairs and pairs[0][0] == mark else _unique(pairs)

    return json.loads(short, object_pairs_hook=made)


def cut_out(text: str, plain: str, pattern: re.Pattern[str], mark: str) -> tuple[str, list[tuple[int, int]]]:
    """The text with marks for the lists that a pattern finds in `plain`, and the start and end of each."""
    kept: list[str] = []
    spans: list[tuple[int, int]] = []
    at = 0
    for match in pattern.finditer(plain):
        start, end = match.span(1)
        if start >= 0:
            kept += [text[at:start], f'{{"{mark}": {len(spans)}}}'.ljust(end - start)]
            spans.append((start, end))
            at = end
    return "".join([*kept, text[at:]]) if kept else text, spans


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
        raise ValueError(f"the key {twice[:60]!r} is given twice")
    return found


def spell_out(value: dict[str, Any] | list[Any]) -> None:
    """Replace the LongLists in an object or a list by plain lists."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, LongList):
            value[key] = [number for piece in item.pieces() for number in piece]  # type: ignore[index]
        elif isinstance(item, (dict, list)):
            spell_out(item)


def too_many_brackets(text: str, per_list: int = PER_LIST, per_object: int = PER_OBJECT) -> int | None:
    """How many lists and objects a text has, if these are too many for its length, else None."""
    for one in (text, None):  # strings may contain brackets too, which cost nothing
        outside = _STRING.sub("", without_escapes(text)) if one is None else one
        lists, objects = outside.count("["), outside.count("{")
        if per_list * lists + per_object * objects <= len(text) + SPARE:
            return None
    return lists + objects
