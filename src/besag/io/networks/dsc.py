"""DSC, the text format of Microsoft's Bayesian network tools, also written by GeNIe and bnlearn. Read only.

    file        = [ kind ] "network" [ name ] ( key ":" value ";" | block ) *         kind: belief, diagnostic, trouble
    block       = "node" name "{" ( type | key ":" value ";" ) * "}"
                | "probability" "(" child [ "|" parent , ... ] ")" "{" statement * "}"
                | ( "service" | "properties" ) "{" anything "}"                        skipped
    type        = "type" ":" "discrete" "[" K "]" "=" "{" state , ... "}" ";"
    statement   = number , ... ";"                          the distribution of a node without parents
                | "(" index , ... ")" ":" number , ... ";"  one row: states of the parents by number, from 0
                | "default" ":" number , ... ";"            every row that has none of its own

Keywords may be in capitals; comments are // to the end of the line and /* ... */. GeNIe writes (0, 0, 0) before every
row, one 0 more than there are parents: such rows are taken in order, the last parent changing fastest.

The key `name` is the metadata label, `position` the position, any other a property "key = value". Noisy nodes
("function: max;") cannot be read. Decision and utility nodes are an error, or left out with ignore_utilities.

A block that has all its rows in order is split in one step, and the numbers of many such blocks are parsed together;
any other block, and any with an error, is read statement by statement.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from besag.arrays import Array, IntArray
from besag.errors import ParseError
from besag.io.formats import Source
from besag.io.shared.budget import EntryBudget
from besag.io.shared.files import LOOP
from besag.io.shared.nodes import Node, model_of_nodes
from besag.io.shared.tokens import SLASHES, Cursor, Value, items, one_line, pieces, show_piece, without_comments
from besag.model.model import Model

_START = re.compile(r'\s*(?:(?:belief|diagnostic|trouble)\s+network\b|network\s*"[^"]*"\s*node\b)', re.I)
_KEY = re.compile(r"\w+\s*:")
_ONE_ROW = re.compile(r'([^();:"]+);\s*')
_ALL_ROWS = re.compile(rf'(?:\s*\([^();:"]*\)\s*:[^();:"]+;){LOOP}\s*')
_STATEMENT = re.compile(  # labels and numbers of a row; or a key and its value; or bare numbers; or the rest
    r'\s*(?:\(([^();"]*)\)\s*:([^();:"]+);|([A-Za-z]\w*)\s*:([^();:"]*);|([^\s();:"][^();:"]*);|(\S.*))',
    re.DOTALL,
)


def matches(head: bytes) -> bool:
    """Whether a file that begins so is a DSC model."""
    return _START.match(without_comments(head.decode("latin-1"), SLASHES)) is not None


def read(source: Source) -> Model:
    """A Model from the content of a DSC file."""
    return _Reader(source).model()


class _DeclaredNode(NamedTuple):
    """A chance node as declared."""

    states: tuple[str, ...]
    metadata: dict[str, Any]
    at: int


class _TableText(NamedTuple):
    """A probability block: parents, the text in its braces, and where it begins."""

    parents: list[str]
    body: Value
    at: int


class _Reader:
    """The state of reading one file: what it has declared so far, by name."""

    def __init__(self, source: Source) -> None:
        self.cursor = Cursor(source, SLASHES)
        self.ignore = source.ignore_utilities
        self.variables: dict[str, _DeclaredNode] = {}
        self.left_out: dict[str, str] = {}
        self.tables: dict[str, _TableText] = {}
        self.room = EntryBudget(len(self.cursor.text))

    def model(self) -> Model:
        """The whole file."""
        metadata = self._header()
        while self.cursor.peek():
            self._block()
        for child, table in self.tables.items():
            if child not in self.variables and child not in self.left_out:
                raise self.cursor.fail(f"no node is named {child!r}; {len(self.variables)} are declared", table.at)
        if not self.variables:
            raise self.cursor.fail("expected at least one node, but the file ends")
        return model_of_nodes(self._nodes(), self.cursor.path, metadata)

    def _header(self) -> dict[str, Any]:
        cursor, properties = self.cursor, list[str]()
        kind = cursor.word("belief network")
        if kind.lower() != "network":
            if cursor.word("network").lower() != "network":
                raise cursor.fail(f"expected belief network, got {show_piece(kind)}", 0)
            properties += [f"network = {kind}"] if kind.lower() != "belief" else []
        name = cursor.word("the name of the network") if cursor.peek() == '"' else ""
        cursor.take(";")
        while cursor.peek() and _KEY.match(cursor.text, cursor.at):
            key = cursor.word("a key")
            cursor.expect(":", "after a key")
            properties.append(f"{key} = {one_line(cursor.value(key).text)}")
        return {k: v for k, v in (("name", name), ("properties", tuple(properties))) if v}

    def _block(self) -> None:
        cursor, at = self.cursor, self.cursor.at
        word = cursor.word("node or probability")
        if word.lower() == "probability":
            self._probability(at)
        elif word.lower() in ("node", "decision", "utility"):
            self._declaration(word.lower(), at)
        elif word.lower() in ("service", "properties"):
            cursor.block(word)
        else:
            raise cursor.fail(f"expected node or probability, got {show_piece(word)}", at)

    # Nodes -----------------------------------------------------------------------------------------------------------

    def _declaration(self, word: str, at: int) -> None:
        cursor = self.cursor
        name = cursor.word("the name of a node")
        if word != "node" and name.lower() == "node":
            name = cursor.word("the name of a node")
        if name in self.variables or name in self.left_out:
            raise cursor.fail(f"node {name!r} is declared twice", at)
        kind, states, metadata = self._attributes(name, at)
        if word != "node" or kind in ("decision", "utility"):
            if not self.ignore:
                raise cursor.not_chance(name, kind if word == "node" else word, at)
            self.left_out[name] = kind if word == "node" else word
        elif kind != "discrete":
            raise cursor.fail(f"{name!r} has type {show_piece(kind)}: only discrete nodes can be read", at)
        elif states is None:
            raise cursor.fail(f"node {name!r} has no states: expected type : discrete[K] = {{ state, ... }};", at)
        else:
            self.variables[name] = _DeclaredNode(states, metadata, at)

    def _attributes(self, name: str, at: int) -> tuple[str, tuple[str, ...] | None, dict[str, Any]]:
        """The kind of a node's type, its states and its metadata."""
        cursor, metadata, properties = self.cursor, dict[str, Any](), list[str]()
        kind, states, seen = "discrete", None, False
        cursor.expect("{", "after the name of a node")
        while not cursor.take("}"):
            key = cursor.word(f"an attribute or '}}' at the end of node {name}")
            if not cursor.take(":") and not cursor.take("="):
                raise cursor.unexpected(f"':' after {show_piece(key)}")
            if key.lower() == "type":
                if seen:
                    raise cursor.fail(f"node {name!r} has two types")
                kind, states = self._type(name)
                seen = True
                continue
            value = cursor.value(key)
            if key.lower() == "name":
                metadata["label"] = cursor.one(value)
            elif key.lower() == "position":
                metadata["position"] = cursor.position(value)
            else:
                properties.append(f"{key} = {one_line(value.text)}")
        if metadata.get("label") in ("", name):
            del metadata["label"]  # a label equal to the name adds nothing
        return kind, states, metadata | ({"properties": tuple(properties)} if properties else {})

    def _type(self, name: str) -> tuple[str, tuple[str, ...] | None]:
        """discrete [ K ] = { state, ... };"""
        cursor = self.cursor
        kind, at = cursor.word("a type").lower(), cursor.at
        states: Value | None = None
        count = ""
        if cursor.take("["):
            count = cursor.word("a number of states")
            cursor.expect("]", "after the number of states")
        if cursor.take("="):
            states = Value(cursor.block("the states").text, at)
        cursor.expect(";", "after the type")
        if kind != "discrete" or states is None:
            return kind, None
        found = cursor.states(name, states)
        if count and count != str(len(found)):
            raise cursor.fail(f"node {name!r} must have {show_piece(count)} states, got {len(found)}", at)
        return kind, found

    # Probabilities ---------------------------------------------------------------------------------------------------

    def _probability(self, at: int) -> None:
        cursor = self.cursor
        scope = cursor.group("( child | parents )")
        head, _, tail = scope.text.partition("|")
        child = items(head)
        if len(child) != 1:
            raise cursor.fail(f"expected ( child | parents ), got ({show_piece(scope.text)})", scope.at)
        if child[0] in self.tables:
            raise cursor.fail(f"{child[0]!r} has two probability blocks", at)
        self.tables[child[0]] = _TableText(items(tail), cursor.block(f"the probability block of {child[0]}"), at)

    def _nodes(self) -> list[Node]:
        """All chance nodes, in the order of their declarations."""
        numbers = {name: number for number, name in enumerate(self.variables)}
        nodes = [self._node(name, numbers) for name in numbers]
        shapes = [[*(len(nodes[u].states) for u in node.parents), len(node.states)] for node in nodes]
        bodies, known = [self.tables[name].body.text for name in numbers], dict[tuple[int, ...], list[str]]()
        for some in pieces(range(len(nodes)), [len(body) for body in bodies]):
            texts = {v: rows for v in some if (rows := _rows_in_order(bodies[v], shapes[v], known))}
            found = _in_bulk(self.cursor, [(rows, shapes[v][-1]) for v, rows in texts.items()])
            for v, cpt in zip(texts, found, strict=False):
                nodes[v].table = cpt
        for node, shape in zip(nodes, shapes, strict=True):
            if node.table.size == 0:
                node.table = _Statements(self.cursor, node.name, self.tables[node.name], shape).cpt(self)
        return nodes

    def _node(self, name: str, numbers: dict[str, int]) -> Node:
        """A node whose table is still empty."""
        variable, table = self.variables[name], self.tables.get(name)
        if table is None:
            raise self.cursor.fail(f"node {name!r} has no probability block", variable.at)
        parents = self.cursor.parents(name, table.parents, numbers, self.left_out, table.at)
        return Node(name, variable.states, parents, np.empty(0), variable.metadata, self.cursor.line(table.at))

    def reserve(self, name: str, size: int, at: int) -> None:
        """Take from the budget for a table that may have more entries than the file has numbers."""
        if not self.room.holds((size,)):
            raise self.cursor.fail(f"the table of {name!r} has {size} entries, too many for so short a file", at)


