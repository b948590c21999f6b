"""Hugin NET, the format of the Hugin tools: Bayesian networks with labels, positions and comments.

    file       = [ "class" name "{" ] ( "net" attributes | [ "discrete" ] "node" name attributes
                 | "potential" "(" child [ "|" parent ... ] ")" attributes | key "=" value ";" ) * [ "}" ]
    attributes = "{" ( key "=" value ";" ) * "}"
    value      = word | number | "text" | "(" value ... ")"

    states = ("a" "b")             the states, in order
    data = ((0.1 0.9) (0.2 0.8))   nested as the parents are, or flat: the child changes fastest, then the last parent
    label, position, HR_Desc       metadata label, position and comment; `name` of "net", or the class, is the model's
    besag_name, besag_property_3   names and properties that NET itself cannot hold, see `besag.io.net.write`
    any other key                  a property "key = value"; of a potential, such as experience, under metadata["net"]

Comments go from % or // to the end of the line, or from /* to */. Rows of data need not sum to one: as in Hugin they
are normalised. Hugin assumes a uniform table if there is no data; here that is an error, since a truncated file looks
the same. Decision and utility nodes are an error, or left out with ignore_utilities.

The numbers of many potentials are parsed together; if something is wrong, a second pass finds the place.
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
from besag.io.net.write import NAME, PROPERTY, is_identifier, write
from besag.io.shared.nodes import Node, model_of_nodes
from besag.io.shared.tables import ROW_TOLERANCE, note_rows
from besag.io.shared.tokens import (
    PERCENT_OR_SLASHES,
    Cursor,
    Value,
    items,
    one_line,
    pieces,
    show_piece,
    without_comments,
)
from besag.model.model import Model

__all__ = ["matches", "read", "write"]

_START = re.compile(r"\s*(?:net\s*\{|class\s+\w+\s*\{|(?:discrete\s+)?node\s+[^\s{]+\s*\{)")
_ODD_PROPERTY = re.compile(PROPERTY + r"\d{1,9}")
_CHANCE = (["node"], ["discrete", "node"], ["chance"], ["discrete", "chance"])
_OF_ALL = frozenset({"label", "position", "HR_Desc"})
_OF_MODEL, _OF_NODE = _OF_ALL | {"name"}, _OF_ALL | {"states", NAME}


def matches(head: bytes) -> bool:
    """Whether a file that begins so is a Hugin NET model."""
    return _START.match(without_comments(head.decode("latin-1"), PERCENT_OR_SLASHES)) is not None


def read(source: Source) -> Model:
    """A Model from the content of a Hugin NET file."""
    return _Reader(source).model()


class _Braces(NamedTuple):
    """The content of braces: the keys with a meaning, their values, and properties in order."""

    keys: frozenset[str]
    known: dict[str, Value]
    properties: list[str]


class _DeclaredVariable(NamedTuple):
    """A chance node as it is declared; `name` is its own, which may differ from the file's identifier."""

    name: str
    states: tuple[str, ...]
    metadata: dict[str, Any]
    at: int


class _Potential(NamedTuple):
    """A potential: parents by their identifiers, the numbers, other entries, and where it begins."""

    parents: list[str]
    data: Value | None
    extra: list[str]
    at: int


class _TableSource(NamedTuple):
    """The source of a chance node's table; shape: (parents..., child)."""

    identifier: str
    parents: list[int]
    shape: list[int]
    data: Value
    line: int


