"""The best labellings of many chains that share their transitions, straight from arrays, as a tagger needs them.

Building a Graph for each sentence would take longer than inference on it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from besag import recycled
from besag.arrays import Array, IntArray, freeze
from besag.infer.chains.kernels.k_best import make_best
from besag.infer.chains.kernels.viterbi import make_viterbi, pad_labels
from besag.kernels.compile import kernel_of, worth_compiling
from besag.kernels.threads import run_chunks

CHUNK = 1 << 13  # labels in a chunk of sequences


NOTHING_SHARED = freeze(np.zeros(0, np.int64))


def best_chains(
    unary: Array,
    transition: Array,
    offsets: IntArray,
    n_threads: int | None = None,
    *,
    row: IntArray = NOTHING_SHARED,
    initial: Array | None = None,
) -> IntArray:
    """(T,): the codes of the best labelling of each chain; unary (T, K), transition (K, K), offsets (N + 1,).

    row (T,): which row of unary (R, K) a token has, where tokens share rows. initial (K,): of first labels. A chain
    that has no labelling of positive probability gets codes of -1.
    """
    n_tokens, n_states = int(offsets[-1]), unary.shape[1]
    compile = worth_compiling(float(n_tokens) * n_states**2)
    kernel = kernel_of(make_viterbi, n_states, compile=compile)
    codes, begin = np.empty(n_tokens, np.int64), np.zeros(n_states) if initial is None else initial
    unary, row, begin = freeze(unary), freeze(row), freeze(begin)
    transition, offsets = freeze(transition), freeze(offsets)
    lengths, width = np.diff(offsets), pad_labels(n_states)

    def some(start: int, stop: int) -> None:
        scores = recycled.empty((int(lengths[start:stop].max(initial=0)), width))
        kernel(unary, row, begin, transition, offsets, start, stop, scores, codes)

    run_chains(some, offsets, n_threads)
    return codes


def run_chains(function: Callable[[int, int], object], offsets: IntArray, n_threads: int | None) -> None:
    """Call function(start, stop) for all chains, in chunks on several threads if they are long or many."""
    n_tokens, n_chains = int(offsets[-1]), len(offsets) - 1
    if n_tokens <= CHUNK:
        function(0, n_chains)
        return
    cuts = np.searchsorted(offsets, np.arange(0, n_tokens + CHUNK, CHUNK)).clip(max=n_chains)
    run_chunks(lambda i: function(cuts[i], cuts[i + 1]), len(cuts) - 1, n_threads)


def best_of_chain(unary: Array, transition: Array, k: int) -> tuple[IntArray, Array]:
    """The k best labellings of one chain (n, T), and the logarithms of their weights (n,); n < k if there are fewer."""
    n_tokens, n_states = unary.shape
    if n_tokens == 0:
        return np.zeros((1, 0), np.int64), np.zeros(1)
    kernel = kernel_of(make_best, compile=worth_compiling(float(n_tokens) * n_states**2 * k))
    codes, scores = np.empty((k, n_tokens), np.int64), np.empty(k)
    n = kernel(freeze(unary), freeze(transition), codes, scores)
    return codes[:n], scores[:n]
