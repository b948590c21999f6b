"""Labellings from the roots outwards, after the upward pass: the best one, and random ones.

The children of a factor are settled together, given the label of the parent: their settings are listed in row-major
order of the table's axes with weights table (x) prod_c up_c, and one is taken: the first of the heaviest (decode, in the MAX
semiring), or one at random in proportion to its weight (sample, in SUM or LOG_SUM). Random numbers come from `counter`, one
for each root and one for each factor (under the number of its first child), so that they do not depend on chunks.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from besag.arrays import Array, IntArray
from besag.kernels.compile import inlined
from besag.kernels.contract import potts_weights
from besag.kernels.counter import stream, uniform
from besag.kernels.passes import POTTS, Graph, Links, Sizes, Span
from besag.kernels.semiring import LOG_SUM, MAX, times


@inlined
def list_settings(
    semiring: int, graph: Graph, f: int, parent: int, label: int, up: Array, lane: int, digits: IntArray, weights: Array
) -> int:
    """weights = those of all settings of the children, given the parent's label; their number."""
    scope, n_axes = graph.scope_offsets[f], graph.scope_offsets[f + 1] - graph.scope_offsets[f]
    start = graph.table_offsets[graph.table_of_factor[f]]
    if graph.kinds[f] == POTTS:
        c = graph.scope_variables[scope + 1 - parent]
        diagonal, off = potts_weights(semiring, graph.values[start])
        first, n = graph.state_offsets[c], graph.state_offsets[c + 1] - graph.state_offsets[c]
        for i in range(n):
            weights[i] = times(semiring, up[first + i, lane], diagonal if i == label else off)
        return n  # type: ignore[no-any-return]
    n_settings = 1
    for a in range(n_axes):
        v = graph.scope_variables[scope + a]
        digits[a] = label if a == parent else 0
        if a != parent:
            n_settings *= graph.state_offsets[v + 1] - graph.state_offsets[v]
    for x in range(n_settings):
        entry = 0
        for a in range(n_axes):
            v = graph.scope_variables[scope + a]
            entry = entry * (graph.state_offsets[v + 1] - graph.state_offsets[v]) + digits[a]
        weight = graph.values[start + entry]
        for a in range(n_axes):
            if a != parent:
                v = graph.scope_variables[scope + a]
                weight = times(semiring, weight, up[graph.state_offsets[v] + digits[a], lane])
        weights[x] = weight
        for a in range(n_axes - 1, -1, -1):
            if a != parent:
                v = graph.scope_variables[scope + a]
                digits[a] += 1
                if digits[a] < graph.state_offsets[v + 1] - graph.state_offsets[v]:
                    break
                digits[a] = 0
    return n_settings


@inlined
def set_children(graph: Graph, f: int, parent: int, setting: int, labels: IntArray) -> None:
    """Take the number of a setting apart into labels (V,)."""
    scope = graph.scope_offsets[f]
    for a in range(graph.scope_offsets[f + 1] - scope - 1, -1, -1):
        if a != parent:
            v = graph.scope_variables[scope + a]
            n = graph.state_offsets[v + 1] - graph.state_offsets[v]
            labels[v] = setting % n
            setting = setting // n


@inlined
def heaviest(n: int, weights: Array) -> int:
    """The first of the largest weights."""
    best = 0
    for i in range(1, n):
        if weights[i] > weights[best]:
            best = i
    return best


@inlined
def draw(semiring: int, n: int, weights: Array, u: float) -> int:
    """i with probability weights[i] / total; never one of weight zero. Overwrites weights."""
    if semiring == LOG_SUM:
        high = weights[heaviest(n, weights)]
        for i in range(n):
            weights[i] = math.exp(weights[i] - high) if high > -math.inf else 0.0
    total = 0.0
    for i in range(n):
        total += weights[i]
    threshold, reached, choice = u * total, 0.0, 0
    for i in range(n):
        if weights[i] > 0.0:
            reached += weights[i]
            choice = i
            if reached > threshold:
                break
    return choice


def make_decode(lanes: int) -> Callable[..., None]:
    """Kernel: labels (R, V) of the heaviest labelling of the span, from the up vectors of MAX."""

    def decode(graph: Graph, links: Links, sizes: Sizes, span: Span, up: Array, labels: IntArray) -> None:
        digits, weights = np.empty(sizes.max_arity, np.int64), np.empty(sizes.max_settings)
        for r in range(span.n_rows):
            row = labels[span.first_row + r]
            for j in range(span.first_root, span.last_root):
                v = links.roots[j]
                n = graph.state_offsets[v + 1] - graph.state_offsets[v]
                for i in range(n):
                    weights[i] = up[graph.state_offsets[v] + i, r]
                row[v] = heaviest(n, weights)
            for k in range(span.first_factor, span.last_factor):
                f, parent = links.order[k], links.parent_axis[k]
                label = row[graph.scope_variables[graph.scope_offsets[f] + parent]]
                n = list_settings(MAX, graph, f, parent, label, up, r, digits, weights)
                set_children(graph, f, parent, heaviest(n, weights), row)

    return decode


def make_sample(semiring: int) -> Callable[..., None]:
    """Kernel: samples first_sample to last_sample of one row, (R, n, V), from the up vectors of SUM or LOG_SUM."""

    def sample(
        graph: Graph,
        links: Links,
        sizes: Sizes,
        span: Span,
        up: Array,
        key: int,
        first_sample: int,
        last_sample: int,
        samples: IntArray,
    ) -> None:
        digits, weights = np.empty(sizes.max_arity, np.int64), np.empty(sizes.max_settings)
        for s in range(first_sample, last_sample):
            seed = stream(key, span.first_row, s)
            row = samples[span.first_row, s]
            for j in range(span.first_root, span.last_root):
                v = links.roots[j]
                n = graph.state_offsets[v + 1] - graph.state_offsets[v]
                for i in range(n):
                    weights[i] = up[graph.state_offsets[v] + i, 0]
                row[v] = draw(semiring, n, weights, uniform(seed, v))
            for k in range(span.first_factor, span.last_factor):
                f, parent = links.order[k], links.parent_axis[k]
                scope = graph.scope_offsets[f]
                first_child = graph.scope_variables[scope + (1 if parent == 0 else 0)]
                n = list_settings(
                    semiring, graph, f, parent, row[graph.scope_variables[scope + parent]], up, 0, digits, weights
                )
                set_children(graph, f, parent, draw(semiring, n, weights, uniform(seed, first_child)), row)

    return sample
