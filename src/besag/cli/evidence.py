"""Evidence and queries of the command line: single states NAME=STATE or names, and files, put together.

Of two values for a variable the later one counts, and what has one row holds in all rows of what has several.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from besag.cli.evidence_files import is_numbers, read_rows
from besag.cli.rows import EvidenceRows, join_sentences, rows_of
from besag.errors import EvidenceError, ModelError, ParseError
from besag.io.shared.files import read_bytes, suffix_of, text_of
from besag.io.uai.tasks import query_of
from besag.model.model import Model
from besag.model.variable import Variables


def gather_evidence(model: Model, items: Sequence[str]) -> EvidenceRows:
    """All evidence that the arguments give."""
    total = rows_of(model.variables, [{}])
    for item in items:
        found = _single(model.variables, item) or read_rows(model, item)
        if len(total) > 1 and len(found) > 1:
            raise EvidenceError(
                f"{item} has {len(found)} rows, and the evidence before it {len(total)}: only one file may have several"
            )
        total = join_sentences(model.variables, total, found)
    return total


def _single(variables: Variables, item: str) -> EvidenceRows | None:
    """NAME=STATE, split at the first "=" with a variable on its left; None where there is none."""
    at = item.find("=")
    while at >= 0:
        if variables.names.find(item[:at]) is not None:
            return rows_of(variables, [{item[:at]: item[at + 1 :]}])
        at = item.find("=", at + 1)
    return None


def read_query(model: Model, items: Sequence[str]) -> list[str]:
    """The names of variables, from names and files; each is named once."""
    names: dict[str, None] = {}
    for item in items:
        if model.variables.names.find(item) is not None:
            names[item] = None
        elif Path(item).exists():
            names |= dict.fromkeys(_queried(model, item))
        else:
            parts = [part.strip() for part in item.split(",")]
            if len(parts) > 1 and all(model.variables.names.find(part) is not None for part in parts):
                raise ModelError(f"{item!r} is no variable; names are separated by blanks: {shlex.join(parts)}")
            raise ModelError(f"{item!r} is neither a variable nor a file: {model.variables.unknown(item)}")
    if not names:
        raise ModelError(f"--query names no variable: {', '.join(items)} is empty")
    return list(names)


def _queried(model: Model, path: str) -> list[str]:
    """The variables of a UAI .query file, or of a file with a name a line; numbers side by side are UAI in any file."""
    data = read_bytes(path)
    several = len(data.lstrip().partition(b"\n")[0].split()) > 1
    if is_numbers(data) and (several or suffix_of(path) == ".query"):
        return query_of(data, path, model)
    names = []
    for line, text in enumerate(text_of(data, path).splitlines(), 1):
        name = text.strip()
        if name and model.variables.names.find(name) is None:
            raise ParseError(model.variables.unknown(name), path=path, line=line)
        names += [name] if name else []
    return names
