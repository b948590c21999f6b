"""Checkpoints: where a fit stands, on disk, so that it can go on as if it had never stopped.

A checkpoint holds theta, the rows of the history, and what the method keeps from one iteration to the next: arrays,
numbers and texts by name. On disk it is one .npz archive: every array as such, all else as one text of JSON. Nothing
is pickled, so a checkpoint from a stranger can be read without harm.
"""

from __future__ import annotations

import io
import json
import lzma
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from besag.arrays import AnyArray, Array
from besag.errors import ParseError
from besag.io.shared.files import write_atomically
from besag.learn.history import Iteration

Kept: TypeAlias = AnyArray | float | int | str
FORMAT = "besag checkpoint 1"
ODD = (ValueError, KeyError, TypeError, AttributeError)
UNREADABLE = (OSError, EOFError, MemoryError, RuntimeError)  # encrypted members are a RuntimeError
BROKEN = (*ODD, *UNREADABLE, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error)  # of an archive
PREFIX = "kept."  # of the arrays that a method keeps, so that none can take the name of ours


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A fit after `iteration` iterations, or within the next one where a method goes on in parts.

    optimizer: its name. theta: (P,). seconds: of the fit so far. rows: of the history, one for each iteration and one
    for the start.
    """

    optimizer: str
    theta: Array
    iteration: int
    seconds: float
    rows: tuple[Iteration, ...]
    kept: Mapping[str, Kept]

    @property
    def shown(self) -> Array:
        """The theta that the last row speaks of: the average, where there is one."""
        return np.asarray(self.kept.get("average", self.theta), np.float64)

    def __repr__(self) -> str:
        return f"Checkpoint({self.optimizer} after {self.iteration} iterations, {len(self.theta)} parameters)"

    def save(self, path: str | PathLike[str]) -> None:
        """Into a file, from which `besag.fit(..., resume=path)` goes on."""
        save_checkpoint(self, path)


def save_checkpoint(checkpoint: Checkpoint, path: str | PathLike[str]) -> None:
    """Writes a checkpoint, whole or not at all."""
    arrays: dict[str, Any] = {
        PREFIX + name: value for name, value in checkpoint.kept.items() if isinstance(value, np.ndarray)
    }
    others = {name: value for name, value in checkpoint.kept.items() if not isinstance(value, np.ndarray)}
    about = {
        "format": FORMAT,
        "optimizer": checkpoint.optimizer,
        "iteration": checkpoint.iteration,
        "seconds": checkpoint.seconds,
        "kept": others,
    }
    rows = np.array(checkpoint.rows, np.float64).reshape(-1, len(Iteration._fields))
    archive = io.BytesIO()
    np.savez(archive, about=np.array(json.dumps(about)), theta=checkpoint.theta, rows=rows, **arrays)
    write_atomically(Path(path), archive.getvalue())


def load_checkpoint(path: str | PathLike[str]) -> Checkpoint:
    """Reads what `save_checkpoint` has written; ParseError where the file is none or is broken."""
    data = Path(path).read_bytes()
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        return _read(arrays)
    except BROKEN as error:
        why = "it is no archive" if "pickled" in str(error) else str(error)  # numpy would advise to run what is in it
        raise ParseError(f"expected a checkpoint of besag, but it cannot be read: {why}", path=fspath(path)) from None


def _read(arrays: dict[str, AnyArray]) -> Checkpoint:
    about: dict[str, Any] = json.loads(str(arrays["about"]))
    if about["format"] != FORMAT:
        raise ValueError(f"its format is {about['format']!r}, not {FORMAT!r}")
    theta, rows = arrays["theta"], arrays["rows"]
    if theta.ndim != 1 or theta.dtype != np.float64 or rows.shape != (about["iteration"] + 1, len(Iteration._fields)):
        raise ValueError(f"theta of shape {theta.shape} and rows of shape {rows.shape} do not belong together")
    kept = {name.removeprefix(PREFIX): array for name, array in arrays.items() if name.startswith(PREFIX)}
    return Checkpoint(
        optimizer=about["optimizer"],
        theta=theta,
        iteration=about["iteration"],
        seconds=about["seconds"],
        rows=tuple(Iteration(int(number), *rest) for number, *rest in rows.tolist()),
        kept={**about["kept"], **kept},
    )
