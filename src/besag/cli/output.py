"""What commands print: tables and JSON.

On a terminal a table is aligned, and its lines are cut to the terminal's width. In a pipe or a file nothing is
cut: a line a row, columns separated by tabs, and "# " before notes. What is not printable is escaped, so that no name
in a file can steer a terminal.

JSON has no NaN (null instead) and no infinities (the texts "Infinity" and "-Infinity" instead).
"""

from __future__ import annotations

import csv
import json
import math
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from besag.cli.messages import escape
from besag.text import table

LEAST_WIDTH = 20
STRICT = json.JSONEncoder(allow_nan=False)


def on_terminal() -> bool:
    """Whether people look at what is printed."""
    return sys.stdout.isatty()


def print_table(notes: Sequence[str], header: Sequence[str], parts: Iterable[Sequence[Sequence[str]]]) -> None:
    """Notes, and a table below them, whose parts are columns of escaped cells."""
    names, above = tuple(map(escape, header)), list(map(escape, notes))
    if on_terminal():
        width = shutil.get_terminal_size().columns
        rows = [row for columns in parts for row in zip(*columns, strict=True)]
        lines = [*above, *([""] if above else []), *table(names, rows).splitlines()]
        print("\n".join(cut_line(line, width) for line in lines))
        return
    print("\n".join([*(f"# {note}" for note in above), "\t".join(names)]))
    for columns in parts:
        print("\n".join(map("\t".join, zip(*columns, strict=True))))


def print_csv(header: Sequence[str], parts: Iterable[Sequence[Sequence[str]]]) -> None:
    """A table as comma-separated values, without notes."""
    lines = csv.writer(sys.stdout, lineterminator="\n")
    lines.writerow(header)
    for columns in parts:
        lines.writerows(zip(*columns, strict=True))


def print_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """Keys and values; on a terminal a long value goes on below itself."""
    cells = [(escape(key), escape(value)) for key, value in pairs]
    if not on_terminal():
        print("\n".join("\t".join(pair) for pair in cells))
        return
    margin = max(len(key) for key, _ in cells) + 2
    width = max(shutil.get_terminal_size().columns - margin, LEAST_WIDTH)
    for key, value in cells:
        first, *more = textwrap.wrap(value, width) or [""]
        print("\n".join([key.ljust(margin) + first, *(" " * margin + line for line in more)]))


def cut_line(line: str, width: int) -> str:
    """A line of at most so many characters.

    >>> cut_line("besag infer", 8)
    'besag...'
    """
    return line if len(line) <= width else line[: max(width - 3, 0)] + "..."


def print_json(answer: Any) -> None:
    """JSON: indented for people, in one line otherwise."""
    print(json.dumps(plain(answer), allow_nan=False, indent=2) if on_terminal() else _encoded(answer))


def print_json_list(answers: Iterable[Any]) -> None:
    """The same of a list, which is not kept as a whole: a line an item."""
    if on_terminal():
        print_json(list(answers))
        return
    before = "["
    for answer in answers:
        sys.stdout.write(before + _encoded(answer))
        before = ",\n"
    print("]")


def print_json_lines(answers: Iterable[Any]) -> None:
    """An object a line."""
    for answer in answers:
        print(_encoded(answer))


def _encoded(answer: Any) -> str:
    """JSON in one line; only where there are numbers that JSON has not, or arrays, is it made plain first."""
    try:
        return STRICT.encode(answer)
    except (TypeError, ValueError):
        return STRICT.encode(plain(answer))


def plain(value: Any) -> Any:
    """Values as JSON has them: numpy's numbers and arrays, mappings and sequences become Python's."""
    if isinstance(value, float):
        return plain_number(value)
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, Iterable):
        return [plain(item) for item in value]
    return str(value)


def plain_number(value: float) -> float | str | None:
    """A number, null for NaN, a text for an infinity."""
    if math.isfinite(value):
        return value
    return None if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
