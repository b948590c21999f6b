"""The native format: JSON that holds every Model without loss, with large arrays in a file beside it.

    file       = { "besag": 1, "kind": "model", "arrays": arrays (`besag.io.native.arrays_beside`), if some are large,
                   "metadata": {...}, "variables": variables, "templates": [ template, ... ], "groups": [ group, ... ],
                   "theta": array, "support": array, "shape": [ n, ... ] }
    variables  = { "names": [ text, ... ] | { "range": n } | { "grid": [ height, width ] },
                   "spaces": [ [ state, ... ], ... ], "space_of": array, "metadata": { number: {...}, ... } }
    template   = { "name": text, "shape": [ K, ... ], "n_inputs": D, "support": array,
                   "basis": { "tables": array } | { kind: field } | { kind: { field, ... } },
                   "pattern": { "rows": array, "columns": array } }
    group      = { "template": number, "scopes": array, "conditional": true, "positions": array, "names": [ text, ... ],
                   "inputs": { "rows": array } | { "dense": array } | { "csr": { shape, data, indices, indptr } } }

`kind` is the name of a structured factor (`besag.model.structured.kinds`): { "potts": K }, { "scaled": array }. Keys
that a model does not need are left out. Numbers are written such that the same doubles are read back. "besag" is
the version of the format and comes first; a reader refuses versions that it does not know. The arrays file is written
before the JSON and the previous arrays file removed after it, each whole or not at all, so that there is a complete
model at every moment; if the JSON cannot be written, the new arrays are removed.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import re
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

from besag.errors import ModelError, ParseError
from besag.io.formats import Source
from besag.io.native.arrays_beside import ArrayReader, ArrayWriter, archive_name, read_archive
from besag.io.native.read import Fields, NativeDocument, model_of_document
from besag.io.native.write import document_of
from besag.io.shared.files import PACKED, column_of, is_device, line_of, pack, read_bytes, text_of, write_atomically
from besag.io.shared.json_places import deepest, longest_number, second_of_a_key
from besag.io.shared.json_text import parse, too_many_brackets
from besag.model.model import Model

VERSION = 1
HEAD = 1024  # first bytes of a file, in which it names its arrays

_START = re.compile(rb'\s*\{\s*"besag"\s*:')
_REFERENCE = re.compile(rb'\s*\{"besag": 1,\s+"kind": "[a-z]+",\s+"arrays": \{"file": "([^"/\\]+)"')
_KEYS = "besag kind arrays metadata variables templates groups theta support shape"


def matches(head: bytes) -> bool:
    """Whether a file that begins so is of the native format."""
    return _START.match(head) is not None


# Writing --------------------------------------------------------------------------------------------------------------


def save(model: Model, path: Path) -> None:
    """Write a model and, if it is large, its arrays beside it."""
    if is_device(path):
        _save_to_device(model, path)
        return
    path = path.resolve()
    arrays, name = ArrayWriter(), None
    document: dict[str, Any] = {"besag": VERSION, "kind": "model"}
    content = document_of(model, arrays)
    archive = arrays.archive() if arrays.stored else b""
    if archive:
        digest = hashlib.sha256(archive).hexdigest()
        name = archive_name(_stem(path), digest)
        document["arrays"] = {"file": name, "sha256": digest}
    data = pack(_text(document | content), path)
    before = _referred(path)
    _write_both(path, data, name, archive)
    if before is not None and before != name:
        with suppress(OSError):  # a leftover file does no harm
            _remove(path, before)


def _save_to_device(model: Model, path: Path) -> None:
    arrays = ArrayWriter()
    document = {"besag": VERSION, "kind": "model"} | document_of(model, arrays)
    if arrays.stored:
        raise ModelError(f"{path} is a pipe or a device: the arrays of a large model cannot be kept beside it")
    write_atomically(path, pack(_text(document), path))


def _write_both(path: Path, data: bytes, name: str | None, archive: bytes) -> None:
    """Write the arrays, if any, and then the JSON; if that fails the arrays are removed again."""
    new = name is not None and not path.with_name(name).exists()
    try:
        if name is not None:
            write_atomically(path.with_name(name), archive)
        write_atomically(path, data)
    except BaseException:
        if new and name is not None and _referred(path) != name:
            path.with_name(name).unlink(missing_ok=True)
        raise


def _text(document: dict[str, Any]) -> bytes:
    """JSON with a line for each part, template and group."""
    try:
        lines = [f"{json.dumps(key)}: {_lines(value)}" for key, value in document.items()]
    except ValueError as error:  # an integer of thousands of digits
        raise ModelError(f"the metadata cannot be written as JSON: {error}") from None
    text = "{" + ",\n ".join(lines) + "}\n"
    if too_many_brackets(text) is not None:
        raise ModelError("the metadata has too many small lists and dicts to be read back: keep it in another file")
    return text.encode("utf-8", "backslashreplace")


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
    """Whether the beginning of a file, packed or not, names an arrays file; True if it cannot be read."""
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
    text = text_of(source.data, source.path)
    try:
        return _model(NativeDocument(text, source.path, _parsed(text, source.path)))
    except json.JSONDecodeError as error:
        line, column = line_of(text, error.pos), column_of(text, error.pos)
        raise ParseError(f"expected JSON: {error.msg}", path=source.path, line=line, column=column) from None
    except RecursionError:
        line = line_of(text, deepest(text))
        raise ParseError("the brackets are nested too deeply", path=source.path, line=line) from None


def _parsed(text: str, path: str) -> Any:
    brackets = too_many_brackets(text)
    if brackets is not None:
        raise ParseError(f"{brackets} lists and objects are too many for a file of {len(text)} characters", path=path)
    try:
        return parse(text)
    except json.JSONDecodeError:
        raise
    except ValueError as error:  # a key that is given twice, or a number of thousands of digits
        place = second_of_a_key(text) if "twice" in str(error) else longest_number(text)
        raise ParseError(str(error), path=path, line=None if place is None else line_of(text, place)) from None


def _model(document: NativeDocument) -> Model:
    root = document.root
    if not isinstance(root, dict) or "besag" not in root:
        raise document.fail('expected a model that besag saved, an object that begins with {"besag": 1')
    version = root["besag"]
    if type(version) is not int or version < 1:
        raise document.fail(f'expected "besag": 1, got {type(version).__name__}', "besag")
    if version > VERSION:
        message = f"the file is of version {str(version)[:40]} of the format, and this besag reads up to {VERSION}: "
        raise document.fail(f"{message}update besag", "besag")
    if root.get("kind") != "model":
        raise document.fail(f'expected "kind": "model", got {str(root.get("kind"))[:40]!r}', "kind")
    fields = Fields(document, root, _KEYS, "the file")
    try:
        stored = read_archive(root["arrays"], document.path) if fields.has("arrays") else {}
    except ValueError as error:
        raise document.fail(str(error), "arrays") from None
    return model_of_document(fields, ArrayReader(stored))
