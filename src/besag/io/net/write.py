"""Hugin NET files from Bayesian networks; `besag.io.net.read` has the grammar and reads them back.

A node's name must be an identifier. Any other name, such as `<5` or `My node`, is turned into one, and the name itself
goes into the attribute besag_name, where the reader finds it. Likewise a property that is no valid "key = value" of
NET, the i-th of its variable, goes into besag_property_i. Such attributes are texts, which Hugin keeps unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from besag.arrays import Array
from besag.errors import ModelError
from besag.io.shared.identifiers import distinct_identifiers
from besag.io.shared.metadata import KeptPiece
from besag.io.shared.nodes import Node, nodes_of
from besag.io.shared.numbers import number_text
from besag.io.shared.tokens import TEXT, quote
from besag.model.model import Model

NAME, PROPERTY = "besag_name", "besag_property_"
_BLOCKS = ("net", "class", "node", "discrete", "continuous", "chance", "decision", "utility", "function", "potential")
_TAKEN = frozenset({*_BLOCKS, "name", "states", "label", "position", "HR_Desc"})  # keys that no property may have
_KEYWORDS = _TAKEN | {"data", "experience", "fading", "model_nodes", "model_data", "subtype", "inputs", "outputs", "if"}

_KEY = r"[A-Za-z_][A-Za-z0-9_]*"
_IDENTIFIER = re.compile(_KEY)
_LINE = r'"[^"\\\r\n]*(?:\\.[^"\\\r\n]*)*"'
_NUMBER = r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?"
_IN_LIST = r"[A-Za-z0-9_.+\- ()]*"
_PROPERTY = re.compile(rf"({_KEY}) = (?:{_LINE}|{_KEY}|{_NUMBER}|\({_IN_LIST}(?:{_LINE}{_IN_LIST})*(?<=\)))")
_ENTRY = re.compile(rf'[^\s(){{}}\[\]=;:,|"]+ = [^;{{}}"%/]*(?:(?:{TEXT}|/(?![/*]))[^;{{}}"%/]*)*', re.DOTALL)


def write(model: Model) -> bytes:
    """A Bayesian network as a Hugin NET file; ModelError if the model is none."""
    nodes = nodes_of(model, "Hugin NET")
    names = identifiers([node.name for node in nodes])
    wrapper = _class(model.metadata)
    parts = [*_node_blocks(nodes, names), *_potential_blocks(nodes, names)]
    if wrapper:
        head = _lines(_attributes(model.metadata, None if model.metadata.get("name") == wrapper else "name"))
        text = f"class {wrapper}\n{{\n{head}\n" + "\n".join(parts) + "}\n"
    else:
        text = "\n".join([_block("net", _attributes(model.metadata, "name")), *parts])
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ModelError(f"no file of text can hold the character {text[error.start]!r} of a name or a text") from None
    if b"\0" in data:
        raise ModelError("no file of text can hold the zero character of a name or a text")
    return data


def identifiers(names: Sequence[str]) -> list[str]:
    """Distinct identifiers for names: the name itself if it is one.

    >>> identifiers(["a", "a b", "a-b", "<5", "5", "node"])
    ['a', 'a_b', 'a_b_2', '_5', '_5_2', 'node_']
    """
    return distinct_identifiers(names, is_identifier, _nearest)


def _nearest(name: str) -> str:
    """The identifier nearest to a name."""
    safe = re.sub(r"[^A-Za-z0-9_]", "_", name)
    if is_identifier(safe):
        return safe
    return f"{safe}_" if safe in _KEYWORDS else f"_{safe}"


def is_identifier(name: str) -> bool:
    """Whether a name may stand in a NET file as it is."""
    return _IDENTIFIER.fullmatch(name) is not None and name not in _KEYWORDS


def _class(metadata: Mapping[str, Any]) -> str:
    """The name of the class that the file is wrapped in; "" if it is not wrapped."""
    kept = KeptPiece(metadata.get("net"), "net", "the model").at("class")
    if kept.text() and not is_identifier(kept.text()):
        raise kept.wrong("an identifier that is no keyword")
    return kept.text()


def _block(head: str, lines: Sequence[str]) -> str:
    return f"{head}\n{{\n{_lines(lines)}}}\n"


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"    {line};\n" for line in lines)


def _node_blocks(nodes: Sequence[Node], names: Sequence[str]) -> list[str]:
    blocks = []
    for node, name in zip(nodes, names, strict=True):
        lines = [] if name == node.name else [f"{NAME} = {quote(node.name)}"]
        lines.append(f"states = ({' '.join(map(quote, node.states))})")
        blocks.append(_block(f"node {name}", lines + _attributes(node.metadata, None)))
    return blocks


def _attributes(metadata: Mapping[str, Any], name: str | None) -> list[str]:
    """The metadata that all formats share as attributes; `name`: the key of the name, if it has one."""
    keys = ({"name": name} if name else {}) | {"label": "label", "comment": "HR_Desc"}
    lines = [f"{key} = {quote(metadata[kept])}" for kept, key in keys.items() if kept in metadata]
    if "position" in metadata:
        lines.append(f"position = {_position(metadata['position'])}")
    seen: set[str] = set()
    for place, entry in enumerate(metadata.get("properties", ())):
        match = _PROPERTY.fullmatch(entry)
        key = match[1] if match and match[0].count("(") == match[0].count(")") else ""
        if not key or key in seen or key in _TAKEN or key.startswith((NAME, PROPERTY)):
            lines.append(f"{PROPERTY}{place} = {quote(entry)}")
        else:
            lines.append(entry)
        seen.add(key)
    return lines


def _position(position: tuple[float, float]) -> str:
    return "({} {})".format(*(int(v) if float(v).is_integer() else v for v in position))


def _potential_blocks(nodes: Sequence[Node], names: Sequence[str]) -> list[str]:
    blocks = []
    for node, name in zip(nodes, names, strict=True):
        scope = " ".join([name, *(["|"] if node.parents else []), *(names[parent] for parent in node.parents)])
        lines = [f"data ={_data(node.table)}", *_entries(node)]
        blocks.append(_block(f"potential ({scope})", lines))
    return blocks


def _entries(node: Node) -> list[str]:
    """The entries that the potential had besides its data when it was read."""
    kept = KeptPiece(node.metadata.get("net"), "net", repr(node.name)).at("potential")
    for entry in kept.items():
        if _ENTRY.fullmatch(entry.text()) is None or entry.text().startswith("data ="):
            raise entry.wrong("a text 'key = value'")
    return kept.texts()


def _data(table: Array) -> str:
    """A table, nested as its axes are, one row per line."""
    rows = np.arange(table.size // table.shape[-1])
    sizes = np.cumprod(table.shape[-2::-1]) if table.ndim > 1 else np.zeros(0, np.int64)
    begins, ends = np.ones_like(rows), np.ones_like(rows)
    for size in sizes:
        begins += rows % size == 0
        ends += (rows + 1) % size == 0
    words, k = number_text(table), table.shape[-1]
    lines = [
        f"{'(' * begin:>{table.ndim}} {' '.join(words[row * k : row * k + k])} {')' * end}"
        for row, begin, end in zip(rows.tolist(), begins.tolist(), ends.tolist(), strict=True)
    ]
    return f" {lines[0]}" if len(lines) == 1 else "".join(f"\n        {line}" for line in lines)
