"""The native format: JSON that holds every Model without loss, with large arrays in a file beside it.

    file       = { "besag": 1, "kind": "model", "arrays": see `besag.io.arrays_beside`, where there are large ones,
                   "metadata": {...}, "variables": variables, "templates": [ template, ... ], "groups": [ group, ... ],
                   "theta": array, "support": array, "shape": [ n, ... ] }
    variables  = { "names": [ text, ... ] | { "range": n } | { "grid": [ height, width ] },
                   "spaces": [ [ state, ... ], ... ], "space_of": array, "metadata": { number: {...}, ... } }
    template   = { "name": text, "shape": [ K, ... ], "n_inputs": D, "support": array,
                   "basis": { "tables": array } | { "scaled": array } | { "potts": K },
                   "pattern": { "rows": array, "columns": array } }
    group      = { "template": number, "scopes": array, "conditional": true, "positions": array, "names": [ text, ... ],
                   "inputs": { "rows": array } | { "dense": array } | { "csr": { shape, data, indices, indptr } } }

What a model does not have is left out. Numbers are written so that the same doubles are read again. "besag" is the
version of the format and stands first; a reader refuses versions that it does not know. The arrays file is written
before the JSON and that of the model's last state removed after it, each whole or not at all, so that there is a
complete model at every moment.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import re
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

from besag.errors import ModelError, ParseError
from besag.io.arrays_beside import ArrayReader, ArrayWriter, archive_name, read_archive
from besag.io.files import PACKED, packed, read_bytes, text_of, write_atomically
from besag.io.formats import Source
from besag.io.native_read import Fields, model_of_document
from besag.io.native_write import document_of
from besag.model.model import Model

VERSION = 1
HEAD = 1024  # bytes of a file in which it names its arrays

_START = re.compile(rb'\s*+\{\s*+"besag"\s*+:')
_REFERENCE = re.compile(rb'\s*+\{"besag": 1,\s++"kind": "[a-z]++",\s++"arrays": \{"file": "([^"/\\]++)"')
_KEYS = "besag kind arrays metadata variables templates groups theta support shape"


def matches(head: bytes) -> bool:
    """Whether a file that begins so is of the native format."""
    return _START.match(head) is not None


# Writing --------------------------------------------------------------------------------------------------------------


def save(model: Model, path: Path) -> None:
    """Write a model and, where it is large, its arrays beside it."""
    path = path.resolve()
    arrays = ArrayWriter()
    document: dict[str, Any] = {"besag": VERSION, "kind": "model"}
    content = document_of(model, arrays)
    before = _referred(path)
    name = None
    if arrays.stored:
        archive = arrays.archive()
        digest = hashlib.sha256(archive).hexdigest()
        name = archive_name(_stem(path), digest)
        document["arrays"] = {"file": name, "sha256": digest}
        write_atomically(path.with_name(name), archive)
    write_atomically(path, packed(_text(document | content), path))
    if before is not None and before != name:
        _remove(path, before)


def _text(document: dict[str, Any]) -> bytes:
    """JSON with a line for each part, template and group."""
    try:
        lines = [f"{json.dumps(key)}: {_lines(value)}" for key, value in document.items()]
    except ValueError as error:  # an integer of thousands of digits
        raise ModelError(f"the metadata cannot be written as JSON: {error}") from None
    return ("{" + ",\n ".join(lines) + "}\n").encode("utf-8", "backslashreplace")


def _lines(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n  " + ",\n  ".join(json.dumps(item, ensure_ascii=False) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def _stem(path: Path) -> str:
    """The name of a file without .gz or .xz and without its suffix.

    >>> _stem(Path("a.b.json.gz"))
    'a.b'
    """
    return (path.with_suffix("") if path.suffix.lower() in PACKED else path).stem


def _referred(path: Path) -> str | None:
    """The arrays file that the model in a file refers to, if it has the name that `save` gives it; else None."""
    try:
        found = _REFERENCE.match(read_bytes(path))
    except (FileNotFoundError, ParseError):
        return None
    name = None if found is None else found.group(1).decode("utf-8", "replace")
    ours = re.compile(re.escape(_stem(path)) + r"\.[0-9a-f]{12}\.npz")
    return name if name is not None and ours.fullmatch(name) else None


def _remove(path: Path, name: str) -> None:
    """Remove an arrays file, unless another file of the folder, such as a copy of the model, still refers to it."""
    others = (other for other in path.parent.iterdir() if other.suffix != ".npz" and other.is_file())
    if not any(_may_refer(other, name) for other in others):
        path.with_name(name).unlink(missing_ok=True)


def _may_refer(path: Path, name: str) -> bool:
    """Whether the beginning of a file, packed or not, names an arrays file; True where it cannot be read."""
    try:
        with path.open("rb") as file:
            head = file.read(len(name) + HEAD)
        if head.startswith((b"\x1f\x8b", b"\xfd7zXZ")):
            with gzip.open(path) if head[0] == 0x1F else lzma.open(path) as packed_file:
                head = packed_file.read(len(name) + HEAD)
    except (OSError, EOFError, zlib.error, lzma.LZMAError):
        return True
    return json.dumps(name, ensure_ascii=False).encode("utf-8", "backslashreplace") in head


# Reading --------------------------------------------------------------------------------------------------------------


def read(source: Source) -> Model:
    """A Model from the content of a native file and the arrays beside it."""
    try:
        return _model(_parsed(source), source.path)
    except RecursionError:
        raise ParseError("the brackets are nested too deeply", path=source.path) from None


def _parsed(source: Source) -> Any:
    try:
        return json.loads(text_of(source.data, source.path), object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        message = f"expected JSON: {error.msg}"
        raise ParseError(message, path=source.path, line=error.lineno, column=error.colno) from None
    except ValueError as error:  # a key that is given twice, a number of thousands of digits, or no text at all
        raise error if isinstance(error, ParseError) else ParseError(str(error), path=source.path) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
        raise ValueError(f"the key {twice[:60]!r} is given twice")
    return found


def _model(document: Any, path: str) -> Model:
    if not isinstance(document, dict) or "besag" not in document:
        raise ParseError('expected a model that besag saved, an object that begins with {"besag": 1', path=path)
    version = document["besag"]
    if type(version) is not int or version < 1:
        raise ParseError(f'expected "besag": 1, got {type(version).__name__}', path=path)
    if version > VERSION:
        message = f"the file is of version {str(version)[:40]} of the format, and this besag reads up to {VERSION}: "
        raise ParseError(f"{message}update besag", path=path)
    if document.get("kind") != "model":
        raise ParseError(f'expected "kind": "model", got {str(document.get("kind"))[:40]!r}', path=path)
    fields = Fields(document, _KEYS, "the file", path)
    stored = read_archive(document["arrays"], path) if fields.has("arrays") else {}
    return model_of_document(fields, ArrayReader(path, stored))
