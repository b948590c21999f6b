"""Bytes, text and numbers of files: what the readers of all formats share.

Compression is recognised by its first bytes, so a .gz that some tool has already unpacked still loads. Data that unpack
to more than `ROOM` bytes, or to more than a quarter of the free memory, are refused; the ratio of compression is no
criterion, since tables of zeros shrink to a thousandth.

A failure to open or unpack is a ParseError, except that a missing file stays a FileNotFoundError.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import re
import secrets
import stat
import zlib
from collections.abc import Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import IO

import numpy as np

from besag.arrays import Array
from besag.errors import ParseError
from besag.infer.memory import default_memory_limit

PACKED = (".gz", ".xz")
ROOM = 1 << 32
PIECE = 1 << 20  # bytes that are unpacked at once
LOOP = "{0,1048576}"  # instead of * on groups of regular expressions: a match keeps some 120 bytes per repetition
CHUNK = 1 << 15  # bytes of text that become tokens at once: they stay in the cache, and memory stays small

_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"
_SPACE = re.compile(rb"\s")
_TOKEN = re.compile(rb"\S+")
_BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError)


def suffix_of(path: str | PathLike[str]) -> str:
    """The suffix that names the format, in lower case: ".uai" of "a.UAI.gz"; "" if there is none.

    >>> suffix_of("models/a.cnf.UAI.gz")
    '.uai'
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    while suffixes and suffixes[-1] in PACKED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def read_bytes(path: str | PathLike[str] | IO[bytes]) -> bytes:
    """The content of a file or of an open binary stream, unpacked; ParseError if it is empty or cannot be read."""
    stream = not isinstance(path, (str, PathLike))
    if stream and not hasattr(path, "read"):
        raise TypeError(f"expected the path of a file or a binary stream, got {type(path).__name__}")
    where = str(getattr(path, "name", "<stream>")) if stream else fspath(path)  # type: ignore[arg-type]
    try:
        data = path.read() if stream else _content(Path(path))  # type: ignore[union-attr,arg-type]
    except FileNotFoundError:
        raise
    except (ValueError, MemoryError, *_BROKEN) as error:
        why = getattr(error, "strerror", None) or str(error) or "it does not fit into memory"
        raise ParseError(f"the file cannot be read: {why}", path=where) from None
    if isinstance(data, str):
        raise ParseError("expected a binary stream, got one of text: open it with mode 'rb'", path=where)
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise ParseError(f"expected a binary stream, got one that gives {type(data).__name__}", path=where)
    data = bytes(data)
    if data.startswith((_GZIP, _XZ)):
        data = _unpack(data, where)
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data.strip():
        raise ParseError("the file is empty", path=where)
    return data


def _content(path: Path) -> bytes:
    """The bytes of a file; of devices only a terminal can hold a model, and some, such as /dev/zero, never end."""
    with path.open("rb") as file:
        if stat.S_ISCHR(os.fstat(file.fileno()).st_mode) and not file.isatty():
            raise OSError(0, "it is a device, not a file")
        return file.read()


def pack(data: bytes, path: str | PathLike[str]) -> bytes:
    """Data for a file of this name: packed if it ends in .gz or .xz; the same data give the same bytes."""
    suffix = Path(path).suffix.lower()
    if suffix == ".gz":
        return gzip.compress(data, mtime=0)
    return lzma.compress(data) if suffix == ".xz" else data


def is_device(path: Path) -> bool:
    """Whether a path leads to a pipe or a device, which is written to and not replaced."""
    return path.exists() and not path.is_file() and not path.is_dir()


