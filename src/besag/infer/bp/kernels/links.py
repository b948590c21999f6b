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

from besag.arrays import IntArray, index_type, seal
from besag.kernels.compile import kernel_of
from besag.kernels.factors import Factors


class MessageLinks(NamedTuple):
    """See the module."""

    factors: IntArray
    link_offsets: IntArray
    factor_of_link: IntArray
    variables: IntArray
    message_offsets: IntArray
    first: IntArray
    links_of_variable: IntArray


def make_count() -> Callable[..., tuple[int, int, int]]:
    """Kernel: how many factors on two variables or more, links, and entries of messages there are."""

    def count(scope_offsets: IntArray, scope_variables: IntArray, state_offsets: IntArray) -> tuple[int, int, int]:
        n_factors, n_links, n_entries = 0, 0, 0
        for f in range(len(scope_offsets) - 1):
            low, high = scope_offsets[f], scope_offsets[f + 1]
            if high - low > 1:
                n_factors += 1
                n_links += high - low
                for i in range(low, high):
                    v = scope_variables[i]
                    n_entries += state_offsets[v + 1] - state_offsets[v]
        return n_factors, n_links, n_entries

    return count


def make_link() -> Callable[..., None]:
    """Kernel: fills Links whose arrays are all zero."""

    def link(scope_offsets: IntArray, scope_variables: IntArray, state_offsets: IntArray, links: MessageLinks) -> None:
        first, by_variable = links.first, links.links_of_variable
        g, e, end = 0, 0, 0
        for f in range(len(scope_offsets) - 1):
            low, high = scope_offsets[f], scope_offsets[f + 1]
            if high - low > 1:
                for i in range(low, high):
                    v = scope_variables[i]
                    links.factor_of_link[e], links.variables[e] = g, v
                    first[v + 1] += 1
                    end += state_offsets[v + 1] - state_offsets[v]
                    e += 1
                    links.message_offsets[e] = end
                links.factors[g] = f
                g += 1
                links.link_offsets[g] = e
        for v in range(len(first) - 1):
            first[v + 1] += first[v]
        for i in range(e):  # a counting sort, from behind: first[v + 1] comes down to where the links of v begin
            j = e - 1 - i
            v = links.variables[j]
            first[v + 1] -= 1
            by_variable[first[v + 1]] = j
        for v in range(len(first) - 1):
            first[v] = first[v + 1]
        first[len(first) - 1] = e

    return link


def make_places() -> Callable[..., bool]:
    """Kernel: out (n,), how many tables of a size lie between the least start and each; False where parts of one do."""

    def places(starts: IntArray, least: int, size: int, out: IntArray) -> bool:
        for g in range(len(starts)):
            out[g] = (starts[g] - least) // size
            if (starts[g] - least) % size != 0:
                return False
        return True

    return places


def links_of(factors: Factors, *, compile: bool) -> MessageLinks:
    """The links of a problem's factors."""
    given = (factors.scope_offsets, factors.scope_variables, factors.state_offsets)
    n_factors, n_links, n_entries = kernel_of(make_count, compile=compile)(*given)
    n_variables = len(factors.state_offsets) - 1
    kind = index_type(max(n_entries, len(factors.scope_offsets), n_variables))
    sizes = (n_factors, n_factors + 1, n_links, n_links, n_links + 1, n_variables + 1, n_links)
    links = MessageLinks(*[np.zeros(size, kind) for size in sizes])  # type: ignore[arg-type]
    kernel_of(make_link, compile=compile)(*given, links)
    return MessageLinks(*seal(links))
