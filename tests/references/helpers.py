"""Small tools of the tests against published answers."""

import gzip
import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet

EXACT: dict[str, Any] = {"engine": "exact", "memory_limit": 4 * 2**30}


def marked(names: Iterable[str], fast: Collection[str]) -> list[ParameterSet]:
    """Names as parameters of a test, slow unless they are among the fast ones."""
    return [pytest.param(name, marks=() if name in fast else pytest.mark.slow) for name in names]


def file_of(folder: Path, name: str) -> Path:
    """A file of the data folder as it is or compressed; skips where it is absent."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.exists():
            return path
    pytest.skip(f"{folder / name} is absent")


def text_of(path: Path) -> str:
    """The content of a file, compressed or not."""
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return file.read()
    return path.read_text(encoding="utf-8")


def json_of(path: Path) -> Any:
    """The content of a JSON file, compressed or not."""
    return json.loads(text_of(path))
