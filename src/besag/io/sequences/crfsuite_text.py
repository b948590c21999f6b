r"""CRFsuite's text files of labelled sequences, as version 0.12 reads them.

    sequence    = item +  blank line
    item        = label  (TAB attribute) *
    attribute   = name | name ":" weight     the weight is 1 if there is none; \: and \\ stand for : and \
    declaration = "@weight:" number          before a label or on a line of its own: the weight of the whole sequence

There are no comments. Empty fields, and blank lines beyond the first, are skipped. Two things that CRFsuite accepts are
errors here: a weight that is no number, such as in "12:30:05", and a colon in a label, if they are not escaped by \.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from besag.errors import ModelError, ParseError
from besag.io.sequences.conll import Source, blocks, path_of
from besag.io.shared.files import pack, write_atomically

Item: TypeAlias = list[str] | dict[str, float]  # attributes of weight 1 each, or with their weights

_FIELD = re.compile(r"([^\\:]*(?:\\(?:.|\Z)[^\\:]*)*)(?::(.*))?", re.DOTALL)
_ESCAPED = re.compile(r"\\([\\:])")
_SPECIAL = re.compile(r"[\\:\t\r\n\0]")
_BREAKS = re.compile(r"[\t\r\n\0]")


class LabelledSequence(NamedTuple):
    """One sequence of a file."""

    items: list[Item]
    labels: list[str]
    weight: float = 1.0


def read_crfsuite(source: Source) -> Iterator[LabelledSequence]:
    r"""The sequences of a file, packed or not, or of lines, one by one.

    >>> next(read_crfsuite(["B\tw=a\tcaps", "I\tw=b\tlength:3", ""]))
    LabelledSequence(items=[['w=a', 'caps'], {'w=b': 1.0, 'length': 3.0}], labels=['B', 'I'], weight=1.0)
    """
    path = path_of(source)
    for first, lines in blocks(source):
        items: list[Item] = []
        labels: list[str] = []
        weight = 1.0
        for number, line in enumerate(lines, first):
            fields = line.split("\t")
            if "" in fields:
                fields = [field for field in fields if field]
            try:
                while fields and fields[0].startswith("@"):
                    weight = _declared(fields.pop(0))
                if fields:
                    plain = ":" not in line and "\\" not in line
                    labels.append(fields[0] if plain else _read_label(fields[0]))
                    items.append(fields[1:] if plain else _item(fields[1:]))
            except ValueError as error:
                raise ParseError(str(error), path=path, line=number) from None
        if items:
            yield LabelledSequence(items, labels, weight)


def _declared(field: str) -> float:
    name, weight = _name_and_weight(field)
    if name != "@weight" or not field.partition(":")[2]:
        raise ValueError(f"expected a label or '@weight:number', got {field!r}; no label may begin with '@'")
    return weight


def _read_label(field: str) -> str:
    name, weight = _FIELD.fullmatch(field).groups()  # type: ignore[union-attr] # any text matches
    if weight is not None:
        raise ValueError(f"expected a label, which has no weight, got {field!r}; a colon in it is written '\\:'")
    return _ESCAPED.sub(r"\1", name)


def _item(fields: list[str]) -> Item:
    """The attributes of a line; a repeated one adds up."""
    pairs = [_name_and_weight(field) for field in fields]
    if all(weight == 1.0 for _, weight in pairs):
        return [name for name, _ in pairs]
    item: dict[str, float] = {}
    for name, weight in pairs:
        item[name] = item.get(name, 0.0) + weight
    return item


def _name_and_weight(field: str) -> tuple[str, float]:
    name, weight = _FIELD.fullmatch(field).groups()  # type: ignore[union-attr] # any text matches
    return _ESCAPED.sub(r"\1", name), _number(weight, field) if weight else 1.0


def _number(text: str, field: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or "_" in text:
        raise ValueError(f"expected a number behind the colon of {field!r}; a colon in a name is written '\\:'")
    return number


def write_crfsuite(path: str | PathLike[str], sequences: Iterable[tuple[Any, ...]]) -> None:
    """Write tuples (items, labels) or (items, labels, weight), such as zip(X, y), for `read_crfsuite` to read.

    Items are lists of attributes or dicts {attribute: weight}. The file is packed if its name ends in .gz or .xz.
    """
    target = Path(path)
    text = "".join(_sequence(n, LabelledSequence(*given)) for n, given in enumerate(sequences))
    write_atomically(target, pack(text.encode(), target))


def _sequence(n: int, sequence: LabelledSequence) -> str:
    items, labels, weight = list(sequence.items), list(sequence.labels), sequence.weight
    if not items or len(items) != len(labels):
        raise ModelError(
            f"sequence {n}: expected a label for each of at least one item, got {len(labels)} labels "
            f"for {len(items)} items"
        )
    lines = [] if weight == 1.0 else [f"@weight:{float(weight)!r}"]
    for position, (item, label) in enumerate(zip(items, labels, strict=True)):
        try:
            lines.append("\t".join([_label(label), *_fields(item)]))
        except (TypeError, ValueError) as error:
            raise ModelError(f"sequence {n}, position {position}: {error}") from None
    return "\n".join([*lines, "", ""])


def _label(label: object) -> str:
    if not isinstance(label, (str, int)) or not str(label).strip() or str(label).startswith("@"):
        raise ValueError(f"expected a label, a str that is not blank and does not begin with '@', got {label!r}")
    return _escaped(str(label))


def _fields(item: Any) -> Iterator[str]:
    pairs = item.items() if isinstance(item, Mapping) else ((name, 1.0) for name in item)
    for name, weight in pairs:
        if not isinstance(name, str) or isinstance(weight, (str, bytes)) or not math.isfinite(weight):
            raise ValueError(f"expected attributes, str, and their weights, finite numbers, got {name!r}: {weight!r}")
        yield _escaped(name) if weight == 1.0 and name else f"{_escaped(name)}:{float(weight)!r}"


def _escaped(name: str) -> str:
    if not _SPECIAL.search(name):
        return name
    if _BREAKS.search(name):
        raise ValueError(f"a name in a CRFsuite file cannot have a tab, a line end or a zero byte, got {name!r}")
    return name.replace("\\", "\\\\").replace(":", "\\:")
