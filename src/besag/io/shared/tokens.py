r"""Words, texts and marks of Hugin NET, DSC and GeNIe DSL files, with line and column.

    token = text | word | mark
    text  = "..."             \" and \\ and \n are one character; a \ at the end of a line joins it to the next
    word  = characters other than white space, quotes and marks: 0.5, yes, HR_Desc
    mark  = one of ( ) { } [ ] = ; : , |

A Cursor goes through a file from token to token. Long values, the tables, are cut out whole and parsed in bulk.
Comments are blanked first, so that all else keeps its place. Nothing here recurses, and every regular expression takes
linear time: the next character alone decides how it goes on, so that backtracking finds nothing new. (Possessive
quantifiers and atomic groups, which never backtrack, match wrongly in Python 3.11.2.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple, TypeVar

from besag.arrays import Array
from besag.errors import ParseError
from besag.io.formats import Source
from besag.io.shared.files import LOOP, column_of, floats, is_number, line_of, text_of
from besag.io.shared.tables import MAX_ARITY

PIECE = 1 << 20  # characters of tables that are parsed at once
STRETCH = 1 << 12  # characters whose lines are counted in advance
TEXT = rf'"[^"\\]*(?:\\.[^"\\]*){LOOP}"'
SLASHES = r"//[^\r\n]*|/\*(?:.*?\*/|.*)"
PERCENT_OR_SLASHES = rf"%[^\r\n]*|(?<!:){SLASHES}"  # but not http://

_OPEN_TEXT = rf"{TEXT}?"  # also one that never ends, so that the search goes on after it
_PLAIN_WORD = r'[^\s(){}\[\]=;:,|"]+'
_ONE_VALUE = rf'[^;{{}}"]*(?:{TEXT}[^;{{}}"]*){LOOP}'
_SPACE = re.compile(r"\s*")
_WORD = re.compile(rf"\s*({_PLAIN_WORD}|{TEXT})", re.DOTALL)
_TEXT = re.compile(TEXT, re.DOTALL)
_VALUE = re.compile(_ONE_VALUE, re.DOTALL)
_STATEMENT = re.compile(rf"\s*({_PLAIN_WORD})\s*=\s*(?!\s)({_ONE_VALUE});", re.DOTALL)
_GROUP = re.compile(rf'\s*(\(([^(){{}};"]*(?:{TEXT}[^(){{}};"]*){LOOP})\))', re.DOTALL)
_BLOCK = re.compile(rf'\s*\{{([^{{}}"]*(?:{TEXT}[^{{}}"]*){LOOP})\}}', re.DOTALL)
_BRACES = re.compile(rf"[{{}}]|{_OPEN_TEXT}", re.DOTALL)
_ITEM = re.compile(rf'({TEXT})|([^\s(),"]+)', re.DOTALL)
_TOKEN = re.compile(rf'{TEXT}|[()]|[^\s()"]+', re.DOTALL)
_ESCAPE = re.compile(r'\\(?:(["\\n])|[ \t]*(?:\r\n?|\n)[ \t]*)')
_LONE_RETURN = re.compile(r"\r(?!\n)")
_IN_LINE = re.compile(r"[^\r\n]+")
_BARE = re.compile(r"[0-9.eE+\-,() \t\r\n\f\v]*")
_PIECE = re.compile(r"[^,() \t\r\n\f\v]+")
_INTEGER = re.compile(r"[+-]?\d{1,300}")

T = TypeVar("T")


class Value(NamedTuple):
    """The text between a key and its ";", and the offset where it begins."""

    text: str
    at: int


def without_comments(text: str, comment: str) -> str:
    """A text with its comments blanked; `comment` is a regular expression."""
    if re.search(comment, text) is None:
        return text
    return re.sub(f"{_OPEN_TEXT}|{comment}", _blank, text, flags=re.DOTALL)


def _blank(match: re.Match[str]) -> str:
    found = match.group()
    return found if found[0] == '"' else _IN_LINE.sub(lambda line: " " * len(line[0]), found)


def unquote(token: str) -> str:
    r"""The content of a text, or the word itself.

    >>> unquote(r'"say \"yes\""'), unquote("yes"), unquote(r'"C:\temp"')
    ('say "yes"', 'yes', 'C:\\temp')
    """
    if not token.startswith('"'):
        return token
    return _ESCAPE.sub(_unescaped, token[1:-1]) if "\\" in token else token[1:-1]


def _unescaped(match: re.Match[str]) -> str:
    one = match.group(1)
    return "" if one is None else "\n" if one == "n" else one


def quote(text: str) -> str:
    r"""A text in quotes, on one line.

    >>> quote('say "yes"')
    '"say \\"yes\\""'
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def items(text: str) -> list[str]:
    """The words and texts of a list; parentheses and commas only separate them.

    >>> items('("a, b" <5 c)')
    ['a, b', '<5', 'c']
    """
    if '"' not in text:
        return text.replace("(", " ").replace(")", " ").replace(",", " ").split()
    return [unquote(quote) if quote else word for quote, word in _ITEM.findall(text)]