class _Reader:
    """The state of reading one file: what it has declared so far, by identifier."""

    def __init__(self, source: Source) -> None:
        self.cursor = Cursor(source, PERCENT_OR_SLASHES)
        self.ignore = source.ignore_utilities
        self.variables: dict[str, _DeclaredVariable] = {}
        self.left_out: dict[str, str] = {}
        self.potentials: dict[str, _Potential] = {}
        self.of_model = _Braces(_OF_MODEL, {}, [])
        self.class_name: str | None = None
        self.is_open = False

    def model(self) -> Model:
        """The whole file."""
        while self.cursor.peek():
            self._element()
        if self.is_open:
            raise self.cursor.unexpected(f"'}}' at the end of class {show_piece(self.class_name or '')}")
        metadata = self._metadata()
        if not self.variables:
            raise self.cursor.fail("expected at least one node, but the file ends")
        for child, potential in self.potentials.items():
            if child not in self.variables and child not in self.left_out:
                raise self.cursor.fail(f"no node is named {child!r}; {len(self.variables)} are declared", potential.at)
        return model_of_nodes(self._nodes(), self.cursor.path, metadata)

    def _element(self) -> None:
        cursor = self.cursor
        if self.is_open and cursor.take("}"):
            self.is_open = False
            return
        at = cursor.at
        word = cursor.word("net, class, node or potential")
        if word == "potential":
            self._potential(at)
        elif word == "net" and cursor.peek() == "{":
            self._attributes(self.of_model, "net")
        elif word == "class" and self.class_name is None:
            self.class_name, self.is_open = cursor.word("the name of the class"), True
            if not is_identifier(self.class_name):
                raise cursor.fail(f"expected class NAME {{, got class {show_piece(self.class_name)}", at)
            cursor.expect("{", "after the name of the class")
        elif cursor.peek() == "=" and self.is_open:
            cursor.expect("=", "")
            self._keep(self.of_model, word, cursor.value(show_piece(word)))
        elif word in ("node", "discrete", "continuous", "chance", "decision", "utility", "function"):
            self._declaration(word, at)
        else:
            what = "one class" if word == "class" else "net, class, node or potential"
            raise cursor.fail(f"expected {what}, got {show_piece(word)}", at)

    # Attributes ------------------------------------------------------------------------------------------------------

    def _attributes(self, into: _Braces, what: str) -> _Braces:
        for key, value in self.cursor.statements(what):
            self._keep(into, key, value)
        return into

    def _keep(self, into: _Braces, key: str, value: Value) -> None:
        if key not in into.keys and not _is_odd(key):
            into.properties.append(f"{key} = {one_line(value.text)}")
        elif key in into.known:
            raise self.cursor.fail(f"{key} is given twice", value.at)
        else:
            into.known[key] = value

    def _drawn(self, found: _Braces) -> dict[str, Any]:
        """The metadata that all formats share."""
        cursor, metadata = self.cursor, dict[str, Any]()
        for key, kept in (("label", "label"), ("HR_Desc", "comment")):
            if key in found.known:
                metadata[kept] = cursor.one(found.known[key])
        if "position" in found.known:
            metadata["position"] = cursor.position(found.known["position"])
        properties = list(found.properties)
        odd = {int(key.removeprefix(PROPERTY)): found.known[key] for key in found.known if _is_odd(key)}
        for place in sorted(odd):
            properties.insert(place, cursor.one(odd[place]))
        if properties:
            metadata["properties"] = tuple(properties)
        return metadata

    def _metadata(self) -> dict[str, Any]:
        metadata = self._drawn(self.of_model)
        if "name" in self.of_model.known:
            metadata["name"] = self.cursor.one(self.of_model.known["name"])
        if self.class_name is not None:
            metadata.setdefault("name", self.class_name)
            metadata["net"] = {"class": self.class_name}
        return metadata

    # Nodes -----------------------------------------------------------------------------------------------------------

    def _declaration(self, word: str, at: int) -> None:
        """A node: words that give its kind, then its name and its attributes."""
        cursor, words = self.cursor, [word]
        while cursor.peek() not in ("{", ""):
            words.append(cursor.word("the name of a node and '{'"))
        *kind, identifier = words
        if not kind:
            raise cursor.unexpected("the name of a node")
        if identifier in self.variables or identifier in self.left_out:
            raise cursor.fail(f"node {identifier!r} is declared twice", at)
        found = self._attributes(_Braces(_OF_NODE, {}, []), f"node {identifier}")
        if kind in _CHANCE:
            self.variables[identifier] = self._variable(identifier, found, at)
        else:
            self._no_chance(" ".join(kind), identifier, at)

    def _no_chance(self, kind: str, identifier: str, at: int) -> None:
        """Refuse or leave out a node that is not a discrete chance node."""
        if "decision" not in kind and "utility" not in kind:
            raise self.cursor.fail(f"{identifier!r} is a {kind}: only discrete chance nodes can be read", at)
        if not self.ignore:
            raise self.cursor.not_chance(identifier, kind, at)
        self.left_out[identifier] = kind

    def _variable(self, identifier: str, found: _Braces, at: int) -> _DeclaredVariable:
        if "states" not in found.known:
            raise self.cursor.fail(f'node {identifier!r} has no states: expected states = ("a" "b");', at)
        metadata = self._drawn(found)
        name = self.cursor.one(found.known[NAME]) if NAME in found.known else identifier
        return _DeclaredVariable(name, self.cursor.states(name, found.known["states"]), metadata, at)

    # Potentials ------------------------------------------------------------------------------------------------------

    def _potential(self, at: int) -> None:
        cursor = self.cursor
        scope = cursor.group("( child | parents )")
        head, _, tail = scope.text.partition("|")
        child, parents = items(head), items(tail)
        if len(child) != 1:
            raise cursor.fail(f"expected ( child | parents ), got ({show_piece(scope.text)})", scope.at)
        if child[0] in self.potentials:
            raise cursor.fail(f"{child[0]!r} has two potentials", at)
        data, extra = None, []
        for key, value in cursor.statements(f"the potential of {child[0]}"):
            if key == "data" and data is not None:
                raise cursor.fail("data is given twice", value.at)
            if key == "data":
                data = value
            else:
                extra.append(f"{key} = {one_line(value.text)}")
        self.potentials[child[0]] = _Potential(parents, data, extra, at)

    def _nodes(self) -> list[Node]:
        """All chance nodes, in the order of their declarations."""
        numbers = {identifier: number for number, identifier in enumerate(self.variables)}
        given = [self._given(identifier, numbers) for identifier in self.variables]
        tables = self._tables(given)
        nodes = []
        for variable, one, table in zip(self.variables.values(), given, tables, strict=True):
            extra = self.potentials[one.identifier].extra
            metadata = variable.metadata | ({"net": {"potential": tuple(extra)}} if extra else {})
            nodes.append(Node(variable.name, variable.states, one.parents, table, metadata, one.line))
        return nodes

    def _given(self, identifier: str, numbers: dict[str, int]) -> _TableSource:
        variable, potential = self.variables[identifier], self.potentials.get(identifier)
        if potential is None:
            raise self.cursor.fail(f"node {identifier!r} has no potential", variable.at)
        parents = self.cursor.parents(identifier, potential.parents, numbers, self.left_out, potential.at)
        if potential.data is None:
            raise self.cursor.fail(self._why_no_data(identifier, potential), potential.at)
        shape = [len(self.variables[name].states) for name in (*potential.parents, identifier)]
        return _TableSource(identifier, parents, shape, potential.data, self.cursor.line(potential.at))

    def _why_no_data(self, identifier: str, potential: _Potential) -> str:
        if any(text.startswith(("model_nodes =", "model_data =", "function =")) for text in potential.extra):
            return f"the potential of {identifier!r} is given by a model (an expression) alone: save it with its data"
        return f"the potential of {identifier!r} has no data: expected data = (...);"

    def _tables(self, given: list[_TableSource]) -> list[Array]:
        """The tables of all potentials, in pieces of the file."""
        found: list[Array] = []
        for piece in pieces(given, [len(one.data.text) for one in given]):
            for one in piece:
                text = one.data.text
                if not (text.startswith("(") and text.endswith(")") and text.count("(") == text.count(")")):
                    message = f"expected data = ( numbers ), each '(' with its ')', got {show_piece(text)}"
                    raise self.cursor.fail(message, one.data.at)
            numbers = self._numbers(piece)
            if numbers is None:
                raise self._bad_data(piece)
            sizes = [prod(one.shape) for one in piece]
            rows = np.repeat([one.shape[-1] for one in piece], [prod(one.shape[:-1]) for one in piece])
            found += np.split(_normalised(numbers, rows), np.cumsum(sizes[:-1]))
        return found

    def _numbers(self, piece: Sequence[_TableSource]) -> Array | None:
        """The numbers of several potentials; None if one has a wrong number of numbers.

        NaN stands for each ")" and for the end of each potential. Between two of them there is nothing, or a row, or,
        if a potential has only one such piece, all of its numbers.
        """
        if any(prod(one.shape) > len(one.data.text) for one in piece):
            return None
        try:
            marked = self.cursor.numbers(Value(")".join([one.data.text for one in piece]) + ")", 0), " nan ")
        except ParseError:
            return None
        marks = np.isnan(marked)
        lengths = np.diff(np.flatnonzero(marks), prepend=-1) - 1
        counts = np.array([one.data.text.count(")") + 1 for one in piece])
        starts = np.cumsum(counts) - counts
        totals, lists = np.add.reduceat(lengths, starts), np.add.reduceat((lengths > 0).astype(np.int64), starts)
        rows = np.repeat([one.shape[-1] for one in piece], counts)
        odd = (lengths > 0) & (lengths != rows) & np.repeat(lists > 1, counts)
        if odd.any() or (totals != [prod(one.shape) for one in piece]).any():
            return None
        return np.asarray(marked[~marks])

    def _bad_data(self, piece: Sequence[_TableSource]) -> ParseError:
        """The error of the first potential that has a wrong number of numbers."""
        for one in piece:
            marked, k, size = self.cursor.numbers(one.data, " nan "), one.shape[-1], prod(one.shape)
            lengths = np.diff(np.flatnonzero(np.isnan(marked)), prepend=-1) - 1
            lengths, total = lengths[lengths > 0], int(lengths.sum())
            if total != size:
                message = f"data of {one.identifier!r} must be {size} numbers, {' x '.join(map(str, one.shape))}, got"
                return self.cursor.fail(f"{message} {total}", one.data.at)
            if len(lengths) > 1 and (lengths != k).any():
                message = f"each row of {one.identifier!r} must have {k} numbers, got one with"
                return self.cursor.fail(f"{message} {lengths[lengths != k][0]}", one.data.at)
        raise AssertionError("all data are right")


def _is_odd(key: str) -> bool:
    return key.startswith(PROPERTY) and _ODD_PROPERTY.fullmatch(key) is not None


def _normalised(numbers: Array, lengths: IntArray) -> Array:
    """Rows of these lengths, normalised, except those that cannot be and those within every reader's tolerance."""
    starts = np.cumsum(lengths) - lengths
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.add.reduceat(numbers, starts)
    scaled = (np.abs(sums - 1) > ROW_TOLERANCE) & (sums > 0) & (sums < np.inf)
    scaled &= np.minimum.reduceat(numbers, starts) >= 0
    if scaled.any():
        note_rows(sums[scaled])
    return np.asarray(numbers / np.repeat(np.where(scaled, sums, 1.0), lengths))
