"""XDSL, written: see `besag.io.xdsl` for the format and for what is kept under "xdsl".

A noisy-MAX or deterministic node is written as such while its CPT still is what it was read as, else as a <cpt>.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from besag.arrays import Array
from besag.errors import ModelError
from besag.io.network import Node, nodes_of
from besag.io.numbers import number_text
from besag.io.xdsl_drawing import (
    UNNAMED,
    default_genie,
    default_node,
    filled,
    model_name,
    position_in,
    shared_keys,
    update_genie,
    update_node,
)
from besag.io.xdsl_names import NAME, POSITION, STATE, identifier_of, identifiers, property_elements
from besag.io.xdsl_noisy import still_holds
from besag.io.xml_tree import COMMENT, Element, from_data, rendered
from besag.model.model import Model

SMILE_GROUPS = {tag: tag for tag in ("properties", "nodes", "extensions")}
SHARED = ("label", "comment", "position")


def write(model: Model) -> bytes:
    """The XDSL file of a Bayesian network; ModelError where the model is none."""
    nodes = nodes_of(model, "GeNIe XDSL")
    kept = _kept(model.metadata)
    ids = identifiers([node.name for node in nodes])
    name = str(model.metadata["name"]) if "name" in model.metadata else None
    attributes = {key: str(value) for key, value in kept.get("attributes", {}).items()} or default_attributes(name)
    groups = {
        "properties": _properties(model.metadata),
        "nodes": [_nodes_element(nodes, ids)],
        "extensions": _extensions(model.metadata, attributes, name, _drawings(nodes, ids)),
    }
    root = Element("smile", attributes, children=_with_extras(groups, kept))
    return rendered(root, [str(text) for text in kept.get("comments", ())])


def default_attributes(name: str | None) -> dict[str, str]:
    """Those of <smile> for a model with this name."""
    return {"version": "1.0", "id": identifier_of(name or UNNAMED), "numsamples": "10000", "discsamples": "10000"}


def _kept(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    kept = metadata.get("xdsl", {})
    if not isinstance(kept, Mapping):
        raise ModelError(f"metadata 'xdsl' must be a mapping as it was read, got {str(kept)[:60]!r}")
    return kept


def _with_extras(groups: Mapping[str, Sequence[Element]], kept: Mapping[str, Any]) -> list[Element]:
    """The elements of all groups, in order, each group followed by the kept elements that came after it."""
    after: dict[str, list[Element]] = {}
    for extra in kept.get("extras", ()):
        after.setdefault(str(extra.get("after")), []).append(from_data(extra.get("element")))
    children = after.get("", [])
    for group, elements in groups.items():
        children += [*elements, *after.get(group, [])]
    return children


def _properties(metadata: Mapping[str, Any]) -> list[Element]:
    elements = property_elements([str(text) for text in metadata.get("properties", ())], {})
    return [Element("properties", children=elements)] if elements else []


# Nodes ----------------------------------------------------------------------------------------------------------------


def _nodes_element(nodes: Sequence[Node], ids: Sequence[str]) -> Element:
    children = []
    for node, identifier in zip(nodes, ids, strict=True):
        children += [Element(COMMENT, text=str(text)) for text in _kept(node.metadata).get("comments", ())]
        children.append(_node_element(node, identifier, [ids[parent] for parent in node.parents]))
    return Element("nodes", children=children)


def _node_element(node: Node, identifier: str, parents: Sequence[str]) -> Element:
    kept = _kept(node.metadata)
    states = identifiers(node.states)
    tag, definition = _definition(node.table, states, kept)
    texts = [str(text) for text in node.metadata.get("properties", ())]
    groups = {
        "state": [_state(name, state, kept.get("states", {})) for name, state in zip(node.states, states, strict=True)],
        "parents": [Element("parents", text=" ".join(parents))] if parents else [],
        "definition": definition,
        "property": property_elements(texts, _reserved(node, identifier, states)),
    }
    attributes = {"id": identifier} | {key: str(value) for key, value in kept.get("attributes", {}).items()}
    return Element(tag, attributes, children=_with_extras(groups, kept))


def _state(name: str, identifier: str, kept: Mapping[str, Any]) -> Element:
    state = from_data(kept[name]) if name in kept else Element("state")
    state.attributes = {"id": identifier, **state.attributes}
    return state


def _definition(table: Array, states: Sequence[str], kept: Mapping[str, Any]) -> tuple[str, list[Element]]:
    """The tag of a node and the elements with its numbers."""
    noisy = kept.get("noisymax")
    if noisy is not None:
        of_states = [state for cardinality in table.shape[:-1] for state in range(cardinality)]
        strengths, parameters = list(noisy.get("strengths", of_states)), list(noisy.get("parameters", ()))
        if still_holds(table, parameters, strengths):
            order = [Element("strengths", text=" ".join(map(str, strengths)))] if "strengths" in noisy else []
            return "noisymax", [
                *order,
                Element("parameters", text=" ".join(number_text(np.array(parameters, np.float64)))),
            ]
    if kept.get("deterministic") and ((table == 0) | (table == 1)).all():
        results = [states[code] for code in table.reshape(-1, len(states)).argmax(axis=1).tolist()]
        return "deterministic", [Element("resultingstates", text=" ".join(results))]
    return "cpt", [Element("probabilities", text=" ".join(number_text(table)))]


def _reserved(node: Node, identifier: str, states: Sequence[str]) -> dict[str, str]:
    """The properties that say what identifiers and rounded positions stand for."""
    reserved = {} if identifier == node.name else {NAME: node.name}
    for i, (name, state) in enumerate(zip(node.states, states, strict=True)):
        if name != state:
            reserved[f"{STATE}{i}"] = name
    position = position_in(node.metadata)
    if position is not None and shared_keys(_drawing(node, identifier), node.name).get("position") != position:
        reserved[POSITION] = "{!r} {!r}".format(*position)
    return reserved


# Drawings -------------------------------------------------------------------------------------------------------------


def _drawing(node: Node, identifier: str) -> Element:
    shared = {key: node.metadata[key] for key in SHARED if key in node.metadata}
    kept = _kept(node.metadata).get("drawing")
    if kept is None:
        return default_node(identifier, node.name, shared)
    drawing = from_data(kept)
    drawing.attributes = {"id": identifier, **drawing.attributes}
    update_node(drawing, node.name, shared)
    return drawing


def _drawings(nodes: Sequence[Node], ids: Sequence[str]) -> dict[str, Element]:
    """A <node>, by name, for each variable that says anything of how it is drawn."""
    return {
        node.name: _drawing(node, identifier)
        for node, identifier in zip(nodes, ids, strict=True)
        if any(key in node.metadata for key in SHARED) or "drawing" in _kept(node.metadata)
    }


def _extensions(
    metadata: Mapping[str, Any], attributes: Mapping[str, str], name: str | None, drawings: dict[str, Element]
) -> list[Element]:
    kept = _kept(metadata)
    comment = str(metadata["comment"]) if "comment" in metadata else None
    children = [from_data(data) for data in kept.get("extensions", ())]
    if "genie" in kept or drawings or comment or name != model_name(attributes, None):
        genie = from_data(kept["genie"]) if "genie" in kept else default_genie(name, comment, list(drawings))
        update_genie(genie, attributes, name, comment)
        genie = filled(genie, drawings)
        genie.children += drawings.values()
        children.insert(0, genie)
    return [Element("extensions", children=children)] if children else []
