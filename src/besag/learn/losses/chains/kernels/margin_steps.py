"""Pairwise Frank-Wolfe steps on chains, see `besag.learn.losses.block_ascent`: from features to theta in one pass.

Sequence n has tokens offsets[n] to offsets[n + 1]; token t has attributes[first[t]:first[t + 1]], with values, () if
all are one. Attribute a has the parameters [starts[a], starts[a + 1]) on the labels `elements`, in order. Corners are
labellings, kept as codes: corners (A, T) has in rows 0 to counts[n] those of sequence n, with alphas (N, A). So the
change of theta of a step is that of two labellings where they differ, and no table of the size of theta is written.

    log-potentials of tokens     e_t(k) = -sum_a x_ta theta[a, k] + ends + c_t [k != y_t]       (T_n, W)
    b                            the best labelling by Viterbi, or the best one of the corners where that is no worse
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from besag.arrays import AnyArray, Array, IntArray
from besag.infer.chains.kernels.viterbi import add_unary, best_before, pad_labels, raise_scores
from besag.kernels.compile import inlined

Kernel: TypeAlias = Callable[..., int]
SMALL = 1e-14  # a gain beside the score that it is a part of, which is nothing but rounding


@inlined
def place_of(starts: IntArray, elements: IntArray, n_states: int, attribute: int, label: int) -> int:
    """The parameter of an attribute and a label, -1 where there is none."""
    low, high = starts[attribute], starts[attribute + 1]
    if high - low == n_states:
        return int(low + label)
    end = high
    while low < high:
        middle = (low + high) // 2
        if elements[middle] < label:
            low = middle + 1
        else:
            high = middle
    return int(low) if low < end and elements[low] == label else -1


@inlined
def add_products(
    n_states: int,
    first: IntArray,
    attributes: AnyArray,
    values: Array,
    starts: IntArray,
    elements: IntArray,
    theta: Array,
    token: int,
    unary: Array,
    t: int,
) -> None:
    """unary_t -= x theta, of one token."""
    for j in range(first[token], first[token + 1]):
        x = values[j] if len(values) > 0 else 1.0
        low, high = starts[attributes[j]], starts[attributes[j] + 1]
        if high - low == n_states:
            for k in range(n_states):
                unary[t, k] -= x * theta[low + k]
        else:
            for p in range(low, high):
                unary[t, elements[p]] -= x * theta[p]


@inlined
def score_of(unary: Array, table: Array, codes: AnyArray, row: int, origin: int, length: int) -> float:
    """The score of a labelling."""
    score = unary[0, codes[row, origin]]
    for t in range(1, length):
        score += unary[t, codes[row, origin + t]] + table[codes[row, origin + t - 1], codes[row, origin + t]]
    return float(score)


def make_margin_steps(n_states: int) -> Kernel:
    """The kernel for K labels: steps of sequences order[begin:]; theta, pairs, corners, alphas, counts, loss change.

    theta (nnz,) of attributes, pairs (K, K) of transitions, twice_l2 their 2 l2; allowed (K, K) and ends (2, K) are 0,
    or -inf where something is ruled out. Returns len(order), or where it stopped for want of room for a corner.
    """
    width = pad_labels(n_states)

    def kernel(
        first: IntArray,
        attributes: AnyArray,
        values: Array,
        starts: IntArray,
        elements: IntArray,
        allowed: Array,
        ends: Array,
        offsets: IntArray,
        truth: IntArray,
        weights: Array,
        order: IntArray,
        begin: int,
        twice_l2: float,
        theta: Array,
        pairs: Array,
        corners: AnyArray,
        alphas: Array,
        counts: IntArray,
        loss: Array,
    ) -> int:
        n, longest, most = width, 0, 0
        for s in order:
            longest = max(longest, offsets[s + 1] - offsets[s])
            most = max(most, first[offsets[s + 1]] - first[offsets[s]])
        unary, scores, best = np.zeros((longest, n)), np.full((longest, n), -np.inf), np.empty((1, n))
        tables, transposed = np.full((n, n), -np.inf), np.full((n, n), -np.inf)
        guess, of_corner = np.empty((1, longest), corners.dtype), np.empty(len(corners))
        slope, slope_pairs = np.zeros(len(theta)), np.zeros((n_states, n_states))
        touched, changes = np.empty(2 * most, np.int64), np.empty(2 * most)
        for j in range(n_states):
            for k in range(n_states):
                tables[j, k] = transposed[k, j] = allowed[j, k] - pairs[j, k]
        for i in range(begin, len(order)):
            s = order[i]
            origin, length, weight = offsets[s], offsets[s + 1] - offsets[s], weights[s]
            if weight == 0.0:
                continue
            for t in range(length):
                for k in range(n_states):
                    unary[t, k] = 0.0 if k == truth[origin + t] else 1.0
                    if t == 0:
                        unary[t, k] += ends[0, k]
                    if t == length - 1:
                        unary[t, k] += ends[1, k]
                add_products(n_states, first, attributes, values, starts, elements, theta, origin + t, unary, t)
            for k in range(n_states):
                scores[0, k] = unary[0, k]
            for t in range(1, length):
                raise_scores(n, tables, scores, t - 1, best)
                add_unary(n_states, best, unary, t, scores, t)
            last = 0
            for k in range(1, n_states):
                last = k if scores[length - 1, k] > scores[length - 1, last] else last
            found = scores[length - 1, last]
            for t in range(length - 1, -1, -1):
                guess[0, t] = last
                if t > 0:
                    last = best_before(n, transposed, scores, t - 1, last)
            top, low = 0, 0
            for c in range(counts[s]):
                of_corner[c] = score_of(unary, tables, corners, c, origin, length)
                top = c if of_corner[c] > of_corner[top] else top
                low = c if of_corner[c] < of_corner[low] else low
            least = of_corner[low]
            tiny = SMALL * max(1.0, abs(found))
            if not found - least > tiny:
                continue
            if found - of_corner[top] > tiny:
                if counts[s] == len(corners):
                    return int(i)
                top = counts[s]
                for t in range(length):
                    corners[top, origin + t] = guess[0, t]
                alphas[s, top] = 0.0
                counts[s] += 1
                of_corner[top] = found
            n_touched, wrong = 0, 0
            for t in range(length):
                here, there = corners[top, origin + t], corners[low, origin + t]
                if t > 0:
                    slope_pairs[corners[top, origin + t - 1], here] += 1.0
                    slope_pairs[corners[low, origin + t - 1], there] -= 1.0
                if here == there:
                    continue
                wrong += (1 if here != truth[origin + t] else 0) - (1 if there != truth[origin + t] else 0)
                for j in range(first[origin + t], first[origin + t + 1]):
                    x = values[j] if len(values) > 0 else 1.0
                    for side in range(2):
                        p = place_of(starts, elements, n_states, attributes[j], there if side else here)
                        if p >= 0 and x != 0.0:
                            if slope[p] == 0.0:
                                touched[n_touched] = p
                                n_touched += 1
                            slope[p] += -x if side else x
            curved = 0.0
            for j in range(n_touched):
                p = touched[j]
                changes[j] = slope[p]
                slope[p] = 0.0
                curved += changes[j] * changes[j]
            for j in range(n_states):
                for k in range(n_states):
                    curved += slope_pairs[j, k] * slope_pairs[j, k]
            curved *= weight / (2.0 * twice_l2)
            gamma = alphas[s, low]
            if curved > 0.0:
                gamma = min(gamma, (of_corner[top] - least) / (2.0 * curved))
            eta = gamma * weight / twice_l2
            for j in range(n_touched):
                theta[touched[j]] += eta * changes[j]
            for j in range(n_states):
                for k in range(n_states):
                    if slope_pairs[j, k] != 0.0:
                        pairs[j, k] += eta * slope_pairs[j, k]
                        tables[j, k] = transposed[k, j] = allowed[j, k] - pairs[j, k]
                        slope_pairs[j, k] = 0.0
            loss[0] += gamma * weight * wrong
            alphas[s, top] += gamma
            alphas[s, low] -= gamma
            if not alphas[s, low] > 0.0:
                end = counts[s] - 1
                for t in range(length):
                    corners[low, origin + t] = corners[end, origin + t]
                alphas[s, low] = alphas[s, end]
                counts[s] = end
        return len(order)

    return kernel
