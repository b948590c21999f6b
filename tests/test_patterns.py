"""Regular expressions without possessive quantifiers and atomic groups: Python 3.11.2, Debian's, gets them wrong."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import besag

SOURCE = Path(next(iter(besag.__path__)))
WRITTEN = re.compile(r"(?<!\\)[*+?}]\+|\(\?>")
BROKEN = {"POSSESSIVE_REPEAT", "ATOMIC_GROUP"}


def operations(parsed: Any) -> Iterator[str]:
    """The names of what a parsed pattern is made of, at all depths."""
    if isinstance(parsed, (list, tuple)) or type(parsed).__name__ == "SubPattern":
        for part in parsed:
            yield from operations(part)
    elif type(parsed).__name__ == "_NamedIntConstant":
        yield parsed.name


def parsed(pattern: str | bytes, flags: int = 0) -> Any:
    return importlib.import_module("re._parser").parse(pattern, flags)


def compiled() -> list[tuple[str, re.Pattern[Any]]]:
    """The patterns of all modules, however they were put together."""
    names = [m.name for m in pkgutil.walk_packages([str(SOURCE)], "besag.") if not m.name.endswith("__main__")]
    return [
        (f"{name}.{key}", value)
        for name in names
        for key, value in vars(importlib.import_module(name)).items()
        if isinstance(value, re.Pattern)
    ]


@pytest.mark.parametrize("pattern", ["a*+", "(b|(?:c++d)?)", "x(?=(?>a|b))", rb"\s?+", "a{2,3}+"])
def test_they_are_seen(pattern: str | bytes) -> None:
    assert BROKEN & set(operations(parsed(pattern)))


def test_compiled_patterns() -> None:
    found = compiled()
    assert len(found) > 50
    flags = re.VERBOSE | re.DOTALL | re.IGNORECASE | re.MULTILINE
    assert [where for where, one in found if BROKEN & set(operations(parsed(one.pattern, one.flags & flags)))] == []


def test_written_patterns() -> None:
    """Also those that are compiled where they are used, and parts of patterns."""
    found = []
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            text = node.value if isinstance(node, ast.Constant) else None
            text = text.decode("latin-1") if isinstance(text, bytes) else text
            if isinstance(text, str) and WRITTEN.search(text):
                found.append(f"{file.name}:{node.lineno}: {text[:60]}")
    assert found == []
