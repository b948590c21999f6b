"""The structure that belief propagation runs on: one link for each pair of a factor and a variable of its scope.

Factors on one variable are left out: they are part of `base`. Links are numbered factor by factor, in the order of the
axes of its table, and along link e = (f, v) two messages go, m_{f->v} and q_{v->f}, with K_v entries each:

    factors (G,)             the factors on two or more variables
    link_offsets (G + 1,)    the links of each of them
    factor_of_link (E,)      the factor of a link, as a number from 0 to G - 1
    variables (E,)           the variable of a link
    message_offsets (E + 1)  where the message along a link begins, M entries in all
    first (V + 1,)           the links of variable v are links_of_variable[first[v]:first[v + 1]], factors ascending

All of them are of the shortest type that counts to M: on large grids they take as much memory as the messages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from besag.arrays import IntArray, frozen, index_type, offsets_of
from besag.kernels.compile import kernel_of
from besag.kernels.prepare import Factors


class Links(NamedTuple):
    """See the module."""

    factors: IntArray
    link_offsets: IntArray
    factor_of_link: IntArray
    variables: IntArray
    message_offsets: IntArray
    first: IntArray
    links_of_variable: IntArray


def make_order_by_variable() -> Callable[..., None]:
    """Links by variable: a counting sort."""

    def order(variables: IntArray, first: IntArray, place: IntArray, links: IntArray) -> None:
        for e in range(len(variables)):
            v = variables[e]
            links[first[v] + place[v]] = e
            place[v] += 1

    return order


def links_of(factors: Factors, *, compile: bool) -> Links:
    """The links of a problem's factors."""
    arities = np.diff(factors.scope_offsets)
    linked = np.flatnonzero(arities > 1)
    variables = factors.scope_variables
    if len(linked) < len(arities):
        variables = variables[np.repeat(arities > 1, arities)]
    sizes = np.diff(factors.state_offsets)
    n_variables = len(sizes)
    message_offsets = offsets_of(sizes[variables])
    kind = index_type(max(int(message_offsets[-1]), len(arities), n_variables))

    def short(array: IntArray) -> IntArray:
        return frozen(array.astype(kind, copy=False))

    short_variables, first = short(variables), short(offsets_of(np.bincount(variables, minlength=n_variables)))
    by_variable, place = np.empty(len(variables), kind), np.zeros(n_variables, kind)
    kernel_of(make_order_by_variable, compile=compile)(short_variables, first, place, by_variable)
    arities = arities[linked]
    return Links(
        short(linked),
        short(offsets_of(arities)),
        frozen(np.repeat(np.arange(len(linked), dtype=kind), arities)),
        short_variables,
        short(message_offsets),
        first,
        frozen(by_variable),
    )
