"""Marginals and log Z of many chains that share their transitions, straight from arrays, as in `best`.

Chains whose numbers are too far apart for the linear domain are done again in the log domain, each by itself: the
answer for a chain depends neither on the other chains nor on the number of threads.
"""

from __future__ import annotations

import numpy as np

from besag.arrays import Array, IntArray, freeze
from besag.infer.chains.best import run_chains
from besag.infer.chains.kernels.marginals import make_log_sums, make_sums
from besag.kernels.compile import kernel_of, worth_compiling

NOTHING_KNOWN = freeze(np.zeros(0, np.int64))


def chain_marginals(
    unary: Array, transition: Array, offsets: IntArray, known: IntArray | None = None, n_threads: int | None = None
) -> tuple[Array, Array]:
    """Probabilities (T, K) and log Z (N,); unary (T, K), transition (K, K), offsets (N + 1,), known (T,), -1 = free.

    A chain that has no labelling of positive probability gets log Z = -inf and probabilities 0.
    """
    probabilities = np.empty(unary.shape)
    return probabilities, _sums(unary, transition, offsets, known, probabilities, n_threads)


def chain_partitions(
    unary: Array, transition: Array, offsets: IntArray, known: IntArray | None = None, n_threads: int | None = None
) -> Array:
    """log Z (N,) alone, by the forward pass."""
    return _sums(unary, transition, offsets, known, np.empty((0, unary.shape[1])), n_threads)


def _sums(
    unary: Array,
    transition: Array,
    offsets: IntArray,
    known: IntArray | None,
    probabilities: Array,
    n_threads: int | None,
) -> Array:
    n_tokens, n_states = unary.shape
    compile = worth_compiling(float(n_tokens) * n_states**2)
    linear = kernel_of(make_sums, n_states, compile=compile)
    log_z, lost = np.zeros(len(offsets) - 1), np.zeros(len(offsets) - 1, np.bool_)
    codes = NOTHING_KNOWN if known is None else freeze(known)
    unary, transition, offsets = freeze(unary), freeze(transition), freeze(offsets)

    def some(start: int, stop: int) -> None:
        if linear(unary, transition, offsets, codes, start, stop, probabilities, log_z, lost):
            again = kernel_of(make_log_sums, compile=compile)
            again(unary, transition, offsets, codes, start, stop, probabilities, log_z, lost)

    run_chains(some, offsets, n_threads)
    return log_z
