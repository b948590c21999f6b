"""GeNIe DSL, the text format of GeNIe before XDSL. Read only.

    file  = "net" name "{" ( HEADER | node | other ) * "}" ";"
    node  = "node" name "{" "TYPE = CPT;" HEADER SCREEN USER_PROPERTIES
            "PARENTS = (" name , ... ");"
            "DEFINITION = {" "NAMESTATES = (" state , ... ");" "PROBABILITIES = (" number , ... ");" "};" "};"
    other = key "=" value ";" | key "= {" anything "};" | "submodel" name "{" ( node | other ) * "};"

PROBABILITIES has the child fastest, then the last parent. HEADER gives the metadata label (NAME) and comment (COMMENT),
SCREEN the position of the centre, USER_PROPERTIES properties "key = value". Colours, costs and other data for diagnosis
are skipped. Comments are // to the end of the line and /* ... */.

A node is a CPT. LIST (decision), TABLE and MAU (utility) are an error, or left out with ignore_utilities; noisy nodes
and other types are an error.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from besag.io.formats import Source
from besag.io.shared.nodes import Node, model_of_nodes
from besag.io.shared.tokens import SLASHES, Cursor, Value, items, one_line, show_piece, without_comments
from besag.model.model import Model

_START = re.compile(r"\s*net\s+[^\s{]+\s*\{")
_LEFT_OUT = {"LIST": "decision", "TABLE": "utility", "MAU": "utility"}
_BLOCKS = {  # for each block, the blocks inside that are read
    "net": frozenset({"HEADER", "USER_PROPERTIES"}),
    "node": frozenset({"HEADER", "SCREEN", "USER_PROPERTIES", "DEFINITION"}),
    "SCREEN": frozenset({"POSITION"}),
}
_NAMES, _NUMBERS = "DEFINITION.NAMESTATES", "DEFINITION.PROBABILITIES"
_X, _Y = "SCREEN.POSITION.CENTER_X", "SCREEN.POSITION.CENTER_Y"
_KEYS = frozenset({"TYPE", "PARENTS", _NAMES, _NUMBERS, _X, _Y, "HEADER.NAME", "HEADER.COMMENT"})


def matches(head: bytes) -> bool:
    """Whether a file that begins so is a GeNIe DSL model."""
    return _START.match(without_comments(head.decode("latin-1"), SLASHES)) is not None


def read(source: Source) -> Model:
    """A Model from the content of a GeNIe DSL file."""
    return _Reader(source).model()


class _Entries(NamedTuple):
    """The entries of a block and the blocks inside: values by path, such as "HEADER.NAME", and properties."""

    values: dict[str, Value]
    properties: list[str]


class _Declared(NamedTuple):
    """A chance node, and where it begins."""

    entries: _Entries
    states: tuple[str, ...]
    at: int


class _Reader:
    """The state of reading one file: what it has declared so far, by name."""

    def __init__(self, source: Source) -> None:
        self.cursor = Cursor(source, SLASHES)
        self.ignore = source.ignore_utilities
        self.nodes: dict[str, _Declared] = {}
        self.left_out: dict[str, str] = {}
        self.of_net = _Entries({}, [])

    def model(self) -> Model:
        """The whole file."""
        cursor = self.cursor
        if cursor.word("net") != "net":
            raise cursor.fail("expected net NAME { ... }", 0)
        name = cursor.word("the name of the net")
        cursor.expect("{", "after the name of the net")
        self._elements()
        cursor.take(";")
        if cursor.peek():
            raise cursor.unexpected("the end of the file after the net")
        numbers = {name: number for number, name in enumerate(self.nodes)}
        nodes = [self._node(name, numbers) for name in numbers]
        metadata = {"name": name} | self._drawn(self.of_net, name)
        return model_of_nodes(nodes, cursor.path, metadata)

    def _elements(self) -> None:
        """Everything up to the "}" of the net; a submodel's nodes belong to the net."""
        cursor, depth = self.cursor, 1
        while depth:
            if cursor.take("}"):
                depth -= 1
                cursor.take(";")
                continue
            at = cursor.at
            key = cursor.word("node, a key or '}' at the end of the net")
            if key == "node":
                self._declaration(at)
            elif key.lower() == "submodel" and cursor.peek() != "=":
                cursor.word("the name of a submodel")
                cursor.expect("{", "after the name of a submodel")
                depth += 1
            else:
                self._entry(key, "", self.of_net, _BLOCKS["net"])

    # Blocks ----------------------------------------------------------------------------------------------------------

    def _entry(self, key: str, path: str, into: _Entries, inside: frozenset[str]) -> None:
        """key = value; or key = { ... }; only blocks `inside` are read."""
        cursor = self.cursor
        cursor.expect("=", f"after {show_piece(key)}")
        if cursor.peek() != "{":
            self._keep(key, path, into, cursor.value(show_piece(key)))
            return
        if key in inside:
            self._block(key, f"{path}{key}.", into)
        else:
            cursor.block(show_piece(key))
        cursor.expect(";", f"after the block of {show_piece(key)}")

    def _keep(self, key: str, path: str, into: _Entries, value: Value) -> None:
        if path == "USER_PROPERTIES.":
            found = items(value.text)
            into.properties.append(f"{key} = {found[0] if len(found) == 1 else one_line(value.text)}")
        elif path + key in into.values:
            raise self.cursor.fail(f"{path}{key} is given twice", value.at)
        elif path + key in _KEYS:
            into.values[path + key] = value

    def _block(self, name: str, path: str, into: _Entries) -> None:
        """{ entries }; the blocks that are read are nested at most three deep."""
        cursor = self.cursor
        cursor.expect("{", f"before {show_piece(name)}")
        while not cursor.take("}"):
            key = cursor.word(f"a key or '}}' at the end of {show_piece(name)}")
            self._entry(key, path, into, _BLOCKS.get(name, frozenset()))

    def _drawn(self, entries: _Entries, name: str) -> dict[str, Any]:
        """The metadata that all formats share; a label equal to the name is dropped."""
        cursor, values, metadata = self.cursor, entries.values, dict[str, Any]()
        for key, kept in (("HEADER.NAME", "label"), ("HEADER.COMMENT", "comment")):
            text = cursor.one(values[key]) if key in values else ""
            if text not in ("", name):
                metadata[kept] = text
        if _X in values and _Y in values:
            metadata["position"] = cursor.position(Value(f"{values[_X].text} {values[_Y].text}", values[_X].at))
        return metadata | ({"properties": tuple(entries.properties)} if entries.properties else {})

    # Nodes -----------------------------------------------------------------------------------------------------------

    def _declaration(self, at: int) -> None:
        cursor = self.cursor
        name = cursor.word("the name of a node")
        entries = _Entries({}, [])
        self._block("node", "", entries)
        cursor.expect(";", f"after node {show_piece(name)}")
        if name in self.nodes or name in self.left_out:
            raise cursor.fail(f"node {name!r} is declared twice", at)
        kind = cursor.one(self._needed(entries, "TYPE", name, at))
        if kind == "CPT":
            given = self._needed(entries, _NAMES, name, at)
            self.nodes[name] = _Declared(entries, cursor.states(name, given), at)
        elif kind not in _LEFT_OUT:
            raise cursor.fail(
                f"{name!r} is of type {show_piece(kind)}: only CPT can be read", entries.values["TYPE"].at
            )
        elif not self.ignore:
            raise cursor.not_chance(name, _LEFT_OUT[kind], at)
        else:
            self.left_out[name] = _LEFT_OUT[kind]

    def _needed(self, entries: _Entries, key: str, name: str, at: int) -> Value:
        if key not in entries.values:
            raise self.cursor.fail(f"node {name!r} has no {key.rpartition('.')[2]}", at)
        return entries.values[key]

    def _node(self, name: str, numbers: dict[str, int]) -> Node:
        declared = self.nodes[name]
        given = self._needed(declared.entries, "PARENTS", name, declared.at)
        parents = self.cursor.parents(name, items(given.text), numbers, self.left_out, given.at)
        probabilities = self._needed(declared.entries, _NUMBERS, name, declared.at)
        table = self.cursor.numbers(probabilities)
        metadata = self._drawn(declared.entries, name)
        line = self.cursor.line(probabilities.at)
        return Node(name, declared.states, parents, table, metadata, line)
