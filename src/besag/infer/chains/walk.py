"""Draws from hidden Markov chains."""

from __future__ import annotations

import numpy as np

from besag.arrays import Array, IntArray, freeze, offsets_of
from besag.infer.chains.kernels.walk import make_walk
from besag.kernels.compile import kernel_of, worth_compiling


def draw_chains(
    start: Array, transition: Array, emission: Array, lengths: IntArray, rng: np.random.Generator
) -> tuple[IntArray, IntArray, IntArray]:
    """States and symbols (T,) of sequences of these lengths (N,), and their offsets (N + 1,)."""
    offsets = offsets_of(lengths)
    n_tokens = int(offsets[-1])
    states, symbols = np.zeros(n_tokens, np.int64), np.zeros(n_tokens, np.int64)
    kernel = kernel_of(make_walk, compile=worth_compiling(float(n_tokens) * sum(emission.shape)))
    given = (freeze(array) for array in (start, transition, emission, offsets, rng.random((n_tokens, 2))))
    kernel(*given, states, symbols)
    return states, symbols, offsets
