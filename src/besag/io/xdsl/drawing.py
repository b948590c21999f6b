"""GeNIe's drawing of a network, <extensions><genie>, and the metadata that all formats share.

    <genie version app name="name of the model" faultnameformat>
      <comment>...</comment>
      <node id="..."> <name>label</name> <interior color/> <outline color/> <font color name size/>
                      <position>left top right bottom</position> <comment/> ... </node> *
      <submodel id="..."> <name/> ... <node/> * <submodel/> * </submodel> *
      <textbox/> * <arccomment/> * ...
    </genie>

From a node: the name, if it is not that of the variable or its identifier, is `label`; the comment is `comment`; the
centre of the rectangle is `position`, which is drawn no further out than FAR. An element is kept as data only if it
differs from the default. The writer changes in kept elements only what label, comment and position require. In the kept
tree each node is a stub, <node id="name of the variable"/>, so that submodels and the order of nodes are preserved,
while the nodes' own elements, without id, stay with the variables.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from besag.io.shared.files import is_number
from besag.io.shared.xml_tree import Element

WIDTH, HEIGHT = 76, 36
UNNAMED = "Unnamed"
FAR = 1 << 30

Position = tuple[float, float]


# Nodes ----------------------------------------------------------------------------------------------------------------


def read_shared_keys(node: Element, variable: str) -> dict[str, Any]:
    """label, comment and position of the <node> of a variable, those that it has."""
    found: dict[str, Any] = {}
    name, comment = node.first("name"), node.first("comment")
    if name is not None and name.text and name.text not in (variable, node.attributes.get("id")):
        found["label"] = name.text
    if comment is not None and comment.text:
        found["comment"] = comment.text
    rectangle = _rectangle(node)
    if rectangle is not None:
        left, top, right, bottom = rectangle
        found["position"] = (_whole((left + right) / 2), _whole((top + bottom) / 2))
    return found


def default_node(identifier: str, variable: str, shared: Mapping[str, Any]) -> Element:
    """A <node> in GeNIe's usual look, with the shared keys."""
    node = Element("node", {"id": identifier}, children=[Element("name", text=variable)])
    node.children.append(Element("interior", {"color": "e5f6f7"}))
    node.children.append(Element("outline", {"color": "000080"}))
    node.children.append(Element("font", {"color": "000000", "name": "Arial", "size": "8"}))
    update_node(node, variable, shared)
    return node


def update_node(node: Element, variable: str, shared: Mapping[str, Any]) -> None:
    """Give the <node> of a variable the shared keys, and leave unchanged what already agrees."""
    now = read_shared_keys(node, variable)
    if shared.get("label") != now.get("label"):
        _put(node, "name", shared.get("label", variable))
    if shared.get("position") != now.get("position"):
        _put(node, "position", _placed(_rectangle(node), shared.get("position")))
    if shared.get("comment") != now.get("comment"):
        _put(node, "comment", shared.get("comment", ""))


def find_centre(position: Position) -> Position:
    """The centre of the rectangle for a position, before rounding."""
    x, y = (max(-FAR, min(FAR, number)) for number in position)
    return x, y


def _rectangle(node: Element) -> tuple[float, ...] | None:
    element = node.first("position")
    words = [] if element is None else element.text.encode("ascii", "replace").split()
    if len(words) != 4 or not all(is_number(word) for word in words):
        return None
    numbers = tuple(float(word) for word in words)
    return numbers if all(abs(number) < 2**53 for number in numbers) else None


def _placed(rectangle: tuple[float, ...] | None, centre: Position | None) -> str:
    """A rectangle of the same size around another centre, in whole numbers."""
    if centre is None:
        return ""
    left, top, right, bottom = (0, 0, WIDTH, HEIGHT) if rectangle is None else rectangle
    width, height = round(right - left), round(bottom - top)
    x, y = (round(c - size / 2) for c, size in zip(find_centre(centre), (width, height), strict=True))
    return f"{x} {y} {x + width} {y + height}"


def _whole(value: float) -> float:
    return int(value) if value.is_integer() else value


def _put(parent: Element, tag: str, text: str) -> None:
    """Set the text of a child, which is created if needed, or removed if there is no text."""
    child = parent.first(tag)
    if child is None and text:
        parent.children.append(Element(tag, text=text))
    elif child is not None and text:
        child.text = text
    elif child is not None:
        parent.children.remove(child)


# The whole ------------------------------------------------------------------------------------------------------------


def default_genie(name: str | None, comment: str | None, drawn: Collection[str]) -> Element:
    """The <genie> element with stubs for the variables that are drawn."""
    attributes = {"version": "1.0", "app": "besag", "name": name or UNNAMED, "faultnameformat": "nodestate"}
    children = [Element("comment", text=comment)] if comment else []
    return Element("genie", attributes, children=children + [_stub(variable) for variable in drawn])


def _stub(variable: str) -> Element:
    return Element("node", {"id": variable})


def stub_nodes(
    element: Element, names: Mapping[str, str], left_out: Collection[str], found: dict[str, Element]
) -> Element:
    """<genie> or a <submodel> with stubs; names: of the variables, by identifier.

    The nodes themselves go into `found`, by identifier; comments on arcs of nodes that are left out are dropped.
    """
    children = []
    for child in element.children:
        identifier = child.attributes.get("id", "")
        if child.tag == "node":
            if identifier in names and identifier not in found:
                found[identifier] = child
                children.append(_stub(names[identifier]))
        elif child.tag == "submodel":
            children.append(stub_nodes(child, names, left_out, found))
        elif not any(child.attributes.get(key) in left_out for key in ("parent", "child")):
            children.append(child)
    return Element(element.tag, element.attributes, "", children)


def fill_stubs(element: Element, nodes: dict[str, Element]) -> Element:
    """The inverse: replace each stub by the node of its variable, which is taken out of `nodes`, or drop it."""
    children = []
    for child in element.children:
        if child.tag == "submodel":
            children.append(fill_stubs(child, nodes))
        elif child.tag != "node":
            children.append(child)
        elif child.attributes.get("id") in nodes:
            children.append(nodes.pop(child.attributes["id"]))
    return Element(element.tag, element.attributes, element.text, children)


def model_name(attributes: Mapping[str, str], genie: Element | None) -> str | None:
    """The name of a model: GeNIe's, or else the identifier of <smile>, whose attributes are given."""
    name = "" if genie is None else genie.attributes.get("name", "")
    name = name or attributes.get("id", "")
    return None if name in ("", UNNAMED) else name


def update_genie(genie: Element, attributes: Mapping[str, str], name: str | None, comment: str | None) -> None:
    """Give <genie> the name and the comment of the model, and leave unchanged what already agrees."""
    if name != model_name(attributes, genie):
        genie.attributes["name"] = name or UNNAMED
    now = genie.first("comment")
    if (comment or "") != ("" if now is None else now.text):
        _put(genie, "comment", comment or "")
