"""Names as XDSL can hold them: identifiers, and properties with the original names.

An identifier of GeNIe is a letter and then letters, digits and underscores. Any other name is turned into a unique one,
and the name itself becomes a property of the node, from which it is read back:

    besag_name          the variable's name; of the model, its name if that is the one that stands for no name
    besag_label         the variable's label if it equals the name or the identifier, which else means no label
    besag_state_2       the name of state 2, counted from 0
    besag_property_0    a property that is not "identifier = text", or repeats one
    besag_position      "x y" if the drawing cannot hold it exactly

If the identifier or the place has been changed since, in GeNIe, the change takes precedence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from besag.io.shared.identifiers import distinct_identifiers
from besag.io.shared.xml_tree import Element

NAME, LABEL, STATE = "besag_name", "besag_label", "besag_state_"
PROPERTY, POSITION = "besag_property_", "besag_position"

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_RESERVED = re.compile(rf"{NAME}|{LABEL}|{POSITION}|(?:{STATE}|{PROPERTY})\d{{1,9}}")
_COUNTED = re.compile(r"_\d+")


def identifier_of(name: str) -> str:
    """The identifier nearest to a name.

    >>> identifier_of("wet_grass"), identifier_of("<5"), identifier_of("")
    ('wet_grass', 'x_5', 'x')
    """
    safe = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return safe if safe[:1].isalpha() else f"x{safe}"


def identifiers(names: Sequence[str]) -> list[str]:
    """An identifier for each name, all different; a name that is an identifier stays."""
    return distinct_identifiers(names, lambda name: _IDENTIFIER.fullmatch(name) is not None, identifier_of)


def find_meant(identifier: str, name: str | None) -> str:
    """The name that an identifier was made for, or the identifier itself if it has been changed since."""
    if name is None:
        return identifier
    base = identifier_of(name)
    rest = identifier.removeprefix(base)
    same = identifier.startswith(base) and (not rest or _COUNTED.fullmatch(rest) is not None)
    return name if same else identifier


def split_properties(elements: Iterable[Element]) -> tuple[list[str], dict[str, str]]:
    """<property id="key"> elements as texts "key = value", and the reserved ones by key."""
    texts: list[str] = []
    reserved: dict[str, str] = {}
    for element in elements:
        key = element.attributes.get("id", "")
        if key.startswith(PROPERTY) and _RESERVED.fullmatch(key):
            texts.append(element.text)
        elif _RESERVED.fullmatch(key):
            reserved[key] = element.text
        else:
            texts.append(f"{key} = {element.text}")
    return texts, reserved


def property_elements(texts: Sequence[str], reserved: dict[str, str]) -> list[Element]:
    """The inverse of `split_properties`."""
    elements = []
    seen: set[str] = set()
    for number, text in enumerate(texts):
        key, equals, value = text.partition(" = ")
        plain = equals and _IDENTIFIER.fullmatch(key) and not key.startswith("besag_") and key not in seen
        elements.append(Element("property", {"id": key if plain else f"{PROPERTY}{number}"}, value if plain else text))
        seen.add(key)
    return elements + [Element("property", {"id": key}, text) for key, text in reserved.items()]
