"""A chance node of an XDSL file, and its metadata.

The key "xdsl" keeps, if there are any,

    attributes      of its element, besides id
    states          elements of states that have more than an id, by the state's name
    extras          elements of other tags, and the group of known ones that each comes after
    comments        XML comments before its element
    drawing         its <node> in <genie>, if it differs from the default
    noisymax        strengths and parameters
    deterministic   True
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from besag.io.shared.positions import pair_of
from besag.io.shared.xml_tree import Element, as_data
from besag.io.xdsl.drawing import Position, default_node, find_centre, read_shared_keys
from besag.io.xdsl.names import LABEL, NAME, POSITION, STATE, find_meant, split_properties

NODE_GROUPS = {
    "state": "state",
    "parents": "parents",
    "probabilities": "definition",
    "strengths": "definition",
    "parameters": "definition",
    "resultingstates": "definition",
    "property": "property",
}


@dataclass(slots=True)
class ChanceNode:
    """A chance node of the file. states: their identifiers. noisy: what `noisymax` keeps. drawing: its <node>."""

    element: Element
    identifier: str
    states: list[str]
    comments: list[str]
    properties: list[str] = field(default_factory=list)
    reserved: dict[str, str] = field(default_factory=dict)
    noisy: dict[str, list[Any]] = field(default_factory=dict)
    drawing: Element | None = None

    def __post_init__(self) -> None:
        self.properties, self.reserved = split_properties(self.element.all("property"))

    @property
    def name(self) -> str:
        """The name that its identifier stands for."""
        return find_meant(self.identifier, self.reserved.get(NAME))

    @property
    def state_names(self) -> tuple[str, ...]:
        """The names that the identifiers of its states stand for."""
        return tuple(find_meant(state, self.reserved.get(f"{STATE}{i}")) for i, state in enumerate(self.states))


def metadata_of(chance: ChanceNode) -> dict[str, Any]:
    """The metadata of a node: all besides its name, states and table."""
    shared = _shared(chance)
    kept: dict[str, Any] = {
        "attributes": {key: value for key, value in chance.element.attributes.items() if key != "id"},
        "states": _state_extras(chance),
        "extras": extras_of(chance.element, NODE_GROUPS),
        "comments": chance.comments,
        "drawing": _unusual(chance, shared),
        "noisymax": chance.noisy,
        "deterministic": chance.element.tag == "deterministic",
    }
    metadata = {**shared, "properties": chance.properties, "xdsl": {key: value for key, value in kept.items() if value}}
    return {key: value for key, value in metadata.items() if value}


def _shared(chance: ChanceNode) -> dict[str, Any]:
    """label, comment and position, from the drawing and from properties."""
    if chance.drawing is None:
        return {}
    shared, name = read_shared_keys(chance.drawing, chance.name), chance.drawing.first("name")
    if name is not None and name.text == chance.reserved.get(LABEL):
        shared["label"] = name.text
    if "position" in shared:
        shared["position"] = _exact(shared["position"], chance.reserved.get(POSITION, ""))
    return shared


def _unusual(chance: ChanceNode, shared: dict[str, Any]) -> dict[str, Any] | None:
    """The drawing as data, unless it is the default."""
    if chance.drawing is None:
        return None
    usual = default_node(chance.identifier, chance.name, shared)
    return None if as_data(chance.drawing) == as_data(usual) else _without_id(chance.drawing)


def _state_extras(chance: ChanceNode) -> dict[str, Any]:
    """Elements of states that have more than an id, by name."""
    elements = zip(chance.state_names, chance.element.all("state"), strict=True)
    return {name: _without_id(state) for name, state in elements if len(state.attributes) > 1 or state.children}


def _without_id(element: Element) -> dict[str, Any]:
    attributes = {key: value for key, value in element.attributes.items() if key != "id"}
    return as_data(Element(element.tag, attributes, element.text, element.children))


def _exact(rounded: Position, text: str) -> Position:
    """The position that a property gives, unless the node has been moved since."""
    told = pair_of(*text.split())
    if told is None:
        return rounded
    x, y = find_centre(told)
    return told if abs(x - rounded[0]) <= 1 and abs(y - rounded[1]) <= 1 else rounded


def extras_of(element: Element, groups: dict[str, str]) -> list[dict[str, Any]]:
    """The children with other tags, and the group of known ones that each comes after."""
    extras, after = [], ""
    for child in element.children:
        if child.tag in groups:
            after = groups[child.tag]
        else:
            extras.append({"after": after, "element": as_data(child)})
    return extras
