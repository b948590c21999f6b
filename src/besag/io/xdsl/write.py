"""XDSL files from models; see `besag.io.xdsl.read` for the format and for what is kept under "xdsl".

A deterministic node is written as such if its CPT has not changed since it was read, else as a <cpt>. A noisy-MAX is
written as such where GeNIe can hold it (`noisy.can_hold`), else as a <cpt>.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from besag.arrays import Array
from besag.io.shared.metadata import KeptPiece
from besag.io.shared.nodes import Node, nodes_of
from besag.io.shared.numbers import number_text
from besag.io.shared.xml_tree import Element, attributes_of, comment_of, from_data, render
from besag.io.xdsl.drawing import (
    UNNAMED,
    default_genie,
    default_node,
    fill_stubs,
    read_shared_keys,
    update_genie,
    update_node,
)
from besag.io.xdsl.names import LABEL, NAME, POSITION, STATE, identifier_of, identifiers, property_elements
from besag.io.xdsl.noisy import can_hold, parameters_of, still_holds
from besag.model.model import Model
from besag.model.structured.noisy import NoisyMax

SMILE_GROUPS = {tag: tag for tag in ("properties", "nodes", "extensions")}
SHARED = ("label", "comment", "position")


def write(model: Model) -> bytes:
    """The XDSL file of a Bayesian network; ModelError if the model is none."""
    nodes = nodes_of(model, "GeNIe XDSL", can_hold)
    kept = KeptPiece(model.metadata.get("xdsl"), "xdsl", "the model")
    ids = identifiers([node.name for node in nodes])
    name = model.metadata.get("name") or None
    attributes = attributes_of(kept.at("attributes")) or default_attributes(name)
    groups = {
        "properties": _properties(model.metadata),
        "nodes": [_nodes_element(nodes, ids)],
        "extensions": _extensions(model.metadata, attributes, kept, _drawings(nodes, ids)),
    }
    root = Element("smile", attributes, children=_with_extras(groups, kept))
    return render(root, [comment_of(text).text for text in kept.at("comments").items()])


def default_attributes(name: str | None) -> dict[str, str]:
    """The attributes of <smile> for a model with this name."""
    return {"version": "1.0", "id": identifier_of(name or UNNAMED), "numsamples": "10000", "discsamples": "10000"}


def _kept(node: Node) -> KeptPiece:
    return KeptPiece(node.metadata.get("xdsl"), "xdsl", repr(node.name))


def _with_extras(groups: Mapping[str, Sequence[Element]], kept: KeptPiece) -> list[Element]:
    """The elements of all groups, in order, each group followed by the kept elements that came after it."""
    after: dict[str, list[Element]] = {}
    for extra in kept.at("extras").items():
        after.setdefault(extra.at("after").text(), []).append(from_data(extra.at("element")))
    children = after.get("", [])
    for group, elements in groups.items():
        children += [*elements, *after.get(group, [])]
    return children


def _properties(metadata: Mapping[str, Any]) -> list[Element]:
    reserved = {NAME: UNNAMED} if metadata.get("name") == UNNAMED else {}
    elements = property_elements(metadata.get("properties", ()), reserved)
    return [Element("properties", children=elements)] if elements else []


# Nodes ----------------------------------------------------------------------------------------------------------------


def _nodes_element(nodes: Sequence[Node], ids: Sequence[str]) -> Element:
    children = []
    for node, identifier in zip(nodes, ids, strict=True):
        children += [comment_of(text) for text in _kept(node).at("comments").items()]
        children.append(_node_element(node, identifier, [ids[parent] for parent in node.parents]))
    return Element("nodes", children=children)


def _node_element(node: Node, identifier: str, parents: Sequence[str]) -> Element:
    kept = _kept(node)
    states = identifiers(node.states)
    tag, definition = _definition(node, states, kept)
    groups = {
        "state": [_state(id_, kept.at("states").at(name)) for name, id_ in zip(node.states, states, strict=True)],
        "parents": [Element("parents", text=" ".join(parents))] if parents else [],
        "definition": definition,
        "property": property_elements(node.metadata.get("properties", ()), _reserved(node, identifier, states)),
    }
    root = Element(tag, attributes_of(kept.at("attributes")), children=_with_extras(groups, kept))
    return _identified(root, identifier)


def _identified(element: Element, identifier: str) -> Element:
    """An element with an id, before its other attributes."""
    element.attributes = {"id": identifier, **element.attributes} | {"id": identifier}
    return element


def _state(identifier: str, kept: KeptPiece) -> Element:
    state = Element("state") if kept.value is None else from_data(kept)
    if state.tag != "state":
        raise kept.wrong("a <state>")
    return _identified(state, identifier)


def _definition(node: Node, states: Sequence[str], kept: KeptPiece) -> tuple[str, list[Element]]:
    """The tag of a node and the elements with its numbers."""
    noisy, table = kept.at("noisymax"), node.table
    if noisy.value is not None:
        elements = _noisy(table if node.noisy is None else node.noisy, noisy)
        if elements:
            return "noisymax", elements
    if node.noisy is not None:
        return "noisymax", _elements(*parameters_of(node.noisy))
    if kept.at("deterministic").value is True and ((table == 0) | (table == 1)).all():
        results = [states[code] for code in table.reshape(-1, len(states)).argmax(axis=1).tolist()]
        return "deterministic", [Element("resultingstates", text=" ".join(results))]
    return "cpt", [Element("probabilities", text=" ".join(number_text(table)))]


def _noisy(table: Array | NoisyMax, kept: KeptPiece) -> list[Element]:
    """Strengths, if they were given, and parameters; none if they no longer give the table."""
    strengths, parameters = kept.at("strengths").numbers(), kept.at("parameters").numbers()
    if not all(isinstance(state, int) for state in strengths):
        raise kept.at("strengths").wrong("a list of integers")
    of_states = [state for cardinality in table.shape[:-1] for state in range(cardinality)]
    if not still_holds(table, parameters, strengths or of_states):
        return []
    return _elements(strengths, np.array(parameters, np.float64))


def _elements(strengths: Sequence[int], parameters: Array) -> list[Element]:
    order = [Element("strengths", text=" ".join(map(str, strengths)))] if strengths else []
    return [*order, Element("parameters", text=" ".join(number_text(parameters)))]


def _reserved(node: Node, identifier: str, states: Sequence[str]) -> dict[str, str]:
    """The properties with names, labels and positions that identifiers and the drawing cannot hold."""
    reserved = {} if identifier == node.name else {NAME: node.name}
    for i, (name, state) in enumerate(zip(node.states, states, strict=True)):
        if name != state:
            reserved[f"{STATE}{i}"] = name
    label, position = node.metadata.get("label"), node.metadata.get("position")
    if label in (node.name, identifier):
        reserved[LABEL] = label
    if position is not None and read_shared_keys(_drawing(node, identifier), node.name).get("position") != position:
        reserved[POSITION] = "{!r} {!r}".format(*position)
    return reserved


# Drawings -------------------------------------------------------------------------------------------------------------


def _drawing(node: Node, identifier: str) -> Element:
    shared = {key: node.metadata[key] for key in SHARED if node.metadata.get(key)}
    kept = _kept(node).at("drawing")
    if kept.value is None:
        return default_node(identifier, node.name, shared)
    drawing = _identified(from_data(kept), identifier)
    if drawing.tag != "node":
        raise kept.wrong("a <node>")
    update_node(drawing, node.name, shared)
    return drawing


def _drawings(nodes: Sequence[Node], ids: Sequence[str]) -> dict[str, Element]:
    """A <node>, by name, for each variable with metadata on how it is drawn."""
    return {
        node.name: _drawing(node, identifier)
        for node, identifier in zip(nodes, ids, strict=True)
        if any(node.metadata.get(key) for key in SHARED) or _kept(node).at("drawing").value is not None
    }


def _extensions(
    metadata: Mapping[str, Any], attributes: Mapping[str, str], kept: KeptPiece, drawings: dict[str, Element]
) -> list[Element]:
    """The <extensions>, with a <genie> even if there is nothing to draw, since other programs expect it."""
    name, comment, tree = metadata.get("name") or None, metadata.get("comment") or None, kept.at("genie")
    genie = default_genie(name, comment, list(drawings)) if tree.value is None else from_data(tree)
    if genie.tag != "genie":
        raise tree.wrong("a <genie>")
    update_genie(genie, attributes, name, comment)
    genie = fill_stubs(genie, drawings)
    genie.children += drawings.values()
    return [Element("extensions", children=[genie, *(from_data(data) for data in kept.at("extensions").items())])]