def _rows_in_order(body: str, shape: Sequence[int], known: dict[tuple[int, ...], list[str]]) -> list[str] | None:
    """The texts of all rows of a CPT if they are in order and there is nothing else, or None; `known` caches labels."""
    if len(shape) == 1:
        root = _ONE_ROW.fullmatch(body)
        return None if root is None else [root[1]]
    n_rows, parents = prod(shape[:-1]), tuple(shape[:-1])
    if n_rows > len(body) or _ALL_ROWS.fullmatch(body) is None:
        return None
    parts = body.replace(":", "").replace("(", ";").replace(")", ";").split(";")
    labels, texts = [label.replace(" ", "") for label in parts[1::3]], parts[2::3]
    if parents not in known:
        known[parents] = [",".join(map(str, states)) for states in np.ndindex(parents)]
    from_genie = labels == [",".join("0" * len(shape))] * n_rows
    return texts if from_genie or labels == known[parents] else None


def _in_bulk(cursor: Cursor, tables: Sequence[tuple[Sequence[str], int]]) -> list[Array]:
    """The CPTs of (texts of rows, K), their numbers parsed at once; an empty list if one is wrong."""
    joined = Value("".join([f"{text})" for texts, _ in tables for text in texts]), 0)
    lengths = [k for texts, k in tables for _ in texts]
    try:
        marked = cursor.numbers(joined, " nan ")
    except ParseError:
        return []
    marks = np.isnan(marked)
    if not np.array_equal(np.diff(np.flatnonzero(marks), prepend=-1) - 1, lengths):
        return []
    sizes = [len(texts) * k for texts, k in tables]
    return np.split(marked[~marks], np.cumsum(sizes[:-1]))


