"""Sentences in columns, as in the CoNLL shared tasks: one token per line, a blank line between sentences.

    CoNLL-2000 and similar    columns are separated by blanks or tabs, and every line is a token, even "# # O"
    files with tabs           if the line of the first token has a tab, only tabs separate columns, so that these may
                              contain blanks; a line without a tab that begins with "#" is a comment
    CoNLL-U                   ten columns with tabs; ranges such as "1-2", whose tokens follow, and empty nodes such as
                              "1.1" are skipped

All lines of a file must have as many columns as the first one. All formats of this kind use `blocks`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from os import PathLike, fspath
from typing import TypeAlias

from besag.errors import ParseError
from besag.io.shared.files import read_bytes, text_of

Token: TypeAlias = tuple[str, ...]
Source: TypeAlias = str | PathLike[str] | Iterable[str]
Block: TypeAlias = tuple[int, list[str]]  # the number of the first line, from 1, and the lines

CONLLU_COLUMNS = 10

_NOT_A_WORD = re.compile(r"\d+-\d+|\d+\.\d+")


def read_conll(source: Source, columns: Sequence[int] | None = None) -> Iterator[list[Token]]:
    """The sentences of a file, packed or not, or of lines, one by one: a tuple for each token, of all columns or some.

    >>> next(read_conll(["He PRP B-NP", "left VBD B-VP", "", "So RB O"], columns=(0, -1)))
    [('He', 'B-NP'), ('left', 'B-VP')]
    """
    path = path_of(source)
    found, tabs = _with_kind(blocks(source))
    expected: int | None = None
    for first, lines in found:
        tokens: list[Token] = []
        for number, line in enumerate(lines, first):
            if tabs and _is_comment(line):
                continue
            cells = line.split("\t") if tabs else line.split()
            if expected is None:
                expected = len(cells)
                _check_columns(columns, expected, path, number)
            if len(cells) != expected:
                raise _uneven(cells, expected, tabs, path, number)
            if not (tabs and expected == CONLLU_COLUMNS and _NOT_A_WORD.fullmatch(cells[0])):
                tokens.append(tuple(cells) if columns is None else tuple([cells[c] for c in columns]))
        if tokens:
            yield tokens


def blocks(source: Source) -> Iterator[Block]:
    """Runs of lines that are not blank; lines end with LF, CR LF or CR."""
    start = 1
    block: list[str] = []
    for number, line in enumerate(_lines(source), 1):
        if line and not line.isspace():
            if not block:
                start = number
            block.append(line)
        elif block:
            yield start, block
            block = []
    if block:
        yield start, block


def path_of(source: Source) -> str | None:
    """The name of the source in errors; None if it is given as lines."""
    return fspath(source) if isinstance(source, (str, PathLike)) else None


def _lines(source: Source) -> Iterator[str]:
    if not isinstance(source, (str, PathLike)):
        return (line.rstrip("\r\n") for line in source)
    text = text_of(read_bytes(source), fspath(source))
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _pieces(text)


def _pieces(text: str) -> Iterator[str]:
    """A text cut at its line feeds, piece by piece; str.splitlines also cuts at characters that tokens may have."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start:end]
        start = end + 1
    yield text[start:]


def _with_kind(found: Iterator[Block]) -> tuple[Iterator[Block], bool]:
    """All blocks, and whether the first line that cannot be a comment has a tab."""
    held = []
    for first, lines in found:
        held.append((first, lines))
        telling = next((line for line in lines if not _is_comment(line)), None)
        if telling is not None:
            return chain(held, found), "\t" in telling
    return iter(held), False


def _is_comment(line: str) -> bool:
    return line.startswith("#") and "\t" not in line


def _check_columns(columns: Sequence[int] | None, expected: int, path: str | None, line: int) -> None:
    for column in columns or ():
        if not -expected <= column < expected:
            raise ParseError(
                f"there is no column {column}: a line has {expected}, numbered from 0 to {expected - 1}",
                path=path,
                line=line,
            )


def _uneven(cells: list[str], expected: int, tabs: bool, path: str | None, line: int) -> ParseError:
    how = "tabs" if tabs else "blanks"
    return ParseError(
        f"expected {expected} columns separated by {how}, as in the first line, got {len(cells)}: {cells[0][:40]!r}...",
        path=path,
        line=line,
    )
