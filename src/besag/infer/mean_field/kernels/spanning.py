"""Expectations under a distribution on a tree, and its coordinate ascent; the mathematics is in `mean_field.spanning`.

A table with an axis for each variable of a factor is contracted towards a place of the tree, a variable or an edge:

    move    the axis of x goes to its neighbour w:   new(.., w = a, ..) = sum_b q(x = b | w = a) old(.., x = b, ..)
    merge   two axes that meet on one variable become one, the diagonal

The axis that is farthest goes first, so that axes meet before they go on. What is left is E_q[table | place]. The same
steps backwards, from the marginal of the place, give the joint distribution of the factor's variables. 0 times -inf is
0.

Shapes: V variables, S states of all variables; conditionals of the edge from p to its child c lie at edge_offsets[c]:
down (K_p, K_c) is q(c | p), up (K_c, K_p) is q(p | c), pairs (K_p, K_c) is q(p, c).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from besag.arrays import Array, BoolArray, IntArray
from besag.kernels.compile import inlined
from besag.kernels.factors import Factors


class TreeLinks(NamedTuple):
    """A rooted forest on all variables, and where the factors are on it."""

    parents: IntArray  # (V,) -1 at roots
    order: IntArray  # (V,) depth first, parents before children
    position: IntArray  # (V,) in the order
    last: IntArray  # (V,) one past the position of the last variable below
    depth: IntArray  # (V,)
    independent: BoolArray  # (V,) whether q(c | p) = q(c) is kept
    edge_offsets: IntArray  # (V + 1,)
    first_inside: IntArray  # (V + 1,) factors whose topmost variable, in the tree, is v
    inside: IntArray
    first_crossing: IntArray  # (V + 1,) factors with variables on both sides of the edge above v
    crossing: IntArray


def make_crossing() -> Callable[..., int]:
    """Kernel: the topmost variable of some factors, top (F,), and the edges between the variables of each.

    An edge is named by its lower variable c. free (V,): grows by one for each factor that crosses the edge of c; where
    `listed` has room, the factor is written to listed[free[c]] first. How many there are.

    """

    def crossing(
        scope_offsets: IntArray,
        scope_variables: IntArray,
        numbers: IntArray,
        parents: IntArray,
        depth: IntArray,
        top: IntArray,
        free: IntArray,
        listed: IntArray,
    ) -> int:
        total = 0
        for f in numbers:
            at = scope_variables[scope_offsets[f] : scope_offsets[f + 1]].copy()
            while True:
                deepest, apart = at[0], False
                for v in at:
                    apart = apart or v != at[0]
                    if depth[v] > depth[deepest]:
                        deepest = v
                if not apart:
                    break
                if len(listed) > 0:
                    listed[free[deepest]] = f
                free[deepest] += 1
                total += 1
                for i in range(len(at)):
                    if at[i] == deepest:
                        at[i] = parents[deepest]
            top[f] = at[0]
        return total

    return crossing


@inlined
def product(state_offsets: IntArray, axes: IntArray, first: int, last: int) -> int:
    """Entries of a table over some of the axes."""
    size = 1
    for i in range(first, last):
        size *= state_offsets[axes[i] + 1] - state_offsets[axes[i]]
    return size


@inlined
def carry(table: Array, n_left: int, n_old: int, n_right: int, kernel: Array, start: int, n_new: int) -> Array:
    """(left, old, right) -> (left, new, right), by the matrix (new, old) at `start`."""
    out = np.zeros(n_left * n_new * n_right)
    for left in range(n_left):
        for a in range(n_new):
            for b in range(n_old):
                weight = kernel[start + a * n_old + b]
                if weight > 0.0:
                    target, source = (left * n_new + a) * n_right, (left * n_old + b) * n_right
                    for r in range(n_right):
                        out[target + r] += weight * table[source + r]
    return out


@inlined
def diagonal(table: Array, n_left: int, n: int, n_middle: int, n_right: int) -> Array:
    """(left, n, middle, n, right) -> (left, n, middle, right)."""
    out = np.empty(n_left * n * n_middle * n_right)
    for left in range(n_left):
        for a in range(n):
            for m in range(n_middle):
                target = ((left * n + a) * n_middle + m) * n_right
                source = (((left * n + a) * n_middle + m) * n + a) * n_right
                for r in range(n_right):
                    out[target + r] = table[source + r]
    return out


@inlined
def meeting(axes: IntArray, n: int, i: int) -> int:
    """Another axis on the variable of axis i, or -1."""
    for j in range(n):
        if j != i and axes[j] == axes[i]:
            return j
    return -1


@inlined
def contract(
    state_offsets: IntArray,
    parents: IntArray,
    edge_offsets: IntArray,
    toward: IntArray,
    down: Array,
    up: Array,
    most: int,
    axes: IntArray,
    far: IntArray,
    table: Array,
) -> tuple[int, Array]:
    """How many axes are left, at the place, and the table over them; 0 axes where it would have more entries than most.

    far: how many edges each axis has to go; toward: the next variable of those that go away from the root, else -1.
    """
    n = len(axes)
    while True:
        i = 0
        for j in range(1, n):
            if far[j] > far[i]:
                i = j
        if far[i] == 0:
            return n, table
        x = axes[i]
        away = toward[x] >= 0
        w = toward[x] if away else parents[x]
        n_old, n_new = state_offsets[x + 1] - state_offsets[x], state_offsets[w + 1] - state_offsets[w]
        left, right = product(state_offsets, axes, 0, i), product(state_offsets, axes, i + 1, n)
        if left * n_new * right > most:
            return 0, table
        if away:
            table = carry(table, left, n_old, right, up, edge_offsets[w], n_new)
        else:
            table = carry(table, left, n_old, right, down, edge_offsets[x], n_new)
        axes[i] = w
        far[i] -= 1
        j = meeting(axes, n, i)
        if j >= 0:
            one, two = min(i, j), max(i, j)
            left, middle = product(state_offsets, axes, 0, one), product(state_offsets, axes, one + 1, two)
            table = diagonal(table, left, n_new, middle, product(state_offsets, axes, two + 1, n))
            for k in range(two, n - 1):
                axes[k], far[k] = axes[k + 1], far[k + 1]
            n -= 1


@inlined
def point(parents: IntArray, p: int, below: int, toward: IntArray) -> None:
    """From p and all above it the way goes down, to what is below."""
    while p >= 0:
        toward[p] = below
        p, below = parents[p], p


@inlined
def unpoint(parents: IntArray, p: int, toward: IntArray) -> None:
    """The inverse of `point`."""
    while p >= 0:
        toward[p] = -1
        p = parents[p]


@inlined
def measure(
    parents: IntArray,
    position: IntArray,
    ends: IntArray,
    depth: IntArray,
    toward: IntArray,
    c: int,
    axes: IntArray,
    far: IntArray,
) -> None:
    """How far axes are from c, if they are in its subtree, or else from its parent, to which `toward` points."""
    for k in range(len(axes)):
        v = axes[k]
        if position[c] <= position[v] < ends[c]:
            far[k] = depth[v] - depth[c]
        else:
            while toward[v] < 0:
                v = parents[v]
            far[k] = depth[axes[k]] + depth[c] - 1 - 2 * depth[v]


@inlined
def expected_weight(p: float, value: float) -> float:
    """p (value - ln p), 0 where p is."""
    return p * (value - math.log(p)) if p > 0.0 else 0.0


@inlined
def choose(logits: Array, start: int, n: int, p: Array, first: int) -> None:
    """p = exp(logits), normalised, in its place; p stays where every logit is -inf."""
    high = -math.inf
    for k in range(n):
        high = max(high, logits[start + k])
    if high == -math.inf:
        return
    total = 0.0
    for k in range(n):
        p[first + k] = math.exp(logits[start + k] - high)
        total += p[first + k]
    for k in range(n):
        p[first + k] /= total


@inlined
def choose_rows(independent: bool, logits: Array, above: Array, n_above: int, n: int, down: Array, start: int) -> None:
    """q(c | p) at `start` from logits (K_p, K_c), one row for all, by q(p), where c is to be independent of p."""
    if not independent:
        for a in range(n_above):
            choose(logits, a * n, n, down, start + a * n)
        return
    mean = np.zeros(n)
    for a in range(n_above):
        if above[a] > 0.0:
            for b in range(n):
                mean[b] += above[a] * logits[a * n + b]
    for a in range(n_above):
        choose(mean, 0, n, down, start + a * n)


def make_ascend() -> Callable[..., int]:
    """Kernel: variables at positions first to last of the order, last to first; the factor that is too large, or -1.

    told (S,) begins as base and becomes W of the module `mean_field.spanning`. q of roots and down are the best ones
    given all else where `moving` is 1, and stay where it is 0; own (V,) is the bound of each tree, at its root.
    """

    def ascend(
        tree: TreeLinks,
        factors: Factors,
        first: int,
        last: int,
        moving: int,
        most: int,
        q: Array,
        down: Array,
        up: Array,
        told: Array,
        own: Array,
    ) -> int:
        state_offsets, scope_offsets, scope_variables, _, table_of_factor, table_offsets, values = factors
        parents, order, position, ends, depth, independent, edges, first_in, inside, first_over, over = tree
        toward = np.full(len(parents), -1)
        for i in range(last - 1, first - 1, -1):
            c = order[i]
            p, s, n = parents[c], state_offsets[c], state_offsets[c + 1] - state_offsets[c]
            n_inside = first_in[c + 1] - first_in[c]
            n_above = 0 if p < 0 else state_offsets[p + 1] - state_offsets[p]
            logits = np.zeros(n_above * n)
            if moving == 1:
                point(parents, p, c, toward)
            n_over = first_over[c + 1] - first_over[c] if moving == 1 else 0
            for j in range(n_inside + n_over):
                crosses = j >= n_inside
                f = over[first_over[c] + j - n_inside] if crosses else inside[first_in[c] + j]
                axes = scope_variables[scope_offsets[f] : scope_offsets[f + 1]].copy()
                far = np.zeros(len(axes), np.int64)
                measure(parents, position, ends, depth, toward, c, axes, far)
                start = table_offsets[table_of_factor[f]]
                table = values[start : table_offsets[table_of_factor[f] + 1]].copy()
                n_left, table = contract(state_offsets, parents, edges, toward, down, up, most, axes, far, table)
                if n_left == 0:
                    return int(f)
                if not crosses:
                    for b in range(n):
                        told[s + b] += table[b]
                else:
                    stride_c, stride_p = (1, n) if axes[0] == p else (n_above, 1)
                    for a in range(n_above):
                        for b in range(n):
                            logits[a * n + b] += table[a * stride_p + b * stride_c]
            unpoint(parents, p, toward)
            if p < 0:
                if moving == 1:
                    choose(told, s, n, q, s)
                own[c] = 0.0
                for b in range(n):
                    own[c] += expected_weight(q[s + b], told[s + b])
                continue
            edge, above = edges[c], state_offsets[p]
            if moving == 1:
                for a in range(n_above):
                    for b in range(n):
                        logits[a * n + b] += told[s + b]
                choose_rows(independent[c], logits, q[above : above + n_above], n_above, n, down, edge)
            for a in range(n_above):
                for b in range(n):
                    told[above + a] += expected_weight(down[edge + a * n + b], told[s + b])
        return -1

    return ascend


def make_settle() -> Callable[..., float]:
    """Kernel: q, up and pairs from q of the roots and down; how far a pair of variables has moved, in total variation.

    before (S,): q as it was, which counts for roots.
    """

    def settle(
        tree: TreeLinks, state_offsets: IntArray, before: Array, q: Array, down: Array, up: Array, pairs: Array
    ) -> float:
        largest = 0.0
        for c in tree.order:
            p, s, n, change = tree.parents[c], state_offsets[c], state_offsets[c + 1] - state_offsets[c], 0.0
            if p < 0:
                for b in range(n):
                    change += abs(q[s + b] - before[s + b])
                largest = max(largest, change / 2)
                continue
            edge, above, n_above = tree.edge_offsets[c], state_offsets[p], state_offsets[p + 1] - state_offsets[p]
            for b in range(n):
                q[s + b] = 0.0
            for a in range(n_above):
                for b in range(n):
                    pair = q[above + a] * down[edge + a * n + b]
                    change += abs(pair - pairs[edge + a * n + b])
                    pairs[edge + a * n + b] = pair
                    q[s + b] += pair
            for b in range(n):
                for a in range(n_above):
                    reached = q[s + b] > 0.0
                    up[edge + b * n_above + a] = pairs[edge + a * n + b] / q[s + b] if reached else q[above + a]
            largest = max(largest, change / 2)
        return largest

    return settle


@inlined
def spread(table: Array, n_left: int, n: int, n_middle: int, n_right: int) -> Array:
    """(left, n, middle, right) -> (left, n, middle, n, right), zero off the diagonal."""
    out = np.zeros(n_left * n * n_middle * n * n_right)
    for left in range(n_left):
        for a in range(n):
            for m in range(n_middle):
                source = ((left * n + a) * n_middle + m) * n_right
                target = (((left * n + a) * n_middle + m) * n + a) * n_right
                for r in range(n_right):
                    out[target + r] = table[source + r]
    return out


@inlined
def carry_back(table: Array, n_left: int, n_new: int, n_right: int, kernel: Array, start: int, n_old: int) -> Array:
    """(left, new, right) -> (left, old, right), by the matrix (new, old) at `start`."""
    out = np.zeros(n_left * n_old * n_right)
    for left in range(n_left):
        for a in range(n_new):
            for b in range(n_old):
                weight = kernel[start + a * n_old + b]
                target, source = (left * n_old + b) * n_right, (left * n_new + a) * n_right
                for r in range(n_right):
                    out[target + r] += weight * table[source + r]
    return out


def make_joints() -> Callable[..., None]:
    """Kernel: the joint distributions of the variables of some factors, into cells at offsets (F + 1,)."""

    def joints(
        tree: TreeLinks,
        factors: Factors,
        numbers: IntArray,
        top: IntArray,
        offsets: IntArray,
        q: Array,
        down: Array,
        cells: Array,
    ) -> None:
        state_offsets, scope_offsets, scope_variables = (
            factors.state_offsets,
            factors.scope_offsets,
            factors.scope_variables,
        )
        parents, depth, edges = tree.parents, tree.depth, tree.edge_offsets
        for f in numbers:
            axes = scope_variables[scope_offsets[f] : scope_offsets[f + 1]].copy()
            n, most = len(axes), len(axes)
            for v in axes:
                most += depth[v] - depth[top[f]]
            moved, met = np.empty(most, np.int64), np.empty(most, np.int64)  # the axis of each step, and whom it met
            before = np.empty((most, len(axes)), np.int64)  # axes before each step
            n_steps = 0
            while True:
                i = 0
                for j in range(1, n):
                    if depth[axes[j]] > depth[axes[i]]:
                        i = j
                if axes[i] == top[f]:
                    break
                before[n_steps] = axes
                axes[i] = parents[axes[i]]
                j = meeting(axes, n, i)
                moved[n_steps], met[n_steps] = i, j
                n_steps += 1
                if j >= 0:
                    n -= 1
                    for k in range(max(i, j), n):
                        axes[k] = axes[k + 1]
            table = q[state_offsets[top[f]] : state_offsets[top[f] + 1]].copy()
            for step in range(n_steps - 1, -1, -1):
                i, j = moved[step], met[step]
                axes = before[step].copy()
                x = axes[i]
                n_old, n_new = (
                    state_offsets[x + 1] - state_offsets[x],
                    state_offsets[parents[x] + 1] - state_offsets[parents[x]],
                )
                if j >= 0:
                    axes[i] = parents[x]
                    one, two = min(i, j), max(i, j)
                    left, middle = product(state_offsets, axes, 0, one), product(state_offsets, axes, one + 1, two)
                    table = spread(table, left, n_new, middle, product(state_offsets, axes, two + 1, n + 1))
                    n += 1
                left, right = product(state_offsets, axes, 0, i), product(state_offsets, axes, i + 1, n)
                table = carry_back(table, left, n_new, right, down, edges[x], n_old)
            for k in range(len(table)):
                cells[offsets[f] + k] = table[k]

    return joints
