"""Arrays of a native file: small ones in its JSON, large ones in one .npz beside it. Nothing is ever pickled.

    array   = [ number, ... ]                                       of one axis
            | { "shape": [ n, ... ], "values": [ number, ... ] }    the last axis fastest
            | { "stored": name }                                    in the .npz
    arrays  = { "file": "<stem>.<12 hex digits>.npz", "sha256": 64 hex digits }

The .npz is a zip archive of .npy files (version 1.0) without compression, so that it cannot unpack to more than its own
size; whole numbers take as few bytes as they need. Its name has the first digits of its SHA-256, so that a changed
model gets a new file, and a JSON file always finds the arrays that it was written with, or none.
"""

from __future__ import annotations

import hashlib
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from besag.arrays import AnyArray
from besag.io.shared.json_text import LongList
from besag.io.shared.tables import MAX_ARITY

INLINE = 4096  # most entries of an array that stays in the JSON
MAX_AXES = MAX_ARITY + 2

_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    r"\{'descr': '([<|][bif][1248])', 'fortran_order': False, 'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), \} *\n"
)
_KINDS = {
    np.dtype(np.float64): ("<f8",),
    np.dtype(np.bool_): ("|b1",),
    np.dtype(np.int64): ("|i1", "<i2", "<i4", "<i8"),
}
_BROKEN = (ValueError, OSError, EOFError, KeyError, RuntimeError, struct.error, zlib.error, zipfile.BadZipFile)
_TYPES: dict[np.dtype[Any], set[type]] = {
    np.dtype(np.float64): {float, int},
    np.dtype(np.bool_): {bool},
    np.dtype(np.int64): {int},
}


# Writing --------------------------------------------------------------------------------------------------------------


