"""Labellings from the roots outwards, after the upward pass: the best one, and random ones.

The children of a factor are settled together, given the label of the parent: their settings are listed in row-major
order of the table's axes with weights table (x) prod_c up_c, and one is taken: the first of the heaviest (decode, in
the MAX semiring), or one at random in proportion to its weight (sample, in SUM or LOG_SUM). Random numbers come from
`besag.kernels.random`, one for each root and one for each factor (indexed by its first child), so that they do not
depend on chunks."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from besag.arrays import Array, IntArray
from besag.infer.trees.kernels.passes import FlatFactors, ForestLinks, Sizes, Span
from besag.kernels.compile import inlined
from besag.kernels.factors import TABLE
from besag.kernels.random import stream, uniform
from besag.kernels.semiring import LOG_SUM, MAX, times
from besag.model.structured.kernels.rules import level


@inlined
def n_settings(graph: FlatFactors, f: int, parent: int) -> int:
    """How many settings the children of f have."""
    scope, n = graph.scope_offsets[f], 1
    for a in range(graph.scope_offsets[f + 1] - scope):
        if a != parent:
            v = graph.scope_variables[scope + a]
            n *= graph.state_offsets[v + 1] - graph.state_offsets[v]
    return n


@inlined
def list_settings(
    semiring: int,
    graph: FlatFactors,
    f: int,
    parent: int,
    label: int,
    up: Array,
    lane: int,
    digits: IntArray,
    weights: Array,
) -> int:
    """weights = those of all settings of the children, given the parent's label; returns their number."""
    scope, n_axes = graph.scope_offsets[f], graph.scope_offsets[f + 1] - graph.scope_offsets[f]
    start, n = graph.table_offsets[graph.table_of_factor[f]], n_settings(graph, f, parent)
    if graph.kinds[f] != TABLE:
        c = graph.scope_variables[scope + 1 - parent]
        for i in range(n):
            one, other = (label, i) if parent == 0 else (i, label)
            weight = graph.values[start + level(graph.kinds[f], one, other)]
            weights[i] = times(semiring, up[graph.state_offsets[c] + i, lane], weight)
        return n
    for a in range(n_axes):
        digits[a] = label if a == parent else 0
    for x in range(n):
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
    return n


@inlined
def set_children(graph: FlatFactors, f: int, parent: int, setting: int, labels: IntArray) -> None:
    """Decode the number of a setting into labels (V,)."""
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
def accumulate(semiring: int, n: int, weights: Array) -> None:
    """weights = their running sums, in the linear domain."""
    if semiring == LOG_SUM:
        high = weights[heaviest(n, weights)]
        for i in range(n):
            weights[i] = math.exp(weights[i] - high) if high > -math.inf else 0.0
    for i in range(1, n):
        weights[i] += weights[i - 1]


@inlined
def reach(totals: Array, start: int, n: int, u: float) -> int:
    """The first of n running sums above u times the last; never one that adds nothing, if any adds something."""
    threshold = u * totals[start + n - 1]
    low, high = 0, n - 1
    while low < high:
        middle = (low + high) // 2
        if totals[start + middle] > threshold:
            high = middle
        else:
            low = middle + 1
    while low > 0 and totals[start + low] == totals[start + low - 1]:  # u next to 1, rounded up
        low -= 1
    return low


def make_decode(lanes: int) -> Callable[..., None]:
    """Kernel: labels (R, V) of the heaviest labelling of the span, from the up vectors of MAX."""

    def decode(graph: FlatFactors, links: ForestLinks, sizes: Sizes, span: Span, up: Array, labels: IntArray) -> None:
        digits, weights = np.empty(sizes.max_arity, np.int64), np.empty(sizes.max_settings)
        for r in range(span.n_rows):
            row, vectors, lane = labels[span.first_row + r], up[r // lanes], r % lanes
            for j in range(span.first_root, span.last_root):
                v = links.roots[j]
                n = graph.state_offsets[v + 1] - graph.state_offsets[v]
                for i in range(n):
                    weights[i] = vectors[graph.state_offsets[v] + i, lane]
                row[v] = heaviest(n, weights)
            for k in range(span.first_factor, span.last_factor):
                f, parent = links.order[k], links.parent_axis[k]
                label = row[graph.scope_variables[graph.scope_offsets[f] + parent]]
                n = list_settings(MAX, graph, f, parent, label, vectors, lane, digits, weights)
                set_children(graph, f, parent, heaviest(n, weights), row)

    return decode


@inlined
def tabulate(
    semiring: int,
    graph: FlatFactors,
    links: ForestLinks,
    span: Span,
    up: Array,
    digits: IntArray,
    weights: Array,
    totals: Array,
) -> None:
    """totals = running sums of the weights of all settings, for every factor of the span and every parent label."""
    start = 0
    for k in range(span.first_factor, span.last_factor):
        f, parent = links.order[k], links.parent_axis[k]
        p = graph.scope_variables[graph.scope_offsets[f] + parent]
        for label in range(graph.state_offsets[p + 1] - graph.state_offsets[p]):
            n = list_settings(semiring, graph, f, parent, label, up, 0, digits, weights)
            accumulate(semiring, n, weights)
            for i in range(n):
                totals[start + i] = weights[i]
            start += n


def make_sample(semiring: int) -> Callable[..., None]:
    """Kernel: samples first_sample to last_sample of the span's rows, (R, n, V), from the up vectors of SUM or LOG_SUM.

    n_entries: of all (expanded) tables of the span, to tabulate weights that many samples share; 0: do not tabulate.
    """

    def sample(
        graph: FlatFactors,
        links: ForestLinks,
        sizes: Sizes,
        span: Span,
        up: Array,
        key: int,
        first_sample: int,
        last_sample: int,
        n_entries: int,
        samples: IntArray,
    ) -> None:
        digits, weights = np.empty(sizes.max_arity, np.int64), np.empty(sizes.max_settings)
        totals = np.empty(n_entries)
        for r in range(span.n_rows):
            vectors = up[r]
            if n_entries > 0:
                tabulate(semiring, graph, links, span, vectors, digits, weights, totals)
            for s in range(first_sample, last_sample):
                seed = stream(key, span.first_row + r, s)
                row = samples[span.first_row + r, s]
                for j in range(span.first_root, span.last_root):
                    v = links.roots[j]
                    n = graph.state_offsets[v + 1] - graph.state_offsets[v]
                    for i in range(n):
                        weights[i] = vectors[graph.state_offsets[v] + i, 0]
                    accumulate(semiring, n, weights)
                    row[v] = reach(weights, 0, n, uniform(seed, v))
                start = 0
                for k in range(span.first_factor, span.last_factor):
                    f, parent = links.order[k], links.parent_axis[k]
                    scope = graph.scope_offsets[f]
                    p, first_child = graph.scope_variables[scope + parent], graph.scope_variables[scope]
                    if parent == 0:
                        first_child = graph.scope_variables[scope + 1]
                    u = uniform(seed, first_child)
                    if n_entries > 0:
                        n = n_settings(graph, f, parent)
                        setting = reach(totals, start + row[p] * n, n, u)
                        start += n * (graph.state_offsets[p + 1] - graph.state_offsets[p])
                    else:
                        n = list_settings(semiring, graph, f, parent, row[p], vectors, 0, digits, weights)
                        accumulate(semiring, n, weights)
                        setting = reach(weights, 0, n, u)
                    set_children(graph, f, parent, setting, row)

    return sample
