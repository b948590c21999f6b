"""XMLBIF 0.3, the Bayesian interchange format in XML.

    <BIF VERSION="0.3">
      <NETWORK>
        <NAME>...</NAME>  <PROPERTY>...</PROPERTY> *
        <VARIABLE TYPE="nature"> <NAME/> <OUTCOME>state</OUTCOME> * <PROPERTY/> * </VARIABLE> *
        <DEFINITION> <FOR>child</FOR> <GIVEN>parent</GIVEN> * <TABLE>numbers</TABLE> <PROPERTY/> * </DEFINITION> *
      </NETWORK>
    </BIF>

The numbers are the table (parents..., child): the child changes fastest, the first parent slowest. The other types of
variables are "decision" and "utility". White space around names, states, properties and comments is ignored.

In metadata: the property "position = (x, y)" is `position`; comments inside a variable or just before it are its
`comment`, others the network's, but comments in definitions and empty properties are skipped. The key "xmlbif" has the
properties of a definition and elements with other tags. A comment that could not be read back, such as one with "--" or
with a space at its end, is written as the property besag_comment = "...", and a property of that kind, or one that
would be taken for a position, as besag_property = "...".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from besag.errors import ModelError, ParseError
from besag.io.formats import Source
from besag.io.shared.metadata import KeptPiece
from besag.io.shared.nodes import Node, model_of_nodes, nodes_of
from besag.io.shared.numbers import number_text
from besag.io.shared.positions import position_of, position_text
from besag.io.shared.xml_tree import COMMENT, Element, as_data, from_data, numbers_of, parse, render
from besag.model.model import Model

HEADINGS = ("Variables", "Probability distributions")
SPACE = " \t\r\n"

_ROOT = re.compile(rb"<BIF[\s>]")
_SPARE = re.compile(r'besag_(comment|property) = "(.*)"', re.DOTALL)


def matches(head: bytes) -> bool:
    """Whether a file that begins so is an XMLBIF model."""
    return head.lstrip().startswith(b"<") and _ROOT.search(head) is not None


# Reading --------------------------------------------------------------------------------------------------------------


def read(source: Source) -> Model:
    """A Model from the content of an XMLBIF file."""
    return _Reader(source).model()


class _Reader:
    """The state of reading one file: the chance variables, by name, and the types of those that are left out."""

    def __init__(self, source: Source) -> None:
        self.source, self.path = source, source.path
        self.nodes: list[Node] = []
        self.index: dict[str, int] = {}
        self.left_out: dict[str, str] = {}

    def model(self) -> Model:
        """The whole file."""
        document = parse(self.source.data, self.path)
        network = self._network(document.root)
        comments = list(document.comments)
        waiting: list[str] = []  # comments that belong to the next element
        for child in network.children:
            if child.tag == COMMENT:
                waiting.append(child.text)
                continue
            if child.tag == "VARIABLE":
                self._variable(child, waiting)
            else:
                comments += waiting
            waiting = []
        defined = {self._definition(definition) for definition in network.all("DEFINITION")}
        for v, node in enumerate(self.nodes):
            if v not in defined:
                raise self._fail(node.line, f"variable {node.name!r} has no <DEFINITION>")
        metadata = _metadata(network, [*comments, *waiting], ("VARIABLE", "DEFINITION"))
        named = any(element.text.strip(SPACE) for element in network.all("NAME"))  # an empty <NAME> does not count
        name = self._only(network, "NAME") if named else ""
        return model_of_nodes(self.nodes, self.path, {"name": name, **metadata} if name else metadata)

    def _network(self, root: Element) -> Element:
        networks = root.all("NETWORK")
        if root.tag != "BIF" or len(networks) != 1:
            got = f"<{root.tag}>" if root.tag != "BIF" else f"<BIF> with {len(networks)}"
            raise self._fail(root.line, f"expected <BIF> with one <NETWORK>, got {got}")
        return networks[0]

    def _variable(self, element: Element, comments: Sequence[str]) -> None:
        name = self._only(element, "NAME")
        if name in self.index or name in self.left_out:
            raise self._fail(element.line, f"variable {name!r} is declared twice")
        kind = element.attributes.get("TYPE", "nature").strip().lower()
        if kind in ("decision", "utility"):
            if not self.source.ignore_utilities:
                message = f"variable {name!r} is a {kind} node; ignore_utilities=True reads the chance nodes alone"
                raise self._fail(element.line, message)
            self.left_out[name] = kind
            return
        if kind != "nature":
            raise self._fail(element.line, f"expected TYPE nature, decision or utility of {name!r}, got {kind[:40]!r}")
        states = tuple(outcome.text.strip(SPACE) for outcome in element.all("OUTCOME"))
        metadata = _metadata(element, comments, ("OUTCOME",))
        self.index[name] = len(self.nodes)
        self.nodes.append(Node(name, states, [], np.zeros(0), metadata, element.line))

    def _definition(self, element: Element) -> int | None:
        """Put a definition into its node; returns the node's number, None if that is left out."""
        child = self._only(element, "FOR")
        if child in self.left_out:
            return None
        node = self.nodes[self._number(element, child)]
        if node.table.size:
            raise self._fail(element.line, f"variable {child!r} has two definitions")
        node.parents = [self._parent(element, child, given) for given in element.all("GIVEN")]
        tables = element.all("TABLE")
        if len(tables) != 1:
            raise self._fail(element.line, f"the definition of {child!r} must have one <TABLE>, got {len(tables)}")
        node.table = numbers_of(tables[0], self.path)
        node.line = element.line
        if not node.table.size:
            raise self._fail(tables[0].line, f"expected numbers in the <TABLE> of {child!r}, got none")
        spare = [(text, _SPARE.fullmatch(text)) for text in _properties(element)]
        _keep(node.metadata, "definition", [text if match is None else match[2] for text, match in spare])
        _keep(node.metadata, "definition_elements", _others(element, ("FOR", "GIVEN", "TABLE", "PROPERTY", COMMENT)))
        return self.index[child]

    def _parent(self, definition: Element, child: str, given: Element) -> int:
        name = given.text.strip(SPACE)
        kind = self.left_out.get(name)
        if kind is not None:
            raise self._fail(
                definition.line, f"{child!r} depends on the {kind} node {name!r}: there is no chance part without it"
            )
        return self._number(given, name)

    def _number(self, element: Element, name: str) -> int:
        if name not in self.index:
            raise self._fail(element.line, f"no variable is named {name!r}; {len(self.index)} are declared")
        return self.index[name]

    def _only(self, element: Element, tag: str) -> str:
        """The text of the only child with a tag."""
        found = element.all(tag)
        if len(found) != 1 or not found[0].text.strip(SPACE):
            raise self._fail(element.line, f"expected one <{tag}> with a name in <{element.tag}>, got {len(found)}")
        return found[0].text.strip(SPACE)

    def _fail(self, line: int | None, message: str) -> ParseError:
        return ParseError(message, path=self.path, line=line)


