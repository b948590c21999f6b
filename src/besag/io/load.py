"""`load`: a model from a file, whatever its format.

The suffix chooses the reader, .gz and .xz aside; where it says nothing, the first bytes do. A format is one module
with two functions, entered in FORMATS:

    matches(head: bytes) -> bool              whether a file that begins so is of this format
    read(data: bytes, path: str) -> Model     the model, or a ParseError with path and line
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike, fspath
from typing import NamedTuple

from besag.errors import ModelError, ParseError
from besag.io import bif, uai
from besag.io.files import read_bytes, suffix_of
from besag.model.model import Model

HEAD = 1 << 14


class Format(NamedTuple):
    """A file format: its name, its suffixes and its two functions."""

    name: str
    suffixes: tuple[str, ...]
    matches: Callable[[bytes], bool]
    read: Callable[[bytes, str], Model]


FORMATS = (
    Format("UAI", (".uai",), uai.matches, uai.read),
    Format("BIF", (".bif",), bif.matches, bif.read),
)


def load(path: str | PathLike[str]) -> Model:
    """A model from a file: .uai or .bif, each also .gz or .xz; by content where the suffix says nothing.

    FileNotFoundError where there is no such file; any other failure is a ParseError that names the path.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "coin.uai")
    >>> _ = file.write_text("MARKOV 1 2 1 1 0 2 1.0 3.0")
    >>> load(file).marginals()["0"]
    array([0.25, 0.75])
    """
    data = read_bytes(path)
    chosen = _choose(path, data)
    try:
        return chosen.read(data, fspath(path))
    except ParseError:
        raise
    except ModelError as error:
        raise ParseError(str(error), path=fspath(path)) from error
    except MemoryError:
        raise ParseError("the model does not fit into memory", path=fspath(path)) from None


def _choose(path: str | PathLike[str], data: bytes) -> Format:
    suffix = suffix_of(path)
    for format_ in FORMATS:
        if suffix in format_.suffixes:
            return format_
    for format_ in FORMATS:
        if format_.matches(data[:HEAD]):
            return format_
    known = ", ".join(suffix for format_ in FORMATS for suffix in format_.suffixes)
    raise ParseError(
        f"neither the suffix {suffix!r} nor the content names a format; expected one of {known}, also .gz or .xz",
        path=fspath(path),
    )
