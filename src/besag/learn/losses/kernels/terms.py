"""Sums over the states of many small terms, and their shares on table entries.

    s_t(k) = sum over links j of t of log_potentials[cells[j] + k steps[j]]          k = 0, .., n_t - 1

A link with step -1 - y is a Potts factor whose other end is at y: its one number counts at all states but y.

Links to tables that many factors share are the same in many terms. What such a term has of them, one after the other,
is a path from the root of a tree of patterns, whose nodes are links and whose sums are made once; `pattern` is where
the path of a term ends, 0 where it has none.

    M terms, J links: those of term t are first[t] to first[t + 1]; G nodes, parents before children; L table entries
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from besag.arrays import AnyArray, Array, BoolArray, IntArray
from besag.infer.sampling.kernels.single_site import weigh
from besag.kernels.compile import at, inlined

FULL = 1e200  # what a product of sums, each at most the number of states, may grow to


def make_node_sums() -> Callable[..., None]:
    """Kernel: sums (G, K), what the links of a path say of each state."""

    def add_up(nodes: IntArray, log_potentials: Array, sums: Array) -> None:
        for g in range(1, len(sums)):
            for k in range(sums.shape[1]):
                sums[g, k] = sums[nodes[0, g], k]
            add_link(log_potentials, nodes[1, g], nodes[2, g], sums[g], sums.shape[1])

    return add_up


def make_node_shares() -> Callable[..., None]:
    """Kernel: the adjoint; adds shares (G, K) to moments (L,) and to those of parents."""

    def add_down(nodes: IntArray, shares: Array, moments: Array) -> None:
        for g in range(len(shares) - 1, 0, -1):
            for k in range(shares.shape[1]):
                shares[nodes[0, g], k] += shares[g, k]
            add_shares(shares[g], shares.shape[1], nodes[1, g], nodes[2, g], moments)

    return add_down


def make_sums(n_states: int, with_given: int) -> Callable[..., float]:
    """Kernel: sum_t w_t log sum_k exp s_t(k), t from start to stop; adds w_t p_t(k) to what s_t(k) is made of.

    That is to moments (L,) and to the shares (G, K) of patterns. n_states: of every term, 0 if they differ. with_given:
    whether `given` holds parts of s_t(k) that no link has, from `offset` on; w_t p_t(k) takes their place.
    """

    def add_sums(
        start: int,
        stop: int,
        offset: int,
        first: AnyArray,
        cells: AnyArray,
        steps: AnyArray,
        sizes: IntArray,
        weights: Array,
        pattern: AnyArray,
        sums: Array,
        log_potentials: Array,
        given: Array,
        shares: Array,
        moments: Array,
    ) -> float:
        s, total, product, weight = np.empty(sums.shape[1]), 0.0, 1.0, 0.0
        for t in range(start, stop):
            n, g = n_states if n_states > 0 else sizes[t], int(pattern[t])
            for k in range(n):
                s[k] = sums[at(g), k] + given[offset + k] if with_given else sums[at(g), k]
            for j in range(first[t], first[t + 1]):
                add_link(log_potentials, int(cells[j]), int(steps[j]), s, n)
            top = s[0]
            for k in range(1, n):
                top = max(top, s[k])
            z = weigh_two(s) if n_states == 2 else weigh(s, n)
            if weights[t] != weight or product > FULL:  # one logarithm for many z
                total += weight * math.log(product)
                product, weight = 1.0, weights[t]
            product *= z
            total += weight * top
            for k in range(n):
                s[k] *= weights[t] / z
                shares[at(g), k] += s[k]
            for j in range(first[t], first[t + 1]):
                add_shares(s, n, int(cells[j]), int(steps[j]), moments)
            if with_given:
                for k in range(n):
                    given[offset + k] = s[k]
            offset += n
        return total + weight * math.log(product)

    return add_sums


def make_reach() -> Callable[..., int]:
    """Kernel: how far apart chunks of terms that add to one number are at most; starts (C + 1,), lowest (L,) all C."""

    def find_reach(
        starts: IntArray, first: AnyArray, cells: AnyArray, steps: AnyArray, sizes: IntArray, lowest: IntArray
    ) -> int:
        reach = 0
        for c in range(len(starts) - 1):
            for t in range(starts[c], starts[c + 1]):
                for j in range(first[t], first[t + 1]):
                    cell, step = int(cells[j]), int(steps[j])
                    for k in range(sizes[t] if step >= 0 else 1):
                        lowest[cell + k * max(step, 0)] = min(lowest[cell + k * max(step, 0)], c)
                        reach = max(reach, c - lowest[cell + k * max(step, 0)])
        return reach

    return find_reach


@inlined
def weigh_two(s: Array) -> float:
    """`weigh` for two states, by one exponential."""
    gap = s[1] - s[0]
    low = math.exp(-abs(gap))
    s[0], s[1] = (low, 1.0) if gap > 0.0 else (1.0, low)
    return 1.0 + low


@inlined
def add_link(log_potentials: Array, cell: int, step: int, s: Array, n: int) -> None:
    """What a link says of each state."""
    if step >= 0:
        for k in range(n):
            s[k] += log_potentials[at(cell + k * step)]
    else:
        for k in range(n):
            s[k] += log_potentials[at(cell)]
        s[-1 - step] -= log_potentials[at(cell)]


@inlined
def add_shares(s: Array, n: int, cell: int, step: int, moments: Array) -> None:
    """The adjoint."""
    if step >= 0:
        for k in range(n):
            moments[at(cell + k * step)] += s[k]
    else:
        for k in range(n):
            moments[at(cell)] += s[k]
        moments[at(cell)] -= s[-1 - step]


def make_patterns() -> Callable[..., int]:
    """Kernel: takes links to shared (L,) cells out of the terms, and gives each term its pattern (M,).

    nodes (3, most): parent, cell and step of each; slots (a power of two,), all -1: which node is where by its hash.
    What is left of the links is moved to the front, own_first is then their `first`. Returns how many nodes there are;
    0 where `most` would not do, and no link has moved.
    """

    def find_patterns(
        first: AnyArray,
        cells: AnyArray,
        steps: AnyArray,
        shared: BoolArray,
        pattern: AnyArray,
        nodes: IntArray,
        slots: IntArray,
        own_first: AnyArray,
    ) -> int:
        count, mask = 1, len(slots) - 1
        for t in range(len(pattern)):
            g = 0
            for j in range(first[t], first[t + 1]):
                cell, step = int(cells[j]), int(steps[j])
                if not shared[cell]:
                    continue
                h = (g * 7919 + cell * 104729 + step * 31) & mask
                while slots[h] >= 0 and (
                    nodes[0, slots[h]] != g or nodes[1, slots[h]] != cell or nodes[2, slots[h]] != step
                ):
                    h = (h + 1) & mask
                if slots[h] < 0:
                    if count == nodes.shape[1]:
                        return 0
                    nodes[0, count], nodes[1, count], nodes[2, count] = g, cell, step
                    slots[h] = count
                    count += 1
                g = slots[h]
            pattern[t] = g
        n = 0
        for t in range(len(pattern)):
            own_first[t] = n
            for j in range(first[t], first[t + 1]):
                if not shared[cells[j]]:
                    cells[n], steps[n] = cells[j], steps[j]
                    n += 1
        own_first[len(pattern)] = n
        return count

    return find_patterns
