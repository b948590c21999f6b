"""BIF files from models, in the layout of bnlearn's repository; `besag.io.bif.read` has the grammar and the metadata.

    // comment of the model
    network name {
      property ...;
    }
    variable A {
      type discrete [ 2 ] { no, yes };
      property position = (10, 20);
    }
    probability ( B | A ) {
      (no) 0.2, 0.8;
      (yes) 0.9, 0.1;
    }

In the rows the last parent changes fastest. Names and states that are not plain words are written in quotes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from besag.arrays import concatenate
from besag.errors import ModelError
from besag.io.bif.text import NAMELESS, comment_lines, property_lines, quote
from besag.io.shared.metadata import KeptPiece
from besag.io.shared.nodes import Node, nodes_of
from besag.io.shared.numbers import number_text
from besag.io.shared.positions import position_text
from besag.model.model import Model


def write(model: Model) -> bytes:
    """The content of a BIF file; ModelError if the model is no Bayesian network, or BIF cannot hold a name."""
    nodes = nodes_of(model, "BIF")
    names = [quote(node.name, "name") for node in nodes]
    words = {states: [quote(state, "state") for state in states] for states in {node.states for node in nodes}}
    lines = _network(model.metadata)
    for name, node in zip(names, nodes, strict=True):
        lines += _variable(name, words[node.states], node)
    numbers = iter(number_text(concatenate([node.table for node in nodes], np.float64)))
    for name, node in zip(names, nodes, strict=True):
        parents = [names[parent] for parent in node.parents]
        lines.append(f"probability ( {' | '.join([name, ', '.join(parents)] if parents else [name])} ) {{")
        kept = KeptPiece(node.metadata.get("bif"), "bif", repr(node.name))
        lines += _remarks(kept.at("comment").text(), kept.at("properties").texts(), node.name)
        lines += _rows([words[nodes[parent].states] for parent in node.parents], len(node.states), numbers)
        lines.append("}")
    try:
        return "\n".join([*lines, ""]).encode()
    except UnicodeEncodeError as error:
        raise ModelError(f"the names and texts of the model must be valid Unicode: {error}; rename them") from None


def _network(metadata: Mapping[str, Any]) -> list[str]:
    name = quote(metadata.get("name") or NAMELESS, "name of the model")
    if metadata.get("name") == NAMELESS:
        name = f'"{NAMELESS}"'
    properties = property_lines(metadata.get("properties", ()), "the model")
    return [*comment_lines(metadata.get("comment", "")), f"network {name} {{", *properties, "}"]


def _variable(name: str, states: list[str], node: Node) -> list[str]:
    place, properties = node.metadata.get("position"), node.metadata.get("properties", ())
    if place is not None:
        properties = (position_text(place), *properties)
    kind = f"  type discrete [ {len(states)} ] {{ {', '.join(states)} }};"
    return [f"variable {name} {{", kind, *_remarks(node.metadata.get("comment", ""), properties, node.name), "}"]


def _remarks(comment: str, properties: Sequence[str], name: str) -> list[str]:
    """A comment and properties as lines of a block."""
    return comment_lines(comment, "  ") + property_lines(properties, repr(name))


def _rows(parents: Sequence[list[str]], n_states: int, numbers: Iterator[str]) -> Iterator[str]:
    """The statements of a table; each row takes the next K numbers."""
    rows = zip(*[numbers] * n_states, strict=False)
    if not parents:
        yield f"  table {', '.join(next(rows))};"
        return
    for labels in product(*parents):
        yield f"  ({', '.join(labels)}) {', '.join(next(rows))};"