def _metadata(element: Element, comments: Iterable[str], known: Sequence[str]) -> dict[str, Any]:
    """The metadata of a NETWORK or VARIABLE; `comments` are those outside of it."""
    metadata: dict[str, Any] = {}
    inside = [child.text for child in element.all(COMMENT)] if element.tag == "VARIABLE" else []
    found = [text.strip(SPACE) for text in [*comments, *inside]]
    texts = [text for text in found if text and text not in HEADINGS]
    others: list[str] = []
    for text in _properties(element):
        spare, position = _SPARE.fullmatch(text), position_of(text)
        if spare is not None:
            (texts if spare[1] == "comment" else others).append(spare[2])
        elif position is not None and "position" not in metadata:
            metadata["position"] = position
        else:
            others.append(text)
    if texts:
        metadata["comment"] = "\n".join(texts)
    if others:
        metadata["properties"] = others
    _keep(metadata, "elements", _others(element, ("NAME", "PROPERTY", COMMENT, *known)))
    return metadata


def _properties(element: Element) -> list[str]:
    texts = [child.text.strip(SPACE) for child in element.all("PROPERTY")]
    return [text for text in texts if text]


def _others(element: Element, known: Sequence[str]) -> list[dict[str, Any]]:
    """The children with tags that this format does not know, as data."""
    return [as_data(child) for child in element.children if child.tag not in known]


