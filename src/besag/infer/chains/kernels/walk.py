"""Draws from hidden Markov chains, one uniform number for each state and one for each symbol."""

from __future__ import annotations

from collections.abc import Callable

from besag.arrays import Array, IntArray
from besag.kernels.random import pick


def make_walk() -> Callable[..., None]:
    """Kernel: start (K,), transition (K, K), emission (K, M), offsets, uniforms (T, 2) -> states and symbols (T,)."""

    def walk(
        start: Array,
        transition: Array,
        emission: Array,
        offsets: IntArray,
        uniforms: Array,
        states: IntArray,
        symbols: IntArray,
    ) -> None:
        n_states, n_symbols = emission.shape
        for s in range(len(offsets) - 1):
            for t in range(offsets[s], offsets[s + 1]):
                weights = start if t == offsets[s] else transition[states[t - 1]]
                states[t] = pick(weights, n_states, uniforms[t, 0])
                if n_symbols > 0:
                    symbols[t] = pick(emission[states[t]], n_symbols, uniforms[t, 1])

    return walk
