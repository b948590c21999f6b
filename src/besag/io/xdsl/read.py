"""XDSL, the format of GeNIe and SMILE.

    <smile version id numsamples discsamples>
      <properties> <property id="key">value</property> * </properties>
      <nodes>
        <cpt id>           <state id/> * <parents>ids</parents> <probabilities>numbers</probabilities> <property/> *
        <noisymax id>      ...           <strengths>integers</strengths> <parameters>numbers</parameters>      (`noisy`)
        <deterministic id> ...           <resultingstates>ids of states, one for each state of the parents</...>
      </nodes>
      <extensions> <genie/> </extensions>                                                                    (`drawing`)
    </smile>

Numbers are the table (parents..., child): the first parent changes slowest, the node fastest. Decision, utility, MAU
and equation nodes are an error or are left out; a chance node that depends on one is an error, as are dynamic networks.

In metadata: identifiers are names (see `names` for those that are not), <property id="key">value</property> is "key =
value" among `properties`, and label, comment and position come from `drawing`. All else is kept under "xdsl" and
written back: for a variable see `node`; for the model `attributes`, `extras` (other elements, and the tag that each
comes after), `comments`, the tree `genie` and other `extensions`.
"""

from __future__ import annotations

import re
from math import prod
from typing import Any

import numpy as np

from besag.arrays import Array
from besag.errors import ModelError, ParseError
from besag.io.formats import Source
from besag.io.shared.budget import EntryBudget
from besag.io.shared.nodes import Node, model_of_nodes
from besag.io.shared.tables import MAX_ARITY
from besag.io.shared.xml_tree import COMMENT, Element, XmlDocument, as_data, numbers_of, parse
from besag.io.xdsl.drawing import default_genie, model_name, stub_nodes
from besag.io.xdsl.names import NAME, split_properties
from besag.io.xdsl.node import ChanceNode, extras_of, metadata_of
from besag.io.xdsl.noisy import can_hold, noisy_of
from besag.io.xdsl.write import SMILE_GROUPS, default_attributes, write
from besag.model.model import Model
from besag.model.structured.noisy import NoisyMax

__all__ = ["can_hold", "matches", "read", "write"]

CHANCE = ("cpt", "noisymax", "deterministic")
LEFT_OUT = {"decision": "a decision", "utility": "a utility", "mau": "a utility", "equation": "an equation"}

_ROOT = re.compile(rb"<smile[\s>]")


def matches(head: bytes) -> bool:
    """Whether a file that begins so is an XDSL model."""
    return head.lstrip().startswith(b"<") and _ROOT.search(head) is not None


def read(source: Source) -> Model:
    """A Model from the content of an XDSL file."""
    return _Reader(source).model()