def _keep(metadata: dict[str, Any], key: str, value: list[Any]) -> None:
    """Put data that only this format has under its key, if there are any."""
    if value:
        metadata.setdefault("xmlbif", {})[key] = value


# Writing --------------------------------------------------------------------------------------------------------------


def write(model: Model) -> bytes:
    """The XMLBIF file of a Bayesian network; ModelError if the model is none or a name does not fit."""
    nodes = nodes_of(model, "XMLBIF")
    name = model.metadata.get("name")
    network = Element("NETWORK", children=[_named("NAME", name) if name else Element("NAME")])  # the DTD wants one
    comments, children = _metadata_elements(model.metadata, "the model")
    network.children += children
    network.children.append(Element(COMMENT, text=f" {HEADINGS[0]} "))
    network.children += [_variable_element(node) for node in nodes]
    network.children.append(Element(COMMENT, text=f" {HEADINGS[1]} "))
    network.children += [_definition_element(node, nodes) for node in nodes]
    return render(Element("BIF", {"VERSION": "0.3"}, children=[network]), [comment.text for comment in comments])


def _named(tag: str, name: str) -> Element:
    if not name or name != name.strip(SPACE):
        raise ModelError(
            f"XMLBIF cannot hold the name {name!r}: names must not be empty, nor begin or end with white space; rename "
            "it or save the model as .json"
        )
    return Element(tag, text=name)


def _variable_element(node: Node) -> Element:
    comments, others = _metadata_elements(node.metadata, repr(node.name))
    outcomes = [_named("OUTCOME", state) for state in node.states]
    return Element("VARIABLE", {"TYPE": "nature"}, children=[*comments, _named("NAME", node.name), *outcomes, *others])


def _definition_element(node: Node, nodes: Sequence[Node]) -> Element:
    scope = [_named("FOR", node.name), *(_named("GIVEN", nodes[parent].name) for parent in node.parents)]
    rows = [" ".join(number_text(row)) for row in node.table.reshape(-1, len(node.states))]
    table = Element("TABLE", text="\n".join(rows))
    kept = KeptPiece(node.metadata.get("xmlbif"), "xmlbif", repr(node.name))
    properties = [_property(text) for text in kept.at("definition").texts()]
    others = [from_data(data) for data in kept.at("definition_elements").items()]
    return Element("DEFINITION", children=[*scope, table, *properties, *others])


def _metadata_elements(metadata: Mapping[str, Any], whose: str) -> tuple[list[Element], list[Element]]:
    """The comments of a model or variable, and its other elements."""
    elements = [_property(text) for text in metadata.get("properties", ())]
    if "position" in metadata:
        elements.append(Element("PROPERTY", text=position_text(metadata["position"])))
    comment = metadata.get("comment", "")
    comments = []
    if comment and _fits_comment(comment):
        comments.append(Element(COMMENT, text=f" {comment} "))
    elif comment:
        elements.append(Element("PROPERTY", text=f'besag_comment = "{comment}"'))
    kept = KeptPiece(metadata.get("xmlbif"), "xmlbif", whose)
    return comments, elements + [from_data(data) for data in kept.at("elements").items()]


def _fits_comment(text: str) -> bool:
    """Whether a comment is read back from XML unchanged."""
    return "--" not in text and "\r" not in text and text not in HEADINGS and text == text.strip(SPACE)


def _property(text: str) -> Element:
    """A property, in the form besag_property = "..." if it would not be read back unchanged."""
    fits = text and text == text.strip(SPACE) and position_of(text) is None and _SPARE.fullmatch(text) is None
    return Element("PROPERTY", text=text if fits else f'besag_property = "{text}"')