def write_atomically(path: Path, data: bytes) -> None:
    """Write data to a file, whole or not at all: they go to a new file beside it, which then takes its name."""
    if is_device(path):
        path.write_bytes(data)
        return
    whole = path.resolve()  # a link stays a link, and its target is replaced
    beside = whole.with_name(f".{secrets.token_hex(8)}")
    try:
        with beside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if whole.exists():
            beside.chmod(whole.stat().st_mode)
        beside.replace(whole)
    except OSError as error:
        beside.unlink(missing_ok=True)
        if error.strerror is None:
            raise
        raise type(error)(error.errno, error.strerror, str(path)) from None
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _unpack(data: bytes, path: str | PathLike[str]) -> bytes:
    limit, unpacked = min(ROOM, default_memory_limit() // 2), io.BytesIO()
    try:
        with gzip.open(io.BytesIO(data)) if data.startswith(_GZIP) else lzma.open(io.BytesIO(data)) as stream:
            while unpacked.tell() <= limit and (piece := stream.read(PIECE)):
                unpacked.write(piece)
    except _BROKEN as error:
        raise ParseError(f"the compressed data is broken or cut off: {error}", path=fspath(path)) from None
    except MemoryError:
        raise ParseError("the unpacked file does not fit into memory", path=fspath(path)) from None
    if unpacked.tell() > limit:
        raise ParseError(
            f"{len(data)} compressed bytes unpack to more than {limit}; if the file is valid, unpack it first",
            path=fspath(path),
        )
    return unpacked.getvalue()


def text_of(data: bytes, path: str) -> str:
    """Bytes as text, UTF-8 or else Latin-1; ParseError if they are no text."""
    if b"\0" in data:
        line = line_of(data, data.index(b"\0"))
        raise ParseError("expected text, but there is a zero byte: is the file binary?", path=path, line=line)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def line_of(text: str | bytes, offset: int) -> int:
    """The line, from 1, of an offset; lines end with LF, CR LF or CR."""
    if isinstance(text, str):
        ends, returns, both = (text.count(end, 0, offset) for end in ("\n", "\r", "\r\n"))
    else:
        ends, returns, both = (text.count(end, 0, offset) for end in (b"\n", b"\r", b"\r\n"))
    return ends + returns - both + 1


def column_of(text: str, offset: int) -> int:
    """The column, from 1, of an offset in its line."""
    return offset - max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset))


def is_number(token: bytes) -> bool:
    """Whether `floats` accepts a token: `float` does, and it has no underscore, which `float` would ignore."""
    try:
        float(token)
    except ValueError:
        return False
    return b"_" not in token


def floats(data: bytes, start: int = 0) -> Array:
    """Numbers separated by white space, correctly rounded; ValueError if a word is none.

    The text is cut into chunks, so that tokens are short-lived; the work is that of `float` on each.
    """
    if data.find(b"_", start) >= 0:
        raise ValueError("float would accept 1_000 as a number")
    parts = []
    for begin, end in _chunks(data, start):
        tokens = data[begin:end].split()
        parts.append(np.fromiter(map(float, tokens), np.float64, len(tokens)))
    return np.concatenate(parts) if parts else np.zeros(0)


def _chunks(data: bytes, start: int) -> Iterator[tuple[int, int]]:
    """Pieces of about CHUNK bytes that end at white space."""
    while start < len(data):
        space = _SPACE.search(data, start + CHUNK)
        end = len(data) if space is None else space.start()
        yield start, end
        start = end


class NotANumber(ParseError):
    """A word among numbers is no number; it begins at `offset`."""

    def __init__(self, message: str, *, path: str, line: int, offset: int) -> None:
        super().__init__(message, path=path, line=line)
        self.offset = offset


class NumberText:
    """The numbers of a text, separated by white space, and where each stands.

    values: float64, as `floats` gives them.
    """

    __slots__ = ("_data", "_path", "_start", "values")

    def __init__(self, data: bytes, path: str, start: int = 0) -> None:
        self._data, self._path, self._start = data, path, start
        try:
            self.values = floats(data, start)
        except ValueError:
            raise self._not_a_number() from None

    def __len__(self) -> int:
        return len(self.values)

    def _not_a_number(self) -> NotANumber:
        wrong = next(m for m in _TOKEN.finditer(self._data, self._start) if not is_number(m.group()))
        shown = wrong.group()[:40].decode("ascii", "replace")
        line = line_of(self._data, wrong.start())
        return NotANumber(f"expected a number, got {shown!r}", path=self._path, line=line, offset=wrong.start())

    def line(self, number: int) -> int:
        """The line of a number; past the last one, the last line that is not blank."""
        seen = 0
        for begin, end in _chunks(self._data, self._start):
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
