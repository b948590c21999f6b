"""Files of evidence.

    .evid         UAI, either style: variables and states by their numbers; a sample is a row
    .virt         UAI, likelihoods of variables
    .json         {name: state}, where a state may be a list of allowed ones or {state: likelihood}; a list of such
                  objects is a row each
    .csv, .tsv    names in the first line, then a row a query, separated by commas, tabs or semicolons; empty cells, and
                  NA and its like where no state is named so, are free; a first column without a name has the labels of
                  the rows

Other suffixes are told apart by content. What is wrong is told with the file, and the line where there are several.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from besag.arrays import IntArray
from besag.cli.rows import EvidenceRows, rows_of
from besag.errors import EvidenceError, ParseError
from besag.graph.evidence import cell_code, no_state
from besag.io.shared.files import line_of, read_bytes, suffix_of, text_of
from besag.io.uai.tasks import line_of_sample, read_uai_likelihoods, samples_of
from besag.model.model import Model
from besag.model.variable import Variables

if TYPE_CHECKING:
    import _csv

SEPARATORS = {",": "a comma", "\t": "a tab", ";": "a semicolon"}
_SPACE = re.compile(r"\s*")


def read_rows(model: Model, path: str) -> EvidenceRows:
    """The rows of a file."""
    if not Path(path).exists():
        raise EvidenceError(f"{path!r} is neither NAME=STATE nor a file: {_instead(model.variables, path)}")
    kind = suffix_of(path)
    if kind == ".virt":
        return rows_of(model.variables, [dict(read_uai_likelihoods(path, model))], path)
    data = read_bytes(path)
    if kind == ".evid" or (kind not in (".json", ".csv", ".tsv") and is_numbers(data)):
        return rows_of(
            model.variables, samples_of(data, path, model) or [{}], path, partial(line_of_sample, data, path)
        )
    text = text_of(data, path)
    if kind == ".json" or (kind not in (".csv", ".tsv") and text.lstrip()[:1] in ("{", "[")):
        return _from_json(model.variables, text, path)
    return _from_csv(model.variables, text, path)


def _instead(variables: Variables, item: str) -> str:
    name, equals, _ = item.partition("=")
    if equals:
        return variables.unknown(name)
    return "there is no such file" if variables.names.find(name) is None else f"write {name}=STATE"


def is_numbers(data: bytes) -> bool:
    """Whether the first line is of whole numbers alone, separated by white space, as in files of UAI."""
    words = data.lstrip().partition(b"\n")[0].partition(b"#")[0].split()
    return bool(words) and all(word.isdigit() for word in words)


# JSON ----------------------------------------------------------------------------------------------------------------


def _from_json(variables: Variables, text: str, path: str) -> EvidenceRows:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise ParseError(f"expected JSON: {error.msg}", path=path, line=error.lineno, column=error.colno) from None
    except (RecursionError, ValueError) as error:
        raise ParseError(f"expected JSON: {error}", path=path) from None
    rows = found if isinstance(found, list) and found else [found]
    for row in rows:
        if not isinstance(row, dict):
            kind = type(row).__name__
            raise ParseError(f"expected an object {{name: state}}, or a list of such rows, got {kind}", path=path)
    return rows_of(variables, rows, path, partial(_line_of_row, text))


def _line_of_row(text: str, row: int) -> int | None:
    """The line on which an item of a list begins; one object needs none."""
    if text.lstrip()[0] != "[":
        return None
    decoder, at = json.JSONDecoder(), text.index("[") + 1
    for _ in range(row):
        _, end = decoder.raw_decode(text, _begin(text, at))
        at = text.index(",", end) + 1
    return line_of(text, _begin(text, at))


def _begin(text: str, at: int) -> int:
    """The first place from `at` that is no white space."""
    space = _SPACE.match(text, at)
    return at if space is None else space.end()


# CSV -----------------------------------------------------------------------------------------------------------------


def _from_csv(variables: Variables, text: str, path: str) -> EvidenceRows:
    """Column by column: each distinct cell of one is looked up once."""
    separator = _separator(variables, text.lstrip("\r\n"))
    header, records, lines = _records(text, path, separator)
    labelled = header[0] == ""
    columns = list(zip(*records, strict=True))
    observed = np.full((len(records), len(variables)), -1, np.int64)
    for name, column in list(zip(header, columns, strict=True))[labelled:]:
        v = variables.names.find(name)
        if v is None:
            hint = (
                f"take the column out, or start the header line with {SEPARATORS[separator]} where it labels the rows"
            )
            raise ParseError(f"{variables.unknown(name)}; {hint}", path=path, line=1)
        observed[:, v] = _codes(variables, v, column, path, lines)
    labels = columns[0] if labelled else [str(row) for row in range(len(records))]
    return EvidenceRows(observed, None, observed >= 0, labels, path, lines.__getitem__)


def _reader(text: str, separator: str) -> _csv.Reader:
    stream = io.StringIO(text, newline="")
    return csv.reader(stream, delimiter=separator, skipinitialspace=separator != "\t", strict=True)


def _separator(variables: Variables, text: str) -> str:
    """That which finds most variables in the first line, or else most columns."""

    def found(separator: str) -> tuple[int, int]:
        try:
            names = next(_reader(text, separator))
        except csv.Error:
            return 0, 0
        return sum(variables.names.find(name) is not None for name in names), len(names)

    return max(SEPARATORS, key=found)


def _records(text: str, path: str, separator: str) -> tuple[list[str], list[list[str]], list[int]]:
    """Names, rows, and the lines of these; all rows are as long as the names."""
    reader = _reader(text, separator)
    records, lines = [], []
    try:
        for cells in reader:
            if cells:
                records.append(cells)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise ParseError(f"expected CSV: {error}", path=path, line=reader.line_num) from None
    header = records.pop(0)
    name, columns = Counter(header).most_common(1)[0]
    if columns > 1:
        raise ParseError(f"{columns} columns are named {name!r}", path=path, line=lines[0])
    if not records:
        raise ParseError("expected rows below the line of names, got none", path=path, line=lines[0])
    for line, cells in zip(lines[1:], records, strict=True):
        if len(cells) != len(header):
            raise ParseError(
                f"expected {len(header)} cells, as in the first line, got {len(cells)}", path=path, line=line
            )
    return header, records, lines[1:]


def _codes(variables: Variables, v: int, column: Sequence[str], path: str, lines: Sequence[int]) -> IntArray:
    """The states of a variable in all rows; missing cells are free."""
    codes = {cell: cell_code(variables, v, cell) if cell else -1 for cell in set(column)}
    wrong = {cell for cell, code in codes.items() if code is None}
    if wrong:
        row = next(row for row, cell in enumerate(column) if cell in wrong)
        raise ParseError(no_state(variables, v, column[row]), path=path, line=lines[row])
    return np.fromiter(map(codes.__getitem__, column), np.int64, len(column))
