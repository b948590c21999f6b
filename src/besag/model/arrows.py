"""The text of a directed graph: "A[no,yes] -> B; A -> C[lo,mid,hi] <- B".

Statements are separated by ";" or new lines. A statement is a row of nodes joined by "->" or "<-"; a node is a name,
bare (states "0", "1"), with states in brackets, or with a cardinality, A[3]. States need to be given only once;
variables are in order of appearance.
"""

from __future__ import annotations

import re

from besag.errors import ModelError, ParseError
from besag.model.variable import number_states

_NODE = re.compile(r"\s*([^\s\[\],#<>\-][^\[\],#<>]*?)\s*(?:\[([^\]]*)\])?\s*$")


def read_arrows(text: str) -> tuple[dict[str, tuple[str, ...] | None], list[tuple[str, str]]]:
    """({name: states or None}, [(parent, child), ...]), both in the order of appearance.

    >>> read_arrows("A[3] -> B <- C")
    ({'A': ('0', '1', '2'), 'B': None, 'C': None}, [('A', 'B'), ('C', 'B')])
    """
    states: dict[str, tuple[str, ...] | None] = {}
    edges: list[tuple[str, str]] = []
    for line, statement in enumerate(text.replace(";", "\n").split("\n"), start=1):
        if not statement.strip():
            continue
        parts = re.split(r"(->|<-)", statement)
        names = [_node(part, states, line) for part in parts[::2]]
        for left, arrow, right in zip(names, parts[1::2], names[1:], strict=False):
            edge = (left, right) if arrow == "->" else (right, left)
            if edge not in edges:
                edges.append(edge)
    if not states:
        raise ModelError("a model needs at least one variable; the text names none")
    return states, edges


def _node(text: str, states: dict[str, tuple[str, ...] | None], statement: int) -> str:
    match = _NODE.match(text)
    if match is None or re.search(r"--|\s-|-\s|-$", match.group(1)):
        raise ParseError(f'statement {statement}: expected a node such as A, A[3] or A[no,yes], got "{text.strip()}"')
    name, inside = match.group(1), match.group(2)
    known = states.setdefault(name, None)
    if inside is not None:
        given = _states(name, inside)
        if known is not None and known != given:
            raise ModelError(f"states of {name!r} are given twice and differ: {list(known)}, {list(given)}")
        states[name] = given
    return name


def _states(name: str, inside: str) -> tuple[str, ...]:
    listed = [state.strip() for state in inside.split(",")]
    if len(listed) == 1 and listed[0].isdecimal():
        if int(listed[0]) < 1:
            raise ModelError(f"variable {name!r} needs at least one state, got {listed[0]}")
        return number_states(int(listed[0]))
    if "" in listed or len(set(listed)) != len(listed):
        raise ModelError(f"states of {name!r} must be one or more distinct names, got [{inside}]")
    return tuple(listed)
