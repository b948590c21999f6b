"""Bytes, text and numbers of files: what the readers of all formats share.

Compression is recognised by its first bytes, so a .gz that some tool has already unpacked still loads. What unpacks to
more than `ROOM` bytes and to more than `RATIO` times its size is refused: a bomb, not a model.

A failure to open or unpack is a ParseError, except that a missing file stays a FileNotFoundError.
"""

from __future__ import annotations

import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import BinaryIO

import numpy as np

from besag.arrays import Array
from besag.errors import ParseError

PACKED = (".gz", ".xz")
ROOM = 1 << 28
RATIO = 100
CHUNK = 1 << 15  # bytes of text that become tokens at once: they stay in the cache, and memory stays small

_OPENERS: dict[bytes, Callable[[BinaryIO], BinaryIO]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),  # type: ignore[dict-item,return-value]
    b"\xfd7zXZ\x00": lambda raw: lzma.LZMAFile(raw),  # type: ignore[dict-item,return-value]
}
_SPACE = re.compile(rb"\s")
_TOKEN = re.compile(rb"\S+")


def suffix_of(path: str | PathLike[str]) -> str:
    """The suffix that names the format, in lower case: ".uai" of "a.UAI.gz"; "" where there is none.

    >>> suffix_of("models/a.cnf.UAI.gz")
    '.uai'
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    while suffixes and suffixes[-1] in PACKED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def read_bytes(path: str | PathLike[str]) -> bytes:
    """The content of a file, unpacked; ParseError where it is empty or cannot be read."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise ParseError(f"the file cannot be read: {error}", path=fspath(path)) from None
    for magic, opener in _OPENERS.items():
        if data.startswith(magic):
            data = _unpack(data, opener, path)
            break
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data.strip():
        raise ParseError("expected a model, but the file is empty", path=fspath(path))
    return data


def _unpack(data: bytes, opener: Callable[[BinaryIO], BinaryIO], path: str | PathLike[str]) -> bytes:
    limit = max(ROOM, RATIO * len(data))
    try:
        with opener(io.BytesIO(data)) as stream:
            unpacked = stream.read(limit + 1)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise ParseError(f"the compressed data is broken or cut off: {error}", path=fspath(path)) from None
    if len(unpacked) > limit:
        raise ParseError(
            f"{len(data)} compressed bytes unpack to more than {limit}; if the file is sound, unpack it first",
            path=fspath(path),
        )
    return unpacked


def text_of(data: bytes, path: str) -> str:
    """Bytes as text, UTF-8 or else Latin-1; ParseError where they are no text."""
    if b"\0" in data:
        line = line_of(data, data.index(b"\0"))
        raise ParseError("expected text, but there is a zero byte: is the file binary?", path=path, line=line)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def line_of(text: str | bytes, offset: int) -> int:
    """The line, from 1, of an offset."""
    newlines = text.count("\n", 0, offset) if isinstance(text, str) else text.count(b"\n", 0, offset)
    return newlines + 1


class Numbers:
    """The numbers of a text, separated by white space, and where each stands.

    values: float64, correctly rounded. The text is cut into chunks, so that tokens live only for a moment; the work is
    that of `float`, once for each number.
    """

    __slots__ = ("_data", "_path", "_start", "values")

    def __init__(self, data: bytes, path: str, start: int = 0) -> None:
        self._data, self._path, self._start = data, path, start
        if data.find(b"_", start) >= 0:  # float takes 1_000
            raise self._not_a_number()
        try:
            parts = [_floats(data[begin:end].split()) for begin, end in self._chunks()]
        except ValueError:
            raise self._not_a_number() from None
        self.values: Array = np.concatenate(parts) if parts else np.zeros(0)

    def __len__(self) -> int:
        return len(self.values)

    def _chunks(self) -> Iterator[tuple[int, int]]:
        begin = self._start
        while begin < len(self._data):
            space = _SPACE.search(self._data, begin + CHUNK)
            end = len(self._data) if space is None else space.start()
            yield begin, end
            begin = end

    def _not_a_number(self) -> ParseError:
        for match in _TOKEN.finditer(self._data, self._start):
            token = match.group()
            try:
                wrong = b"_" in token or float(token) is None
            except ValueError:
                wrong = True
            if wrong:
                shown = token[:40].decode("ascii", "replace")
                line = line_of(self._data, match.start())
                return ParseError(f"expected a number, got {shown!r}", path=self._path, line=line)
        raise AssertionError("all tokens are numbers")

    def line(self, number: int) -> int:
        """The line of a number; past the last one, the last line with anything on it."""
        seen = 0
        for begin, end in self._chunks():
            tokens = len(self._data[begin:end].split())
            if seen + tokens > number:
                places = _TOKEN.finditer(self._data, begin, end)
                return line_of(self._data, next(m.start() for i, m in enumerate(places) if seen + i == number))
            seen += tokens
        return line_of(self._data, len(self._data.rstrip()))

    def fail(self, number: int, message: str) -> ParseError:
        """The error of a number: path, line, message."""
        return ParseError(message, path=self._path, line=self.line(number))

    def integer(self, number: int, low: int, high: int, what: str) -> int:
        """The integer at a place, which must lie in low..high."""
        if number >= len(self.values):
            raise self.fail(number, f"expected {what}, but the file ends")
        value = self.values.item(number)
        if not (low <= value <= high and value.is_integer()):
            raise self.fail(number, f"expected {what}, an integer from {low} to {high}, got {value:.12g}")
        return int(value)


def _floats(tokens: list[bytes]) -> Array:
    return np.fromiter(map(float, tokens), np.float64, len(tokens))
