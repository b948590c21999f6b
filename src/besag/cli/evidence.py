"""Evidence and queries of the command line: single states NAME=STATE, and files.

    NAME=STATE    split at the first "=" with a variable on its left
    .evid         UAI, either style: variables and states by their numbers; a sample is a row
    .json         {name: state}, where a state may be a list of allowed ones or {state: likelihood}; a list of such
                  objects is a row each
    .csv, .tsv    names in the first line, then a row a query; empty cells are free, and a first column without a name
                  has the labels of the rows

Other suffixes are told apart by content. All of it is put together: of two values for a variable the later one counts,
and what has one row holds in all rows of what has several.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from besag.errors import EvidenceError, ModelError, ParseError
from besag.graph.evidence import Evidence, read_evidence, row_name
from besag.io.files import read_bytes, suffix_of, text_of
from besag.io.uai_tasks import read_uai_query, samples_of
from besag.model.model import Model
from besag.model.variable import Variables


class Rows(NamedTuple):
    """Rows of evidence, {name: value} each, and their labels."""

    rows: list[dict[str, Any]]
    labels: list[str]


ONE_FREE_ROW = Rows([{}], ["0"])


def gathered(model: Model, items: Sequence[str]) -> Rows:
    """All evidence that the arguments give, put together."""
    total = ONE_FREE_ROW
    for item in items:
        found = _single(model.variables, item) or read_rows(model, item)
        if len(total.rows) > 1 and len(found.rows) > 1:
            raise EvidenceError(
                f"{item} has {len(found.rows)} rows, and the evidence before it {len(total.rows)}: only one file may "
                "have several"
            )
        labels = total.labels if len(total.rows) > 1 else found.labels
        total = Rows([{**before, **after} for before in total.rows for after in found.rows], labels)
    return total


def bound_to(variables: Variables, given: Rows) -> Evidence:
    """The rows as Evidence, batched where there are several."""
    if len(given.rows) == 1:
        return read_evidence(variables, given.rows[0])
    read = []
    for label, row in zip(given.labels, given.rows, strict=True):
        try:
            read.append(read_evidence(variables, row))
        except EvidenceError as error:
            raise EvidenceError(f"{row_name(label)}: {error}", row=label) from None
    observed = np.concatenate([one.observed for one in read])
    weights = None
    if any(one.log_weights is not None for one in read):
        free = np.zeros((1, int(variables.state_offsets[-1])))
        weights = np.concatenate([free if one.log_weights is None else one.log_weights for one in read])
    return Evidence(observed, weights, batched=True, index=given.labels)


def _single(variables: Variables, item: str) -> Rows | None:
    """NAME=STATE as a row; None where no variable is on the left of an "="."""
    at = item.find("=")
    while at >= 0:
        if variables.names.find(item[:at]) is not None:
            return ONE_FREE_ROW._replace(rows=[{item[:at]: item[at + 1 :]}])
        at = item.find("=", at + 1)
    return None


def read_rows(model: Model, path: str) -> Rows:
    """The rows of a file."""
    if not Path(path).exists():
        name, equals, _ = path.partition("=")
        known = not equals and model.variables.names.find(name) is not None
        what = f"write {name}=STATE" if known else model.variables.unknown(name) if equals else "there is no such file"
        raise EvidenceError(f"{path!r} is neither NAME=STATE nor a file: {what}")
    data = read_bytes(path)
    kind = suffix_of(path)
    if kind == ".evid" or (kind not in (".json", ".csv", ".tsv") and _is_uai(data)):
        return _numbered(samples_of(data, path, model) or [{}])
    text = text_of(data, path)
    if kind == ".json" or (kind not in (".csv", ".tsv") and text.lstrip()[:1] in ("{", "[")):
        return _from_json(text, path)
    return _from_csv(model.variables, text, path)


def _numbered(rows: Sequence[dict[str, Any]]) -> Rows:
    return Rows(list(rows), [str(i) for i in range(len(rows))])


def _is_uai(data: bytes) -> bool:
    """Whether the first line is of whole numbers alone: names of a CSV file are more than that."""
    words = data.lstrip().partition(b"\n")[0].partition(b"#")[0].split()
    return bool(words) and all(word.isdigit() for word in words)


def _from_json(text: str, path: str) -> Rows:
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
    return _numbered(rows)


def _from_csv(variables: Variables, text: str, path: str) -> Rows:
    tabs = "\t" in text.partition("\n")[0]
    separator = "\t" if tabs else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=not tabs, strict=True)
    try:
        lines = [(reader.line_num, cells) for cells in reader if cells]
    except csv.Error as error:
        raise ParseError(f"expected CSV: {error}", path=path, line=reader.line_num) from None
    (_, header), *body = lines
    labelled = header[0] == ""
    names = header[1:] if labelled else header
    name, columns = Counter(names).most_common(1)[0] if names else ("", 0)
    if columns > 1:
        raise ParseError(f"{columns} columns are named {name!r}", path=path, line=1)
    if not body:
        raise ParseError("expected rows below the line of names, got none", path=path, line=1)
    for line, cells in body:
        if len(cells) != len(header):
            raise ParseError(
                f"expected {len(header)} cells, as in the first line, got {len(cells)}", path=path, line=line
            )
    rows = [_row(variables, names, cells[labelled:]) for _, cells in body]
    return Rows(rows, [cells[0] if labelled else str(i) for i, (_, cells) in enumerate(body)])


def _row(variables: Variables, names: Sequence[str], cells: Sequence[str]) -> dict[str, Any]:
    return {name: _cell(variables, name, cell) for name, cell in zip(names, cells, strict=True) if cell}


def _cell(variables: Variables, name: str, cell: str) -> object:
    """A state; 1.0 becomes a number, which is the state "1" where there is no "1.0"."""
    v = variables.names.find(name)
    if v is None or variables.find_state(v, cell) is not None:
        return cell
    try:
        value = float(cell)
    except ValueError:
        return cell
    return value if isfinite(value) else cell


def read_query(model: Model, items: Sequence[str]) -> list[str]:
    """The names of variables, from names and UAI .query files; each is named once."""
    names: dict[str, None] = {}
    for item in items:
        if model.variables.names.find(item) is not None:
            names[item] = None
        elif Path(item).exists():
            names |= dict.fromkeys(read_uai_query(item, model))
        else:
            raise ModelError(f"{item!r} is neither a variable nor a file: {model.variables.unknown(item)}")
    return list(names)