class ArrayWriter:
    """Turns arrays into JSON and keeps the large ones for the .npz."""

    def __init__(self) -> None:
        self.stored: dict[str, AnyArray] = {}

    def put(self, name: str, array: AnyArray) -> Any:
        """The JSON of an array; `name`: of the array in the .npz."""
        if array.size > INLINE or not np.isfinite(array).all():
            self.stored[name] = array
            return {"stored": name}
        values = array.reshape(-1).tolist()
        return values if array.ndim == 1 else {"shape": list(array.shape), "values": values}

    def archive(self) -> bytes:
        """The .npz; the same arrays give the same bytes."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
            for name, array in self.stored.items():
                member = io.BytesIO()
                np.lib.format.write_array(member, _narrow(array), version=(1, 0), allow_pickle=False)
                archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue())
        return buffer.getvalue()


def _narrow(array: AnyArray) -> AnyArray:
    """The array as it is stored: whole numbers in the smallest type that holds them."""
    kind: str = {"f": "f8", "b": "b1"}.get(array.dtype.kind, "i8")
    if kind == "i8":
        low, high = int(array.min(initial=0)), int(array.max(initial=0))
        kind = next(k for k in ("i1", "i2", "i4", "i8") if np.iinfo(k).min <= low and high <= np.iinfo(k).max)
    return np.ascontiguousarray(array, np.dtype(kind).newbyteorder("<"))


def archive_name(stem: str, digest: str) -> str:
    """The name of the .npz of a model file."""
    return f"{stem}.{digest[:12]}.npz"


# Reading --------------------------------------------------------------------------------------------------------------


class ArrayReader:
    """The arrays of a native file that is read."""

    def __init__(self, stored: Mapping[str, AnyArray]) -> None:
        self.stored = stored

    def get(self, given: Any, dtype: np.dtype[Any]) -> AnyArray:
        """An array from its JSON; ValueError or OverflowError if it is not an array of this type."""
        if isinstance(given, dict) and set(given) == {"stored"}:
            return self._from_archive(given["stored"], dtype)
        shape, values = None, given
        if isinstance(given, dict) and set(given) == {"shape", "values"}:
            shape, values = given["shape"], given["values"]
        if not isinstance(values, (list, LongList)):
            raise ValueError(f"expected an array of {dtype.name}")
        flat = np.empty(len(values), dtype)
        at = 0
        for part in values.pieces() if isinstance(values, LongList) else [values]:
            flat[at : at + len(part)] = _typed(part, dtype)
            at += len(part)
        if shape is not None and not _is_shape(shape, len(flat)):
            raise ValueError(f"{len(flat)} values do not have the shape {str(shape)[:60]}")
        return flat if shape is None else flat.reshape(shape)

    def _from_archive(self, name: object, dtype: np.dtype[Any]) -> AnyArray:
        array = self.stored.get(name) if isinstance(name, str) else None
        if array is None:
            raise ValueError(f"the arrays file has no {str(name)[:60]!r}")
        if array.dtype.str not in _KINDS[dtype]:
            raise ValueError(f"expected an array of {dtype.name}, got {array.dtype.name}")
        return array.astype(dtype, copy=False)


def _typed(values: list[Any], dtype: np.dtype[Any]) -> AnyArray:
    if not set(map(type, values)) <= _TYPES[dtype]:
        raise ValueError(f"expected an array of {dtype.name}")
    return np.array(values, dtype)


def _is_shape(shape: Any, size: int) -> bool:
    return (
        isinstance(shape, list)
        and len(shape) <= MAX_AXES
        and all(type(n) is int and 0 <= n < 2**40 for n in shape)
        and prod(shape) == size
    )


def read_archive(reference: Any, path: str) -> dict[str, AnyArray]:
    """The arrays that a native file refers to, from the folder that it is in; ValueError if they cannot be read."""
    if not isinstance(reference, dict) or not all(isinstance(reference.get(key), str) for key in ("file", "sha256")):
        raise ValueError('expected "arrays": {"file": name, "sha256": digits}')
    name, digest = reference["file"], reference["sha256"]
    if path == "<stream>":
        raise ValueError(f"the arrays are in {name!r} beside the file, but a stream has no folder: load it by its path")
    if Path(name).name != name or "\\" in name or "\0" in name:
        raise ValueError(f"the arrays file must be in the same folder, got {name[:60]!r}")
    try:
        data = (Path(path).resolve().parent / name).read_bytes()
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        what = "which is not in its folder" if missing else f"which cannot be read: {error}"
        raise ValueError(f"the arrays of this model are in {name[:60]!r}, {what}; keep both together") from None
    if hashlib.sha256(data).hexdigest() != digest:
        raise ValueError(f"{name!r} is not the arrays file that this model was saved with: its SHA-256 differs")
    try:
        return _members(data)
    except _BROKEN as error:
        raise ValueError(f"the arrays file {name!r} is broken: {error}") from None


def _members(data: bytes) -> dict[str, AnyArray]:
    """The arrays of a .npz; ValueError before anything is allocated that the file does not contain."""
    found: dict[str, AnyArray] = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > len(data):
            raise ValueError("it declares more than it holds")
        for member in members:
            name = member.filename.removesuffix(".npy")
            if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1 or name in found:
                raise ValueError(f"{name[:60]!r} is compressed, encrypted or there twice")
            found[name] = _array(archive.read(member), name)
    return found


def _array(data: bytes, name: str) -> AnyArray:
    """The array of a .npy file, read-only."""
    start = len(_MAGIC) + 2
    end = start + int.from_bytes(data[len(_MAGIC) : start], "little")
    header = _HEADER.fullmatch(data[start:end].decode("latin-1"))
    if not data.startswith(_MAGIC) or header is None:
        raise ValueError(f"{name[:60]!r} is no array of numbers")
    dtype = np.dtype(header.group(1))
    shape = [int(n) for n in header.group(2).split(",") if n.strip()]
    if dtype.str not in {kind for kinds in _KINDS.values() for kind in kinds} or not _is_shape(shape, prod(shape)):
        raise ValueError(f"{name[:60]!r} is of {dtype} and shape {shape[:8]}")
    if prod(shape) * dtype.itemsize != len(data) - end:
        raise ValueError(f"{name[:60]!r} declares {prod(shape)} entries but holds {len(data) - end} bytes")
    return np.frombuffer(data, dtype, offset=end).reshape(shape)