class _Statements:
    """The statements of one probability block."""

    def __init__(self, cursor: Cursor, name: str, table: _TableText, shape: Sequence[int]) -> None:
        self.cursor, self.name, self.table = cursor, name, table
        self.shape, self.k, self.n_rows = shape, shape[-1], prod(shape[:-1])
        self.labels: list[Value] = []
        self.numbers: list[Value] = []
        self.default: Value | None = None
        for match in _STATEMENT.finditer(table.body.text.rstrip()):
            self._statement(match)

    def _value(self, match: re.Match[str], group: int) -> Value:
        return Value(match[group], self.table.body.at + match.start(group))

    def _statement(self, match: re.Match[str]) -> None:
        """File one statement as a row, a default or an error."""
        key = (match[3] or "").lower()
        if match[1] is not None:
            self.labels.append(self._value(match, 1))
            self.numbers.append(self._value(match, 2))
        elif match[5] is not None and len(self.shape) == 1:
            self.labels.append(Value("", self.table.body.at + match.start(5)))
            self.numbers.append(self._value(match, 5))
        elif key == "default" and self.default is None:
            self.default = self._value(match, 4)
        elif key == "function":
            message = (
                f"the table of {self.name!r} is a noisy {show_piece(match[4])}: only tables of all rows can be read"
            )
            raise self._fail(match, 3, message)
        else:
            group = next(g for g in (3, 5, 6) if match[g] is not None)
            message = f"expected a row ( states ) : numbers; or default, got {show_piece(match[group])}"
            raise self._fail(match, group, message)

    def _fail(self, match: re.Match[str], group: int, message: str) -> ParseError:
        return self.cursor.fail(message, self.table.body.at + match.start(group))

    def cpt(self, reader: _Reader) -> Array:
        """The table, rows by the states of the parents."""
        reader.reserve(self.name, self.n_rows * self.k, self.table.at)
        rows = self._numbers(self.numbers, self.k, f"row of {self.name!r}")
        where = self._where()
        if len(where) < self.n_rows and self.default is None:
            given = set(where.tolist())
            absent = next(row for row in range(self.n_rows) if row not in given)
            states = ", ".join(map(str, np.unravel_index(absent, self.shape[:-1]))) if self.shape[1:] else ""
            message = f"row ({states}) of {self.name!r} is missing, and there is no default"
            raise self.cursor.fail(message, self.table.at)
        cpt = np.empty((self.n_rows, self.k))
        if self.default is not None:
            cpt[:] = self._numbers([self.default], self.k, f"default of {self.name!r}")
        cpt[where] = rows
        return cpt

    def _numbers(self, values: Sequence[Value], count: int, what: str) -> Array:
        """Lists of `count` numbers each, in bulk: (len(values), count)."""
        joined = Value("".join([f"{value.text})" for value in values]), 0)
        try:
            marked = self.cursor.numbers(joined, " nan ")
        except ParseError:
            marked = np.zeros(0)
        ends = np.flatnonzero(np.isnan(marked))
        if len(ends) == len(values) and (np.diff(ends, prepend=-1) == count + 1).all():
            return np.delete(marked, ends).reshape(len(values), count)
        for value in values:
            found = len(self.cursor.numbers(value))
            if found != count:
                raise self.cursor.fail(f"{what}: expected {count} numbers, got {found}", value.at)
        raise AssertionError("all numbers are right")

    def _where(self) -> IntArray:
        """The row of the table that each statement sets."""
        n_parents = len(self.shape) - 1
        if self._is_from_genie(n_parents):
            return np.arange(self.n_rows)
        index = self._numbers(self.labels, n_parents, f"states of the parents of {self.name!r}")
        wrong = ~((index >= 0) & (index < self.shape[:-1]) & (index == np.floor(index))).all(axis=1)
        if wrong.any():
            value = self.labels[int(np.argmax(wrong))]
            sizes = " x ".join(map(str, self.shape[:-1]))
            message = f"expected states of the parents, {sizes}, by number from 0, got ({show_piece(value.text)})"
            raise self.cursor.fail(message, value.at)
        where = np.zeros(len(index), np.int64)
        for axis, size in enumerate(self.shape[:-1]):
            where = where * size + index[:, axis].astype(np.int64)
        if len(np.unique(where)) != len(where):
            raise self._row_twice(where)
        return where

    def _is_from_genie(self, n_parents: int) -> bool:
        zeros = ["0"] * (n_parents + 1)
        return n_parents > 0 and len(self.labels) == self.n_rows and all(items(v.text) == zeros for v in self.labels)

    def _row_twice(self, where: IntArray) -> ParseError:
        seen: set[int] = set()
        for number, row in enumerate(where.tolist()):
            if row in seen:
                value = self.labels[number]
                return self.cursor.fail(f"row ({show_piece(value.text)}) of {self.name!r} is given twice", value.at)
            seen.add(row)
        raise AssertionError("all rows differ")
