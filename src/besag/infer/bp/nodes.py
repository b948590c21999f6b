"""The factor graph of belief propagation with all its nodes, for people who read messages or write them.

The engine folds factors on one variable, and evidence, into a base. Here they are nodes again: the ends at a variable
are its evidence, if there is any, its factors on itself alone, and its links, in this order. Each end sends the
variable a message; each but evidence is sent one.

A factor supports a state of its variable where its table has an entry above -inf at it whose other states are allowed.
What it says of any other state is zero, whatever an older message was.

    V variables, S states, E links, M entries of messages along links
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from besag.arrays import Array, BoolArray, Kind
from besag.graph.graph import Graph
from besag.graph.problem import Problem
from besag.infer.bp.kernels.links import MessageLinks
from besag.infer.unary import evidence_at

EVIDENCE = "evidence"  # what its node is called


class End(NamedTuple):
    """One end at a variable: the node's name, its factor, -1 for evidence, and its link, -1 for a fixed message."""

    name: str
    factor: int
    link: int


def ends_of(problem: Problem, links: MessageLinks) -> Iterator[tuple[int, list[End]]]:
    """The ends at each variable."""
    graph = problem.graph
    alone: dict[int, list[int]] = {}
    for f in np.flatnonzero(np.diff(graph.scope_offsets) == 1).tolist():
        alone.setdefault(int(graph.scope(f)[0]), []).append(f)
    for v in range(graph.n_variables):
        ends = [End(EVIDENCE, -1, -1)] if (evidence_at(problem, v) != 0).any() else []
        ends += [End(graph.factor_name(f), f, -1) for f in alone.get(v, [])]
        for link in links.links_of_variable[links.first[v] : links.first[v + 1]].tolist():
            f = int(links.factors[links.factor_of_link[link]])
            ends.append(End(graph.factor_name(f), f, link))
        yield v, ends


def entries_of(links: MessageLinks, link: int) -> slice:
    """Where the message along a link is."""
    return slice(int(links.message_offsets[link]), int(links.message_offsets[link + 1]))


def supported_entries(problem: Problem, links: MessageLinks, base: Array) -> BoolArray | None:
    """(M,): whether the factor of a link supports the state, with the states that base (S,) allows; None for all."""
    if problem.log_potentials.min(initial=0.0) > -np.inf:
        return None
    supported = np.ones(int(links.message_offsets[-1]), np.bool_)
    allowed = base > -np.inf
    for g, f in enumerate(links.factors.tolist()):
        if problem.kinds[f] == Kind.TABLE:
            first, last = links.link_offsets[g : g + 2].tolist()
            parts = _supported_states(problem.graph, f, problem.table(f) > -np.inf, allowed)
            supported[links.message_offsets[first] : links.message_offsets[last]] = np.concatenate(parts)
    return supported


def _supported_states(graph: Graph, f: int, table: BoolArray, allowed: BoolArray) -> list[BoolArray]:
    """For each axis of a table the states at which it has an entry that the allowed states of the others keep."""
    offsets, scope = graph.state_offsets, graph.scope(f).tolist()
    keeps = [
        allowed[offsets[v] : offsets[v + 1]].reshape([-1 if a == axis else 1 for a in range(len(scope))])
        for axis, v in enumerate(scope)
    ]
    found = []
    for axis in range(len(scope)):
        kept = table
        for other, keep in enumerate(keeps):
            kept = kept & keep if other != axis else kept
        found.append(np.asarray(kept.any(axis=tuple(other for other in range(len(scope)) if other != axis))))
    return found