class _Reader:
    """The state of reading one file: chance nodes, and the kinds of nodes that were left out, by identifier."""

    def __init__(self, source: Source) -> None:
        self.source, self.path = source, source.path
        self.chance: list[ChanceNode] = []
        self.index: dict[str, int] = {}
        self.left_out: dict[str, str] = {}
        self.room = EntryBudget(len(source.data))

    def model(self) -> Model:
        """The whole file."""
        document = parse(self.source.data, self.path)
        root = document.root
        if root.tag != "smile":
            raise self._fail(root, f"expected <smile>, got <{root.tag[:40]}>")
        dynamic = root.first("dynamic")
        if dynamic is not None and dynamic.children:
            raise self._fail(
                dynamic, "dynamic networks are not supported: expected no temporal definitions in <dynamic>"
            )
        self._declare(self._only(root, "nodes"))
        metadata = self._model_metadata(document)
        nodes = []
        for chance in self.chance:
            parents = self._parents(chance)
            table = self._table(chance, [len(self.chance[u].states) for u in parents])
            line = chance.element.line
            noisy = table if isinstance(table, NoisyMax) else None
            own = np.zeros(0) if isinstance(table, NoisyMax) else table
            nodes.append(Node(chance.name, chance.state_names, parents, own, metadata_of(chance), line, noisy))
        return model_of_nodes(nodes, self.path, metadata)

    # Nodes ------------------------------------------------------------------------------------------------------------

    def _declare(self, nodes: Element) -> None:
        comments: list[str] = []
        for element in nodes.children:
            if element.tag == COMMENT:
                comments.append(element.text)
                continue
            identifier = self._identifier(element)
            if identifier in self.index or identifier in self.left_out:
                raise self._fail(element, f"variable {identifier!r} is declared twice")
            if element.tag in CHANCE:
                states = [self._identifier(state) for state in element.all("state")]
                if not states:
                    raise self._fail(element, f"expected at least one <state> in {_shown(element)}, got none")
                self.index[identifier] = len(self.chance)
                self.chance.append(ChanceNode(element, identifier, states, comments))
            else:
                self._leave_out(element, identifier)
            comments = []

    def _leave_out(self, element: Element, identifier: str) -> None:
        kind = LEFT_OUT.get(element.tag)
        if kind is None:
            message = (
                f"{identifier!r} is a <{element.tag[:40]}> node, which is not supported; expected {', '.join(CHANCE)}"
            )
            raise self._fail(element, message)
        if not self.source.ignore_utilities:
            message = f"{identifier!r} is {kind} node; ignore_utilities=True reads the chance nodes alone"
            raise self._fail(element, message)
        self.left_out[identifier] = kind

    def _parents(self, chance: ChanceNode) -> list[int]:
        element = self._one(chance.element, "parents")
        found = [] if element is None else element.text.split()
        for parent in found:
            kind = self.left_out.get(parent)
            if kind is not None:
                message = f"{chance.identifier!r} depends on {kind} node {parent!r}: there is no chance part without it"
                raise self._fail(chance.element, message)
            if parent not in self.index:
                message = f"{chance.identifier!r} names the parent {parent!r}, but there is no such node"
                raise self._fail(chance.element, message)
        if len(found) >= MAX_ARITY and chance.element.tag != "noisymax":
            message = f"{chance.identifier!r} may have {MAX_ARITY - 1} parents, got {len(found)}"
            raise self._fail(chance.element, message)
        return [self.index[parent] for parent in found]

    def _table(self, chance: ChanceNode, cardinalities: list[int]) -> Array | NoisyMax:
        """The CPT, flat or in shape, or what it is made of; `cardinalities`: of the parents."""
        element, n_states = chance.element, len(chance.states)
        if element.tag == "cpt":
            return numbers_of(self._only(element, "probabilities"), self.path)
        if element.tag == "noisymax":
            return self._noisy(chance, cardinalities)
        if not self.room.holds((*cardinalities, n_states)):
            size = prod(cardinalities) * n_states
            raise self._fail(
                element, f"the CPT of {chance.identifier!r} has {size} entries, too many for so short a file"
            )
        words = self._only(element, "resultingstates").text.split()
        codes = {state: code for code, state in enumerate(chance.states)}
        unknown = next((word for word in words if word not in codes), None)
        if unknown is not None or len(words) != prod(cardinalities):
            got = f"{len(words)}" if unknown is None else f"{unknown[:40]!r}"
            message = f"expected {prod(cardinalities)} states of {chance.identifier!r} in <resultingstates>, got {got}"
            raise self._fail(element, message)
        table = np.zeros((len(words), n_states))
        table[np.arange(len(words)), [codes[word] for word in words]] = 1
        return table

    def _noisy(self, chance: ChanceNode, cardinalities: list[int]) -> NoisyMax:
        parameters = numbers_of(self._only(chance.element, "parameters"), self.path)
        chance.noisy = {"parameters": parameters.tolist()}
        strengths = [state for cardinality in cardinalities for state in range(cardinality)]
        element = self._one(chance.element, "strengths")
        if element is not None:
            chance.noisy["strengths"] = strengths = self._strengths(element, len(strengths))
        try:
            return noisy_of(parameters, strengths, cardinalities, len(chance.states))
        except ModelError as error:
            raise self._fail(chance.element, f"the noisy-MAX node {chance.identifier!r} {error}") from None

    def _strengths(self, element: Element, count: int) -> list[int]:
        found = numbers_of(element, self.path)
        if len(found) != count or not ((found >= 0) & (found < count) & (found == np.floor(found))).all():
            raise self._fail(element, f"expected {count} numbers of states in <strengths>, got {element.text[:60]!r}")
        return [int(value) for value in found.tolist()]

    # The model --------------------------------------------------------------------------------------------------------

    def _model_metadata(self, document: XmlDocument) -> dict[str, Any]:
        root = document.root
        extensions = self._one(root, "extensions") or Element("extensions")
        genie = self._one(extensions, "genie")
        of_root = (self._one(root, "properties") or Element("properties")).all("property")
        properties, reserved = split_properties(of_root)
        name = model_name(root.attributes, genie) or reserved.get(NAME)
        comment = None
        kept: dict[str, Any] = {
            "attributes": {} if root.attributes == default_attributes(name) else root.attributes,
            "comments": list(document.comments),
            "extras": extras_of(root, SMILE_GROUPS),
            "extensions": [as_data(element) for element in extensions.children if element.tag != "genie"],
        }
        if genie is not None:
            comment = next((element.text for element in genie.all("comment")[:1] if element.text), None)
            kept["genie"] = self._drawn(genie, name, comment)
        kept = {key: value for key, value in kept.items() if value}
        shared = {"name": name, "comment": comment, "properties": properties, "xdsl": kept}
        return {key: value for key, value in shared.items() if value}

    def _drawn(self, genie: Element, name: str | None, comment: str | None) -> dict[str, Any] | None:
        """Give the chance nodes their drawings; returns the rest as data unless it is the default."""
        found: dict[str, Element] = {}
        names = {chance.identifier: chance.name for chance in self.chance}
        tree = as_data(stub_nodes(genie, names, self.left_out, found))
        for identifier, element in found.items():
            self.chance[self.index[identifier]].drawing = element
        usual = default_genie(name, comment, [chance.name for chance in self.chance if chance.drawing])
        return None if tree == as_data(usual) else tree

    def _identifier(self, element: Element) -> str:
        identifier = element.attributes.get("id", "")
        if not identifier or identifier.split() != [identifier]:
            raise self._fail(
                element, f"expected <{element.tag[:40]} id=...> without white space, got {identifier[:40]!r}"
            )
        return identifier

    def _only(self, element: Element, tag: str) -> Element:
        """The child with a tag."""
        found = self._one(element, tag)
        if found is None:
            raise self._fail(element, f"expected one <{tag}> in {_shown(element)}, got none")
        return found

    def _one(self, element: Element, tag: str) -> Element | None:
        """The child with a tag, if there is one."""
        found = element.all(tag)
        if len(found) > 1:
            raise self._fail(found[1], f"expected one <{tag}> in {_shown(element)}, got {len(found)}")
        return found[0] if found else None

    def _fail(self, element: Element, message: str) -> ParseError:
        return ParseError(message, path=self.path, line=element.line)


def _shown(element: Element) -> str:
    of = f" of {element.attributes['id'][:40]!r}" if "id" in element.attributes else ""
    return f"<{element.tag}>{of}"
