"""The search through a forest from its roots outwards, and the arrays of its plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from besag.arrays import IntArray
from besag.kernels.compile import inlined


@inlined
def search_farthest(
    start: int,
    scope_offsets: IntArray,
    scope_variables: IntArray,
    first: IntArray,
    linked: IntArray,
    came_by: IntArray,
    came_from: IntArray,
    queue: IntArray,
) -> int:
    """Search a tree breadth first from start; returns its last variable, with the way back in came_by and came_from."""
    queue[0] = start
    came_by[start] = -1
    came_from[start] = -1
    head, tail = 0, 1
    while head < tail:
        v = queue[head]
        head += 1
        for j in range(first[v], first[v + 1]):
            f = linked[j]
            if f != came_by[v]:
                for e in range(scope_offsets[f], scope_offsets[f + 1]):
                    c = scope_variables[e]
                    if c != v:
                        came_by[c] = f
                        came_from[c] = v
                        queue[tail] = c
                        tail += 1
    return queue[tail - 1]  # type: ignore[no-any-return]


@inlined
def halfway(end: int, came_from: IntArray) -> int:
    """The middle of the path that leads from end back to where the search started."""
    middle, ahead = end, end
    while came_from[ahead] >= 0 and came_from[came_from[ahead]] >= 0:
        ahead = came_from[came_from[ahead]]
        middle = came_from[middle]
    return middle


def make_explore() -> Callable[..., int]:
    """Kernel: components with their roots, states and work; returns their number, or -1 if there is a cycle."""

    def explore(
        state_offsets: IntArray,
        scope_offsets: IntArray,
        scope_variables: IntArray,
        first: IntArray,
        linked: IntArray,
        root: int,
        explored: IntArray,
    ) -> int:
        n_variables = len(state_offsets) - 1
        roots, n_states, work, queue = explored[0], explored[1], explored[2], explored[3]
        came_by = np.full(n_variables, -2, np.int64)  # -2: not seen
        came_from = np.empty(n_variables, np.int64)
        n_components = 0
        for start in range(n_variables):
            if came_by[start] != -2:
                continue
            queue[0] = start
            came_by[start] = -1
            head, tail = 0, 1
            states, entries, root_here = 0, 0, False
            while head < tail:
                v = queue[head]
                head += 1
                states += state_offsets[v + 1] - state_offsets[v]
                if v == root:
                    root_here = True
                for j in range(first[v], first[v + 1]):
                    f = linked[j]
                    if f == came_by[v]:
                        continue
                    size, occurrences = 1, 0
                    for e in range(scope_offsets[f], scope_offsets[f + 1]):
                        c = scope_variables[e]
                        size *= state_offsets[c + 1] - state_offsets[c]
                        if c == v:
                            occurrences += 1
                        elif came_by[c] != -2:
                            return -1
                        else:
                            came_by[c] = f
                            queue[tail] = c
                            tail += 1
                    if occurrences > 1:
                        return -1
                    entries += size
            n_states[n_components] = states
            work[n_components] = entries
            if root_here:
                roots[n_components] = root
            else:
                # The middle of a longest path: from the variable farthest from any one, to the one farthest from it.
                end = search_farthest(
                    queue[tail - 1], scope_offsets, scope_variables, first, linked, came_by, came_from, queue
                )
                roots[n_components] = halfway(end, came_from)
            n_components += 1
        return n_components

    return explore


def make_layout() -> Callable[..., Any]:
    """Kernel: search breadth first from all roots of a chunk at once, and fill the arrays of a `Forest`."""

    def layout(
        state_offsets: IntArray,
        scope_offsets: IntArray,
        scope_variables: IntArray,
        first: IntArray,
        linked: IntArray,
        roots: IntArray,
        chunk_roots: IntArray,
        variables: IntArray,
        component: IntArray,
        child_factors: IntArray,
        order: IntArray,
        parent_axis: IntArray,
        message_sizes: IntArray,
        chunk_ends: IntArray,
    ) -> None:
        came_by = np.empty(len(variables), np.int64)
        head, tail, n_ordered = 0, 0, 0
        child_factors[0] = 0
        for chunk in range(len(chunk_roots) - 1):
            for r in range(chunk_roots[chunk], chunk_roots[chunk + 1]):
                variables[tail] = roots[r]
                component[roots[r]] = r
                came_by[roots[r]] = -1
                tail += 1
            while head < tail:
                v = variables[head]
                for j in range(first[v], first[v + 1]):
                    f = linked[j]
                    if f == came_by[v]:
                        continue
                    order[n_ordered] = f
                    message_sizes[n_ordered] = state_offsets[v + 1] - state_offsets[v]
                    for e in range(scope_offsets[f], scope_offsets[f + 1]):
                        c = scope_variables[e]
                        if c == v:
                            parent_axis[n_ordered] = e - scope_offsets[f]
                        else:
                            component[c] = component[v]
                            came_by[c] = f
                            variables[tail] = c
                            tail += 1
                    n_ordered += 1
                head += 1
                child_factors[head] = n_ordered
            chunk_ends[0, chunk + 1] = tail
            chunk_ends[1, chunk + 1] = n_ordered

    return layout
