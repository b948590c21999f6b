"""The text of BIF files: its pieces as regular expressions, comments, names in quotes, properties.

A comment before the first block belongs to the model, one in a variable's block to the variable, and one in a
probability block to that block. A property is free text up to ";", or one text in quotes; `position = (x, y)` is the
place in a drawing. The word `unknown`, without quotes, stands for a network without a name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from besag.errors import ModelError
from besag.io.shared.files import LOOP
from besag.io.shared.positions import position_of

NAMELESS = "unknown"

# Linear time on any input: the next character alone decides how each goes on. The last alternative takes everything
# from a place without a block or statement to the end.
_STRING = r'"[^"]*"'
_TEXT = rf'[^{{}}"]*(?:{_STRING}[^{{}}"]*){LOOP}'
BLOCK = re.compile(
    rf"\s*(?:(network|variable|probability)\b({_TEXT})"
    rf'\{{([^{{}}"]*(?:(?:{_STRING}|\{{{_TEXT}\}})[^{{}}"]*){LOOP})\}}|(\S.*))',
    re.DOTALL,
)
STATEMENT = re.compile(  # labels and numbers of a plain row; or a keyword or "(" and what follows; or the rest
    rf"""\s*(?:\(([^();"]*)\)([^();"]*);|(\(|[a-z]+(?![a-z]))([^;"]*(?:{_STRING}[^;"]*){LOOP});|(\S.*))""", re.DOTALL
)
ROWS = re.compile(rf'\s*\([^();"]*\)[^();"]*;(?:\s*\([^();"]*\)[^();"]*;){LOOP}\s*')
DISCRETE = re.compile(r"\s*discrete\s*(?:\[\s*(\d{1,9})\s*\]\s*)?\{(.*)\}\s*", re.DOTALL)
NAME = re.compile(r'"([^"]*)"|([^\s,"|]+)|(\|)')
FUNCTION = re.compile(r'[\s"]*function\b')
KEYWORD = re.compile(r"\s*(?:network|variable|probability)\b")
START = re.compile(KEYWORD.pattern + r"[^;{]*\{")

_LABEL = re.compile(r'"([^"]*)"|([^\s,"]+)')
_COMMENT = re.compile(rf"{_STRING}|(?<!:)//[^\r\n]*|/\*(?:.*?\*/|.*)", re.DOTALL)  # but not http://
_LINE_END = re.compile(r"\r\n|\r|\n")
_IN_LINE = re.compile(r"[^\r\n]+")
_PLAIN = re.compile(r'(?!.*(?://|/\*))[^\s,;{}()\[\]|"\0]+')
_LOOSE = re.compile(rf'[^/;{{}}"\0]*(?:(?:/(?![/*])|{_STRING})[^/;{{}}"\0]*)*')


# Comments ------------------------------------------------------------------------------------------------------------


def without_comments(text: str) -> tuple[str, list[tuple[int, str]]]:
    """The text with comments blanked, so that all else keeps its place, and (offset, comment) of each."""
    found: list[tuple[int, str]] = []
    if "/" not in text or ("//" not in text and "/*" not in text):
        return text, found

    def blank(match: re.Match[str]) -> str:
        piece = match.group()
        if piece[0] == '"':
            return piece
        found.append((match.start(), _inside(piece)))
        return _IN_LINE.sub(lambda line: " " * len(line[0]), piece)

    return _COMMENT.sub(blank, text), found


def _inside(comment: str) -> str:
    """The content of a comment, without its marks and the one space next to them."""
    if comment.startswith("//"):
        return comment[2:].removeprefix(" ")
    lines = _LINE_END.split(comment[2:].removesuffix("*/").strip())
    return "\n".join(line.strip() for line in lines)


def comment_lines(comment: str, indent: str = "") -> list[str]:
    """A comment as lines of a file."""
    lines = _LINE_END.split(comment) if comment else []
    return [f"{indent}// {line}" if line else f"{indent}//" for line in lines]


# Names and states ----------------------------------------------------------------------------------------------------


def unquote(name: str) -> str:
    """A name, or any text, without its quotes."""
    return name[1:-1] if len(name) > 1 and name[0] == name[-1] == '"' and '"' not in name[1:-1] else name


def quote(name: str, what: str) -> str:
    """A name or state as the file has it, in quotes if it needs them; ModelError if quotes do not help.

    >>> quote("<5", "state"), quote("not, so", "state")
    ('<5', '"not, so"')
    """
    if _PLAIN.fullmatch(name):
        return name
    if not name or any(mark in name for mark in '"\n\r\0'):
        raise ModelError(
            f"BIF cannot hold the {what} {name!r}: it must not be empty nor have double quotes or new lines; rename it"
        )
    return f'"{name}"'


def labels_of(text: str, count: int | None) -> list[str]:
    """Names separated by commas or, if that does not give `count` of them, by white space; or in quotes.

    >>> labels_of("a b, <5", 2), labels_of("a b <5", 3), labels_of('"a, b" "c"', None)
    (['a b', '<5'], ['a', 'b', '<5'], ['a, b', 'c'])
    """
    if '"' in text:
        return [in_quotes or plain for in_quotes, plain in _LABEL.findall(text)]
    found = [label.strip() for label in text.split(",")]
    by_comma = len(found) > 1 if count is None else len(found) == count
    return found if by_comma else text.replace(",", " ").split()


def show_piece(text: str) -> str:
    """A piece of the file for a message."""
    line = " ".join(text[:200].split())
    return line if len(line) <= 60 else f"{line[:57]}..."


# Properties ----------------------------------------------------------------------------------------------------------


def metadata_of(properties: Sequence[str]) -> dict[str, Any]:
    """Properties as metadata: "position", and "properties" for the rest.

    >>> metadata_of(["position = (3, 4.5)", "cost = 1"])
    {'position': (3, 4.5), 'properties': ('cost = 1',)}
    """
    found: dict[str, Any] = {}
    rest = []
    for text in properties:
        position = position_of(text)
        if position is None or "position" in found:
            rest.append(text)
        else:
            found["position"] = position
    return found | ({"properties": tuple(rest)} if rest else {})


def property_lines(properties: Sequence[str], where: str, indent: str = "  ") -> list[str]:
    """Properties as lines of a file; ModelError if one has a quote that could not be read back."""
    return [f"{indent}property {_property(text, where)};" for text in properties]


def _property(text: str, where: str) -> str:
    if text == unquote(text.strip()) and _LOOSE.fullmatch(text):
        return text
    if '"' in text or "\0" in text:
        raise ModelError(
            f"BIF cannot hold the property {show_piece(text)!r} of {where}: it has double quotes beside ; or braces; "
            "change it with model.with_metadata"
        )
    return f'"{text}"'