def one_line(text: str) -> str:
    """A value as a property keeps it: unchanged if it is one text or one line, else its tokens on one line."""
    one = ("\n" not in text and "\r" not in text) or _TEXT.fullmatch(text)
    return text if one else " ".join(_TOKEN.findall(text))


def show_piece(text: str) -> str:
    """A piece of a file for a message."""
    line = " ".join(text[:200].split())
    return line if len(line) <= 60 else f"{line[:57]}..."


def pieces(things: Sequence[T], sizes: Sequence[int]) -> Iterator[Sequence[T]]:
    """Things in order, as many at once as have at most PIECE in size together, but at least one."""
    first, total = 0, 0
    for number, size in enumerate(sizes):
        total += size
        if total >= PIECE:
            yield things[first : number + 1]
            first, total = number + 1, 0
    if first < len(things):
        yield things[first:]


class Cursor:
    """A place in a text; each method reads what it is named for, or raises a ParseError with line and column."""

    __slots__ = ("_counts", "_known_states", "_lined", "at", "path", "text")

    def __init__(self, source: Source, comment: str) -> None:
        self.text, self.path = without_comments(text_of(source.data, source.path), comment), source.path
        self.at = 0
        self._counts: list[int] | None = None  # of lines before each STRETCH of the text
        self._lined = ""
        self._known_states: dict[str, tuple[str, ...]] = {}  # by their text: many lists are the same

    def fail(self, message: str, at: int | None = None) -> ParseError:
        """The error of an offset, else of this place."""
        offset = min(self.at if at is None else at, len(self.text))
        line, column = line_of(self.text, offset), column_of(self.text, offset)
        return ParseError(message, path=self.path, line=line, column=column)

    def unexpected(self, expected: str) -> ParseError:
        """The error of this place, at which something else was expected."""
        peeked = self.peek()
        if peeked == '"' and _TEXT.match(self.text, self.at) is None:
            return self.fail("the text that begins here has no end")
        return self.fail(
            f"expected {expected}, got {show_piece(self.text[self.at : self.at + 200]) or 'the end of the file'}"
        )

    def not_chance(self, name: str, kind: str, at: int) -> ParseError:
        """The error of a decision or utility node."""
        return self.fail(f"{name!r} is a {kind} node: ignore_utilities=True reads the chance nodes alone", at)

    def parents(
        self, name: str, given: Sequence[str], numbers: Mapping[str, int], left_out: Mapping[str, str], at: int
    ) -> list[int]:
        """The numbers of a chance node's parents; `left_out`: the kinds of nodes that are no chance nodes."""
        if len(given) >= MAX_ARITY:
            raise self.fail(f"{name!r} may have {MAX_ARITY - 1} parents, got {len(given)}", at)
        for parent in given:
            if parent in left_out:
                raise self.fail(f"chance node {name!r} has the {left_out[parent]} node {parent!r} as a parent", at)
            if parent not in numbers:
                raise self.fail(f"chance node {name!r} has the parent {parent!r}, but no node has that name", at)
        return [numbers[parent] for parent in given]

    def line(self, at: int) -> int:
        """The line of an offset."""
        if self._counts is None:
            starts = range(0, len(self.text), STRETCH)
            self._lined = _LONE_RETURN.sub("\n", self.text) if "\r" in self.text else self.text
            self._counts = [0, *accumulate(self._lined.count("\n", start, start + STRETCH) for start in starts)]
        whole = at // STRETCH
        return self._counts[whole] + self._lined.count("\n", whole * STRETCH, at) + 1

    def peek(self) -> str:
        """The first character of the next token, "" at the end."""
        found = self.text[self.at : self.at + 1]
        if "!" <= found <= "~":
            return found
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]
        return self.text[self.at : self.at + 1]

    def take(self, mark: str) -> bool:
        """Whether a mark comes next; if so, pass it."""
        found = self.peek() == mark
        self.at += found
        return found

    def expect(self, mark: str, where: str) -> None:
        """Pass a mark that must come next."""
        if not self.take(mark):
            raise self.unexpected(f"{mark!r} {where}")

    def word(self, what: str) -> str:
        """A word or the content of a text."""
        match = _WORD.match(self.text, self.at)
        if match is None:
            raise self.unexpected(what)
        self.at = match.end()
        return unquote(match[1])

    def value(self, key: str) -> Value:
        """Everything up to the next ";", which is passed."""
        self.peek()
        start, end = _VALUE.match(self.text, self.at).span()  # type: ignore[union-attr]
        self.at = end
        if not self.take(";"):
            raise self.unexpected(f"';' after the value of {show_piece(key)}")
        return Value(self.text[start:end].rstrip(), start)

    def group(self, what: str) -> Value:
        """The content of parentheses without others inside."""
        match = _GROUP.match(self.text, self.at)
        if match is None:
            raise self.unexpected(what)
        self.at = match.end()
        return Value(match[2].strip(), match.start(1))

    def block(self, what: str) -> Value:
        """The content of braces, which may have others inside."""
        plain = _BLOCK.match(self.text, self.at)
        if plain is not None:
            self.at = plain.end()
            return Value(plain[1], plain.start(1))
        self.expect("{", f"before {what}")
        start, depth = self.at, 1
        for match in _BRACES.finditer(self.text, start):
            depth += {"{": 1, "}": -1}.get(match.group(), 0)
            if depth == 0:
                self.at = match.end()
                return Value(self.text[start : match.start()], start)
        raise self.fail(f"{what} begins here and has no end: expected '}}'", start - 1)

    def statements(self, what: str) -> Iterator[tuple[str, Value]]:
        """The keys and values of { key = value; ... }, whose "{" comes next."""
        if not self.take("{"):
            raise self.unexpected(f"'{{' before {show_piece(what)}")
        text, at = self.text, self.at
        while match := _STATEMENT.match(text, at):
            self.at = at = match.end()
            yield match[1], Value(match[2].rstrip(), match.start(2))
        if not self.take("}"):
            raise self._no_statement(f"an attribute or '}}' at the end of {show_piece(what)}")

    def _no_statement(self, expected: str) -> ParseError:
        """The error of this place, where a statement or the "}" of a block was expected."""
        if self.peek() == '"':
            return self.unexpected(expected)
        key = self.word(expected)
        self.expect("=", f"after {show_piece(key)}")
        self.value(key)
        raise AssertionError("it is a statement")

    def one(self, value: Value) -> str:
        """A value that is one word or text."""
        if _TEXT.fullmatch(value.text):
            return unquote(value.text)
        found = items(value.text)
        if len(found) != 1:
            raise self.fail(f"expected one text, got {show_piece(value.text) or 'nothing'}", value.at)
        return found[0]

    def position(self, value: Value) -> tuple[float, float]:
        """A value that is a pair of numbers."""
        found = items(value.text)
        if len(found) == 2:
            x, y = map(_coordinate, found)
            if x is not None and y is not None:
                return x, y
        raise self.fail(f"expected a position (x y), got {show_piece(value.text) or 'nothing'}", value.at)

    def numbers(self, value: Value, group: str = " ") -> Array:
        """The numbers of a value; parentheses and commas only separate them. `group` replaces each ")"."""
        if _BARE.fullmatch(value.text):
            try:
                return floats(value.text.replace(",", " ").replace("(", " ").replace(")", group).encode("ascii"))
            except ValueError:
                pass  # the search below finds the word
        wrong = next(m for m in _PIECE.finditer(value.text) if not _is_finite(m.group()))
        raise self.fail(f"expected a number, got {show_piece(wrong.group())}", value.at + wrong.start())

    def states(self, name: str, value: Value) -> tuple[str, ...]:
        """A value that is the states of a variable, which must be distinct names."""
        known = self._known_states.get(value.text)
        if known is not None:
            return known
        found = items(value.text)
        if not found or not all(found) or len(set(found)) != len(found):
            got = show_piece(", ".join(map(repr, found[:20]))) or "none"
            raise self.fail(f"states of {name!r} must be one or more distinct names, got {got}", value.at)
        return self._known_states.setdefault(value.text, tuple(found))


def _coordinate(word: str) -> float | None:
    """A number, an int if it is whole; None if it is no number."""
    if _INTEGER.fullmatch(word):
        return int(word)
    return float(word) if _is_finite(word) else None


def _is_finite(word: str) -> bool:
    plain = word.encode("ascii", "replace")
    return is_number(plain) and abs(float(plain)) < float("inf")
