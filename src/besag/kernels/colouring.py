"""Colours of variables such that no factor has two variables of one colour: those of a colour may be updated together.

Greedy, in the order of the variables: each takes the lowest colour that none of its neighbours has. A grid with four
neighbours gets two colours, one with eight gets four.

Groups. If variables are updated in groups (trees), the groups get colours: no two groups of a colour share a factor.
`group_of` is the identity if every variable is its own group.

    V variables, F factors, G groups; first (V + 1,), linked: factors on each variable (`incidence.make_incidence`)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from besag.arrays import IntArray, freeze, offsets_of
from besag.kernels.compile import kernel_of
from besag.kernels.incidence import make_incidence


def colours_of(
    state_offsets: IntArray,
    scope_offsets: IntArray,
    scope_variables: IntArray,
    group_of: IntArray | None = None,
    *,
    compile: bool = True,
) -> IntArray:
    """(G,): the colour of each group, or of each variable if there are no groups."""
    graph = (freeze(state_offsets), freeze(scope_offsets), freeze(scope_variables))
    first, linked = kernel_of(make_incidence, compile=compile)(*graph)
    group_of = np.arange(len(state_offsets) - 1) if group_of is None else group_of
    members = np.argsort(group_of, kind="stable")
    n_groups = int(group_of.max(initial=-1)) + 1
    group_offsets = offsets_of(np.bincount(group_of, minlength=n_groups))
    colours = np.full(n_groups, -1, np.int64)
    kernel_of(make_colouring, compile=compile)(
        *graph[1:], freeze(first), freeze(linked), freeze(group_of), freeze(members), freeze(group_offsets), colours
    )
    return colours


def make_colouring() -> Callable[..., None]:
    """Kernel: fill in the colours of groups, -1 before."""

    def colouring(
        scope_offsets: IntArray,
        scope_variables: IntArray,
        first: IntArray,
        linked: IntArray,
        group_of: IntArray,
        members: IntArray,
        group_offsets: IntArray,
        colours: IntArray,
    ) -> None:
        taken_by = np.full(len(colours) + 1, -1, np.int64)  # the last group that found each colour among its neighbours
        for g in range(len(colours)):
            for i in range(group_offsets[g], group_offsets[g + 1]):
                v = members[i]
                for j in range(first[v], first[v + 1]):
                    f = linked[j]
                    for e in range(scope_offsets[f], scope_offsets[f + 1]):
                        colour = colours[group_of[scope_variables[e]]]
                        if colour >= 0:
                            taken_by[colour] = g
            colour = 0
            while taken_by[colour] == g:
                colour += 1
            colours[g] = colour

    return colouring
